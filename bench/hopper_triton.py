"""A matrix product in Triton, a file of its own: Triton reads a kernel's source from its file."""

# No `from __future__ import annotations`: Triton asks for `tl.constexpr` itself.

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit
def _product(
    a_ptr, b_ptr, c_ptr, m, n, k, a_row, b_row, c_row,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    rows, columns = tl.cdiv(m, BM), tl.cdiv(n, BN)
    group = tile // (GROUP * columns)
    height = min(rows - group * GROUP, GROUP)
    row = group * GROUP + tile % (GROUP * columns) % height
    column = tile % (GROUP * columns) // height
    i = row * BM + tl.arange(0, BM)
    j = column * BN + tl.arange(0, BN)
    r = tl.arange(0, BK)
    a_at = a_ptr + (i % m)[:, None] * a_row + r[None, :]
    b_at = b_ptr + r[:, None] * b_row + (j % n)[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BK)):
        a = tl.load(a_at, mask=r[None, :] < k - step * BK, other=0.0)
        b = tl.load(b_at, mask=r[:, None] < k - step * BK, other=0.0)
        total = tl.dot(a, b, total)
        a_at += BK
        b_at += BK * b_row
    out = c_ptr + i[:, None] * c_row + j[None, :]
    tl.store(out, total.to(c_ptr.dtype.element_ty), mask=(i[:, None] < m) & (j[None, :] < n))


def gemm(
    a: torch.Tensor, b: torch.Tensor, bm: int, bn: int, bk: int, warps: int, stages: int
) -> Callable[[], Any]:
    """A launch that gives A @ B."""
    m, k = a.shape
    n = b.shape[1]
    c = torch.empty(m, n, device="cuda", dtype=a.dtype)
    grid = (triton.cdiv(m, bm) * triton.cdiv(n, bn),)

    def launch() -> torch.Tensor:
        _product[grid](
            a, b, c, m, n, k, a.stride(0), b.stride(0), c.stride(0),
            BM=bm, BN=bn, BK=bk, GROUP=8, num_warps=warps, num_stages=stages,
        )  # fmt: skip
        return c

    return launch
