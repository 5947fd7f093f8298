"""Copies of rows that start anywhere: element by element, of every size an element has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from language_programs import checked, written_text

KINDS: dict[str, tuple[Any, str]] = {
    "int8": (np.int8, "int32"),
    "float8_e4m3fn": (ml_dtypes.float8_e4m3fn, "float32"),
    "bfloat16": (ml_dtypes.bfloat16, "float32"),
    "float32": (np.float32, "float32"),
    "float64": (np.float64, "float64"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_elements_of_each_size(tmp_path: Path, kind: str) -> None:
    dtype, total = KINDS[kind]
    text = f"""
M = T.dynamic("M")
N = T.dynamic("N")
K = T.dynamic("K")


@T.prim_func
def main(A: T.Tensor((M, K), "{kind}"), B: T.Tensor((N, K), "{kind}"), C: T.Tensor((M, N), "{total}")):
    with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=64) as (bx, by):
        a = T.alloc_shared((32, 32), "{kind}")
        b = T.alloc_shared((32, 32), "{kind}")
        c = T.alloc_fragment((32, 32), "{total}")
        T.clear(c)
        for ko in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
            T.copy(A[by * 32, ko * 32], a)
            T.copy(B[bx * 32, ko * 32], b)
            T.gemm(a, b, c, transpose_B=True)
        T.copy(c, C[by * 32, bx * 32])
"""
    random = np.random.default_rng(5)
    a, b = (random.integers(-4, 5, (rows, 45)).astype(dtype) for rows in (33, 35))
    checked(tmp_path, text, {"A": a, "B": b, "C": np.zeros((33, 35), total)})
    assert "copy_below" in written_text(tmp_path / "out")


def test_two_launches_of_different_elements(tmp_path: Path) -> None:
    """The functions for both kinds of elements stand above the copy that calls them."""
    launch = """
    with T.Kernel(T.ceildiv(M, 32), threads=64) as bx:
        s = T.alloc_shared((32, 32), "{kind}")
        f = T.alloc_fragment((32, 32), "{kind}")
        T.clear(f)
        for ko in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
            T.copy({x}[bx * 32, ko * 32], s)
            for i, j in T.Parallel(32, 32):
                f[i, j] += s[i, j]
        T.copy(f, {y}[bx * 32, 0])
"""
    text = (
        """
M = T.dynamic("M")
K = T.dynamic("K")


@T.prim_func
def main(
    I: T.Tensor((M, K), "int32"), X: T.Tensor((M, K), "float32"),
    J: T.Tensor((M, 32), "int32"), Y: T.Tensor((M, 32), "float32"),
):
"""
        + launch.format(kind="int32", x="I", y="J")
        + launch.format(kind="float32", x="X", y="Y")
    )
    whole = np.random.default_rng(5).integers(-9, 9, (33, 45))
    empty = {"J": np.zeros((33, 32), np.int32), "Y": np.zeros((33, 32), np.float32)}
    checked(tmp_path, text, {"I": whole.astype(np.int32), "X": whole.astype(np.float32), **empty})
    found = written_text(tmp_path / "out")
    assert found.rindex("void copy_below(") < found.index("copy_async(T* shared")
