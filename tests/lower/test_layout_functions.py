"""Functions that say where a shared tile's elements lie: one a formula, with a name of its own."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import tile2c

TWO = """
import tilelang
import tilelang.language as T


@T.prim_func
def two(A: T.Tensor((128, 128), "float16"), B: T.Tensor((128, 128), "float16"),
        C: T.Tensor((128, 128), "float16"), D: T.Tensor((128, 128), "float16")):
    with T.Kernel(2, 2, threads=128) as (bx, by):
        A_shared = T.alloc_shared((64, 64), "float16")
        B_shared = T.alloc_shared((64, 64), "float16")
        acc = T.alloc_fragment((64, 64), "float32")
        T.clear(acc)
        for k in T.Pipelined(2, num_stages=2):
            T.copy(A[by * 64, k * 64], A_shared)
            T.copy(B[bx * 64, k * 64], B_shared)
            T.gemm(A_shared, B_shared, acc, transpose_B=True)
        T.copy(acc, C[by * 64, bx * 64])
    with T.Kernel(2, 2, threads=128) as (bx, by):
        A_shared = T.alloc_shared((64, 32), "float16")
        B_shared = T.alloc_shared((64, 32), "float16")
        acc = T.alloc_fragment((64, 64), "float32")
        T.clear(acc)
        for k in T.Pipelined(4, num_stages=2):
            T.copy(C[by * 64, k * 32], A_shared)
            T.copy(B[bx * 64, k * 32], B_shared)
            T.gemm(A_shared, B_shared, acc, transpose_B=True)
        T.copy(acc, D[by * 64, bx * 64])
"""


def test_tiles_that_are_laid_out_alike_share_one(tmp_path: Path) -> None:
    source = tmp_path / "two.py"
    source.write_text(TWO)
    kernels = tile2c.build(source, tmp_path / "out", "cuda:sm_80", backend="emulate", check="races")
    text = (tmp_path / "out" / "two.cu").read_text()
    functions = re.findall(r"__device__ int (\w+)\(unsigned row, unsigned col\)", text)
    # of the two launches, whose rows differ; what leaves the second has rows of its own
    assert sorted(functions) == ["D_col", "col_of_tile", "tile_col"]
    assert "// A_shared, B_shared and C_tile: chunk" in text
    a, b = (np.random.default_rng(n).standard_normal((128, 128)).astype(np.float16) for n in (0, 1))
    c, d = np.zeros((2, 128, 128), np.float16)
    kernels["two"](a, b, c, d)
    first = (a.astype(np.float32) @ b.T.astype(np.float32)).astype(np.float16)
    want = first.astype(np.float32) @ b.T.astype(np.float32)
    np.testing.assert_allclose(d.astype(np.float32), want, rtol=0.02, atol=0.5)
