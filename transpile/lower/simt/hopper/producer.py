"""The producer's loop: one thread starts the loads of every round, as far ahead as the ring allows."""

from __future__ import annotations

from collections.abc import Sequence

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Expr, const
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import Address, CCall, CStmt, Do, Element, Loop, Section
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper.calls import (
    PHASE,
    STAGE,
    call,
    coordinates,
    do,
    flipped,
    slots,
)
from tile2c.transpile.lower.simt.hopper.im2col import first_pixel, tap_of
from tile2c.transpile.lower.simt.hopper.neighbours import Neighbours, rows_of_box
from tile2c.transpile.lower.simt.hopper.roles import Roles, TileLoad
from tile2c.transpile.lower.simt.scalars import lower_scalars
from tile2c.transpile.lower.simt.values import Place, convert


def produce(ctx: Context, roles: Roles, start: Expr, stop: Expr) -> tuple[CStmt, ...]:
    """What is loaded once, then the loop; its waits pass at once in the first round of the ring."""
    lines, pixels = _first_pixels(ctx, roles)
    return (*_once(ctx, roles), *lines, _rounds(ctx, roles, start, stop, pixels))


Pixels = dict[str, tuple[Expr, Expr, Expr]]  # of a tile: x, y and image of its first one


def _first_pixels(ctx: Context, roles: Roles) -> tuple[list[CStmt], Pixels]:
    """Where the tiles of convolutions start, named in front of the loop."""
    lines: list[CStmt] = []
    found: Pixels = {}
    for load in roles.loads:
        if load.im2col is not None:
            more, found[load.tile.name] = first_pixel(ctx, load.im2col)
            lines += more
    return lines, found


def _once(ctx: Context, roles: Roles) -> tuple[CStmt, ...]:
    """Tiles that stay; they and their barrier are used a single time."""
    if not roles.once:
        return ()
    names = " and ".join(load.tile.name for load in roles.once)
    sizes = [call("sizeof", b.local(load.tile.name)) for load in roles.once]
    announced = Do(call=call("barrier_expect", roles.kept_full, b.add(*sizes)))
    loads = (announced, *(_tile(ctx, roles, load, (), roles.kept_full) for load in roles.once))
    if roles.again is None:
        return loads
    reason = f"every consumer warp has read what {names} held"
    empty = do("barrier_wait", roles.again.is_free, flipped(roles.again.phase), remark=reason)
    return (empty, *loads, do(roles.again.advance))


def _rounds(ctx: Context, roles: Roles, start: Expr, stop: Expr, pixels: Pixels) -> CStmt:
    loop = roles.loop
    name = ctx.namer.author(loop.var.author or loop.var.name)
    if name != loop.var.name:
        ctx.values[loop.var.name] = b.local(name)
    facts = ctx.facts
    ctx.facts = facts.with_range(loop.var, loop.start, loop.stop)
    body: list[CStmt] = list(lower_scalars(ctx, roles.inside, Place(values={})))
    for ring in roles.rings:
        loads = [load for load in roles.loads if load.tile.name in ring.tiles]
        full, empty = ring.has_arrived(STAGE), ring.is_free(STAGE)
        read = "the stage" if len(roles.rings) == 1 else f"the stage of {' and '.join(ring.tiles)}"
        reason = f"every consumer warp has read what {read} held"
        body.append(do("barrier_wait", empty, flipped(PHASE), remark=reason))
        body.append(Do(call=call("barrier_expect", full, _stage_bytes(loads))))
        for load in loads:
            body.append(_tile(ctx, roles, load, (STAGE,), full, pixels.get(load.tile.name)))
    body.append(do("ring.advance"))
    frame = Loop(
        var=name,
        start=start,
        stop=stop,
        step=const(1),
        body=tuple(body),
        dtype=INT32,
        comments=(loop.quote,),
    )
    ctx.facts = facts
    ctx.namer.release(name)
    return frame


def _stage_bytes(loads: Sequence[TileLoad]) -> Expr:
    """`sizeof(A_shared[0]) + sizeof(B_shared[0])`: boxes arrive whole, also past the tensor's edge."""
    sizes = [
        call("sizeof", Element(dtype=INT32, array=load.tile.name, subscripts=(const(0),)))
        for load in loads
    ]
    return b.add(*sizes)


def _tile(
    ctx: Context,
    roles: Roles,
    load: TileLoad,
    stage: tuple[Expr, ...],
    told: Expr,
    place: tuple[Expr, Expr, Expr] | None = None,
) -> Section:
    """The load of one tile, which tells the barrier `told` of its bytes."""
    shared = roles.neighbours
    if place is not None:
        started = _pixels(ctx, load, stage, told, place)
    elif shared is not None and load.tile.name in shared.tiles:
        started = (_part(ctx, load, shared, stage, told),)
    else:
        started = (_load(ctx, load, stage, told),)
    return Section(
        comments=(*load.copy.comments, load.copy.quote),
        body=started,
        blank=False,
        span=load.copy.span,
    )


def _load(ctx: Context, load: TileLoad, stage: tuple[Expr, ...], told: Expr) -> CStmt:
    """One box, or a loop over the tile's slabs."""
    rank = len(load.map.dims)
    declared, given = coordinates(rank)
    ctx.need("tma_load", rank=rank, coordinates=declared, operands=given, slots=slots(3, rank))
    if load.once:
        own = slots(4, rank)
        ctx.need("tma_load_once", rank=rank, coordinates=declared, operands=given, slots=own)
    starts = box_start(ctx, load.places)
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


def _part(
    ctx: Context, load: TileLoad, shared: Neighbours, stage: tuple[Expr, ...], told: Expr
) -> CStmt:
    """This block's part of a tile, for all blocks of the cluster: slabs, or rows of a lone slab."""
    rank = len(load.map.dims)
    declared, given = coordinates(rank)
    own: dict[str, str | int | bool] = {
        "rank": rank, "coordinates": declared, "operands": given, "slots": slots(3, rank),
    }  # fmt: skip
    ctx.need("tma_load", **own)
    ctx.need("tma_load_to_all", **own, mask=slots(3 + rank, 1))
    starts = list(box_start(ctx, load.places))
    size, block = b.local(shared.size), b.local(shared.rank)
    if load.slabs.count == 1:
        axis = rows_of_box(load)
        row = b.mul(block, b.div(load.slabs.rows, size))
        starts[axis] = b.add(starts[axis], row)
        into = load.slabs.start(load.tile, stage, const(0), row)
        return Do(call=_to_all(load, into, told, starts, size))
    slab = ctx.namer.ours("slab", "slab_of_tile")
    ctx.namer.release(slab)
    starts[0] = b.add(starts[0], b.mul(b.local(slab), const(load.slabs.width)))
    into = load.slabs.start(load.tile, stage, b.local(slab), const(0))
    return Loop(
        var=slab,
        start=block,
        stop=const(load.slabs.count),
        step=size,
        body=(Do(call=_to_all(load, into, told, starts, size)),),
        dtype=INT32,
    )


def _to_all(load: TileLoad, into: Element, told: Expr, starts: Sequence[Expr], size: Expr) -> CCall:
    address = Address(dtype=load.tile.dtype, element=into)
    source = b.local(load.map_name)
    return call("tma_load_to_all", address, source, told, *starts, template=(size,))


def _pixels(
    ctx: Context,
    load: TileLoad,
    stage: tuple[Expr, ...],
    told: Expr,
    place: tuple[Expr, Expr, Expr],
) -> tuple[CStmt, ...]:
    """Channels of a tap for all pixels of the tile, one load a slab."""
    found = load.im2col
    assert found is not None
    ctx.need("tma_load_im2col")
    several = load.slabs.count > 1
    slab = ctx.namer.ours("slab", "slab_of_tile")
    ctx.namer.release(slab)
    number: Expr = b.local(slab) if several else const(0)
    columns = b.known(load.tile.shape[1]) or 0
    moved = b.mul(number, const(load.slabs.width))
    line, at = tap_of(ctx, found, columns, moved, place)
    into = load.slabs.start(load.tile, stage, number, const(0))
    address = Address(dtype=load.tile.dtype, element=into)
    start = Do(call=call("tma_load_im2col", address, b.local(load.map_name), told, *at))
    if not several:
        return line, start
    loop = Loop(
        var=slab,
        start=const(0),
        stop=const(load.slabs.count),
        step=const(1),
        body=(line, start),
        dtype=INT32,
    )
    return (loop,)


def box_start(ctx: Context, starts: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Coordinates of a region's first element, innermost first."""
    return tuple(convert(ctx, start, Place(values={})) for start in reversed(starts))


def _start(
    load: TileLoad, stage: tuple[Expr, ...], told: Expr, slab: Expr, at: tuple[Expr, ...]
) -> Do:
    into = load.slabs.start(load.tile, stage, slab, const(0))
    address = Address(dtype=load.tile.dtype, element=into)
    source = b.local(load.map_name)
    once = (b.local(load.once),) if load.once else ()
    return Do(call=call("tma_load", address, source, told, *at, *once))
