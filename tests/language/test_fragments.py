"""Fragments that change hands, sums over iterations, reductions of any operands (language.md 5, 8, 11)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from language_programs import CUDA, HIP, checked, empty, values, written_text

THREADS = [(CUDA, 24), (CUDA, 96), (CUDA, 256), (HIP, 160)]


@pytest.mark.parametrize(("target", "threads"), THREADS)
def test_an_outer_product_of_two_fragments(tmp_path: Path, target: str, threads: int) -> None:
    """Both fragments spread over all threads: neither holds what the loop asks for."""
    text = f"""
@T.prim_func
def main(
    X: T.Tensor((40,), "float32"),
    Y: T.Tensor((33,), "float32"),
    O: T.Tensor((40,33), "float32"),
):
    with T.Kernel(1, threads={threads}) as bx:
        x = T.alloc_fragment((40,), "float32")
        y = T.alloc_fragment((33,), "float32")
        T.copy(X, x)
        T.copy(Y, y)
        for i, j in T.Parallel(40, 33):
            O[i, j] = x[i] * y[j]
"""
    arguments = {"X": values(40), "Y": values(33, seed=1), "O": empty((40, 33))}
    checked(tmp_path, text, arguments, target, rtol=1e-4)


@pytest.mark.parametrize(("target", "threads"), THREADS)
def test_transposed_and_mirrored_fragments(tmp_path: Path, target: str, threads: int) -> None:
    """`y[j, i]` and `y[32 - j, i]` in one kernel."""
    text = f"""
@T.prim_func
def main(
    X: T.Tensor((20,33), "float32"),
    O: T.Tensor((33,20), "float32"),
    Q: T.Tensor((20,), "float32"),
):
    with T.Kernel(1, threads={threads}) as bx:
        x = T.alloc_fragment((20,33), "float32")
        y = T.alloc_fragment((33,20), "float32")
        z = T.alloc_fragment((20,), "float32")
        T.copy(X, x)
        for i, j in T.Parallel(20, 33):
            y[j, i] = x[i, j] + 1
        for i, j in T.Parallel(20, 33):
            x[i, j] = x[i, j] + y[32 - j, i]
        for j, i in T.Parallel(33, 20):
            y[j, i] = y[j, i] - x[i, j]
        T.reduce_sum(y, z, dim=0)
        T.copy(y, O)
        T.copy(z, Q)
"""
    arguments = {"X": values((20, 33)), "O": empty((33, 20)), "Q": empty((20,))}
    checked(tmp_path, text, arguments, target, rtol=1e-4)


@pytest.mark.parametrize(("target", "threads"), THREADS)
def test_sums_over_iterations(tmp_path: Path, target: str, threads: int) -> None:
    """`a[j] += x[i, j]`, also under a condition and into one element."""
    text = f"""
@T.prim_func
def main(
    X: T.Tensor((20,33), "float32"),
    O: T.Tensor((33,), "float32"),
    Q: T.Tensor((20,), "float32"),
    R: T.Tensor((1,), "float32"),
):
    with T.Kernel(1, threads={threads}) as bx:
        x = T.alloc_fragment((20,33), "float32")
        a = T.alloc_fragment((33,), "float32")
        c = T.alloc_fragment((20,), "float32")
        s = T.alloc_fragment((1,), "float32")
        T.copy(X, x)
        T.fill(a, 1)
        T.fill(c, 2)
        T.fill(s, 0)
        for i, j in T.Parallel(20, 33):
            a[j] += x[i, j]
        for i, j in T.Parallel(20, 33):
            c[i] = T.max(c[i], x[i, j])
        for k in T.serial(2):
            for i, j in T.Parallel(20, 33):
                if x[i, j] > 0:
                    s[0] += x[i, j] * a[j]
        T.copy(a, O)
        T.copy(c, Q)
        R[0] = s[0]
"""
    arguments = {"X": values((20, 33)), "O": empty(33), "Q": empty((20,)), "R": empty(1)}
    checked(tmp_path, text, arguments, target, rtol=1e-4)


@pytest.mark.parametrize(("target", "threads"), THREADS)
def test_reductions_of_shared_parts_and_private_arrays(
    tmp_path: Path, target: str, threads: int
) -> None:
    """Along any dimension, kept as 1, of regions, into shared memory."""
    text = f"""
@T.prim_func
def main(
    X: T.Tensor((20,33), "float32"),
    O: T.Tensor((33,), "float32"),
    Q: T.Tensor((20,1), "float32"),
    R: T.Tensor((4,), "float32"),
    V: T.Tensor((7,), "float32"),
):
    with T.Kernel(1, threads={threads}) as bx:
        x = T.alloc_shared((20,33), "float32")
        f = T.alloc_fragment((20,33), "float32")
        a = T.alloc_shared((33,), "float32")
        c = T.alloc_fragment((20,1), "float32")
        l = T.alloc_local((4, 5), "float32")
        m = T.alloc_local((4,), "float32")
        n = T.alloc_local((1,), "float32")
        p = T.alloc_fragment((7,), "float32")
        T.copy(X, x)
        T.copy(X, f)
        T.reduce_sum(x, a, dim=0)
        T.copy(a, O)
        T.reduce_absmax(x, c, dim=1)
        T.copy(c, Q)
        T.reduce_min(f[3:10, :], p, dim=1)
        T.copy(p, V)
        for i in T.serial(4):
            for j in T.serial(5):
                l[i, j] = i * j - 3
        T.reduce_sum(l, m, dim=1)
        T.reduce_max(m, n, dim=0)
        for i in T.serial(4):
            R[i] = m[i] + n[0]
"""
    arguments = {
        "X": values((20, 33)),
        "O": empty(33),
        "Q": empty((20, 1)),
        "R": empty(4),
        "V": empty(7),
    }
    checked(tmp_path, text, arguments, target, rtol=1e-4)


@pytest.mark.parametrize("target", [CUDA, HIP])
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32"])
def test_bit_reductions(tmp_path: Path, target: str, dtype: str) -> None:
    text = f"""
@T.prim_func
def main(X: T.Tensor((5, 70), "{dtype}"), A: T.Tensor((5,), "{dtype}"),
         B: T.Tensor((5,), "{dtype}"), C: T.Tensor((5,), "{dtype}")):
    with T.Kernel(1, threads=64) as bx:
        x = T.alloc_fragment((5, 70), "{dtype}")
        a = T.alloc_fragment((5,), "{dtype}")
        T.copy(X, x)
        T.reduce_bitand(x, a, dim=1)
        T.copy(a, A)
        T.reduce_bitor(x, a, dim=1)
        T.copy(a, B)
        T.reduce_bitxor(x, a, dim=1, clear=False)
        T.copy(a, C)
"""
    arguments = {"X": values((5, 70), dtype) + 64}
    arguments |= {name: empty(5, dtype, 0) for name in "ABC"}
    checked(tmp_path, text, arguments, target)


@pytest.mark.parametrize("target", [CUDA, HIP])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("keep", [True, False])
def test_nan_in_reductions(tmp_path: Path, target: str, dtype: str, keep: bool) -> None:
    text = f"""
@T.prim_func
def main(X: T.Tensor((3, 70), "{dtype}"), A: T.Tensor((3,), "{dtype}"),
         B: T.Tensor((3,), "{dtype}")):
    with T.Kernel(1, threads=96) as bx:
        x = T.alloc_fragment((3, 70), "{dtype}")
        a = T.alloc_fragment((3,), "{dtype}")
        T.copy(X, x)
        T.reduce_max(x, a, dim=1, nan_propagate={keep})
        T.copy(a, A)
        T.reduce_min(x, a, dim=1, clear=False, nan_propagate={keep})
        T.copy(a, B)
"""
    x = values((3, 70), dtype)
    x[1, 33] = np.nan
    found = checked(tmp_path, text, {"X": x, "A": empty(3, dtype), "B": empty(3, dtype)}, target)
    assert np.isnan(found["A"][1]) == keep


@pytest.mark.parametrize(("target", "threads"), THREADS)
def test_a_vector_is_read_again(tmp_path: Path, target: str, threads: int) -> None:
    """Both fragments are copies of vectors: the loop reads these, without a tile in between."""
    text = f"""
@T.prim_func
def main(
    X: T.Tensor((40,), "float16"),
    Y: T.Tensor((33,), "float32"),
    O: T.Tensor((40,33), "float32"),
    P: T.Tensor((33,), "float32"),
):
    with T.Kernel(1, threads={threads}) as bx:
        x = T.alloc_fragment((40,), "float32")
        y = T.alloc_fragment((33,), "float32")
        s = T.alloc_shared((33,), "float32")
        T.copy(X, x)
        T.copy(Y, s)
        T.copy(s, y)
        for i, j in T.Parallel(40, 33):
            O[i, j] = x[i] * y[j]
        T.copy(y, P)
"""
    arguments = {
        "X": values(40, "float16"),
        "Y": values(33, seed=1),
        "O": empty((40, 33)),
        "P": empty(33),
    }
    checked(tmp_path, text, arguments, target, rtol=1e-4)
    kernel = written_text(tmp_path / "out")
    assert "x_shared" not in kernel and "y_shared" not in kernel


@pytest.mark.parametrize("target", [CUDA, HIP])
def test_coordinates_are_signed(tmp_path: Path, target: str) -> None:
    """The thread index of C is unsigned: `j - 5` is negative all the same."""
    text = """
@T.prim_func
def main(O: T.Tensor((3, 32), "float32"), Q: T.Tensor((3, 32), "int32")):
    with T.Kernel(1, threads=32) as bx:
        a = T.alloc_shared((3, 16), "float16")
        b = T.alloc_shared((32, 16), "float16")
        c = T.alloc_fragment((3, 32), "float32")
        T.clear(a)
        T.clear(b)
        T.clear(c)
        T.gemm(a, b, c, transpose_B=True)
        for i, j in T.Parallel(3, 32):
            c[i, j] = c[i, j] + (j - 5)
        T.copy(c, O)
        for i, j in T.Parallel(3, 32):
            Q[i, j] = (j - 40) % 7 + T.if_then_else(j - 40 < 0, 100, 0)
"""
    got = checked(
        tmp_path, text, {"O": empty((3, 32)), "Q": empty((3, 32), "int32")}, target, rtol=1e-4
    )
    assert (got["O"] == np.arange(32) - 5).all()
    assert (got["Q"] == (np.arange(32) - 40) % 7 + 100).all()


@pytest.mark.parametrize("target", [CUDA, HIP])
def test_a_loop_that_writes_registers_and_shared_memory(tmp_path: Path, target: str) -> None:
    """Replicas hold the same fragment; one of them stores the vectors of the shared tile, whole."""
    text = """
@T.prim_func
def main(X: T.Tensor((48, 4), "float32"), O: T.Tensor((48, 4), "float32"), Q: T.Tensor((48, 4), "float32")):
    with T.Kernel(1, threads=64) as bx:
        x = T.alloc_fragment((48, 4), "float32")
        y = T.alloc_fragment((48, 4), "float32")
        s = T.alloc_shared((48, 4), "float32")
        T.copy(X, x)
        for i, j in T.Parallel(48, 4):
            t = x[i, j] * (i - j)
            y[i, j] = t
            s[i, j] = t
        T.copy(y, O)
        T.copy(s, Q)
"""
    x = values((48, 4))
    got = checked(tmp_path, text, {"X": x, "O": empty((48, 4)), "Q": empty((48, 4))}, target)
    assert (got["O"] == got["Q"]).all()
