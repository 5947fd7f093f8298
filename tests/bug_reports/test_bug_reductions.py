"""Public reports on reductions and scans, as programs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from language_programs import CUDA, HIP, checked, empty, values
from numpy.testing import assert_allclose as close
from numpy.testing import assert_array_equal as same


@pytest.mark.parametrize("width", [1, 80, 100, 127, 129])
def test_h09_widths_that_threads_do_not_divide(tmp_path: Path, width: int) -> None:
    text = f"""
@T.prim_func
def main(A: T.Tensor((4, {width}), "float32"), O: T.Tensor((4,), "float32")):
    with T.Kernel(4, threads=128) as r:
        f = T.alloc_fragment((1, {width}), "float32")
        s = T.alloc_fragment((1,), "float32")
        T.copy(A[r, 0], f)
        T.reduce_sum(f, s, dim=1)
        T.copy(s, O[r])
"""
    a = values((4, width))
    close(checked(tmp_path, text, {"A": a, "O": empty(4)}, rtol=1e-4)["O"], a.sum(1), 1e-4, 1e-4)


@pytest.mark.parametrize("dim", [0, 1])
def test_h10_a_result_that_keeps_the_dimension(tmp_path: Path, dim: int) -> None:
    kept = (16, 1) if dim else (1, 64)
    text = f"""
@T.prim_func
def main(A: T.Tensor((16, 64), "float32"), O: T.Tensor({kept}, "float32")):
    with T.Kernel(1, threads=64) as bx:
        f = T.alloc_fragment((16, 64), "float32")
        m = T.alloc_fragment({kept}, "float32")
        T.copy(A, f)
        T.reduce_max(f, m, dim={dim})
        T.copy(m, O)
"""
    a = values((16, 64))
    same(checked(tmp_path, text, {"A": a, "O": empty(kept)})["O"], a.max(dim, keepdims=True))


def test_h11_no_element_is_skipped(tmp_path: Path) -> None:
    """576 values in a fragment of 768: the peak walks over every column."""
    text = """
@T.prim_func
def main(A: T.Tensor((576, 576), "float32"), O: T.Tensor((576,), "float32")):
    with T.Kernel(576, threads=128) as r:
        f = T.alloc_fragment((768,), "float32")
        m = T.alloc_fragment((1,), "float32")
        for j in T.Parallel(768):
            f[j] = T.if_then_else(j < 576, A[r, T.min(j, 575)], 0.0)
        T.reduce_absmax(f, m, dim=0)
        O[r] = m[0]
"""
    a = (-9 * np.eye(576) + 1).astype(np.float32)
    same(checked(tmp_path, text, {"A": a, "O": empty(576)})["O"], 8)


def test_h12_a_running_maximum_in_a_vectorized_loop(tmp_path: Path) -> None:
    """`T.vectorized` is a hint and changes no meaning."""
    text = """
@T.prim_func
def main(A: T.Tensor((32, 24), "int32"), O: T.Tensor((32,), "int32")):
    with T.Kernel(1, threads=32) as bx:
        S = T.alloc_shared((32,), "int32")
        tx = T.get_thread_binding()
        S[tx] = -1000
        for c in T.serial(3):
            for v in T.vectorized(8):
                S[tx] = T.max(S[tx], A[tx, c * 8 + v])
        O[tx] = S[tx]
"""
    a = values((32, 24), "int32")
    same(checked(tmp_path, text, {"A": a, "O": empty(32, "int32")})["O"], a.max(1))


@pytest.mark.parametrize(("keep", "wants"), [(True, [-2, np.nan]), (False, [-2, 0])])
def test_h14_nan_merged_into_an_old_maximum(tmp_path: Path, keep: bool, wants: list[float]) -> None:
    text = f"""
@T.prim_func
def main(A: T.Tensor((2, 64), "float16"), O: T.Tensor((2,), "float16")):
    with T.Kernel(1, threads=64) as bx:
        f = T.alloc_fragment((2, 64), "float16")
        m = T.alloc_fragment((2,), "float16")
        T.copy(A, f)
        T.fill(m, -2.0)
        T.reduce_max(f, m, dim=1, clear=False, nan_propagate={keep})
        T.copy(m, O)
"""
    a = np.zeros((2, 64), np.float16)
    a[0], a[1, 17] = -5, np.nan
    same(checked(tmp_path, text, {"A": a, "O": empty(2, "float16")})["O"], wants)


@pytest.mark.parametrize(("keep", "wants"), [(True, [-5, np.nan]), (False, [-5, 0])])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_h15_the_nan_flag_in_wide_floats(
    tmp_path: Path, dtype: str, keep: bool, wants: list[float]
) -> None:
    text = f"""
@T.prim_func
def main(A: T.Tensor((2, 64), "{dtype}"), O: T.Tensor((2,), "{dtype}")):
    with T.Kernel(1, threads=64) as bx:
        f = T.alloc_fragment((2, 64), "{dtype}")
        m = T.alloc_fragment((2,), "{dtype}")
        T.copy(A, f)
        T.reduce_max(f, m, dim=1, clear=True, nan_propagate={keep})
        T.copy(m, O)
"""
    a = np.zeros((2, 64), dtype)
    a[0], a[1, 17] = -5, np.nan
    same(checked(tmp_path, text, {"A": a, "O": empty(2, dtype)})["O"], wants)


@pytest.mark.parametrize("target", [CUDA, HIP])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_h16_clamp_keeps_nan(tmp_path: Path, target: str, dtype: str) -> None:
    """As in NumPy and torch: the rule is written down in docs/language.md."""
    text = f"""
@T.prim_func
def main(A: T.Tensor((4,), "{dtype}"), O: T.Tensor((4,), "{dtype}")):
    with T.Kernel(1, threads=32) as bx:
        for i in T.Parallel(4):
            O[i] = T.clamp(A[i], -1.0, 1.0)
"""
    a = np.array([np.nan, -np.inf, np.inf, 0.25], dtype)
    found = checked(tmp_path, text, {"A": a, "O": empty(4, dtype)}, target)["O"]
    same(found, np.array([np.nan, -1, 1, 0.25], dtype))


def test_h17_any_over_a_row_of_a_swizzled_tile(tmp_path: Path) -> None:
    text = """
@T.prim_func
def main(A: T.Tensor((16, 64), "float16"), O: T.Tensor((16,), "int32")):
    with T.Kernel(1, threads=128) as bx:
        S = T.alloc_shared((16, 64), "float16")
        T.annotate_layout({S: tilelang.layout.make_swizzled_layout(S)})
        T.copy(A, S)
        tx = T.get_thread_binding()
        if tx < 16:
            O[tx] = T.if_then_else(T.any_of(S[tx, :]), 1, 0)
"""
    a = np.zeros((16, 64), np.float16)
    a[5, 63] = 1
    same(checked(tmp_path, text, {"A": a, "O": empty(16, "int32")})["O"], np.arange(16) == 5)


@pytest.mark.parametrize("threads", [128, 160, 96])
def test_h18_h20_scan_of_a_slice(tmp_path: Path, threads: int) -> None:
    """The row stride is the buffer's, whatever the threads."""
    text = f"""
@T.prim_func
def main(A: T.Tensor((8, 40), "float32"), O: T.Tensor((8, 24), "float32")):
    with T.Kernel(1, threads={threads}) as bx:
        S = T.alloc_shared((8, 40), "float32")
        D = T.alloc_shared((8, 24), "float32")
        T.copy(A, S)
        T.cumsum(S[0:8, 0:24], D, dim=1)
        T.copy(D, O)
"""
    a = values((8, 40))
    found = checked(tmp_path, text, {"A": a, "O": empty((8, 24))}, rtol=1e-4)["O"]
    close(found, np.cumsum(a[:, :24], 1), 1e-4, 1e-4)


def test_h19_scan_from_shared_into_a_fragment(tmp_path: Path) -> None:
    text = """
@T.prim_func
def main(A: T.Tensor((8, 40), "float32"), O: T.Tensor((8, 40), "float32")):
    with T.Kernel(1, threads=128) as bx:
        S = T.alloc_shared((8, 40), "float32")
        D = T.alloc_fragment((8, 40), "float32")
        T.copy(A, S)
        T.cumsum(S, D, dim=1)
        T.copy(D, O)
"""
    a = values((8, 40))
    found = checked(tmp_path, text, {"A": a, "O": empty((8, 40))}, rtol=1e-4)["O"]
    close(found, np.cumsum(a, 1), 1e-4, 1e-4)


def test_h21_scan_of_a_mask_counts(tmp_path: Path) -> None:
    text = """
@T.prim_func
def main(A: T.Tensor((64,), "int32"), O: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64) as bx:
        S = T.alloc_shared((64,), "int32")
        for i in T.Parallel(64):
            S[i] = T.cast(A[i] > 0, "int32")
        T.cumsum(S, S, dim=0)
        T.copy(S, O)
"""
    a = np.ones(64, np.int32)
    same(checked(tmp_path, text, {"A": a, "O": empty(64, "int32")})["O"], np.arange(1, 65))


@pytest.mark.parametrize("target", [CUDA, HIP])
@pytest.mark.parametrize("threads", [32, 64])
def test_h82_as_many_ones_as_threads(tmp_path: Path, target: str, threads: int) -> None:
    """No lane is missing in a shuffle, and none takes part that is not there."""
    text = f"""
@T.prim_func
def main(A: T.Tensor(({threads},), "float32"), O: T.Tensor((1,), "float32")):
    with T.Kernel(1, threads={threads}) as bx:
        f = T.alloc_fragment(({threads},), "float32")
        s = T.alloc_fragment((1,), "float32")
        T.copy(A, f)
        T.reduce_sum(f, s, dim=0)
        T.copy(s, O)
"""
    a = np.ones(threads, np.float32)
    same(checked(tmp_path, text, {"A": a, "O": empty(1)}, target)["O"], threads)


@pytest.mark.parametrize("target", [CUDA, HIP])
@pytest.mark.parametrize("threads", [128, 96])
def test_h13_reducers_count_each_product_once(tmp_path: Path, target: str, threads: int) -> None:
    text = f"""
@T.prim_func
def main(
    A: T.Tensor((16, 48), "float32"),
    x: T.Tensor((48,), "float32"),
    O: T.Tensor((16,), "float32"),
    M: T.Tensor((16,), "float32"),
):
    with T.Kernel(1, threads={threads}) as bx:
        r = T.alloc_reducer((16,), "float32", op="sum")
        q = T.alloc_reducer((16,), "float32", op="max", replication="none")
        m = T.alloc_fragment((16,), "float32")
        T.clear(r)
        T.reducer_init(q)
        for i, j in T.Parallel(16, 48):
            r[i] += A[i, j] * x[j]
            T.reducer_update(q[i], A[i, j])
        T.finalize_reducer(r)
        T.finalize_reducer(q, m)
        T.copy(r, O)
        T.copy(m, M)
"""
    a, x = values((16, 48)), values(48, seed=1)
    arguments = {"A": a, "x": x, "O": empty(16), "M": empty(16)}
    found = checked(tmp_path, text, arguments, target, rtol=1e-4, atol=1e-4)
    close(found["O"], a @ x, 1e-4, 1e-4)
    same(found["M"], a.max(1))
