"""Where gemms take their operands from: shared tiles, or fragments that stay in registers.

A fragment that nothing else distributes is held as the matrix instruction wants it. One that is held
otherwise goes through a shared tile of its own, by an ordinary copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.expr import Buffer, const
from tile2c.transpile.ir.forms import Copy, For, Gemm, If, Pipelined, Range, Region, Stmt, While
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.desugar import copy_loop
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.frames import assign_layouts
from tile2c.transpile.lower.simt.layouts import Layout
from tile2c.transpile.lower.simt.matrix import (
    GemmPlan,
    MatrixPlan,
    accumulator_layout,
    matrix_dims,
    operand_layout,
)
from tile2c.transpile.lower.simt.outer_statements import gemms, walk
from tile2c.transpile.lower.simt.partition import operand_held, plan_gemms, tell_plans
from tile2c.transpile.lower.simt.ties import tie
from tile2c.transpile.record import record


@record(kw_only=True)
class Gemms:
    """The block with its operands settled: plans by identity of the gemms, fixed layouts by name."""

    body: tuple[Stmt, ...]
    gemms: list[Gemm]
    plans: dict[int, GemmPlan]
    pinned: dict[str, Layout]


Misfits = list[tuple[Gemm, str]]  # with "a" or "b"


def settle_gemms(ctx: Context, body: tuple[Stmt, ...]) -> Gemms:
    """Plans every gemm; operands that are held by the wrong threads are copied to shared tiles.

    reads   tile IR with copies as loops      writes  the same, with copies of operands before gemms
    """
    while True:
        found = gemms(body)
        plans = plan_gemms(ctx, body, found)
        pinned = _pin(ctx, body, found, plans)
        misfits = _misfits(ctx, body, found, plans, pinned)
        if not misfits:
            tell_plans(ctx, found, plans)
            return Gemms(body=body, gemms=found, plans=plans, pinned=pinned)
        body = _through_shared(ctx, body, misfits)


def _pin(
    ctx: Context, body: Sequence[Stmt], found: list[Gemm], plans: dict[int, GemmPlan]
) -> dict[str, Layout]:
    """Layouts of sums, then of operands that are free of them and of each other."""
    pinned: dict[str, Layout] = {}
    for gemm in found:
        layout = accumulator_layout(ctx, gemm, plans[id(gemm)])
        name = gemm.c.buffer.name
        if pinned.setdefault(name, layout) != layout:
            raise failure(
                "T2C515",
                f"two gemms want {name} held by different threads",
                gemm.span,
                help="give each its own fragment and add them up afterwards",
            )
    classes = tie(body)[0]

    def roots(buffer: Buffer) -> set[tuple[str, int]]:
        return {classes.find((buffer.name, dim)) for dim in range(len(buffer.shape))}

    taken = set().union(*(roots(gemm.c.buffer) for gemm in found)) if found else set()
    for gemm in found:
        plan = plans[id(gemm)]
        for side, region in (("a", gemm.a), ("b", gemm.b)):
            buffer = region.buffer
            if (
                buffer.scope != "fragment"
                or buffer.name in pinned
                or not isinstance(plan, MatrixPlan)
            ):
                continue
            own = roots(buffer)
            if own & taken or not _whole(region) or len(own) < len(buffer.shape):
                continue
            pinned[buffer.name] = operand_layout(ctx, gemm, plan, "a" if side == "a" else "b")
            taken |= own
    return pinned


def _misfits(
    ctx: Context,
    body: Sequence[Stmt],
    found: list[Gemm],
    plans: dict[int, GemmPlan],
    pinned: dict[str, Layout],
) -> Misfits:
    """Operands in fragments that their gemm cannot take from there."""
    sides = [
        (gemm, side, region)
        for gemm in found
        for side, region in (("a", gemm.a), ("b", gemm.b))
        if region.buffer.scope == "fragment"
    ]
    if not sides:
        return []
    facts = ctx.facts
    for stmt in walk(body):
        if isinstance(stmt, For | Pipelined):
            ctx.facts = ctx.facts.with_loop(stmt)
    assign_layouts(ctx, body, pinned)
    ctx.facts = facts
    misfits: Misfits = []
    for gemm, side, region in sides:
        plan = plans[id(gemm)]
        layout = ctx.layouts[region.buffer.name]
        if not isinstance(plan, MatrixPlan) or not operand_held(ctx, gemm, plan, side, layout):
            misfits.append((gemm, side))
    ctx.layouts.clear()
    return misfits


def _whole(region: Region) -> bool:
    return all(
        b.literal(part.start, 0) and b.known(part.extent) == b.known(extent)
        for part, extent in zip(region.ranges, region.buffer.shape, strict=True)
    )


def _through_shared(ctx: Context, body: tuple[Stmt, ...], misfits: Misfits) -> tuple[Stmt, ...]:
    """Before each such gemm a copy to a shared tile, which the gemm reads instead."""
    found: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For | Pipelined | While):
            stmt = replace(stmt, body=_through_shared(ctx, stmt.body, misfits))
        elif isinstance(stmt, If):
            then = _through_shared(ctx, stmt.then, misfits)
            orelse = _through_shared(ctx, stmt.orelse, misfits)
            stmt = replace(stmt, then=then, orelse=orelse)
        elif isinstance(stmt, Gemm):
            moved = stmt
            for gemm, side in misfits:
                if gemm is stmt:
                    copy, region = _copied(ctx, gemm, gemm.a if side == "a" else gemm.b)
                    found.append(copy)
                    moved = replace(moved, a=region) if side == "a" else replace(moved, b=region)
            stmt = moved
        found.append(stmt)
    return tuple(found)


def _copied(ctx: Context, gemm: Gemm, region: Region) -> tuple[Stmt, Region]:
    """The copy of an operand to a shared tile, and that tile."""
    source = region.buffer
    name = ctx.namer.ours(f"{source.name}_shared", f"{source.name}_tile")
    extents = tuple(region.ranges[dim].extent for dim in matrix_dims(region))
    tile = Buffer(name=name, scope="shared", shape=extents, dtype=source.dtype)
    ctx.launch = replace(ctx.launch, buffers=(*ctx.launch.buffers, tile))
    whole = Region(
        buffer=tile,
        ranges=tuple(Range(start=const(0), extent=extent) for extent in extents),
        span=region.span,
    )
    ctx.diagnostics.warning(
        "T2C519",
        f"{source.name} is held by other threads than this gemm's operand: it goes through shared "
        "memory, with a barrier",
        region.span or gemm.span,
    )
    copy = Copy(
        src=region,
        dst=whole,
        span=gemm.span,
        comments=(f"{source.name} changes hands: the gemm's threads hold other parts of it",),
    )
    return copy_loop(copy, ctx.author_names), whole
