"""Operators of 8-bit floats, which C does not have: each is float's, converted back."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from language_programs import checked, empty, text_of

PROGRAM = """
@T.prim_func
def main(A: T.Tensor((256,), "{dtype}"), B: T.Tensor((256,), "{dtype}"), C: T.Tensor((256,), "float32")):
    with T.Kernel(1, threads=128) as bx:
        for i in T.Parallel(256):
            C[i] = {value}
"""
VALUES = (
    "A[i] + B[i]", "A[i] - B[i]", "A[i] * B[i]", "A[i] / B[i]", "-A[i]", "T.max(A[i], B[i])",
    "T.min(A[i], B[i])", "A[i] * 2", "A[i] * 100", "T.if_then_else(A[i] < B[i], A[i], 1)",
    "T.abs(A[i] - B[i])",
)  # fmt: skip


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(
    ("target", "dtype"),
    [
        ("cuda:sm_80", "float8_e4m3fn"),
        ("cuda:sm_80", "float8_e5m2"),
        ("hip:gfx942", "float8_e4m3fnuz"),
    ],
)
def test_each_operation_is_that_of_float_rounded(
    tmp_path: Path, target: str, dtype: str, value: str
) -> None:
    """Where the type is the integer of its bits, the bits are no operands either."""
    kind, rng = getattr(ml_dtypes, dtype), np.random.default_rng(0)
    a, b = ((4 * rng.standard_normal(256)).astype(kind) for _ in range(2))
    b[b.astype(np.float32) == 0] = kind(1)
    text = PROGRAM.format(dtype=dtype, value=value)
    checked(tmp_path, text, {"A": a, "B": b, "C": empty(256, "float32", 1)}, target)


def test_small_numbers_are_floats_at_once(tmp_path: Path) -> None:
    text = PROGRAM.format(dtype="float8_e4m3fn", value="A[i] * 2")
    assert ") * 2.f));" in text_of(tmp_path, text, "cuda:sm_80")
