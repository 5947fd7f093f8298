"""Results of matrix instructions leave in whole rows, through the bytes of operands that are done with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from language_programs import CUDA, HIP, checked, empty, text_of, values, written_text

LEAVE = "leave together"


def product(
    shape: tuple[object, object, object] = (100, 136, 72),
    kind: str = "float16",
    tile: tuple[int, int, int] = (64, 64, 32),
    stages: int = 3,
    epilogue: str = "T.copy(c, C[by * {m}, bx * {n}])",
    inner: str = "",
) -> str:
    """A product whose result is stored as `epilogue` says; `inner` stands at the end of each round."""
    m, n, k = tile
    sizes = ", ".join(f'{name} = T.dynamic("{name}")' for name in ("M", "N", "K"))
    names = [
        str(size) if isinstance(size, int) else name
        for name, size in zip("MNK", shape, strict=True)
    ]
    rows, columns, depth = names
    heads = "\n".join(part for part in sizes.split(", ") if part.split(" = ")[0] in names)
    return f"""
{heads}


@T.prim_func
def main(
    A: T.Tensor(({rows}, {depth}), "float16"), B: T.Tensor(({depth}, {columns}), "float16"),
    C: T.Tensor(({rows}, {columns}), "{kind}"),
):
    with T.Kernel(T.ceildiv({columns}, {n}), T.ceildiv({rows}, {m}), threads=128) as (bx, by):
        a = T.alloc_shared(({m}, {k}), "float16")
        b = T.alloc_shared(({k}, {n}), "float16")
        c = T.alloc_fragment(({m}, {n}), "float32")
        T.clear(c)
        for ko in T.Pipelined(T.ceildiv({depth}, {k}), num_stages={stages}):
            T.copy(A[by * {m}, ko * {k}], a)
            T.copy(B[ko * {k}, bx * {n}], b)
            T.gemm(a, b, c)
            {inner or "pass"}
        {epilogue.format(m=m, n=n)}
"""


def operands(m: int, n: int, k: int, kind: Any = np.float16) -> dict[str, Any]:
    inputs = {"A": values((m, k), "float16"), "B": values((k, n), "float16")}
    return {**inputs, "C": np.zeros((m, n), kind)}


@pytest.mark.parametrize(
    ("kind", "shape"), [("bfloat16", (100, 136, 72)), ("float32", (65, 67, 33))]
)
def test_kinds_and_edges(tmp_path: Path, kind: str, shape: tuple[int, int, int]) -> None:
    """Sizes of the run: rows that start aligned, and those that start anywhere."""
    dtype = ml_dtypes.bfloat16 if kind == "bfloat16" else np.dtype(kind)
    text = product(("M", "N", "K"), kind)
    checked(tmp_path, text, operands(*shape, dtype), rtol=1e-2, atol=1e-2)
    assert LEAVE in written_text(tmp_path / "out")


def test_fused_with_a_bound(tmp_path: Path) -> None:
    """A loop that stores what it computes from sums, over known sizes with tails."""
    epilogue = (
        "for i, j in T.Parallel({m}, {n}):\n"
        "            C[by * {m} + i, bx * {n} + j] = T.max(c[i, j], 0) * 2"
    )
    checked(tmp_path, product(epilogue=epilogue), operands(100, 136, 72), rtol=1e-2, atol=1e-2)
    assert LEAVE in written_text(tmp_path / "out")


def test_two_results(tmp_path: Path) -> None:
    """The second follows the first in the same bytes."""
    text = product(
        epilogue="T.copy(c, C[by * {m}, bx * {n}])\n        T.copy(c, D[by * {m}, bx * {n}])"
    )
    text = text.replace('"float16"),\n):', '"float16"), D: T.Tensor((100, 136), "float32"),\n):')
    arguments = {**operands(100, 136, 72), "D": empty((100, 136))}
    checked(tmp_path, text, arguments, rtol=1e-2, atol=1e-2)
    found = written_text(tmp_path / "out")
    assert "then C_tile, then D_tile" in found


STAY = {
    "no dead tile is large enough": product(tile=(128, 128, 16), stages=1),
    "rows that start anywhere": product((100, 132, 72)),
    "a row shorter than a line": product((100, 136, 72), tile=(64, 32, 32)),
    "rounds end early": product(inner="if ko > 1: break"),
    "rows whose start nothing tells": product((100, "N", 72)).replace(
        "B: T.Tensor((72, N)", "B: T.Tensor((72, 136)"
    ),
}


@pytest.mark.parametrize("why", STAY)
def test_where_it_does_not_pay(tmp_path: Path, why: str) -> None:
    assert LEAVE not in text_of(tmp_path, STAY[why], CUDA)


def test_other_vendors_stay(tmp_path: Path) -> None:
    assert LEAVE not in text_of(tmp_path, product(), HIP)
