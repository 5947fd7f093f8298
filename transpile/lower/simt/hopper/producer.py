"""The producer's loop: one thread starts the loads of every round, as far ahead as the ring allows."""

from __future__ import annotations

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Expr, const
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import Address, CStmt, Do, Element, Loop, Section
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper.calls import (
    PHASE,
    READY,
    STAGE,
    barrier,
    call,
    coordinates,
    do,
    flipped,
    slots,
)
from tile2c.transpile.lower.simt.hopper.roles import Roles, TileLoad
from tile2c.transpile.lower.simt.scalars import lower_scalars
from tile2c.transpile.lower.simt.values import Place, convert


def produce(ctx: Context, roles: Roles, stop: Expr) -> tuple[CStmt, ...]:
    """What is loaded once, then the loop; its waits pass at once in the first round of the ring."""
    return (*_once(ctx, roles), _rounds(ctx, roles, stop))


def _once(ctx: Context, roles: Roles) -> tuple[CStmt, ...]:
    """Tiles that stay; they and their barrier are used a single time."""
    if not roles.once:
        return ()
    sizes = [call("sizeof", b.local(load.tile.name)) for load in roles.once]
    announced = Do(call=call("barrier_expect", READY, b.add(*sizes)))
    return (announced, *(_tile(ctx, load, (), READY) for load in roles.once))


def _rounds(ctx: Context, roles: Roles, stop: Expr) -> CStmt:
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
    body += lower_scalars(ctx, roles.inside, Place(values={}))
    body += [_tile(ctx, load, (STAGE,), barrier("full", STAGE)) for load in roles.loads]
    body.append(do("ring.advance"))
    frame = Loop(
        var=name,
        start=convert(ctx, loop.start, Place(values={})),
        stop=stop,
        step=const(1),
        body=tuple(body),
        dtype=INT32,
        comments=(loop.quote,),
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


def _tile(ctx: Context, load: TileLoad, stage: tuple[Expr, ...], told: Expr) -> Section:
    """The load of one tile, which tells the barrier `told` of its bytes."""
    return Section(
        comments=(*load.copy.comments, load.copy.quote),
        body=(_load(ctx, load, stage, told),),
        blank=False,
        span=load.copy.span,
    )


def _load(ctx: Context, load: TileLoad, stage: tuple[Expr, ...], told: Expr) -> CStmt:
    """One box, or a loop over the tile's slabs."""
    rank = len(load.map.dims)
    declared, given = coordinates(rank)
    ctx.need("tma_load", rank=rank, coordinates=declared, operands=given, slots=slots(3, rank))
    starts = box_start(ctx, load.copy.src.starts)
    if load.slabs.count == 1:
        return _start(load, stage, told, const(0), starts)
    slab = ctx.namer.ours("slab", "slab_of_tile")
    ctx.namer.release(slab)
    moved = b.add(starts[0], b.mul(b.local(slab), const(load.slabs.width)))
    return Loop(
        var=slab,
        start=const(0),
        stop=const(load.slabs.count),
        step=const(1),
        body=(_start(load, stage, told, b.local(slab), (moved, *starts[1:])),),
        dtype=INT32,
    )


def box_start(ctx: Context, starts: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Coordinates of a region's first element, innermost first."""
    return tuple(convert(ctx, start, Place(values={})) for start in reversed(starts))


def _start(
    load: TileLoad, stage: tuple[Expr, ...], told: Expr, slab: Expr, at: tuple[Expr, ...]
) -> Do:
    into = load.slabs.start(load.tile, stage, slab, const(0))
    address = Address(dtype=load.tile.dtype, element=into)
    source = b.local(load.map_name)
    return Do(call=call("tma_load", address, source, told, *at))
