"""Choices of the plan, and how its text reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from cores_harness import PROGRAMS, SAMPLES, lowered, program
from tile2c.transpile.lower.cores import print_plan

NAMES = sorted(path.stem for path in PROGRAMS.glob("*.py"))
DEFINES: dict[str, dict[str, object]] = {"layernorm": {"N": 257}, "rmsnorm": {"N": 100}}


def steps(name: str, defines: dict[str, object] | None = None) -> str:
    plan = lowered(program(name), defines or {}).plan
    assert plan is not None
    return print_plan(plan)


def test_add_loads_ahead_and_computes_in_one_call() -> None:
    text = steps("add")
    assert "tile A_tile: float32 1 x 1024, pitch 1024, 4096 bytes, in x 2" in text
    assert "tile C_tile: float32 1 x 1024, pitch 1024, 4096 bytes, out x 2" in text
    assert "V Add C_tile <- A_tile, B_tile, count" in text
    assert "order" not in text  # the queues carry all of it


def test_in_place_work_gets_a_second_tile() -> None:
    text = steps("relu")
    assert "tile x: float16 64 x 24, pitch 32, 4096 bytes, in x 2" in text
    assert "tile x_out: float16 64 x 24, pitch 32, 4096 bytes, out x 2" in text


def test_zeros_only_where_elements_meet() -> None:
    assert "Duplicate tile <- 0," in steps("row_sum")  # its columns are summed
    assert "Duplicate" not in steps("relu")  # what lies outside is never stored


@pytest.mark.parametrize(
    ("name", "choice"),
    [("row_strips", "16 of 128 rows"), ("column_strips", "4096 of 32768 columns")],
)
def test_tiles_too_large_are_taken_in_strips(name: str, choice: str) -> None:
    assert f"choice strips: {choice}" in steps(name)


def test_a_small_constant_grid_needs_no_loop() -> None:
    form = lowered(program("fixed_sizes"), {})
    assert "choice blocks: one a core" in steps("fixed_sizes")
    assert "GetBlockNum" not in form.text


@pytest.mark.parametrize("name", NAMES)
def test_text_is_as_wide_as_a_page_and_stable(name: str) -> None:
    path = program(name)
    text = lowered(path, DEFINES.get(name, {})).text
    assert max(len(line) for line in text.split("\n")) <= 100
    assert lowered(path, DEFINES.get(name, {})).text == text
    assert text.count("#include") == 1
    for helper in ("copy_in", "copy_out", "copy_in_row", "copy_out_row", "order"):
        uses = text.count(f"{helper}(") + text.count(f"{helper}<")
        assert uses != 1, f"{helper} is declared and not used"


def test_the_authors_words_survive() -> None:
    text = lowered(SAMPLES / "row_sum.py", {}).text
    assert "constexpr int32_t block_M = 8;" in text
    assert "// Columns past N arrive as zeros and do not change the sums." in text
    assert "// T.reduce_sum(tile, sums, dim=1, clear=False)" in text
    assert str(Path(__file__).parent) not in text
