"""Atomics on elements and tiles (language.md 12)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from language_programs import CUDA, HIP, checked, empty, named, values

EVERYWHERE = """
@T.prim_func
def main(
    A: T.Tensor((77,), "{dtype}"), I: T.Tensor((77,), "int32"), O: T.Tensor((9,), "{dtype}"),
    Q: T.Tensor((4,), "{dtype}"), P: T.Tensor((77,), "int32"), C: T.Tensor((1,), "int32"),
):
    with T.Kernel(3, threads={threads}) as bx:
        s = T.alloc_shared((4,), "{dtype}")
        f = T.alloc_fragment((77,), "{dtype}")
        g = T.alloc_fragment((4,), "{dtype}")
        tx = T.get_thread_binding()
        T.fill(s, 0)
        T.copy(A, f)
        T.fill(g, 1)
        for i in T.Parallel(77):
            T.atomic_{op}(O[I[i]], f[i])
            T.atomic_{op}(s[i % 4], A[i])
        if tx == 0:
            T.atomic_add(C[0], 1)
        if bx == 0:
            for i in T.Parallel(77):
                P[i] = T.atomic_add(C[0], 0, return_prev=True) * 0 + 3
        T.atomic_{op}(s, g)
        T.atomic_{op}(Q, s)
"""
CASES = [
    ("float32", "add", 96), ("float32", "max", 24), ("int64", "add", 160), ("float16", "add", 64),
    ("bfloat16", "min", 64), ("float64", "max", 33), ("int32", "or", 128), ("uint32", "min", 32),
]  # fmt: skip


@pytest.mark.parametrize("target", [CUDA, HIP])
@pytest.mark.parametrize(("dtype", "op", "threads"), CASES)
def test_elements_and_tiles(tmp_path: Path, dtype: str, op: str, threads: int, target: str) -> None:
    arguments = {
        "A": np.round(values(77) * 4).astype(named(dtype)),
        "I": np.arange(77, dtype=np.int32) % 9,
        "O": empty(9, dtype, 0),
        "Q": empty(4, dtype, 0),
        "P": empty(77, "int32"),
        "C": empty(1, "int32", 0),
    }
    text = EVERYWHERE.format(dtype=dtype, op=op, threads=threads)
    checked(tmp_path, text, arguments, target, rtol=2e-2)


@pytest.mark.parametrize("target", [CUDA, HIP])
@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
def test_several_neighbours_and_old_values(tmp_path: Path, dtype: str, target: str) -> None:
    """addx2 and addx4 are that many atomics; a ticket is handed out once."""
    text = f"""
@T.prim_func
def main(A: T.Tensor((64,), "{dtype}"), O: T.Tensor((8,), "{dtype}"), N: T.Tensor((1,), "int32"),
         W: T.Tensor((48,), "int32")):
    with T.Kernel(2, threads=24) as bx:
        tx = T.get_thread_binding()
        for i in T.Parallel(16):
            T.atomic_addx4(O[0], A[i * 4])
        for i in T.Parallel(32):
            T.atomic_addx2(O[4:6], A[i * 2:i * 2 + 2])
        place = T.atomic_add(N[0], 1, return_prev=True)
        W[place] = 1
"""
    arguments = {
        "A": np.round(values(64) * 3).astype(named(dtype)),
        "O": empty(8, dtype, 0),
        "N": empty(1, "int32", 0),
        "W": empty(48, "int32", 0),
    }
    found = checked(tmp_path, text, arguments, target, rtol=1e-2)
    assert found["W"].all()
