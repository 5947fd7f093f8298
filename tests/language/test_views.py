"""T.reshape and T.view of arrays of the block: another shape of the same storage."""

from __future__ import annotations

from pathlib import Path

import pytest
from language_programs import CUDA, HIP, checked, empty, values


@pytest.mark.parametrize("target", [CUDA, HIP])
def test_a_fragment_by_groups_of_columns(tmp_path: Path, target: str) -> None:
    """Merged, split and dropped dimensions; in loops, reductions, fills and copies."""
    text = """
@T.prim_func
def main(
    X: T.Tensor((16, 32), "float32"), O: T.Tensor((16, 4), "float32"),
    P: T.Tensor((16, 32), "float32"), Q: T.Tensor((8, 2, 32), "float32"),
):
    with T.Kernel(1, threads=64) as bx:
        x = T.alloc_fragment((16, 32), "float32")
        by_four = T.reshape(x, (16, 4, 8))
        rows = T.view(x, (1, 16, 32))
        sums = T.alloc_fragment((16, 4), "float32")
        T.copy(X, x)
        for i, g, k in T.Parallel(16, 4, 8):
            by_four[i, g, k] = by_four[i, g, k] * 2 + g
        T.reduce_sum(by_four, sums, dim=-1)
        T.copy(sums, O)
        T.copy(rows[0, :, :], P)
        T.copy(T.reshape(x, (8, 2, 32)), Q)
"""
    arguments = {
        "X": values((16, 32)),
        "O": empty((16, 4)),
        "P": empty((16, 32)),
        "Q": empty((8, 2, 32)),
    }
    checked(tmp_path, text, arguments, target, rtol=1e-4)


@pytest.mark.parametrize("target", [CUDA, HIP])
def test_a_shared_tile_as_operand_of_a_gemm(tmp_path: Path, target: str) -> None:
    text = """
@T.prim_func
def main(
    A: T.Tensor((4, 16, 32), "float16"), B: T.Tensor((32, 32), "float16"),
    C: T.Tensor((64, 32), "float32"),
):
    with T.Kernel(1, threads=64) as bx:
        a = T.alloc_shared((4, 16, 32), "float16")
        matrix = T.reshape(a, (64, 32))
        b = T.alloc_shared((32, 32), "float16")
        c = T.alloc_fragment((64, 32), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.fill(matrix[0:8, :], 1)
        T.gemm(matrix, b, c, clear_accum=True)
        T.copy(c, C)
"""
    arguments = {
        "A": values((4, 16, 32), "float16"),
        "B": values((32, 32), "float16"),
        "C": empty((64, 32)),
    }
    checked(tmp_path, text, arguments, target, rtol=1e-2)
