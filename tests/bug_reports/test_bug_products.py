"""Public reports on products with odd depths and turned operands, as programs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from language_programs import CUDA, HIP, checked, empty, values
from numpy.testing import assert_allclose as close
from numpy.testing import assert_array_equal as same


def product(
    sizes: tuple[int, int, int], block_k: int, kind: str, total: str, a: str = "", b: str = ""
) -> str:
    """C = A @ B in one block, K in tiles of `block_k`; `a` and `b` are "transpose_A" and its like."""
    m, n, k = sizes
    a_shape, b_shape = ("{k}, {m}" if a else "{m}, {k}"), ("{n}, {k}" if b else "{k}, {n}")
    a_at, b_at = ("k * {bk}, 0" if a else "0, k * {bk}"), ("0, k * {bk}" if b else "k * {bk}, 0")
    options = "".join(f", {name}=True" for name in (a, b) if name)

    def put(text: str, depth: int) -> str:
        return text.format(m=m, n=n, k=depth, bk=block_k)

    return f"""
@T.prim_func
def main(
    A: T.Tensor(({put(a_shape, k)}), "{kind}"),
    B: T.Tensor(({put(b_shape, k)}), "{kind}"),
    C: T.Tensor(({m}, {n}), "{total}"),
):
    with T.Kernel(1, threads=128) as bx:
        a = T.alloc_shared(({put(a_shape, block_k)}), "{kind}")
        b = T.alloc_shared(({put(b_shape, block_k)}), "{kind}")
        c = T.alloc_fragment(({m}, {n}), "{total}")
        T.clear(c)
        for k in T.Pipelined(T.ceildiv({k}, {block_k}), num_stages=2):
            T.copy(A[{put(a_at, k)}], a)
            T.copy(B[{put(b_at, k)}], b)
            T.gemm(a, b, c{options})
        T.copy(c, C)
"""


@pytest.mark.parametrize("target", [CUDA, HIP])
@pytest.mark.parametrize(
    ("kind", "total", "block_k"), [("float16", "float32", 8), ("int8", "int32", 16)]
)
def test_h62_tiles_shallower_than_the_instruction(
    tmp_path: Path, kind: str, total: str, block_k: int, target: str
) -> None:
    a, b = values((32, 64), kind), values((64, 32), kind, seed=1)
    text = product((32, 32, 64), block_k, kind, total)
    got = checked(
        tmp_path, text, {"A": a, "B": b, "C": empty((32, 32), total)}, target, rtol=1e-3, atol=1e-3
    )
    want = a.astype(np.float64) @ b.astype(np.float64)
    close(got["C"], want, rtol=2e-3, atol=2e-2)
    if total == "int32":
        same(got["C"], want)


@pytest.mark.parametrize("target", [CUDA, HIP])
def test_h64_a_last_tile_that_is_no_multiple_of_16(tmp_path: Path, target: str) -> None:
    """K = 168 in tiles of 128: the padding of the second one is zero."""
    a, b = values((32, 168), "float16"), values((168, 64), "float16", seed=1)
    text = product((32, 64, 168), 128, "float16", "float32")
    got = checked(
        tmp_path, text, {"A": a, "B": b, "C": empty((32, 64))}, target, rtol=1e-3, atol=1e-2
    )
    close(got["C"], a.astype(np.float64) @ b.astype(np.float64), rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("kind", ["float16", "float32"])
@pytest.mark.parametrize("a_turned", ["", "transpose_A"])
@pytest.mark.parametrize("b_turned", ["", "transpose_B"])
def test_h65_turned_operands(tmp_path: Path, kind: str, a_turned: str, b_turned: str) -> None:
    """All four ways give the same product."""
    m, n, k = sizes = (48, 80, 112)
    a, b = values((m, k), kind), values((k, n), kind, seed=1)
    arguments = {
        "A": np.ascontiguousarray(a.T) if a_turned else a,
        "B": np.ascontiguousarray(b.T) if b_turned else b,
        "C": empty((m, n)),
    }
    text = product(sizes, 112, kind, "float32", a_turned, b_turned)
    got = checked(tmp_path, text, arguments, CUDA, rtol=5e-3, atol=5e-2)
    close(got["C"], a.astype(np.float64) @ b.astype(np.float64), rtol=5e-3, atol=5e-2)
