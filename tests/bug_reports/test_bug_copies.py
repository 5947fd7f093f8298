"""Public reports on copies, tails and bounds, as programs: the right numbers, or a refusal with a line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from language_programs import CUDA, HIP, checked, empty, refusal, text_of, values
from numpy.testing import assert_array_equal as same


@pytest.mark.parametrize("n", [1, 7, 8, 9, 77, 1023])
def test_h01_bytes_that_are_no_multiple_of_16(tmp_path: Path, n: int) -> None:
    """The last elements of a shared tile are stored too."""
    text = f"""
@T.prim_func
def main(A: T.Tensor(({n},), "float16"), B: T.Tensor(({n},), "float16")):
    with T.Kernel(1, threads=64) as bx:
        S = T.alloc_shared(({n},), "float16")
        T.copy(A, S)
        T.copy(S, B)
"""
    a = values(n, "float16")
    same(checked(tmp_path, text, {"A": a, "B": empty(n, "float16")})["B"], a)


@pytest.mark.parametrize("target", [CUDA, HIP])
def test_h02_a_last_block_that_is_partly_inside(tmp_path: Path, target: str) -> None:
    """A tail on the side of the store."""
    text = """
@T.prim_func
def main(A: T.Tensor((777,), "float16"), B: T.Tensor((777,), "float16")):
    with T.Kernel(T.ceildiv(777, 192), threads=96) as bx:
        S = T.alloc_shared((192,), "float16")
        T.copy(A[bx * 192:(bx + 1) * 192], S)
        T.copy(S, B[bx * 192:(bx + 1) * 192])
"""
    a = values(777, "float16")
    same(checked(tmp_path, text, {"A": a, "B": empty(777, "float16")}, target)["B"], a)


@pytest.mark.parametrize("statement", ["T.fill(S[5:11], 3)", "T.clear(S[5:11])"])
def test_h03_a_slice_past_its_buffer(tmp_path: Path, statement: str) -> None:
    """Start plus extent is checked, not the extent alone."""
    text = f"""
@T.prim_func
def main(Out: T.Tensor((8,), "int32")):
    with T.Kernel(1, threads=32) as bx:
        S = T.alloc_shared((8,), "int32")
        {statement}
        T.copy(S, Out)
"""
    assert "T2C311" in refusal(tmp_path, text)


@pytest.mark.parametrize("threads", [1, 2, 16, 24, 31, 33, 48])
def test_h04_fewer_threads_than_a_warp(tmp_path: Path, threads: int) -> None:
    text = f"""
@T.prim_func
def main(A: T.Tensor((4, 64), "float32"), B: T.Tensor((4, 64), "float32")):
    with T.Kernel(4, threads={threads}) as bx:
        S = T.alloc_shared((1, 64), "float32")
        T.copy(A[bx, 0], S)
        T.copy(S, B[bx, 0])
"""
    a = values((4, 64))
    same(checked(tmp_path, text, {"A": a, "B": empty((4, 64))})["B"], a)


def test_h05_rows_of_280_bytes(tmp_path: Path) -> None:
    text = """
@T.prim_func
def main(X: T.Tensor((6, 70), "float32"), Y: T.Tensor((6, 70), "float32")):
    with T.Kernel(6, threads=64) as r:
        row = T.alloc_shared((1, 70), "float32")
        T.copy(X[r, 0], row)
        for j in T.Parallel(70):
            row[0, j] = row[0, j] + 1.0
        T.copy(row, Y[r, 0])
"""
    x = values((6, 70))
    same(checked(tmp_path, text, {"X": x, "Y": empty((6, 70))})["Y"], x + 1)


def test_h06_sub_tiles_on_chip(tmp_path: Path) -> None:
    """Offsets on the chip, and a tile that is used again."""
    text = """
@T.prim_func
def main(X: T.Tensor((48, 32), "float16"), Y: T.Tensor((48, 32), "float16")):
    with T.Kernel(1, threads=128) as bx:
        big = T.alloc_shared((48, 32), "float16")
        res = T.alloc_shared((48, 32), "float16")
        t = T.alloc_shared((16, 8), "float16")
        T.copy(X, big)
        for i in T.serial(3):
            for j in T.serial(4):
                T.copy(big[i * 16, j * 8], t)
                T.copy(t, res[i * 16, j * 8])
        T.copy(res, Y)
"""
    x = values((48, 32), "float16")
    same(checked(tmp_path, text, {"X": x, "Y": empty((48, 32), "float16")})["Y"], x)


def test_h07_a_length_chosen_at_run_time(tmp_path: Path) -> None:
    """A copy of `n` elements needs extents on the chip that are known: refused with its line."""
    text = """
@T.prim_func
def main(A: T.Tensor((1000,), "float32"), B: T.Tensor((1000,), "float32")):
    with T.Kernel(T.ceildiv(1000, 256), threads=128) as bx:
        n = T.min(256, 1000 - bx * 256)
        S = T.alloc_shared((256,), "float32")
        T.copy(A[bx * 256:bx * 256 + n], S[0:n])
        for i in T.Parallel(256):
            if i < n:
                B[bx * 256 + i] = S[i] * 2.0
"""
    assert "program.py:11:" in refusal(tmp_path, text)


def test_h08_no_guard_where_the_index_is_inside(tmp_path: Path) -> None:
    text = """
N = 12

@T.prim_func
def main(X: T.Tensor((N, 64), "float32"), Y: T.Tensor((N, 64), "float32")):
    with T.Kernel(N, threads=64) as p:
        for j in T.Parallel(64):
            Y[N - 1 - p, j] = X[p, j]
"""
    x = values((12, 64))
    same(checked(tmp_path, text, {"X": x, "Y": empty((12, 64))})["Y"], x[::-1])
    assert "if (" not in text_of(tmp_path, text)


@pytest.mark.parametrize("length", [72, 64])
def test_h87_attention_of_odd_lengths(tmp_path: Path, length: int) -> None:
    """Padded keys weigh nothing."""
    text = f"""
@T.prim_func
def main(
    Q: T.Tensor(({length}, 32), "float16"), K: T.Tensor(({length}, 32), "float16"),
    V: T.Tensor(({length}, 32), "float16"), O: T.Tensor(({length}, 32), "float32"),
):
    with T.Kernel(T.ceildiv({length}, 32), threads=64) as bx:
        q = T.alloc_shared((32, 32), "float16")
        k = T.alloc_shared((32, 32), "float16")
        v = T.alloc_shared((32, 32), "float16")
        s = T.alloc_fragment((32, 32), "float32")
        p = T.alloc_fragment((32, 32), "float16")
        o = T.alloc_fragment((32, 32), "float32")
        m = T.alloc_fragment((32,), "float32")
        old = T.alloc_fragment((32,), "float32")
        l = T.alloc_fragment((32,), "float32")
        r = T.alloc_fragment((32,), "float32")
        T.copy(Q[bx * 32, 0], q)
        T.clear(o)
        T.clear(l)
        T.fill(m, -T.infinity("float32"))
        for t in T.serial(T.ceildiv({length}, 32)):
            T.copy(K[t * 32, 0], k)
            T.copy(V[t * 32, 0], v)
            T.clear(s)
            T.gemm(q, k, s, transpose_B=True)
            for i, j in T.Parallel(32, 32):
                s[i, j] = T.if_then_else(
                    t * 32 + j < {length}, s[i, j] * 0.2, -T.infinity("float32"))
            T.copy(m, old)
            T.reduce_max(s, m, dim=1, clear=False)
            for i, j in T.Parallel(32, 32):
                s[i, j] = T.exp(s[i, j] - m[i])
            T.reduce_sum(s, r, dim=1)
            for i in T.Parallel(32):
                l[i] = l[i] * T.exp(old[i] - m[i]) + r[i]
            for i, j in T.Parallel(32, 32):
                o[i, j] = o[i, j] * T.exp(old[i] - m[i])
            T.copy(s, p)
            T.gemm(p, v, o)
        for i, j in T.Parallel(32, 32):
            o[i, j] = o[i, j] / l[i]
        T.copy(o, O[bx * 32, 0])
"""
    q, k, v = (values((length, 32), "float16", seed) for seed in range(3))
    out = checked(
        tmp_path, text, {"Q": q, "K": k, "V": v, "O": empty((length, 32))}, rtol=1e-2, atol=5e-3
    )["O"]
    weights = np.exp(q.astype(float) @ k.astype(float).T * 0.2)
    np.testing.assert_allclose(out, weights / weights.sum(1, keepdims=True) @ v, atol=5e-3)
