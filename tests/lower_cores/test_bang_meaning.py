"""Generated BANG C means what the tile program means: emulator against interpreter.

The programs are those of the other cores, and products. Both checks of the emulator are on, so a
missing synchronisation, a read past a tile or a stored element that nothing wrote fails as well.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from cores_harness import compare, lowered, program
from test_cores_meaning import CASES, ROWS
from tile2c.transpile.diagnostics import InputError

OTHER = "bang:mtp_592"
FIRST = "bang:mtp_372"
QUICK = {
    "add": (FIRST, OTHER),
    "row_sum": (FIRST,),
    "repeated": (FIRST,),
    "bfloat16": (FIRST, OTHER),
    "conditions": (FIRST,),
    "functions": (FIRST,),
    "halves": (OTHER,),
    "integers": (FIRST,),
    "online_softmax": (FIRST,),
    "planes": (FIRST,),
    "reductions": (FIRST,),
    "single_elements": (FIRST,),
}
PRODUCTS = [{"M": m, "N": n, "K": k} for m, n, k in ((1, 1, 1), (33, 50, 40), (70, 100, 96))]


def cases() -> list[object]:
    return [
        pytest.param(name, target, marks=[] if target in QUICK.get(name, ()) else pytest.mark.slow)
        for name in CASES
        for target in (FIRST, OTHER)
    ]


@pytest.mark.parametrize(("name", "target"), cases())
def test_emulator_agrees_with_interpreter(name: str, target: str, tmp_path: Path) -> None:
    defines, sizes = CASES[name]
    compare(program(name), tmp_path, defines, sizes, target)


@pytest.mark.parametrize(
    ("defines", "target"),
    [
        ({}, FIRST),
        ({"transpose_B": True, "block_N": 64, "dtype": "bfloat16"}, FIRST),
        ({"transpose_A": True, "dtype": "bfloat16", "block_K": 24}, OTHER),
        pytest.param({"transpose_A": True}, FIRST, marks=pytest.mark.slow),
        pytest.param({"transpose_B": True}, FIRST, marks=pytest.mark.slow),
        pytest.param({"dtype": "float32", "block_N": 64}, FIRST, marks=pytest.mark.slow),
    ],
)
def test_products(defines: dict[str, object], target: str, tmp_path: Path) -> None:
    compare(program("weights_products"), tmp_path, defines, PRODUCTS, target)


def test_numbers_of_8_bits(tmp_path: Path) -> None:
    sizes = [{"M": m, "N": n} for m, n in ((1, 1), (17, 100), (33, 300))]
    compare(program("quantize_int8"), tmp_path, {}, sizes, OTHER)


def test_bytes_are_filled(tmp_path: Path) -> None:
    compare(program("bytes_filled"), tmp_path, {}, [{"N": 300}], FIRST)


def test_values_met_by_themselves(tmp_path: Path) -> None:
    compare(program("of_itself"), tmp_path, {}, [{"M": 11, "N": 70}], FIRST)


def test_tiles_added_to_a_tensor(tmp_path: Path) -> None:
    compare(program("additions"), tmp_path, {}, [{"M": 40, "N": 50}, {"M": 1, "N": 7}], FIRST)


@pytest.mark.parametrize("name", ["transpose_scale_bias", "top_k"])
def test_what_only_these_cores_turn_and_compare(name: str, tmp_path: Path) -> None:
    sizes = [{"M": 70, "N": 90}] if name == "transpose_scale_bias" else [{"M": 20}]
    compare(program(name), tmp_path, {}, sizes, FIRST)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_parts_of_turned_tiles(dtype: str, tmp_path: Path) -> None:
    compare(program("turned"), tmp_path, {"dtype": dtype}, [{"M": 33, "N": 50}], FIRST)


@pytest.mark.parametrize("width", [200, pytest.param(37, marks=pytest.mark.slow)])
def test_scans(width: int, tmp_path: Path) -> None:
    compare(program("scans"), tmp_path, {"block_N": width}, [{"M": 7, "N": 257}], FIRST)


def test_dimensions_in_every_order(tmp_path: Path) -> None:
    compare(program("permuted"), tmp_path, {}, [{}], FIRST)


def test_integers_compared(tmp_path: Path) -> None:
    compare(program("integers_compared"), tmp_path, {}, [{"M": 33, "N": 50}], FIRST)


def test_copies_end_where_an_element_of_a_tensor_says(tmp_path: Path) -> None:
    compare(program("limits_read"), tmp_path, {}, [{"M": 1}, {"M": 200}], FIRST)


def test_flash_attention(tmp_path: Path) -> None:
    sizes = [{"batch": 1, "heads": 2, "seq_q": q, "seq_kv": kv} for q, kv in ((64, 64), (70, 130))]
    compare(program("flash_attention"), tmp_path, {}, sizes, FIRST)


@pytest.mark.parametrize("rows", [4, pytest.param(40, marks=pytest.mark.slow)])
def test_softmax_of_several_rows_a_block(rows: int, tmp_path: Path) -> None:
    compare(program("softmax"), tmp_path, {"N": 100, "block_M": rows}, ROWS, FIRST)


def test_strips_past_the_last_row_do_nothing(tmp_path: Path) -> None:
    sizes = [{"M": 5, "N": 70}, {"M": 200, "N": 30}]
    compare(program("strips_and_wholes"), tmp_path, {"block_M": 256}, sizes, OTHER)


def test_sums_into_a_tensor_are_not_taken_once_a_strip() -> None:
    lowered(program("strips_and_wholes"), {}, OTHER)
    with pytest.raises(InputError) as refused:
        lowered(program("strips_and_wholes"), {"sums": True}, OTHER)
    assert refused.value.diagnostic.code == "T2C556"
