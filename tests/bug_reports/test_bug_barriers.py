"""Public reports on barriers, races and pipelining, as programs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from language_programs import CUDA, HIP, checked, empty, refusal, text_of, values
from numpy.testing import assert_allclose as close
from numpy.testing import assert_array_equal as same

BOTH = pytest.mark.parametrize("target", [CUDA, HIP])


@BOTH
def test_h31_a_table_filled_by_some_threads(tmp_path: Path, target: str) -> None:
    """The barrier is of all threads and stands behind the `if`."""
    text = """
@T.prim_func
def main(O: T.Tensor((256,), "float32")):
    with T.Kernel(1, threads=256) as bx:
        tab = T.alloc_shared((16,), "float32")
        tx = T.get_thread_binding()
        if tx < 16:
            tab[tx] = T.cast(tx * tx, "float32")
        O[tx] = tab[tx % 16]
"""
    same(checked(tmp_path, text, {"O": empty(256)}, target)["O"], (np.arange(256) % 16) ** 2)
    c = text_of(tmp_path, text, target)
    assert c.index("if (tx < 16)") < c.index("__syncthreads();") < c.index("O[tx]")


@BOTH
def test_h32_flags_set_at_places_from_memory(tmp_path: Path, target: str) -> None:
    """Two barriers: after clearing, after setting."""
    text = """
@T.prim_func
def main(I: T.Tensor((64,), "int32"), O: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64) as bx:
        flag = T.alloc_shared((64,), "int32")
        tx = T.get_thread_binding()
        flag[tx] = 0
        flag[I[tx]] = 1
        O[tx] = flag[63 - tx]
"""
    places = np.random.default_rng(0).permutation(64).astype(np.int32)
    places[places > 30] = 63  # the same value by several threads is benign
    wants = np.isin(63 - np.arange(64), places)
    places = np.where(np.arange(64) < 31, np.arange(64), 63).astype(np.int32)
    places[:31] = np.random.default_rng(0).permutation(31)
    places[31:] = np.arange(31, 64)
    wants = np.isin(63 - np.arange(64), places)
    same(checked(tmp_path, text, {"I": places, "O": empty(64, "int32")}, target)["O"], wants)
    assert text_of(tmp_path, text, target).count("__syncthreads();") == 2


def test_h33_no_barrier_under_half_of_the_threads(tmp_path: Path) -> None:
    text = """
@T.prim_func
def main(O: T.Tensor((32,), "float32")):
    with T.Kernel(1, threads=32) as bx:
        S = T.alloc_shared((32,), "float32")
        tx = T.get_thread_binding()
        S[tx] = T.cast(tx, "float32")
        if tx % 2 == 0:
            v = S[tx]
            S[tx ^ 1] = v
        O[tx] = S[tx]
"""
    same(checked(tmp_path, text, {"O": empty(32)})["O"], np.arange(32) // 2 * 2)


def test_h34_a_barrier_needed_in_a_divergent_loop(tmp_path: Path) -> None:
    """Refused: some threads would never arrive."""
    text = """
@T.prim_func
def main(O: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64) as bx:
        S = T.alloc_shared((64,), "int32")
        tx = T.get_thread_binding()
        S[tx] = tx
        if tx % 4 == 0:
            for k in T.serial(5):
                S[tx] = S[tx] + k
                O[tx] = S[(tx + 4) % 64]
"""
    assert "T2C506" in refusal(tmp_path, text)


@BOTH
def test_h35_a_clear_after_the_last_read(tmp_path: Path, target: str) -> None:
    text = """
@T.prim_func
def main(A: T.Tensor((4, 128), "float32"), O: T.Tensor((4, 128), "float32")):
    with T.Kernel(1, threads=128) as bx:
        S = T.alloc_shared((128,), "float32")
        for r in T.serial(4):
            T.clear(S)
            for i in T.Parallel(128):
                S[127 - i] += A[r, i]
            for i in T.Parallel(128):
                O[r, i] = S[i]
"""
    a = values((4, 128))
    same(checked(tmp_path, text, {"A": a, "O": empty((4, 128))}, target)["O"], a[:, ::-1])


@pytest.mark.parametrize("n", [0, 1])
def test_h36_a_barrier_on_both_paths(tmp_path: Path, n: int) -> None:
    """What stands behind a branch is ordered whether the branch is taken or not."""
    text = """
@T.prim_func
def main(A: T.Tensor((64,), "float32"), O: T.Tensor((2, 64), "float32"), n: T.int32):
    with T.Kernel(1, threads=64) as bx:
        a = T.alloc_shared((64,), "float32")
        b = T.alloc_shared((64,), "float32")
        for i in T.Parallel(64):
            a[i] = A[i]
        if n > 0:
            for i in T.Parallel(64):
                b[i] = A[i] * 2
            for i in T.Parallel(64):
                O[1, i] = b[63 - i]
        for i in T.Parallel(64):
            O[0, i] = a[63 - i]
"""
    a = values(64)
    found = checked(tmp_path, text, {"A": a, "O": empty((2, 64)), "n": n})["O"]
    same(found[0], a[::-1])
    same(found[1], 2 * a[::-1] if n else -7)


PIPELINED = """
{head}
@T.prim_func
def main(A: T.Tensor((KB, 64), "float32"), O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64) as bx:
        S = T.alloc_shared((64,), "float32")
        acc = T.alloc_fragment((64,), "float32")
        T.clear(acc)
        for k in T.Pipelined(KB, num_stages=4):
            T.copy(A[k, 0], S)
            for i in T.Parallel(64):
                acc[i] += S[i]
        {end}
"""


@pytest.mark.parametrize("rounds", [1, 2, 3, 5])
@pytest.mark.parametrize("dynamic", [False, True])
def test_h39_fewer_rounds_than_stages(tmp_path: Path, rounds: int, dynamic: bool) -> None:
    head = 'KB = T.dynamic("KB")' if dynamic else f"KB = {rounds}"
    text = PIPELINED.format(head=head, end="T.copy(acc, O)")
    a = values((rounds, 64))
    found = checked(tmp_path, text, {"A": a, "O": empty(64)}, rtol=1e-4)["O"]
    close(found, a.sum(0), 1e-4, 1e-4)


def test_h39_no_round_at_all(tmp_path: Path) -> None:
    text = PIPELINED.format(head='KB = T.dynamic("KB")', end="T.copy(acc, O)")
    same(checked(tmp_path, text, {"A": values((0, 64)), "O": empty(64)})["O"], 0)


@pytest.mark.parametrize("stages", [0, 3])
def test_h40_a_read_behind_its_atomic(tmp_path: Path, stages: int) -> None:
    text = f"""
@T.prim_func
def main(A: T.Tensor((6,), "float32"), G: T.Tensor((1,), "float32"), O: T.Tensor((6,), "float32")):
    with T.Kernel(1, threads=1) as bx:
        for k in T.Pipelined(6, num_stages={stages}):
            T.atomic_add(G[0], A[k])
            O[k] = G[0]
"""
    a = np.arange(6, dtype=np.float32)
    found = checked(tmp_path, text, {"A": a, "G": empty(1, fill=0), "O": empty(6)})
    same(found["O"], np.cumsum(a))


def test_h41_a_pipelined_tile_read_after_its_loop(tmp_path: Path) -> None:
    end = "for i in T.Parallel(64):\n            O[i] = S[i]"
    a = values((5, 64))
    text = PIPELINED.format(head="KB = 5", end=end)
    same(checked(tmp_path, text, {"A": a, "O": empty(64)})["O"], a[-1])


def test_h42_a_pipelined_loop_inside_a_while(tmp_path: Path) -> None:
    text = """
@T.prim_func
def main(A: T.Tensor((5, 64), "float32"), O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64) as bx:
        S = T.alloc_shared((64,), "float32")
        acc = T.alloc_fragment((64,), "float32")
        it = T.alloc_local((1,), "int32")
        T.clear(acc)
        it[0] = 0
        while it[0] < 2:
            for k in T.Pipelined(5, num_stages=3):
                T.copy(A[k, 0], S)
                for i in T.Parallel(64):
                    acc[i] += S[i]
            it[0] = it[0] + 1
        T.copy(acc, O)
"""
    a = values((5, 64))
    found = checked(tmp_path, text, {"A": a, "O": empty(64)}, rtol=1e-4)["O"]
    close(found, 2 * a.sum(0), 1e-4, 1e-4)


def test_h44_a_condition_in_a_pipelined_loop(tmp_path: Path) -> None:
    text = """
@T.prim_func
def main(
    A: T.Tensor((6, 64), "float32"),
    Keep: T.Tensor((6,), "int32"),
    O: T.Tensor((64,), "float32"),
):
    with T.Kernel(1, threads=64) as bx:
        S = T.alloc_shared((64,), "float32")
        acc = T.alloc_fragment((64,), "float32")
        T.clear(acc)
        for k in T.Pipelined(6, num_stages=3):
            if Keep[k] != 0:
                T.copy(A[k, 0], S)
                for i in T.Parallel(64):
                    acc[i] += S[i]
        T.copy(acc, O)
"""
    a, keep = values((6, 64)), np.array([1, 0, 0, 1, 1, 0], np.int32)
    found = checked(tmp_path, text, {"A": a, "Keep": keep, "O": empty(64)}, rtol=1e-4)["O"]
    close(found, a[keep != 0].sum(0), 1e-4, 1e-4)


@pytest.mark.parametrize("condition", ["", "if k < 3:"])
def test_h89_a_pipelined_loop_inside_a_loop_over_tiles(tmp_path: Path, condition: str) -> None:
    """Five rounds are no multiple of two stages."""
    pad = "    " if condition else ""
    text = f"""
@T.prim_func
def main(
    A: T.Tensor((96, 80), "float16"), B: T.Tensor((80, 32), "float16"),
    C: T.Tensor((96, 32), "float32"),
):
    with T.Kernel(1, threads=64) as bx:
        a = T.alloc_shared((32, 16), "float16")
        b = T.alloc_shared((16, 32), "float16")
        c = T.alloc_fragment((32, 32), "float32")
        for t in T.serial(3):
            T.clear(c)
            for k in T.Pipelined(5, num_stages=2):
                {condition or "pass"}
                {pad}T.copy(A[t * 32, k * 16], a)
                {pad}T.copy(B[k * 16, 0], b)
                {pad}T.gemm(a, b, c)
            T.copy(c, C[t * 32, 0])
"""
    a, b = values((96, 80), "float16"), values((80, 32), "float16", 1)
    found = checked(tmp_path, text, {"A": a, "B": b, "C": empty((96, 32))}, rtol=1e-2, atol=1e-2)
    depth = 48 if condition else 80
    close(found["C"], a[:, :depth].astype(float) @ b[:depth].astype(float), 1e-2, 1e-2)
