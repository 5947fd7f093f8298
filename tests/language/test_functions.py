"""Functions of elements that C says with intrinsics, operators or helpers (language.md 13)."""

from __future__ import annotations

from pathlib import Path

import pytest
from language_programs import CUDA, HIP, checked, empty, values

ONE = (
    "sigmoid __exp __exp10 __log __log2 __log10 __sin __cos __tan fast_rcp ieee_frcp ieee_fsqrt "
    "ieee_frsqrt"
).split()
TWO = "ieee_add ieee_sub ieee_mul ieee_fdiv".split()
CLASSES = "isnan isinf isfinite".split()
BITS = {"float16": "int16", "bfloat16": "int16", "float32": "int32"}


def program(dtype: str, whole: str) -> tuple[str, int]:
    """One row of O for each function of floats, two of Q for those of integers."""
    rows = [f"T.{name}(X[i] + 4.5)" for name in ONE]
    rows += [f'T.{name}(X[i], T.cast(0.75, "{dtype}"))' for name in TWO]
    rows.append("T.ieee_fmaf(X[i], X[i], X[i])")
    rows += [f'T.if_then_else(T.{name}(X[i] / T.cast(0, "{dtype}")), 1.0, 0.0)' for name in CLASSES]
    rows += [f"T.if_then_else(T.{name}(X[i]), 1.0, 0.0)" for name in CLASSES]
    body = "".join(f"            O[{row}, i] = {text}\n" for row, text in enumerate(rows))
    text = f"""
@T.prim_func
def main(
    X: T.Tensor((40,), "{dtype}"),
    Y: T.Tensor((40,), "{whole}"),
    O: T.Tensor(({len(rows)}, 40), "{dtype}"),
    Q: T.Tensor((2, 40), "int32"),
    R: T.Tensor((40,), "{BITS[dtype]}"),
):
    with T.Kernel(1, threads=64) as bx:
        for i in T.Parallel(40):
{body}            Q[0, i] = T.popcount(Y[i])
            Q[1, i] = T.clz(Y[i])
            R[i] = T.reinterpret(X[i], "{BITS[dtype]}")
"""
    return text, len(rows)


@pytest.mark.parametrize("target", [CUDA, HIP])
@pytest.mark.parametrize(
    ("dtype", "whole"),
    [("float32", "int32"), ("float32", "int64"), ("float16", "int8"), ("bfloat16", "uint16")],
)
def test_functions_without_a_name_of_their_own(
    tmp_path: Path, dtype: str, whole: str, target: str
) -> None:
    text, rows = program(dtype, whole)
    arguments = {
        "X": values(40, dtype),
        "Y": values(40, whole),
        "O": empty((rows, 40), dtype),
        "Q": empty((2, 40), "int32"),
        "R": empty(40, BITS[dtype]),
    }
    loose = {"float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}[dtype]
    checked(tmp_path, text, arguments, target, rtol=loose, atol=loose)
