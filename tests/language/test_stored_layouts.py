"""T.annotate_layout on a global tensor, and T.reshape of one: where the elements really are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from language_programs import CUDA, HIP, checked, empty, refusal, values

DQ = """
def stored(dq):
    return T.Layout(
        dq.shape,
        lambda b, l, h, d: [b, l // 8, h, d // 8, (d % 2), 4 * (l % 8) + (d % 8) // 2],
    )


@tilelang.jit
def factory(batch, heads, seq_len, dim=16):
    shape = [batch, seq_len, heads, dim]

    @T.prim_func
    def kernel(X: T.Tensor(shape, T.float32), Y: T.Tensor(shape, T.float32)):
        with T.Kernel(T.ceildiv(seq_len, 16), heads, batch, threads=64) as (bx, by, bz):
            BODY
    return kernel
"""
BODIES = {
    "a copy from it": """
            T.annotate_layout({X: stored(X)})
            T.copy(X[bz, bx * 16 : (bx + 1) * 16, by, :], Y[bz, bx * 16 : (bx + 1) * 16, by, :])
""",
    "a copy to it": """
            T.annotate_layout({Y: stored(Y)})
            tile = T.alloc_shared((16, dim), T.float32)
            T.copy(X[bz, bx * 16 : (bx + 1) * 16, by, :], tile)
            T.copy(tile, Y[bz, bx * 16 : (bx + 1) * 16, by, :])
""",
    "atomics on its elements": """
            T.annotate_layout({Y: stored(Y)})
            for i, j in T.Parallel(16, dim):
                T.atomic_add(Y[bz, bx * 16 + i, by, j], X[bz, bx * 16 + i, by, j])
""",
    "an atomic on a tile of it": """
            T.annotate_layout({Y: stored(Y)})
            tile = T.alloc_fragment((16, dim), T.float32)
            T.copy(X[bz, bx * 16 : (bx + 1) * 16, by, :], tile)
            T.atomic_add(Y[bz, bx * 16 : (bx + 1) * 16, by, :], tile)
""",
}


def permuted(x: Any) -> Any:
    """The elements in the order of `stored`, in an array of x's shape."""
    flat = np.zeros(x.size, x.dtype)
    batch, seq, heads, dim = x.shape
    for b, l, h, d in np.ndindex(x.shape):
        place = (b, l // 8, h, d // 8, d % 2, 4 * (l % 8) + (d % 8) // 2)
        sizes = (batch, seq // 8, heads, dim // 8, 2, 32)
        flat[np.ravel_multi_index(place, sizes)] = x[b, l, h, d]
    return flat.reshape(x.shape)


@pytest.mark.parametrize("target", [CUDA, HIP])
@pytest.mark.parametrize("case", BODIES)
def test_a_global_tensor_in_another_order(tmp_path: Path, case: str, target: str) -> None:
    """Sizes of run time, one of them no multiple of the tile."""
    text = DQ.replace("            BODY\n", BODIES[case])
    x, y = values((2, 24, 3, 16)), empty((2, 24, 3, 16))
    if "atomic" in case:
        y[...] = 0
    found = checked(tmp_path, text, {"X": x, "Y": y}, target)
    if case == "a copy from it":
        np.testing.assert_array_equal(permuted(found["Y"]), x)
    else:
        np.testing.assert_array_equal(found["Y"], permuted(x))


def test_a_size_that_the_layout_does_not_divide(tmp_path: Path) -> None:
    text = DQ.replace("            BODY\n", BODIES["a copy from it"])
    said = refusal(tmp_path, text, seq_len=20)
    assert "error[T2C325]: this layout of X is not shown to be an order of its elements" in said


def test_a_layout_that_is_no_order(tmp_path: Path) -> None:
    text = DQ.replace("            BODY\n", BODIES["a copy from it"]).replace("l % 8", "l % 4")
    assert "T2C325" in refusal(tmp_path, text)


def test_a_layout_after_the_first_use(tmp_path: Path) -> None:
    body = "\n".join(reversed(BODIES["a copy from it"].strip("\n").split("\n"))) + "\n"
    said = refusal(tmp_path, DQ.replace("            BODY\n", body))
    assert "X is used before its layout is given" in said


@pytest.mark.parametrize("target", [CUDA, HIP])
def test_another_shape_of_a_tensor(tmp_path: Path, target: str) -> None:
    text = """
N = T.dynamic("n")

@T.prim_func
def kernel(X: T.Tensor((N, 12), T.float32), Y: T.Tensor((N, 3, 4), T.float32)):
    with T.Kernel(N, threads=32) as b:
        x = T.reshape(X, (N, 3, 4))
        for i, j in T.Parallel(3, 4):
            Y[b, i, j] = x[b, i, j] + X[b, 4 * i + j]
"""
    x = values((7, 12))
    found = checked(tmp_path, text, {"X": x, "Y": empty((7, 3, 4))}, target)
    np.testing.assert_array_equal(found["Y"], 2 * x.reshape(7, 3, 4))


def test_shapes_of_other_counts_are_refused(tmp_path: Path) -> None:
    text = """
@T.prim_func
def kernel(X: T.Tensor((8, 12), T.float32)):
    with T.Kernel(1, threads=32) as b:
        x = T.reshape(X, (8, 3, 5))
        x[0, 0, 0] = 1
"""
    assert "T2C317" in refusal(tmp_path, text)


def test_two_shapes_of_a_tensor_that_is_written(tmp_path: Path) -> None:
    text = """
@T.prim_func
def kernel(X: T.Tensor((8, 12), T.float32)):
    with T.Kernel(1, threads=32) as b:
        x = T.reshape(X, (8, 3, 4))
        x[0, 0, 0] = 1
        X[0, 1] = 2
"""
    said = refusal(tmp_path, text)
    assert "X is stored to in this kernel, where it is [8, 3, 4] and [8, 12]" in said
