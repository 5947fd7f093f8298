"""Kernels with roles in the emulator, races and memory checked, against NumPy in float64."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import tile2c
from hopper_cases import TARGET, build, inputs, right

SQUARE = {"block_M": 64, "block_N": 64, "block_K": 32}
FLOATS_8 = {**SQUARE, "block_K": 128, "dtype": "float8_e4m3fn", "trans_B": True}
BYTES = {
    **SQUARE, "block_K": 64, "dtype": "int8", "acc_dtype": "int32", "out_dtype": "int32", "trans_B": True
}  # fmt: skip
FEW = {"block_M": 16, "block_N": 64, "block_K": 64, "num_stages": 2}
WIDE = {"block_M": 128, "block_N": 256, "block_K": 64, "threads": 256, "num_stages": 4}

# kernel, defines, and sizes M, N, K: tails in each, fewer rounds than stages, rounds that wrap the ring
CASES = {
    "square": ("product", SQUARE, ((136, 72, 136), (64, 64, 32), (1, 8, 8))),
    "wide": ("product", WIDE, ((136, 264, 328),)),
    "flat": ("product", {**SQUARE, "block_N": 256, "threads": 128}, ((72, 264, 104),)),
    "split columns": ("product", {**SQUARE, "block_N": 256, "threads": 256}, ((72, 264, 104),)),
    "split, narrow": ("product", {**SQUARE, "threads": 256}, ((72, 72, 104),)),
    "two blocks of rows": ("product", {"block_M": 128, "block_N": 64, "block_K": 128}, ((136, 72, 264),)),
    "K of 16": ("product", {**SQUARE, "block_K": 16, "num_stages": 2}, ((72, 72, 88),)),
    "N of 96": ("product", {**SQUARE, "block_N": 96}, ((72, 104, 72),)),
    "A turned": ("product", {**SQUARE, "trans_A": True}, ((72, 72, 104),)),
    "A turned, two warpgroups": (
        "product",
        {**SQUARE, "block_M": 128, "threads": 256, "trans_A": True},
        ((136, 72, 104),),
    ),
    "B turned": ("product", {**SQUARE, "trans_B": True}, ((72, 72, 104),)),
    "both turned": ("product", {**SQUARE, "trans_A": True, "trans_B": True}, ((72, 72, 104),)),
    "bfloat16": ("product", {**SQUARE, "dtype": "bfloat16", "out_dtype": "bfloat16"}, ((72, 72, 104),)),
    "float32 out": ("product", {**SQUARE, "out_dtype": "float32"}, ((72, 76, 104), (72, 72, 104))),
    "8-bit floats": ("product", FLOATS_8, ((72, 72, 160), (1, 16, 16))),
    "8-bit floats, 256 of K a round": ("product", {**FLOATS_8, "block_K": 256}, ((72, 72, 528),)),
    "8-bit floats, 96 of K a round": ("product", {**FLOATS_8, "block_K": 96}, ((72, 72, 208),)),
    "8-bit floats, in parts": (
        "product", {**FLOATS_8, "block_M": 128, "block_N": 256, "threads": 256}, ((136, 264, 144),)
    ),
    "8-bit floats, mixed": ("product", {**FLOATS_8, "b_dtype": "float8_e5m2"}, ((72, 72, 160),)),
    "8-bit floats, fast": ("product", {**FLOATS_8, "fast_accumulation": True}, ((72, 72, 160),)),
    "8-bit floats, scaled": ("scaled", {}, ((72, 136, 400), (1, 16, 16))),
    "bytes": ("product", BYTES, ((72, 76, 160), (1, 16, 16))),
    "turned for width": (
        "product", {**SQUARE, "block_M": 256, "block_N": 128, "threads": 256}, ((264, 136, 72), (65, 67, 33))
    ),
    "few rows": ("product", FEW, ((16, 72, 200), (1, 8, 8), (33, 136, 72))),
    "few rows, B turned": ("product", {**FEW, "trans_B": True}, ((9, 72, 200),)),
    "few rows, A turned": ("product", {**FEW, "trans_A": True, "block_M": 32}, ((24, 72, 136),)),
    "few rows, two warpgroups": ("product", {**FEW, "block_N": 128, "threads": 256}, ((9, 200, 136),)),
    "eight rows into float32": (
        "product", {**FEW, "block_M": 8, "block_N": 192, "out_dtype": "float32"}, ((9, 200, 136),)
    ),
    "few rows of 8-bit floats": ("product", {**FLOATS_8, "block_M": 16}, ((9, 72, 272),)),
    "batched": ("batched", {}, ((72, 72, 72),)),
    "a second launch behind it": ("in_two", {}, ((72, 72, 72), (9, 11, 13))),
    "gated": ("gated", {"block_M": 64, "threads": 128}, ((72, 72, 104),)),
    "decayed": ("decayed", {}, ((72, 72, 104),)),
    "staged": ("staged", {"block_M": 64, "block_N": 64, "threads": 128}, ((72, 72, 104),)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_numbers_are_right(tmp_path: Path, case: str) -> None:
    kernel, defines, sizes = CASES[case]
    text = build(tmp_path, kernel, defines)
    assert "wgmma" in text
    for m, n, k in sizes:
        assert right(tmp_path, kernel, defines, inputs(kernel, defines, m, n, k)), (m, n, k)


def test_sizes_that_tma_cannot_load_take_the_other_entry(tmp_path: Path) -> None:
    build(tmp_path, "product", SQUARE)
    for m, n, k in ((65, 67, 33), (64, 72, 0), (72, 66, 40)):
        assert right(tmp_path, "product", SQUARE, inputs("product", SQUARE, m, n, k)), (m, n, k)


def test_promised_and_known_sizes_leave_one_entry(tmp_path: Path) -> None:
    known = {**SQUARE, "M": 72, "N": 72, "K": 104}
    text = build(tmp_path, "product", known)
    assert text.count("__global__") == 1
    assert right(tmp_path, "product", known, inputs("product", known, 72, 72, 104))


def test_sums_of_8_bit_floats_are_accurate_unless_fast_ones_are_asked_for(tmp_path: Path) -> None:
    """Terms of one sign are the bad case: what the matrix unit drops grows with the running sum."""
    errors = {}
    rng = np.random.default_rng(0)
    a, b = (rng.random((128, 2048)).astype(ml_dtypes.float8_e4m3fn) for _ in range(2))
    want = a.astype(np.float64) @ b.astype(np.float64).T
    for name, fast in (("accurate", False), ("fast", True)):
        defines = {**FLOATS_8, "block_M": 128, "out_dtype": "float32", "fast_accumulation": fast}
        text = build(tmp_path / name, "product", defines)
        assert ("C_local_part" in text) is not fast
        assert "numbers  sums of 8-bit floats" in text
        (kernel,) = tile2c.load(tmp_path / name, "emulate", target=TARGET).values()
        got = np.asarray(kernel(a, b)).astype(np.float64)
        errors[name] = float(np.linalg.norm(got - want) / np.linalg.norm(want))
    assert errors["accurate"] < 1e-3
    assert errors["fast"] > 1e-2


@pytest.mark.parametrize("turned", [{"trans_B": False}, {"trans_A": True, "trans_B": True}])
def test_8_bit_operands_that_do_not_lie_along_k_take_the_ordinary_way(
    tmp_path: Path, turned: dict[str, object]
) -> None:
    text = build(tmp_path, "product", {**FLOATS_8, **turned})
    assert "wgmma" not in text.partition("#include")[2]
    assert "do not run along K" in text


def test_sums_that_leave_before_the_loop_do_not_lie_over_the_tiles(tmp_path: Path) -> None:
    text = build(tmp_path, "begun", {})
    assert "tma_store(D_map" not in text and "tma_store(C_map" in text
    a, b = inputs("product", {}, 72, 72, 72)
    (kernel,) = tile2c.load(tmp_path, "emulate", target=TARGET, check="races,memory").values()
    ones, product = (np.asarray(x).astype(np.float64) for x in kernel(a, b))
    assert (ones == 1).all()
    want = a.astype(np.float64) @ b.astype(np.float64) + 1
    np.testing.assert_allclose(product, want, rtol=4e-3, atol=0.05)
