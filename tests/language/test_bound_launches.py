"""Launches without T.Kernel: loops that are bound to block and thread indices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from language_programs import CUDA, HIP, checked, empty, text_of

BOTH = pytest.mark.parametrize("target", [CUDA, HIP])
LOOPS = """
@T.prim_func
def filled(A: T.Tensor((4, 96), "int32")):
    # rows of the matrix
    for by in T.thread_binding(0, 4, "blockIdx.y"):
        for bx in T.thread_binding(3, thread="blockIdx.x"):
            for tx in T.thread_binding(0, 32, thread="threadIdx.x"):
                A[by, bx * 32 + tx] = by * 1000 + bx * 100 + tx
"""


@BOTH
def test_loops_over_blocks_and_threads(tmp_path: Path, target: str) -> None:
    found = checked(tmp_path, LOOPS, {"A": empty((4, 96), "int32")}, target)
    rows, columns = np.arange(4)[:, None], np.arange(96)[None, :]
    np.testing.assert_array_equal(found["A"], rows * 1000 + columns // 32 * 100 + columns % 32)


@BOTH
def test_a_loop_over_threads_inside_a_kernel(tmp_path: Path, target: str) -> None:
    text = """
@T.prim_func
def filled(A: T.Tensor((2, 8, 4), "int32")):
    with T.Kernel(2, threads=(4, 8)) as bx:
        for ty in T.thread_binding(0, 8, thread="threadIdx.y"):
            for tx in T.thread_binding(0, 4, thread="threadIdx.x"):
                A[bx, ty, tx] = ty * 10 + tx
"""
    found = checked(tmp_path, text, {"A": empty((2, 8, 4), "int32")}, target)
    np.testing.assert_array_equal(found["A"][1], np.arange(8)[:, None] * 10 + np.arange(4)[None])


def test_the_author_s_comment_stays(tmp_path: Path) -> None:
    assert "// rows of the matrix" in text_of(tmp_path, LOOPS)
