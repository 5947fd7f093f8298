"""Tiles that loops read across their rows are laid out without bank conflicts, for every kind of access."""

from __future__ import annotations

from pathlib import Path

import pytest
from language_programs import CUDA, HIP, checked, empty, text_of, values, written_text

TURNED = """
@T.prim_func
def main(X: T.Tensor((64, 64), "{dtype}"), Y: T.Tensor((64, 64), "{dtype}")):
    with T.Kernel(1, threads={threads}) as bx:
        tile = T.alloc_shared((64, 64), "{dtype}")
        T.copy(X, tile)
        for j, i in T.Parallel(64, 64):
            Y[j, i] = tile[i, j]
"""
EVERY_ACCESS = """
@T.prim_func
def main(X: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 64), "float32"),
         A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"),
         C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=64) as bx:
        tile = T.alloc_shared((64, 64), "float32")
        sums = T.alloc_fragment((64,), "float32")
        tx = T.get_thread_binding()
        T.copy(X, tile)
        for j, i in T.Parallel(64, 64):
            Y[j, i] = tile[i, j]
        A[tx] = tile[tx, 63 - tx]
        T.sync_threads()
        tile[tx, 1] = 2.0
        for i in T.Parallel(64):
            T.atomic_add(tile[i, 5], 1.0)
        T.cumsum(tile, dim=1)
        T.reduce_sum(tile, sums, dim=0)
        T.copy(sums, B)
        T.copy(tile[0:64, 0:32], C[0:64, 32:64])
        T.copy(tile[0:64, 32:64], C[0:64, 0:32])
"""


@pytest.mark.parametrize("target", [CUDA, HIP])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
def test_turned_tiles(tmp_path: Path, dtype: str, target: str) -> None:
    text = TURNED.format(dtype=dtype, threads=256)
    arguments = {"X": values((64, 64), dtype), "Y": empty((64, 64), dtype)}
    checked(tmp_path, text, arguments, target)


def test_the_layout_is_in_the_text(tmp_path: Path) -> None:
    text = text_of(tmp_path, TURNED.format(dtype="float16", threads=256))
    assert "return col ^ row / 8 % 8 * 8;" in text


def test_a_tile_that_is_read_along_its_rows_stays_as_it_is(tmp_path: Path) -> None:
    along = TURNED.replace("Y[j, i] = tile[i, j]", "Y[j, i] = tile[j, i]")
    assert "tile_col" not in text_of(tmp_path, along.format(dtype="float16", threads=256))


@pytest.mark.parametrize("target", [CUDA, HIP])
def test_every_kind_of_access_knows_the_layout(tmp_path: Path, target: str) -> None:
    arguments = {
        "X": values((64, 64)), "Y": empty((64, 64)), "A": empty(64), "B": empty(64),
        "C": empty((64, 64)),
    }  # fmt: skip
    checked(tmp_path, EVERY_ACCESS, arguments, target, rtol=1e-4, atol=1e-4)
    kernel = written_text(tmp_path / "out")
    assert "tile_col" in kernel
