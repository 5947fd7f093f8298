"""The producer's loop: one thread starts the loads of every round, as far ahead as the ring allows."""

from __future__ import annotations

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Expr, const
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import Address, CStmt, Do, Element, Loop, Section
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper.calls import (
    PHASE,
    STAGE,
    barrier,
    call,
    coordinates,
    do,
    flipped,
    slots,
)
from tile2c.transpile.lower.simt.hopper.roles import Roles, TileLoad
from tile2c.transpile.lower.simt.values import Place, convert


def produce(ctx: Context, roles: Roles, stop: Expr) -> CStmt:
    """The loop; its waits pass at once in the first round through the ring."""
    loop = roles.loop
    name = ctx.namer.author(loop.var.author or loop.var.name)
    if name != loop.var.name:
        ctx.values[loop.var.name] = b.local(name)
    facts = ctx.facts
    ctx.facts = facts.with_range(loop.var, loop.start, loop.stop)
    body: list[CStmt] = [
        do(
            "barrier_wait",
            barrier("empty", STAGE),
            flipped(PHASE),
            remark="every consumer warp has read what the stage held",
        ),
        Do(call=call("barrier_expect", barrier("full", STAGE), _stage_bytes(roles))),
    ]
    for load in roles.loads:
        body.append(
            Section(
                comments=(*load.copy.comments, load.copy.quote),
                body=(_load(ctx, load),),
                blank=False,
                span=load.copy.span,
            )
        )
    body.append(do("ring.advance"))
    frame = Loop(
        var=name,
        start=convert(ctx, loop.start, Place(values={})),
        stop=stop,
        step=const(1),
        body=tuple(body),
        dtype=INT32,
    )
    ctx.facts = facts
    ctx.namer.release(name)
    return frame


def _stage_bytes(roles: Roles) -> Expr:
    """`sizeof(A_shared[0]) + sizeof(B_shared[0])`: boxes arrive whole, also past the tensor's edge."""
    sizes = [
        call("sizeof", Element(dtype=INT32, array=load.tile.name, subscripts=(const(0),)))
        for load in roles.loads
    ]
    return b.add(*sizes)


def _load(ctx: Context, load: TileLoad) -> CStmt:
    """One box, or a loop over the tile's slabs."""
    rank = len(load.map.dims)
    declared, given = coordinates(rank)
    ctx.need("tma_load", rank=rank, coordinates=declared, operands=given, slots=slots(3, rank))
    starts = box_start(ctx, load.copy.src.starts)
    if load.slabs.count == 1:
        return _start(load, const(0), starts)
    slab = ctx.namer.ours("slab", "slab_of_tile")
    ctx.namer.release(slab)
    moved = b.add(starts[0], b.mul(b.local(slab), const(load.slabs.width)))
    return Loop(
        var=slab,
        start=const(0),
        stop=const(load.slabs.count),
        step=const(1),
        body=(_start(load, b.local(slab), (moved, *starts[1:])),),
        dtype=INT32,
    )


def box_start(ctx: Context, starts: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Coordinates of a region's first element, innermost first."""
    return tuple(convert(ctx, start, Place(values={})) for start in reversed(starts))


def _start(load: TileLoad, slab: Expr, at: tuple[Expr, ...]) -> Do:
    into = load.slabs.start(load.tile, (STAGE,), slab, const(0))
    address = Address(dtype=load.tile.dtype, element=into)
    source = b.local(load.map_name)
    return Do(call=call("tma_load", address, source, barrier("full", STAGE), *at))
