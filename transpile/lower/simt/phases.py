"""Which elements of a shared tile the lanes of the first warp read together, for one step of a gemm."""

from __future__ import annotations

from math import prod

from tile2c.transpile.ir.expr import Buffer
from tile2c.transpile.ir.forms import Gemm
from tile2c.transpile.lower.simt.banks import Phase, phases
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.matrix import GemmPlan, MatrixPlan, MicroPlan
from tile2c.transpile.lower.simt.operand_ways import Operand, operand


def operand_phases(
    ctx: Context, gemm: Gemm, plan: GemmPlan
) -> list[tuple[Buffer, tuple[Phase, ...]]]:
    """The accesses of each operand in shared memory."""
    found = []
    for side, region in (("a", gemm.a), ("b", gemm.b)):
        if region.buffer.scope != "shared":
            continue
        if isinstance(plan, MatrixPlan):
            own = _matrix(operand(ctx, gemm, plan, "a" if side == "a" else "b"), ctx.target.team)
        else:
            own = _micro(ctx, gemm, plan, side)
        found.append((region.buffer, own))
    return found


def _matrix(side: Operand, lanes: int) -> tuple[Phase, ...]:
    if side.way in ("rows", "turned rows"):
        return phases([(row, 0) for row in range(8)], 16)
    places = [_at(side, lane) for lane in range(lanes)]
    count = {"vector": side.fragment.values, "registers": side.per}.get(side.way, 1)
    return phases(places, count * side.dtype.bytes)


def _at(side: Operand, lane: int) -> tuple[int, int]:
    """(row, column) in the tile of the lane's first element."""
    coordinates = []
    for digits in (side.fragment.rows, side.fragment.columns):
        at = 0
        for position, (holder, extent, weight) in enumerate(digits):
            if holder == "lane":
                at += lane // weight % extent * prod(other for _, other, _ in digits[:position])
        coordinates.append(at)
    across, depth = coordinates
    return (depth, across) if side.k_in_rows else (across, depth)


def _micro(ctx: Context, gemm: Gemm, plan: MicroPlan, side: str) -> tuple[Phase, ...]:
    lanes = range(min(ctx.threads, ctx.target.lanes))
    if side == "a":
        across = [lane // plan.threads_n % plan.threads_m for lane in lanes]
        k_in_rows, region = gemm.transpose_a, gemm.a
    else:
        across = [lane % plan.threads_n for lane in lanes]
        k_in_rows, region = not gemm.transpose_b, gemm.b
    places = [(0, at) if k_in_rows else (at, 0) for at in across]
    return phases(places, region.buffer.dtype.bytes)
