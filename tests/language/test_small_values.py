"""Bits of small integers, tests of floats, persistent loops, copies that run beside the program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from language_programs import CUDA, HIP, checked, empty, values

BOTH = pytest.mark.parametrize("target", [CUDA, HIP])


@BOTH
def test_nibbles_keep_their_width(tmp_path: Path, target: str) -> None:
    """A product of bytes is one of 32 bits, but as bits it is a byte again."""
    text = """
@T.prim_func
def nibbles(
    A: T.Tensor((64,), "uint8"), S: T.Tensor((64,), "uint8"), B: T.Tensor((64,), "int8"),
    C: T.Tensor((64,), "int32"),
):
    with T.Kernel(1, threads=64) as bx:
        for i in T.Parallel(64):
            x = (A[i] >> (S[i] * T.cast(4, "uint8"))) & T.cast(15, "uint8")
            B[i] = T.reinterpret(T.int8, x << T.cast(4, "uint8")) >> T.cast(4, "int8")
            C[i] = A[i] * S[i]
"""
    a = np.random.default_rng(0).integers(0, 256, 64).astype(np.uint8)
    s = (np.arange(64) % 2).astype(np.uint8)
    given = {"A": a, "S": s, "B": empty(64, "int8"), "C": empty(64, "int32")}
    found = checked(tmp_path, text, given, target)
    high = (((a >> (s * 4)) & 15) << 4).astype(np.uint8)
    np.testing.assert_array_equal(found["B"], high.view(np.int8) >> 4)
    np.testing.assert_array_equal(found["C"], a.astype(np.int32) * s)


@BOTH
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_classes_of_floats_and_counts_of_bits(tmp_path: Path, target: str, dtype: str) -> None:
    text = f"""
@T.prim_func
def classes(A: T.Tensor((8,), "{dtype}"), I: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
    with T.Kernel(1, threads=32) as bx:
        for i in T.Parallel(8):
            B[i] = T.if_then_else(T.isnan(A[i]), 100, 0) + T.if_then_else(T.isinf(A[i]), 200, 0)
            if T.isfinite(A[i]):
                B[i] = T.popcount(I[i])
"""
    a = values(8, dtype)
    a[1], a[3], a[4] = np.nan, np.inf, -np.inf
    given = {"A": a, "I": np.arange(-3, 5, dtype=np.int32), "B": empty(8, "int32")}
    found = checked(tmp_path, text, given, target)
    counts = [bin(i & 0xFFFFFFFF).count("1") for i in range(-3, 5)]
    wanted = [
        100 if np.isnan(x) else 200 if np.isinf(x) else n for x, n in zip(a, counts, strict=True)
    ]
    np.testing.assert_array_equal(found["B"], wanted)


@BOTH
@pytest.mark.parametrize("domain", ["n", "7, n", "3, 5, n"])
@pytest.mark.parametrize("group", ["", ", group_size=2"])
def test_persistent_tiles_are_met_once(
    tmp_path: Path, target: str, domain: str, group: str
) -> None:
    extents = domain.replace("n", "11").split(",")
    names = "abc"[: len(extents)]
    index = ", ".join(names)
    text = f"""
@tilelang.jit
def factory(n=T.dynamic("n")):
    @T.prim_func
    def tiles(O: T.Tensor(({domain},), "int32")):
        with T.Kernel(4, threads=32) as bx:
            for {index} in T.Persistent([{domain}], 4, bx{group}):
                T.atomic_add(O[{index}], 1)
    return tiles
"""
    shape = tuple(int(extent) for extent in extents)
    found = checked(tmp_path, text, {"O": np.zeros(shape, np.int32)}, target)
    assert (found["O"] == 32).all()  # by each thread of the block


@BOTH
def test_copies_beside_the_program(tmp_path: Path, target: str) -> None:
    text = """
@T.prim_func
def staged(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=32) as bx:
        s = T.alloc_shared((64,), "float32")
        T.async_copy(A, s)
        T.ptx_commit_group()
        T.ptx_wait_group(0)
        for i in T.Parallel(64):
            B[i] = s[63 - i]
"""
    a = values(64)
    found = checked(tmp_path, text, {"A": a, "B": empty(64)}, target)
    np.testing.assert_array_equal(found["B"], a[::-1])
