"""Sizes that no tensor has as a dimension: arguments behind the author's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from language_programs import CUDA, HIP, checked, empty, refusal, values

SHIFTED = """
@tilelang.jit
def factory(n, most, block=32):
    @T.prim_func
    def shifted(A: T.Tensor((n * 2 + 1,), T.float32), B: T.Tensor((n * 2 + 1,), T.float32)):
        with T.Kernel(T.ceildiv(most, block), threads=32) as bx:
            for i in T.Parallel(block):
                if bx * block + i < most:
                    B[bx * block + i] = A[bx * block + i] + n
    return shifted
"""


@pytest.mark.parametrize("target", [CUDA, HIP])
def test_a_size_of_the_grid_and_one_inside_a_dimension(tmp_path: Path, target: str) -> None:
    a = values(41)
    given = {"A": a, "B": empty(41), "n": 20, "most": 37}
    found = checked(tmp_path, SHIFTED, given, target)
    np.testing.assert_array_equal(found["B"][:37], a[:37] + 20)
    np.testing.assert_array_equal(found["B"][37:], -7)


def test_a_number_that_may_be_no_size(tmp_path: Path) -> None:
    """It meets floats, and its type is told nowhere: it has to be given."""
    text = """
@tilelang.jit
def factory(n, scale):
    @T.prim_func
    def scaled(A: T.Tensor((n,), T.float32)):
        with T.Kernel(1, threads=32) as bx:
            for i in T.Parallel(n):
                A[i] = A[i] * scale
    return scaled
"""
    said = refusal(tmp_path, text)
    assert "T2C116" in said and "scale has to be known: it meets floating-point numbers" in said
    assert "-D scale=VALUE" in said
    checked(tmp_path, text, {"A": values(9)}, scale=0.5)


@pytest.mark.parametrize("target", [CUDA, HIP])
def test_a_number_of_the_kernel_in_a_shape(tmp_path: Path, target: str) -> None:
    text = """
@T.prim_func
def doubled(A: T.Tensor((count * 2,), T.int32), count: T.int32):
    with T.Kernel(T.ceildiv(count, 32), threads=32) as bx:
        for i in T.Parallel(32):
            if bx * 32 + i < count:
                A[bx * 32 + i] = count
"""
    found = checked(tmp_path, text, {"A": empty(70, "int32"), "count": 35}, target)
    np.testing.assert_array_equal(found["A"], [35] * 35 + [-7] * 35)
