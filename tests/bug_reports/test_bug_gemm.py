"""Public reports on gemms, as programs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from language_programs import CUDA, HIP, checked, empty, values
from numpy.testing import assert_allclose as close
from numpy.testing import assert_array_equal as same

BOTH = pytest.mark.parametrize("target", [CUDA, HIP])


@BOTH
def test_h59_full_rows_of_warps(tmp_path: Path, target: str) -> None:
    """Every row of the result is in its place."""
    text = """
@T.prim_func
def main(
    A: T.Tensor((256, 64), "float16"),
    B: T.Tensor((64, 64), "float16"),
    C: T.Tensor((256, 64), "float32"),
):
    with T.Kernel(1, threads=256) as bx:
        a = T.alloc_shared((256, 64), "float16")
        b = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((256, 64), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.clear(c)
        T.gemm(a, b, c, policy=T.GemmWarpPolicy.FullRow)
        T.copy(c, C)
"""
    a = np.repeat(np.arange(256) / 256, 64).reshape(256, 64).astype(np.float16)
    arguments = {"A": a, "B": np.eye(64, dtype=np.float16), "C": empty((256, 64))}
    same(checked(tmp_path, text, arguments, target)["C"], a)


@BOTH
def test_h60_h66_operands_in_registers(tmp_path: Path, target: str) -> None:
    """clear_accum counts; a copy of an operand's fragment has every element in its place."""
    text = """
@T.prim_func
def main(
    A: T.Tensor((64, 32), "float16"),
    B: T.Tensor((32, 64), "float16"),
    C: T.Tensor((64, 64), "float32"),
    S: T.Tensor((64, 32), "float16"),
):
    with T.Kernel(1, threads=128) as bx:
        a = T.alloc_fragment((64, 32), "float16")
        b = T.alloc_fragment((32, 64), "float16")
        s = T.alloc_shared((64, 32), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.fill(c, 5)
        T.gemm(a, b, c, clear_accum=True)
        T.copy(c, C)
        T.copy(a, s)
        T.copy(s, S)
"""
    a, b = values((64, 32), "float16"), values((32, 64), "float16", 1)
    arguments = {"A": a, "B": b, "C": empty((64, 64)), "S": empty((64, 32), "float16")}
    found = checked(tmp_path, text, arguments, target, rtol=1e-2, atol=1e-2)
    close(found["C"], a.astype(float) @ b.astype(float), 1e-2, 1e-2)
    same(found["S"], a)


@BOTH
@pytest.mark.parametrize("rows", [1, 4, 8])
@pytest.mark.parametrize("threads", [32, 128])
def test_h61_few_rows(tmp_path: Path, target: str, rows: int, threads: int) -> None:
    """Right, or refused with its line."""
    text = f"""
@T.prim_func
def main(
    A: T.Tensor(({rows}, 64), "float16"),
    B: T.Tensor((64, 16), "float16"),
    C: T.Tensor(({rows}, 16), "float32"),
):
    with T.Kernel(1, threads={threads}) as bx:
        a = T.alloc_shared(({rows}, 64), "float16")
        b = T.alloc_shared((64, 16), "float16")
        c = T.alloc_fragment(({rows}, 16), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.clear(c)
        T.gemm(a, b, c)
        T.copy(c, C)
"""
    a, b = values((rows, 64), "float16"), values((64, 16), "float16", 1)
    arguments = {"A": a, "B": b, "C": empty((rows, 16))}
    found = checked(tmp_path, text, arguments, target, rtol=1e-2, atol=1e-2)
    close(found["C"], a.astype(float) @ b.astype(float), 1e-2, 1e-2)


@pytest.mark.parametrize("n", [128, 96])
def test_h63_integers_with_their_own_transpose(tmp_path: Path, n: int) -> None:
    text = f"""
@T.prim_func
def main(A: T.Tensor(({n}, 64), "int8"), C: T.Tensor(({n}, {n}), "int32")):
    with T.Kernel(1, threads=128) as bx:
        a = T.alloc_shared(({n}, 64), "int8")
        c = T.alloc_fragment(({n}, {n}), "int32")
        T.copy(A, a)
        T.clear(c)
        T.gemm(a, a, c, transpose_B=True)
        T.copy(c, C)
"""
    a = np.random.default_rng(0).integers(-128, 128, (n, 64)).astype(np.int8)
    found = checked(tmp_path, text, {"A": a, "C": empty((n, n), "int32")})["C"]
    same(found, a.astype(int) @ a.astype(int).T)


def test_h43_two_pipelines_over_the_same_tiles(tmp_path: Path) -> None:
    text = """
@T.prim_func
def main(
    A: T.Tensor((64, 160), "float16"),
    B: T.Tensor((160, 64), "float16"),
    C: T.Tensor((64, 64), "float32"),
):
    with T.Kernel(1, threads=128) as bx:
        a = T.alloc_shared((64, 16), "float16")
        b = T.alloc_shared((16, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        for k in T.Pipelined(5, num_stages=2):
            T.copy(A[0, k * 16], a)
            T.copy(B[k * 16, 0], b)
            T.gemm(a, b, c)
        for k in T.Pipelined(5, num_stages=4):
            T.copy(A[0, 80 + k * 16], a)
            T.copy(B[80 + k * 16, 0], b)
            T.gemm(a, b, c)
        T.copy(c, C)
"""
    a, b = values((64, 160), "float16"), values((160, 64), "float16", 1)
    arguments = {"A": a, "B": b, "C": empty((64, 64))}
    found = checked(tmp_path, text, arguments, rtol=1e-2, atol=1e-2)
    close(found["C"], a.astype(float) @ b.astype(float), 1e-2, 2e-2)
