"""Public reports on T.Parallel: indices, scalars, conditions, as programs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from language_programs import CUDA, HIP, checked, empty, text_of, values
from numpy.testing import assert_array_equal as same


def test_h22_a_fragment_walked_by_serial_loops(tmp_path: Path) -> None:
    """The elements are those that the copy brought: they go through a shared tile."""
    text = """
@T.prim_func
def main(A: T.Tensor((8, 16), "float32"), O: T.Tensor((8, 16), "float32")):
    with T.Kernel(1, threads=64) as bx:
        f = T.alloc_fragment((8, 16), "float32")
        T.copy(A, f)
        for i in T.serial(8):
            for j in T.serial(16):
                O[i, j] = f[i, j]
"""
    a = values((8, 16))
    same(checked(tmp_path, text, {"A": a, "O": empty((8, 16))})["O"], a)


@pytest.mark.parametrize("width", [24, 40, 48, 96])
def test_h23_a_row_broadcast_over_columns(tmp_path: Path, width: int) -> None:
    text = f"""
@T.prim_func
def main(D: T.Tensor(({width},), "float32"), O: T.Tensor((16, {width}), "float32")):
    with T.Kernel(1, threads=128) as bx:
        d = T.alloc_fragment(({width},), "float32")
        T.copy(D, d)
        for i, j in T.Parallel(16, {width}):
            O[i, j] = d[j] * 3.0
"""
    d = values(width)
    found = checked(tmp_path, text, {"D": d, "O": empty((16, width))})["O"]
    same(found, np.broadcast_to(d * np.float32(3), (16, width)))


@pytest.mark.parametrize("target", [CUDA, HIP])
def test_h24_a_variable_set_in_parallel(tmp_path: Path, target: str) -> None:
    text = """
@T.prim_func
def main(A: T.Tensor((128,), "int32"), O: T.Tensor((128,), "int32")):
    with T.Kernel(1, threads=32) as bx:
        t = T.alloc_var("int32")
        for i in T.Parallel(128):
            t = A[i] * 2
            if t > 50:
                t = 50
            O[i] = t
"""
    a = values(128, "int32")
    found = checked(tmp_path, text, {"A": a, "O": empty(128, "int32")}, target)
    same(found["O"], np.minimum(2 * a, 50))


def test_h25_loops_with_bounds_from_a_tensor(tmp_path: Path) -> None:
    text = """
@T.prim_func
def main(L: T.Tensor((16, 2), "int32"), O: T.Tensor((16, 3, 3), "int32")):
    with T.Kernel(1, threads=16) as bx:
        for p in T.Parallel(16):
            for y in T.serial(L[p, 0]):
                for x in T.serial(L[p, 1]):
                    O[p, y, x] = 10 * y + x + 1
"""
    bounds = np.random.default_rng(0).integers(0, 4, (16, 2)).astype(np.int32)
    wants = empty((16, 3, 3), "int32")
    for p, (rows, columns) in enumerate(bounds):
        for y in range(rows):
            wants[p, y, :columns] = 10 * y + np.arange(columns) + 1
    same(checked(tmp_path, text, {"L": bounds, "O": empty((16, 3, 3), "int32")})["O"], wants)


def test_h26_two_variables_stay_two(tmp_path: Path) -> None:
    text = """
@T.prim_func
def main(X: T.Tensor((32,), "int32"), Y: T.Tensor((32,), "int32")):
    with T.Kernel(1, threads=32) as bx:
        tx = T.get_thread_binding()
        first = T.alloc_var("int32")
        first = X[tx] + 7
        X[tx] = first
        second = T.alloc_var("int32", init=0)
        if X[tx] > 1000:
            second = 5
        Y[tx] = second
"""
    found = checked(tmp_path, text, {"X": values(32, "int32"), "Y": empty(32, "int32")})
    same(found["Y"], 0)
    c = text_of(tmp_path, text)
    assert "first" in c
    assert "second" in c


def test_h27_a_condition_that_its_body_changes(tmp_path: Path) -> None:
    text = """
@T.prim_func
def main(F: T.Tensor((1,), "int32"), O: T.Tensor((2,), "int32")):
    with T.Kernel(1, threads=1) as bx:
        O[0] = 0
        O[1] = 0
        if F[0] == 3:
            F[0] = 4
            O[0] = 1
        if F[0] == 3:
            O[1] = 1
"""
    found = checked(tmp_path, text, {"F": np.array([3], np.int32), "O": empty(2, "int32")})
    same(found["O"], [1, 0])
    same(found["F"], [4])


@pytest.mark.parametrize(("p", "q", "wants"), [(0, 9, 4), (9, 0, 400)])
def test_h28_look_alike_conditions(tmp_path: Path, p: int, q: int, wants: int) -> None:
    text = """
@T.prim_func
def main(P: T.Tensor((1,), "int32"), Q: T.Tensor((1,), "int32"), O: T.Tensor((1,), "int32")):
    with T.Kernel(1, threads=1) as bx:
        acc = T.alloc_var("int32", 0)
        for k in T.serial(4):
            if P[bx] < 2:
                acc += 1
            if Q[bx] < 2:
                acc += 100
        O[0] = acc
"""
    arguments = {
        "P": np.array([p], np.int32),
        "Q": np.array([q], np.int32),
        "O": empty(1, "int32"),
    }
    same(checked(tmp_path, text, arguments)["O"], [wants])


@pytest.mark.parametrize("test", ["M[i] > 0", "M[i]"])
@pytest.mark.parametrize("target", [CUDA, HIP])
def test_h29_h30_nested_conditions_around_a_store(tmp_path: Path, target: str, test: str) -> None:
    """Cells whose tests fail keep their values; a number as a condition means `!= 0`."""
    text = f"""
@T.prim_func
def main(A: T.Tensor((64,), "float32"), M: T.Tensor((64,), "int32"), O: T.Tensor((64,), "float16")):
    with T.Kernel(1, threads=16) as bx:
        for i in T.Parallel(64):
            if {test}:
                if A[i] > 0.0:
                    O[i] = T.cast(A[i], "float16")
"""
    a, m = values(64), np.random.default_rng(1).integers(0, 2, 64).astype(np.int32)
    found = checked(tmp_path, text, {"A": a, "M": m, "O": empty(64, "float16")}, target)
    same(found["O"], np.where((m > 0) & (a > 0), a.astype(np.float16), np.float16(-7)))


@pytest.mark.parametrize("width", [129, 192, 200, 257])
def test_h88_fragments_wider_than_the_block(tmp_path: Path, width: int) -> None:
    text = f"""
@T.prim_func
def main(A: T.Tensor(({width},), "float32"), O: T.Tensor(({width},), "float32")):
    with T.Kernel(1, threads=128) as bx:
        f = T.alloc_fragment(({width},), "float32")
        T.copy(A, f)
        for i in T.Parallel({width}):
            f[i] = f[i] + 1
        T.copy(f, O)
"""
    a = values(width)
    same(checked(tmp_path, text, {"A": a, "O": empty(width)})["O"], a + 1)
