"""A ring that ordinary copies fill, in a kernel whose product has roles of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from language_programs import CUDA, checked, empty, text_of, values

PROGRAM = """
@T.prim_func
def main(
    X: T.Tensor((128, 48), "float16"), A: T.Tensor((128, 64), "float16"),
    B: T.Tensor((64, 16), "float16"), Y: T.Tensor((128,), "float32"), C: T.Tensor((128, 16), "float32"),
):
    with T.Kernel(1, threads=128) as bx:
        x = T.alloc_shared((128, 16), "float16")
        wide = T.alloc_fragment((128, 16), "float32")
        least = T.alloc_fragment((128,), "float32")
        T.fill(least, 50)
        for ko in T.Pipelined(3, num_stages=3):
            T.copy(X[0:128, ko * 16:ko * 16 + 16], x)
            for i, k in T.Parallel(128, 16):
                wide[i, k] = x[i, k] * 2 + k
            T.reduce_min(wide, least, dim=1, clear=False)
        a = T.alloc_shared((128, 16), "float16")
        b = T.alloc_shared((16, 16), "float16")
        c = T.alloc_fragment((128, 16), "float32")
        T.clear(c)
        for ko in T.Pipelined(4, num_stages=2):
            T.copy(A[0, ko * 16], a)
            T.copy(B[ko * 16, 0], b)
            T.gemm(a, b, c)
        T.copy(c, C)
        for i in T.Parallel(128):
            Y[i] = least[i]
"""


@pytest.mark.parametrize("target", [CUDA, "cuda:sm_90a"])
def test_two_rings(tmp_path: Path, target: str) -> None:
    arguments = {
        "X": values((128, 48), "float16"),
        "A": values((128, 64), "float16", 1),
        "B": values((64, 16), "float16", 2),
        "Y": empty(128),
        "C": empty((128, 16)),
    }
    found = checked(tmp_path, PROGRAM, arguments, target, rtol=1e-2, atol=1e-2)
    wanted = (arguments["X"].astype(np.float32) * 2 + np.tile(np.arange(16), 3)).min(1)
    np.testing.assert_allclose(found["Y"], wanted, rtol=1e-2, atol=1e-2)


def test_the_product_has_roles(tmp_path: Path) -> None:
    text = text_of(tmp_path, PROGRAM, "cuda:sm_90a")
    assert "wgmma" in text and "half x[3][128][16]" in text
