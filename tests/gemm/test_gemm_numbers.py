"""Products of every type on every matrix unit, and without one, in the emulator against NumPy."""

from __future__ import annotations

from pathlib import Path

import pytest
from gemm_cases import TYPES, build, close, exact, numbers, product_is_right, run

SIZES = (40, 48, 72)  # tails of rows, columns and K
KINDS = (
    ("float16", "float32"),
    ("float16", "float16"),
    ("bfloat16", "float32"),
    ("bfloat16", "bfloat16"),
    ("float32", "float32"),
    ("int8", "int32"),
    ("uint8", "int32"),
    ("float64", "float64"),
    ("float8_e4m3fn", "float32"),
    ("float8_e5m2", "float32"),
)
ARCHES = ("sm_70", "sm_75", "sm_80", "sm_89", "sm_120")
TURNS = ((False, False), (True, False), (False, True), (True, True))

# What a kind is multiplied with: on Ampere, and where another chip differs.
INSTRUCTIONS = {
    ("float16", "float32"): "m16n8k16.row.col.f32.f16",
    ("float16", "float16"): "m16n8k16.row.col.f16.f16",
    ("bfloat16", "float32"): "m16n8k16.row.col.f32.bf16",
    ("bfloat16", "bfloat16"): "m16n8k16.row.col.f32.bf16",
    ("float32", "float32"): "m16n8k8.row.col.f32.tf32",
    ("int8", "int32"): "m16n8k32.row.col.s32.s8",
    ("uint8", "int32"): "m16n8k32.row.col.s32.u8",
    ("float64", "float64"): "m8n8k4.row.col.f64",
    ("float8_e4m3fn", "float32"): "m16n8k16.row.col.f32.f16",  # widened
    ("float8_e5m2", "float32"): "m16n8k16.row.col.f32.f16",
}


@pytest.mark.parametrize(("dtype", "sums"), KINDS)
@pytest.mark.parametrize("turned", TURNS[:2] + TURNS[3:], ids=("plain", "A turned", "both turned"))
def test_ampere(tmp_path: Path, dtype: str, sums: str, turned: tuple[bool, bool]) -> None:
    defines = {"dtype": dtype, "sum_dtype": sums, "trans_A": turned[0], "trans_B": turned[1]}
    text = product_is_right(tmp_path, "cuda:sm_80", defines, SIZES)
    assert f"mma.sync.aligned.{INSTRUCTIONS[dtype, sums]}" in text


@pytest.mark.parametrize(
    ("arch", "dtype", "sums", "instruction"),
    [
        ("sm_70", "float16", "float32", "m8n8k4"),
        ("sm_70", "float16", "float16", "m8n8k4"),
        ("sm_75", "float16", "float32", "m16n8k8"),
        ("sm_75", "int8", "int32", "m8n8k16"),
        ("sm_75", "bfloat16", "float32", None),
        ("sm_89", "float8_e4m3fn", "float32", "m16n8k32.row.col.f32.e4m3.e4m3"),
        ("sm_89", "float8_e5m2", "float32", "m16n8k32.row.col.f32.e5m2.e5m2"),
        ("sm_90", "float8_e4m3fn", "float32", "m16n8k16.row.col.f32.f16"),
    ],
)
@pytest.mark.parametrize("turned", (TURNS[0], TURNS[3]), ids=("plain", "both turned"))
def test_other_chips(
    tmp_path: Path,
    arch: str,
    dtype: str,
    sums: str,
    instruction: str | None,
    turned: tuple[bool, bool],
) -> None:
    defines = {"dtype": dtype, "sum_dtype": sums, "trans_A": turned[0], "trans_B": turned[1]}
    text = product_is_right(tmp_path, f"cuda:{arch}", defines, SIZES)
    assert (f"mma.sync.aligned.{instruction}" in text) if instruction else "mma.sync" not in text


TILES = (
    (20, 12, 5, 96),
    (16, 24, 16, 31),
    (1, 64, 32, 64),
    (32, 32, 24, 32),  # K of 8 more than 16
    (48, 40, 16, 96),  # three warps
    (7, 13, 3, 200),  # more threads than sums
)


@pytest.mark.parametrize("tile", TILES, ids=str)
def test_any_tile_and_threads(tmp_path: Path, tile: tuple[int, int, int, int]) -> None:
    defines = dict(zip(("block_M", "block_N", "block_K", "threads"), tile, strict=True))
    product_is_right(tmp_path, "cuda:sm_80", {**defines, "trans_B": True}, (37, 29, 53))


@pytest.mark.parametrize(("policy", "warps"), [("full_row", "4 x 1"), ("full_col", "1 x 4")])
def test_policies(tmp_path: Path, policy: str, warps: str) -> None:
    defines = {"policy": policy, "block_M": 64, "block_N": 64, "threads": 128}
    text = product_is_right(tmp_path, "cuda:sm_80", defines, SIZES)
    assert f"{warps} warps" in text


@pytest.mark.parametrize("target", ["cuda:sm_90", "cuda:sm_80", "cuda:sm_75"])
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_every_8_bit_float_is_widened_exactly(tmp_path: Path, target: str, dtype: str) -> None:
    import numpy as np

    build(tmp_path, "product", target, {"dtype": dtype})
    a = np.zeros((256, 32), TYPES[dtype])
    a[:, 0] = np.arange(256, dtype=np.uint8).view(TYPES[dtype])
    b = np.zeros((32, 8), TYPES[dtype])
    b[0, :] = 1
    assert np.array_equal(run(tmp_path, target, a, b)[:, 0], exact(a)[:, 0], equal_nan=True)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(("dtype", "sums"), KINDS)
@pytest.mark.parametrize("turned", TURNS, ids=str)
@pytest.mark.parametrize(
    "tile", [(32, 32, 32, 64), (64, 48, 32, 128), (16, 16, 8, 32), (24, 20, 12, 40)], ids=str
)
def test_sweep(
    tmp_path: Path,
    arch: str,
    dtype: str,
    sums: str,
    turned: tuple[bool, bool],
    tile: tuple[int, int, int, int],
) -> None:
    defines: dict[str, object] = dict(
        zip(("block_M", "block_N", "block_K", "threads"), tile, strict=True)
    )
    defines |= {"dtype": dtype, "sum_dtype": sums, "trans_A": turned[0], "trans_B": turned[1]}
    for sizes in ((70, 50, 90), (1, 1, 1), (64, 48, 64)):
        product_is_right(tmp_path, f"cuda:{arch}", defines, sizes)


def test_numbers_of_the_cases_are_not_trivial() -> None:
    assert close(exact(numbers("float16", 3)), exact(numbers("float16", 3)), "float16", "float32")
    assert not close(exact(numbers("int8", 3)), exact(numbers("int8", 3)) + 1, "int8", "int32")
