"""Fragments indexed by serial code, named values in vector loops, arrays that nothing reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from language_programs import CUDA, HIP, checked, empty, values

PLACES = [(CUDA, 32), (CUDA, 96), (HIP, 128)]


@pytest.mark.parametrize(("target", "threads"), PLACES)
def test_a_small_table_in_registers(tmp_path: Path, target: str, threads: int) -> None:
    """A serial loop inside T.Parallel runs over a dimension: every thread keeps all of it."""
    text = f"""
@T.prim_func
def main(
    A: T.Tensor((4, 4), "float32"), B: T.Tensor((4, 40), "float16"), O: T.Tensor((4, 40), "float32")
):
    with T.Kernel(1, threads={threads}) as bx:
        a = T.alloc_fragment((4, 4), "float32")
        b = T.alloc_fragment((4, 40), "float32")
        o = T.alloc_fragment((4, 40), "float32")
        T.copy(A, a)
        T.copy(B, b)
        for i, j in T.Parallel(4, 40):
            o[i, j] = b[3, j]
            for k in T.serial(4):
                o[i, j] += a[k, i] * b[k, j]
        T.copy(o, O)
"""
    arguments = {"A": values((4, 4)), "B": values((4, 40), "float16"), "O": empty((4, 40))}
    checked(tmp_path, text, arguments, target, rtol=1e-4)


@pytest.mark.parametrize(("target", "threads"), PLACES)
def test_elements_by_number(tmp_path: Path, target: str, threads: int) -> None:
    """Outside T.Parallel: a mask that a loop looks up, elements that serial code writes."""
    text = f"""
@T.prim_func
def main(
    M: T.Tensor((40,), "int32"), X: T.Tensor((40, 33), "float32"), O: T.Tensor((33,), "float32"),
    Q: T.Tensor((5,), "float32"),
):
    with T.Kernel(1, threads={threads}) as bx:
        m = T.alloc_fragment((40,), "int32")
        o = T.alloc_fragment((33,), "float32")
        q = T.alloc_fragment((5,), "float32")
        T.copy(M, m)
        T.fill(o, 0)
        for k in T.serial(40):
            if m[k] > 0:
                for j in T.Parallel(33):
                    o[j] += X[k, j]
        for k in T.serial(5):
            q[k] = m[k + 1] * 2
        q[3] = q[0] + m[39]
        T.copy(o, O)
        T.copy(q, Q)
"""
    arguments = {
        "M": values((40,), "int32"),
        "X": values((40, 33)),
        "O": empty(33),
        "Q": empty(5),
    }
    checked(tmp_path, text, arguments, target, rtol=1e-4)


@pytest.mark.parametrize("target", [CUDA, HIP])
def test_rows_by_index_move_as_vectors(tmp_path: Path, target: str) -> None:
    """The index is read once for a vector; one that differs inside it is read for each element."""
    text = """
@T.prim_func
def main(
    I: T.Tensor((16,), "int32"), C: T.Tensor((32,), "int32"), X: T.Tensor((20, 32), "float16"),
    O: T.Tensor((16, 32), "float16"), Q: T.Tensor((16, 32), "float16"),
):
    with T.Kernel(1, threads=32) as bx:
        s = T.alloc_shared((16, 32), "float16")
        for i, j in T.Parallel(16, 32):
            row = I[i]
            s[i, j] = X[row, j]
        T.copy(s, O)
        for i, j in T.Parallel(16, 32):
            row = I[i]
            column = C[j]
            s[i, j] = X[row, column] + X[column, j]
        T.copy(s, Q)
"""
    indices = np.array([3, 19, -1, 20, 0, 7, 7, 2, 40, 1, 5, 6, 8, 9, 10, 11], "int32")
    arguments = {
        "I": indices,
        "C": np.arange(32, dtype="int32")[::-1] * 2 - 3,
        "X": values((20, 32), "float16"),
        "O": empty((16, 32), "float16"),
        "Q": empty((16, 32), "float16"),
    }
    checked(tmp_path, text, arguments, target)


def test_arrays_that_nothing_reads(tmp_path: Path) -> None:
    """They and the work on them are left out."""
    text = """
@T.prim_func
def main(X: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=32) as bx:
        s = T.alloc_shared((64,), "float32")
        t = T.alloc_shared((64,), "float32")
        f = T.alloc_fragment((64,), "float32")
        T.copy(X, s)
        for i in T.Parallel(64):
            t[i] = s[i] * 2
            f[i] = s[i] + 1
        T.copy(t, f)
        for i in T.Parallel(64):
            O[i] = X[i] + 1
"""
    checked(tmp_path, text, {"X": values(64), "O": empty(64)}, CUDA)
    kernel = next(tmp_path.rglob("*.cu")).read_text()
    assert "__shared__" not in kernel and "f[" not in kernel
