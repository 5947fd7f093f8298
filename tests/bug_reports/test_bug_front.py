"""Public reports on dynamic shapes, the front end, memory and text, as programs."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from language_programs import CUDA, HIP, checked, empty, refusal, text_of, values
from numpy.testing import assert_allclose as close
from numpy.testing import assert_array_equal as same

BOTH = pytest.mark.parametrize("target", [CUDA, HIP])


@pytest.mark.parametrize("n", [1, 127, 128, 129, 1000])
def test_h67_element_wise_over_a_run_time_length(tmp_path: Path, n: int) -> None:
    text = """
n = T.dynamic("n")

@T.prim_func
def main(
    A: T.Tensor((n,), "bfloat16"),
    B: T.Tensor((n,), "bfloat16"),
    C: T.Tensor((n,), "bfloat16"),
):
    with T.Kernel(T.ceildiv(n, 128), threads=128) as bx:
        for i in T.Parallel(128):
            C[bx * 128 + i] = A[bx * 128 + i] + B[bx * 128 + i]
"""
    a, b = (values(n, "float32", k).astype(ml_dtypes.bfloat16) for k in range(2))
    found = checked(tmp_path, text, {"A": a, "B": b, "C": empty(n, "bfloat16")})["C"]
    same(found, a + b)


def test_h68_a_mask_on_a_run_time_length(tmp_path: Path) -> None:
    text = """
@T.prim_func
def main(L: T.Tensor((2,), "int32"), S: T.Tensor((2, 4, 8), "float32")):
    with T.Kernel(2, threads=32) as b:
        for i, j in T.Parallel(4, 8):
            S[b, i, j] = T.if_then_else(j >= L[b], -T.infinity("float32"), S[b, i, j])
"""
    s, lengths = values((2, 4, 8)), np.array([5, 8], np.int32)
    wants = np.where(np.arange(8) < lengths[:, None, None], s, -np.inf)
    same(checked(tmp_path, text, {"L": lengths, "S": s})["S"], wants)


def test_h70_shared_memory_of_a_run_time_size(tmp_path: Path) -> None:
    """Refused with its line."""
    text = """
n = T.dynamic("n")

@T.prim_func
def main(A: T.Tensor((n,), "int32")):
    with T.Kernel(1, threads=32) as bx:
        S = T.alloc_shared((n,), "int32")
        T.copy(A, S)
        T.copy(S, A)
"""
    assert "program.py:11:" in refusal(tmp_path, text)


@BOTH
def test_h71_a_loop_of_one_round_from_a_block_index(tmp_path: Path, target: str) -> None:
    text = """
@T.prim_func
def main(O: T.Tensor((9,), "int32")):
    with T.Kernel(9, threads=1) as bx:
        for t in T.serial(bx, bx + 1):
            O[t] = t
"""
    same(checked(tmp_path, text, {"O": empty(9, "int32")}, target)["O"], np.arange(9))


def test_h72_a_plain_name_bound_again_under_a_condition(tmp_path: Path) -> None:
    """Refused, pointing at the assignment: never all nines."""
    text = """
@T.prim_func
def main(A: T.Tensor((32,), "int32"), O: T.Tensor((32,), "int32")):
    with T.Kernel(1, threads=32) as bx:
        tx = T.get_thread_binding()
        val = A[tx]
        if val > 9:
            val = 9
        O[tx] = val
"""
    said = refusal(tmp_path, text)
    assert "T2C239" in said
    assert "note: it is bound here: " in said


@pytest.mark.parametrize("first", ["3", "A[tx]", "(3, 4)"])
@pytest.mark.parametrize("head", ["if A[tx] > 9:", "while v < 1:", "for k in T.serial(2):"])
def test_h72_a_number_of_a_run_time_region(tmp_path: Path, first: str, head: str) -> None:
    """What only a region binds ends with it; a number changed under a condition does too."""
    before = f"        val = {first}\n" if head.startswith("if") else ""
    text = f"""
@T.prim_func
def main(A: T.Tensor((32,), "int32"), O: T.Tensor((32,), "int32")):
    with T.Kernel(1, threads=32) as bx:
        tx = T.get_thread_binding()
        v = T.alloc_var(T.int32, 0)
{before}        {head}
            v = 1
            val = 9
        O[tx] = val
"""
    said = refusal(tmp_path, text)
    assert "T2C239" in said
    assert "cannot be used after it" in said


def test_h73_the_else_of_a_loop(tmp_path: Path) -> None:
    """Refused."""
    text = """
@T.prim_func
def main(O: T.Tensor((4,), "int32")):
    with T.Kernel(1, threads=1) as bx:
        for i in T.serial(4):
            O[i] = 1
        else:
            O[0] += 100
"""
    assert "else" in refusal(tmp_path, text)


@BOTH
@pytest.mark.parametrize("kind", ["unroll", "serial", "vectorized"])
def test_h74_a_break_in_any_loop(tmp_path: Path, target: str, kind: str) -> None:
    text = f"""
@T.prim_func
def main(A: T.Tensor((8,), "int32"), O: T.Tensor((1,), "int32")):
    with T.Kernel(1, threads=1) as bx:
        O[0] = 0
        for i in T.{kind}(8):
            if A[i] < 0:
                T.loop_break()
            O[0] += A[i]
"""
    a = np.array([1, 2, -1, 4, 5, 6, 7, 8], np.int32)
    same(checked(tmp_path, text, {"A": a, "O": empty(1, "int32")}, target)["O"], [3])


@BOTH
def test_h75_a_while_on_shared_memory(tmp_path: Path, target: str) -> None:
    text = """
@T.prim_func
def main(O: T.Tensor((1,), "int32")):
    with T.Kernel(1, threads=1) as bx:
        s = T.alloc_local((1,), "int32")
        s[0] = 3
        while s[0] < 100:
            s[0] = s[0] * 2
        O[0] = s[0]
"""
    same(checked(tmp_path, text, {"O": empty(1, "int32")}, target)["O"], [192])


def test_h76_a_copy_of_sums_into_a_fragment_held_otherwise(tmp_path: Path) -> None:
    text = """
@T.prim_func
def main(
    A: T.Tensor((32, 32), "float16"),
    O: T.Tensor((32, 32), "float16"),
    R: T.Tensor((32,), "float32"),
):
    with T.Kernel(1, threads=64) as bx:
        a = T.alloc_shared((32, 32), "float16")
        c = T.alloc_fragment((32, 32), "float32")
        h = T.alloc_fragment((32, 32), "float16")
        r = T.alloc_fragment((32,), "float32")
        T.copy(A, a)
        T.clear(c)
        T.gemm(a, a, c)
        for i, j in T.Parallel(32, 32):
            h[j, i] = c[i, j]
        for i, j in T.Parallel(32, 32):
            O[i, j] = h[i, j] + 1
        T.reduce_sum(c, r, dim=1)
        T.copy(r, R)
"""
    a = (values((32, 32)) * 0.3).astype(np.float16)
    found = checked(
        tmp_path, text, {"A": a, "O": empty((32, 32), "float16"), "R": empty(32)},
        rtol=1e-2, atol=1e-2,
    )  # fmt: skip
    product = a.astype(float) @ a.astype(float)
    close(found["O"].astype(float), product.T + 1, 1e-2, 1e-2)
    close(found["R"], product.sum(1), 1e-2, 1e-2)


@pytest.mark.parametrize("target", [CUDA, HIP, "cuda:sm_90a"])
def test_h80_more_shared_memory_than_there_is(tmp_path: Path, target: str) -> None:
    """Refused, with each tile's bytes and the target's limit."""
    text = """
@T.prim_func
def main(A: T.Tensor((160, 192), "float32"), O: T.Tensor((160, 192), "float32")):
    with T.Kernel(1, threads=128) as bx:
        s = T.alloc_shared((160, 192), "float32")
        t = T.alloc_shared((160, 192), "float32")
        T.copy(A, s)
        T.copy(A, t)
        for i, j in T.Parallel(160, 192):
            O[i, j] = s[159 - i, j] + t[i, 191 - j]
"""
    said = refusal(tmp_path, text, target)
    assert "122880" in said
    assert "245760" in said


@BOTH
def test_h81_tiles_are_aligned_for_wide_accesses(tmp_path: Path, target: str) -> None:
    text = """
@T.prim_func
def main(
    A: T.Tensor((3, 5), "int8"),
    B: T.Tensor((16, 16), "float16"),
    O: T.Tensor((3, 5), "int8"),
    Q: T.Tensor((16, 16), "float16"),
):
    with T.Kernel(1, threads=32) as bx:
        s = T.alloc_shared((3, 5), "int8")
        t = T.alloc_shared((16, 16), "float16")
        T.copy(A, s)
        T.copy(B, t)
        T.copy(s, O)
        T.copy(t, Q)
"""
    a, b = values((3, 5), "int8"), values((16, 16), "float16")
    arguments = {"A": a, "B": b, "O": empty((3, 5), "int8"), "Q": empty((16, 16), "float16")}
    found = checked(tmp_path, text, arguments, target)
    same(found["O"], a)
    same(found["Q"], b)


def test_h82_shuffles_of_32_on_waves_of_64(tmp_path: Path) -> None:
    text = """
@T.prim_func
def main(A: T.Tensor((64,), "int32"), O: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64) as bx:
        tx = T.get_thread_binding()
        O[tx] = T.shfl_xor(A[tx], 16)
"""
    for target in (CUDA, HIP):
        folder = tmp_path / target.partition(":")[0]
        folder.mkdir()
        a = np.arange(64, dtype=np.int32)
        found = checked(folder, text, {"A": a, "O": empty(64, "int32")}, target)["O"]
        same(found, a ^ 16)


@BOTH
def test_h83_names_of_the_device_are_not_taken(tmp_path: Path, target: str) -> None:
    text = """
@T.prim_func
def main(warpSize: T.Tensor((64,), "float32"), half: T.Tensor((1,), "float32")):
    with T.Kernel(1, threads=64) as threadIdx:
        f = T.alloc_fragment((64,), "float32")
        s = T.alloc_fragment((1,), "float32")
        T.copy(warpSize, f)
        T.reduce_sum(f, s, dim=0)
        T.copy(s, half)
"""
    a = values(64)
    found = checked(tmp_path, text, {"warpSize": a, "half": empty(1)}, target, rtol=1e-4, atol=1e-4)
    close(found["half"], [a.sum()], 1e-4, 1e-4)
    assert "warpSize_" in text_of(tmp_path, text, target)
