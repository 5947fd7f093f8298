"""T.reshape and T.view of arrays of the block: another shape of the same storage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tile2c
from language_programs import CUDA, HIP, checked, empty, values, written


@pytest.mark.parametrize("target", [CUDA, HIP])
def test_a_fragment_by_groups_of_columns(tmp_path: Path, target: str) -> None:
    """Merged, split and dropped dimensions; in loops, reductions, fills and copies."""
    text = """
@T.prim_func
def main(
    X: T.Tensor((16, 32), "float32"), O: T.Tensor((16, 4), "float32"),
    P: T.Tensor((16, 32), "float32"), Q: T.Tensor((8, 2, 32), "float32"),
):
    with T.Kernel(1, threads=64) as bx:
        x = T.alloc_fragment((16, 32), "float32")
        by_four = T.reshape(x, (16, 4, 8))
        rows = T.view(x, (1, 16, 32))
        sums = T.alloc_fragment((16, 4), "float32")
        T.copy(X, x)
        for i, g, k in T.Parallel(16, 4, 8):
            by_four[i, g, k] = by_four[i, g, k] * 2 + g
        T.reduce_sum(by_four, sums, dim=-1)
        T.copy(sums, O)
        T.copy(rows[0, :, :], P)
        T.copy(T.reshape(x, (8, 2, 32)), Q)
"""
    arguments = {
        "X": values((16, 32)),
        "O": empty((16, 4)),
        "P": empty((16, 32)),
        "Q": empty((8, 2, 32)),
    }
    checked(tmp_path, text, arguments, target, rtol=1e-4)


@pytest.mark.parametrize("target", [CUDA, HIP])
def test_a_shared_tile_as_operand_of_a_gemm(tmp_path: Path, target: str) -> None:
    text = """
@T.prim_func
def main(
    A: T.Tensor((4, 16, 32), "float16"), B: T.Tensor((32, 32), "float16"),
    C: T.Tensor((64, 32), "float32"),
):
    with T.Kernel(1, threads=64) as bx:
        a = T.alloc_shared((4, 16, 32), "float16")
        matrix = T.reshape(a, (64, 32))
        b = T.alloc_shared((32, 32), "float16")
        c = T.alloc_fragment((64, 32), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.fill(matrix[0:8, :], 1)
        T.gemm(matrix, b, c, clear_accum=True)
        T.copy(c, C)
"""
    arguments = {
        "A": values((4, 16, 32), "float16"),
        "B": values((32, 32), "float16"),
        "C": empty((64, 32)),
    }
    checked(tmp_path, text, arguments, target, rtol=1e-2)


@pytest.mark.parametrize("target", [CUDA, HIP])
def test_elements_of_other_types(tmp_path: Path, target: str) -> None:
    text = """
@T.prim_func
def main(
    X: T.Tensor((64, 64), "float16"), Y: T.Tensor((32, 64), "float32"),
    Z: T.Tensor((64, 64), "int16"), W: T.Tensor((64, 128), "uint8"),
):
    with T.Kernel(1, threads=128) as bx:
        s = T.alloc_shared((64, 64), "float16")
        f = T.alloc_fragment((32, 64), "float32")
        wide = T.view(s, shape=[32, 64], dtype="float32")
        same = T.view(s, dtype="int16")
        narrow = T.view(s, (64, 128), "uint8")
        T.copy(X, s)
        T.copy(same, Z)
        for i, j in T.Parallel(64, 128):
            W[i, j] = narrow[i, j]
        T.copy(wide, f)
        for i, j in T.Parallel(32, 64):
            f[i, j] = f[i, j] * 2
        T.copy(f, wide)
        T.copy(wide, Y)
"""
    x = values((64, 64), "float16")
    path = written(tmp_path, text)
    (kernel,) = tile2c.build(
        path, tmp_path / "out", target, backend="emulate", check="races,memory"
    ).values()
    y, z = np.zeros((32, 64), np.float32), np.zeros((64, 64), np.int16)
    w = np.zeros((64, 128), np.uint8)
    kernel(X=x, Y=y, Z=z, W=w)
    np.testing.assert_array_equal(z, x.view(np.int16))
    np.testing.assert_array_equal(w, x.view(np.uint8))
    np.testing.assert_array_equal(y.ravel(), x.ravel().view(np.float32) * 2)


def test_a_part_of_an_element_is_not_stored(tmp_path: Path) -> None:
    text = """
@T.prim_func
def main(X: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64) as bx:
        s = T.alloc_shared((64,), "float32")
        bytes = T.view(s, (256,), "uint8")
        for i in T.Parallel(256):
            bytes[i] = 1
        T.copy(s, X)
"""
    with pytest.raises(tile2c.TranspileError, match="would need more than its own bits"):
        tile2c.build(written(tmp_path, text), tmp_path / "out", CUDA, backend="emulate")


@pytest.mark.parametrize("target", [CUDA, HIP])
def test_rows_of_a_product_are_stored_in_turns(tmp_path: Path, target: str) -> None:
    """Threads that hold the rows store them: the fragment need not go through a tile of its size."""
    text = """
@T.prim_func
def main(
    A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, 32), "float16"),
    C: T.Tensor((64, 32), "float32"),
):
    with T.Kernel(1, threads=64) as bx:
        a = T.alloc_shared((64, 32), "float16")
        b = T.alloc_shared((32, 32), "float16")
        c = T.alloc_fragment((64, 32), "float32")
        part = T.alloc_shared((32, 32), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.gemm(a, b, c, clear_accum=True)
        for s in range(2):
            for i, j in T.Parallel(64, 32):
                if i < 32:
                    part[i, j] = c[i + s * 32, j]
            T.copy(part, C[s * 32, 0])
"""
    arguments = {
        "A": values((64, 32), "float16"),
        "B": values((32, 32), "float16"),
        "C": empty((64, 32)),
    }
    checked(tmp_path, text, arguments, target, rtol=1e-2)
    (text_file,) = (path for path in (tmp_path / "out").iterdir() if path.suffix in (".cu", ".hip"))
    assert "changes hands" not in text_file.read_text()
