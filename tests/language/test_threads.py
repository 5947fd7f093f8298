"""Statements of single threads, and what threads of a warp tell each other (language.md 7, 14)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from language_programs import CUDA, HIP, checked, empty, refusal, text_of, values


@pytest.mark.parametrize("target", [CUDA, "hip:gfx1100"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
def test_shuffles_and_votes(tmp_path: Path, target: str, dtype: str) -> None:
    text = f"""
@T.prim_func
def main(A: T.Tensor((64,), "{dtype}"), O: T.Tensor((8, 64), "{dtype}"), V: T.Tensor((5, 64), "int32")):
    with T.Kernel(1, threads=64) as bx:
        tx = T.get_thread_binding()
        x = A[tx]
        O[0, tx] = T.shfl_xor(x, 5)
        O[1, tx] = T.shfl_down(x, 3)
        O[2, tx] = T.shfl_up(x, 3)
        O[3, tx] = T.shfl_sync(x, 7)
        O[4, tx] = T.warp_reduce_sum(x)
        O[5, tx] = T.warp_reduce_max(x) + T.warp_reduce_min(x)
        O[6, tx] = T.shfl_xor(x, 1) + T.shfl_xor(x, 2)
        V[0, tx] = T.get_lane_idx() * 100 + T.get_warp_idx()
        V[1, tx] = T.cast(T.any_sync(0xFFFFFFFF, x > 1), "int32")
        V[2, tx] = T.cast(T.all_sync(0xFFFFFFFF, x > -100), "int32")
        V[3, tx] = T.cast(T.ballot(x > 0) & 255, "int32")
        V[4, tx] = T.syncthreads_count(x > 0)
        if T.shuffle_elect(32):
            O[7, tx] = x
"""
    arguments = {
        "A": values(64, dtype),
        "O": empty((8, 64), dtype),
        "V": empty((5, 64), "int32"),
    }
    checked(tmp_path, text, arguments, target, rtol=2e-2, atol=1e-2)


@pytest.mark.parametrize("target", [CUDA, HIP])
@pytest.mark.parametrize("threads", [24, 96, 160])
def test_loops_and_arrays_of_one_thread(tmp_path: Path, target: str, threads: int) -> None:
    text = f"""
@T.prim_func
def main(A: T.Tensor(({threads}, 8), "int32"), O: T.Tensor(({threads}, 3), "int32")):
    with T.Kernel(1, threads={threads}) as bx:
        tx = T.get_thread_binding()
        mine = T.alloc_local((8,), "int32")
        s = T.alloc_shared(({threads},), "int32")
        n = T.alloc_var("int32", 0)
        for v in T.vectorized(8):
            mine[v] = A[tx, v]
        for i in T.serial(8):
            if mine[i] < 0:
                break
            n = n + mine[i]
        O[tx, 0] = n
        k = T.alloc_var("int32", 7)
        while k > 0 and mine[k] < 10:
            k = k - 1
        O[tx, 1] = k
        if tx == 3:
            s[0] = 11
        T.sync_threads()
        s[tx] = T.if_then_else(tx == 0, s[0], tx)
        for i in T.unroll(7, -1, -2):
            n = n + mine[i] * i
        O[tx, 2] = n + s[{threads - 1} - tx]
"""
    arguments = {"A": values((threads, 8), "int32"), "O": empty((threads, 3), "int32")}
    checked(tmp_path, text, arguments, target)


def test_any_and_all_of_a_region(tmp_path: Path) -> None:
    text = """
@T.prim_func
def main(A: T.Tensor((16, 9), "int32"), O: T.Tensor((16, 2), "int32")):
    with T.Kernel(1, threads=32) as bx:
        S = T.alloc_shared((16, 9), "int32")
        T.copy(A, S)
        for i in T.Parallel(16):
            O[i, 0] = T.if_then_else(T.any_of(S[i, 2:9]), 1, 0)
            if T.all_of(A[i, :]):
                O[i, 1] = 1
"""
    a = (np.arange(144).reshape(16, 9) % 17 > 6).astype(np.int32)
    a[3] = 1
    checked(tmp_path, text, {"A": a, "O": empty((16, 2), "int32")})


def test_a_shuffle_inside_parallel_is_refused(tmp_path: Path) -> None:
    text = """
@T.prim_func
def main(A: T.Tensor((64,), "int32"), O: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64) as bx:
        for i in T.Parallel(64):
            O[i] = T.shfl_xor(A[i], 1)
"""
    assert "T2C314" in refusal(tmp_path, text)


@pytest.mark.parametrize("target", [CUDA, HIP])
def test_copies_of_private_arrays(tmp_path: Path, target: str) -> None:
    """Each thread moves its own; a copy whose place differs by thread needs a private side."""
    text = """
@T.prim_func
def main(A: T.Tensor((64, 8), "float32"), O: T.Tensor((64, 8), "float32")):
    with T.Kernel(1, threads=64) as bx:
        tx = T.get_thread_binding()
        p = T.alloc_local((8,), "float32")
        q = T.alloc_local((8,), "float32")
        T.fill(q, 2)
        T.copy(A[tx, 0], p)
        for k in T.serial(8):
            p[k] = p[k] * q[7 - k]
        T.copy(p, O[tx, 0])
"""
    a = values((64, 8))
    assert (checked(tmp_path, text, {"A": a, "O": empty((64, 8))}, target)["O"] == 2 * a).all()


TEAMS = """
@T.prim_func
def main(
    A: T.Tensor((8, 50), "float32"),
    O: T.Tensor((8, 50), "float32"),
    S: T.Tensor((8,), "float32"),
    P: T.Tensor((50,), "float32"),
):
    with T.Kernel(1, threads={threads}) as bx:
        tx = T.get_thread_binding()
        s = T.alloc_shared((8, 50), "float32")
        t = T.alloc_shared((50,), "float32")
        u = T.alloc_shared((50,), "float32")
        f = T.alloc_fragment((8, 50), "float32")
        r = T.alloc_fragment((8,), "float32")
        if tx < {first}:
            T.copy(A, s)
            for i, j in T.Parallel(8, 50):
                f[i, j] = s[7 - i, j] * 2
            T.reduce_sum(f, r, dim=1)
            T.copy(f, O)
            T.copy(r, S)
        elif tx == {last}:
            for j in T.Parallel(50):
                t[j] = A[0, j]
            for j in T.Parallel(50):
                u[j] = t[49 - j]
        for j in T.Parallel(50):
            P[j] = u[j]
"""


@pytest.mark.parametrize(
    ("target", "threads", "first"),
    [(CUDA, 96, 64), (CUDA, 64, 32), (CUDA, 160, 16), (HIP, 128, 64)],
)
def test_tile_statements_of_some_threads(
    tmp_path: Path, target: str, threads: int, first: int
) -> None:
    """The selected threads do them whole: warps, a part of one, one thread."""
    a = values((8, 50))
    arguments = {"A": a, "O": empty((8, 50)), "S": empty(8), "P": empty(50)}
    text = TEAMS.format(threads=threads, first=first, last=threads - 1)
    found = checked(tmp_path, text, arguments, target, rtol=1e-4, atol=1e-4)
    assert (found["P"] == a[0, ::-1]).all()


def test_teams_that_cannot_meet(tmp_path: Path) -> None:
    """Threads that are no neighbours share no tile statement."""
    text = """
@T.prim_func
def main(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64) as bx:
        tx = T.get_thread_binding()
        if tx % 2 == 0:
            T.copy(A, O)
"""
    assert "T2C563" in refusal(tmp_path, text)


@pytest.mark.parametrize("target", [CUDA, HIP])
def test_the_thread_index_is_signed(tmp_path: Path, target: str) -> None:
    """C's own is unsigned; the author's is an int, and stands under its name in the text."""
    text = """
@T.prim_func
def main(V: T.Tensor((64,), "float32"), I: T.Tensor((64,), "int32"), n: T.int32):
    with T.Kernel(1, threads=64) as bx:
        tx = T.get_thread_binding()
        V[tx] = T.cast(tx - 40, "float32")
        I[tx] = (tx - 40) // 3
        if tx - 40 < 0:
            I[tx] = I[tx] - 1000
        if tx > n:
            V[tx] = V[tx] + 0.5
        if n < tx:
            V[tx] = V[tx] + 0.25
"""
    arguments = {"V": empty(64), "I": empty(64, "int32"), "n": -3}
    got = checked(tmp_path, text, arguments, target)
    assert (got["V"] == np.arange(64) - 40 + 0.75).all()
    assert "const int tx = threadIdx.x;" in text_of(tmp_path, text, target)
