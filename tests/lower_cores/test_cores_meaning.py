"""Generated Ascend C means what the tile program means: emulator against interpreter.

Both checks of the emulator are on, so a missing flag, a read past a tile or a stored padding element
fails as well.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from cores_harness import compare, program

PLANES = [
    {"M": m, "N": n} for m, n in ((1, 1), (2, 7), (3, 31), (5, 33), (4, 100), (70, 257), (3, 1000))
]
LINES = [{"N": n} for n in (1, 7, 31, 33, 100, 257, 1000, 5000)]
ROWS = [{"M": m} for m in (1, 2, 3, 5, 17)]

CASES: dict[str, tuple[dict[str, object], list[dict[str, int]]]] = {
    "add": ({}, LINES),
    "row_sum": ({}, PLANES),
    "bfloat16": ({}, PLANES),
    "part_of_a_tile": ({}, PLANES),
    "bias_and_scale": ({}, PLANES),
    "bytes_computed": ({}, [{"M": 1, "N": 1}, {"M": 13, "N": 150}]),
    "column_strips": ({}, [{"N": 5}, {"N": 70001}]),
    "column_sums": ({}, PLANES),
    "chosen_then_reduced": ({}, [{}]),
    "columns": ({}, [{"M": m} for m in (1, 7, 17, 40)]),
    "conditions": ({}, PLANES),
    "control": ({}, PLANES),
    "converting_copy": ({}, PLANES),
    "fixed_sizes": ({}, [{}]),
    "free_columns": ({}, PLANES),
    "functions": ({}, LINES),
    "guarded_stores": ({}, PLANES),
    "halves": ({}, [{"M": m, "N": n} for m, n in ((1, 2), (33, 10), (5, 2050), (2, 4096))]),
    "in_place": ({}, LINES),
    "integers": ({}, LINES),
    "integers_compared": ({}, PLANES),
    "layernorm": ({"N": 257}, ROWS),
    "online_softmax": ({}, PLANES),
    "permuted": ({}, [{}]),
    "planes": ({}, PLANES),
    "reductions": ({}, PLANES),
    "transpose_scale_bias": ({}, PLANES),
    "turned": ({}, PLANES),
    "relu": ({}, PLANES),
    "rmsnorm": ({"N": 100}, ROWS),
    "top_k": ({"N": 130, "block_M": 5}, ROWS),
    "repeated": ({}, ROWS),
    "row_strips": ({}, PLANES),
    "strips_and_wholes": ({}, [{"M": m, "N": n} for m, n in ((5, 70), (70, 500), (200, 30))]),
    "rows_of_a_tile": ({}, PLANES),
    "scans": ({}, [{"M": 1, "N": 1}, {"M": 7, "N": 257}]),
    "cumsum": ({}, PLANES),
    "single_elements": ({}, PLANES),
    "branches": ({}, PLANES),
    "dequantize": ({}, PLANES),
    "four_inputs": ({}, PLANES),
    "limits_read": ({}, [{"M": 1}, {"M": 200}]),
    "many_inputs": ({}, [*LINES, {"N": 9000}]),
    "mixed": ({}, PLANES),
    "tall_tiles": ({}, [*PLANES, {"M": 600, "N": 90}]),
    "three_grids": (
        {},
        [{"B": b, "M": m, "N": n} for b, m, n in ((1, 1, 1), (2, 3, 31), (3, 5, 100))],
    ),
}

# The rest covers the same mechanisms in other mixtures.
QUICK = {
    "add", "row_sum", "bfloat16", "part_of_a_tile", "conditions", "control", "halves", "online_softmax",
    "planes", "reductions", "row_strips", "strips_and_wholes", "single_elements", "turned",
    "integers_compared", "scans", "cumsum", "bytes_computed", "permuted",
    "limits_read", "chosen_then_reduced", "repeated",
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES],
)
def test_emulator_agrees_with_interpreter(name: str, tmp_path: Path) -> None:
    defines, sizes = CASES[name]
    compare(program(name), tmp_path, defines, sizes)


@pytest.mark.parametrize(
    "width", [33, 1000, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 7, 31, 100, 257))]
)
def test_softmax_of_any_width(width: int, tmp_path: Path) -> None:
    compare(program("softmax"), tmp_path, {"N": width}, ROWS[:4])


@pytest.mark.parametrize(
    "defines",
    [
        {"dtype": "float32"},
        *(
            pytest.param(defines, marks=pytest.mark.slow)
            for defines in (
                {"dtype": "bfloat16", "block_M": 24, "block_N": 48},
                {"dtype": "float32", "block_M": 3, "block_N": 70},
            )
        ),
    ],
)
def test_turned_tiles_of_any_type(defines: dict[str, object], tmp_path: Path) -> None:
    compare(program("turned"), tmp_path, defines, PLANES[1:4])


@pytest.mark.slow
@pytest.mark.parametrize(
    "defines",
    [
        {"block_N": 37},  # padding behind each row
        {"block_N": 512, "block_M": 3, "planes": 2},  # stretches of all rows turned as one
        {"block_N": 48, "block_M": 19},
    ],
)
def test_scans_of_any_width(defines: dict[str, object], tmp_path: Path) -> None:
    compare(program("scans"), tmp_path, defines, [{"M": 21, "N": 1003}])


@pytest.mark.parametrize("rows", [4, pytest.param(40, marks=pytest.mark.slow)])
def test_softmax_of_several_rows_a_block(rows: int, tmp_path: Path) -> None:
    compare(program("softmax"), tmp_path, {"N": 100, "block_M": rows}, ROWS)
