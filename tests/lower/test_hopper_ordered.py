"""Results in tensors that the kernel touches elsewhere too: TMA, on its own time, does not store them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tile2c

SOURCE = """
import tilelang
import tilelang.language as T


@tilelang.jit
def matmul(M, N, K):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
        D: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 128), threads=256) as (bx, by):
            A_shared = T.alloc_shared((128, 64), "float16")
            B_shared = T.alloc_shared((64, 64), "float16")
            C_local = T.alloc_fragment((128, 64), "float32")
            D_local = T.alloc_fragment((128, 64), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, 64), num_stages=2):
                T.copy(A[by * 128, k * 64], A_shared)
                T.copy(B[k * 64, bx * 64], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(128, 64):
                D_local[i, j] = C_local[i, j] * 0.5
{end}

    return main


matmul(T.dynamic("M"), T.dynamic("N"), T.dynamic("K"))
"""
READ_BEFORE = """
            for i, j in T.Parallel(128, 64):
                C_local[i, j] = C_local[i, j] + C[by * 128 + 127 - i, bx * 64 + j]
            T.copy(C_local, C[by * 128, bx * 64])
            T.copy(D_local, D[by * 128, bx * 64])
"""
READ_BEHIND = """
            T.copy(C_local, C[by * 128, bx * 64])
            for i, j in T.Parallel(128, 64):
                D[by * 128 + i, bx * 64 + j] = C[by * 128 + 127 - i, bx * 64 + j]
"""
STORED_TWICE = """
            T.copy(C_local, C[by * 128, bx * 64])
            T.copy(D_local, C[by * 128, bx * 64])
            T.copy(C_local, D[by * 128, bx * 64])
"""
CASES = {"read before": READ_BEFORE, "read behind": READ_BEHIND, "stored twice": STORED_TWICE}


@pytest.mark.parametrize("case", CASES)
def test_stores_are_ordered_with_other_accesses(tmp_path: Path, case: str) -> None:
    path, folder = tmp_path / "matmul.py", tmp_path / "out"
    path.write_text(SOURCE.replace("{end}", CASES[case].strip("\n")))
    tile2c.build(path, folder, "cuda:sm_90a", {}, backend="emulate", force=True)
    (text,) = (x.read_text() for x in folder.glob("*.cu"))
    assert "wgmma" in text and "tma_store(C_map" not in text
    assert ("tma_store(D_map" in text) == (case != "read behind")  # nobody else touches D
    (kernel,) = tile2c.load(folder, "emulate", check="races,memory").values()
    rng = np.random.default_rng(5)
    m, n, k = 256, 72, 72
    a, b, c = (rng.standard_normal(x).astype(np.float16) for x in ((m, k), (k, n), (m, n)))
    product = a.astype(np.float64) @ b.astype(np.float64)
    flipped = (product if case == "read behind" else c).reshape(2, 128, n)[:, ::-1].reshape(m, n)
    got = np.zeros((m, n), np.float16)
    c_got = c.copy()
    kernel(a, b, c_got, got)
    wanted = {
        "read before": (product + flipped, product * 0.5),
        "read behind": (product, flipped),
        "stored twice": (product * 0.5, product),
    }
    for found, right in zip((c_got, got), wanted[case], strict=True):
        np.testing.assert_allclose(found.astype(np.float64), right, rtol=4e-3, atol=0.05)
