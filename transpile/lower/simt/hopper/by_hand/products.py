"""T.gemm and T.wgmma_gemm on wgmma, by the threads that get there: plans, layouts, text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.expr import Expr, const
from tile2c.transpile.ir.forms import Gemm, Region, Stmt
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import Address, CCall, CStmt, Do, Element, counting
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.divergence import Divergence
from tile2c.transpile.lower.simt.hopper.by_hand.tiles import Tile
from tile2c.transpile.lower.simt.hopper.calls import call
from tile2c.transpile.lower.simt.hopper.multiply import accumulates, descriptor, held, instruction
from tile2c.transpile.lower.simt.hopper.unfit import Unfit
from tile2c.transpile.lower.simt.hopper.warpgroups import (
    THREADS,
    WarpgroupPlan,
    accumulator_layout,
    held_plan,
    plan_warpgroups,
)
from tile2c.transpile.lower.simt.layouts import Layout
from tile2c.transpile.lower.simt.matrix import matrix_dims
from tile2c.transpile.lower.simt.outer_statements import gemms
from tile2c.transpile.lower.simt.per_thread import PerThread
from tile2c.transpile.lower.simt.teams import teams_of
from tile2c.transpile.lower.simt.warp import warpgroup_number
from tile2c.transpile.record import record

Range = tuple[int, int]  # (first, count) of the threads that do a statement


@record(kw_only=True)
class Product:
    """A gemm, the threads that do it, and how their warpgroups share it."""

    gemm: Gemm
    team: Range
    plan: WarpgroupPlan


def plan_products(ctx: Context, body: tuple[Stmt, ...]) -> dict[int, Product]:
    """Every gemm by identity; raises InputError where wgmma cannot do it."""
    threads = PerThread(
        ctx.launch.threads, {var.name: dim for dim, var in enumerate(ctx.launch.thread_vars)}
    )
    teams = list(teams_of(ctx, body, threads, Divergence(ctx.launch.body)))
    owners = {id(gemm): team for part, team in teams for gemm in gemms(part)}
    found: dict[int, Product] = {}
    for gemm in gemms(body):
        team = owners.get(id(gemm), (0, ctx.threads))
        found[id(gemm)] = Product(gemm=gemm, team=team, plan=_plan(ctx, gemm, team))
    return found


def _plan(ctx: Context, gemm: Gemm, team: Range) -> WarpgroupPlan:
    first, count = team
    if first % THREADS or count % THREADS:
        raise failure(
            "T2C591",
            f"threads {first} to {first + count - 1} do this product: they are no whole warpgroups of "
            f"{THREADS}",
            gemm.span,
        )
    for region in (gemm.c, *(x for x in (gemm.a, gemm.b) if x.buffer.scope == "fragment")):
        if not _whole(region):
            raise failure(
                "T2C591",
                f"a product takes the fragment {region.buffer.name} whole, not a part of it",
                region.span or gemm.span,
            )
    try:
        plan = plan_warpgroups(ctx, gemm, count // THREADS)
        if plan.part:
            raise Unfit("sums of 8-bit floats would have to leave the matrix unit on the way")
        _check_held(gemm, plan)
    except Unfit as reason:
        raise failure(
            "T2C591",
            f"this product cannot be done by wgmma: {reason}",
            gemm.span,
            help="kernels without barriers of their own are planned by tile2c, on other units too",
        ) from reason
    return plan


def _check_held(gemm: Gemm, plan: WarpgroupPlan) -> None:
    if gemm.b.buffer.scope == "fragment":
        raise Unfit(f"{gemm.b.buffer.name} is a fragment, and b comes from shared memory")
    if gemm.a.buffer.scope != "fragment":
        return
    if gemm.transpose_a:
        raise Unfit(f"{gemm.a.buffer.name} is a fragment, and those are taken as they are")
    if plan.groups_n > 1:
        raise Unfit(f"{gemm.a.buffer.name} is a fragment whose rows several warpgroups would need")


def _whole(region: Region) -> bool:
    return all(
        b.literal(part.start, 0) and b.known(part.extent) == b.known(extent)
        for part, extent in zip(region.ranges, region.buffer.shape, strict=True)
    )


def pinned_layouts(ctx: Context, products: Sequence[Product]) -> dict[str, Layout]:
    """Sums, and operands in registers, as wgmma holds them; raises InputError where two products differ."""
    found: dict[str, Layout] = {}
    for product in products:
        gemm, plan = product.gemm, product.plan
        held = [(gemm.c, plan)]
        if gemm.a.buffer.scope == "fragment":
            held.append((gemm.a, held_plan(gemm, plan)))
        with of_team(ctx, product.team):
            for region, own in held:
                layout = _with_ones(accumulator_layout(ctx, own), region)
                if found.setdefault(region.buffer.name, layout) != layout:
                    raise failure(
                        "T2C515",
                        f"two products want {region.buffer.name} held by different threads",
                        gemm.span,
                        help="give each its own fragment",
                    )
    return found


def _with_ones(layout: Layout, region: Region) -> Layout:
    """The layout with the fragment's further dimensions, of one element each."""
    from dataclasses import replace

    shape = tuple(b.known(extent) or 1 for extent in region.buffer.shape)
    if len(shape) == 2:
        return layout
    dims: list[tuple[object, ...]] = [()] * len(shape)
    for dim, own in zip(matrix_dims(region), layout.dims, strict=True):
        dims[dim] = own
    return replace(layout, shape=shape, dims=tuple(dims))  # type: ignore[arg-type]


@contextmanager
def of_team(ctx: Context, team: Range) -> Iterator[None]:
    """The context as it is for these threads."""
    outer = ctx.threads, ctx.team
    ctx.threads = team[1]
    ctx.team = team if team[1] != outer[0] else None
    try:
        yield
    finally:
        ctx.threads, ctx.team = outer


# ---- text


def multiply(ctx: Context, product: Product, tiles: dict[str, Tile]) -> CStmt:
    """The instructions of the product, started but not waited for."""
    gemm, plan = product.gemm, product.plan
    k, m = ctx.namer.ours("k", "kk"), ctx.namer.ours("m", "mm")
    several = plan.tiles_m > 1
    row: Expr = b.mul(b.local(m), const(64)) if several else const(0)
    if gemm.a.buffer.scope == "fragment":
        a = held(ctx, gemm, b.local(m) if several else const(0), b.local(k))
    else:
        first = b.add(_part(ctx, product, "m"), row)
        a = _descriptor(ctx, tiles, gemm.a, first, b.local(k), along_k=not gemm.transpose_a)
    bb = _descriptor(
        ctx, tiles, gemm.b, _part(ctx, product, "n"), b.local(k), along_k=gemm.transpose_b
    )
    sums = Element(
        dtype=gemm.c.buffer.dtype,
        array=gemm.c.buffer.name,
        subscripts=(b.local(m) if several else const(0),),
    )
    accumulate = accumulates(ctx, gemm, None, b.local(k))
    inner: CStmt = Do(call=call(instruction(ctx, gemm, plan), sums, a, bb, accumulate))
    if several:
        inner = counting(m, plan.tiles_m, (inner,))
    for name in (k, m):
        ctx.namer.release(name)
    extent = gemm.a.shape[-2] if gemm.transpose_a else gemm.a.shape[-1]
    return counting(k, b.in_words(extent), (inner,), step=plan.step, unroll=True)


def _part(ctx: Context, product: Product, side: str) -> Expr:
    """Where the warpgroup's rows (m) or columns (n) start, from its number that all lanes share."""
    plan = product.plan
    count, size = (plan.groups_m, 64 * plan.tiles_m) if side == "m" else (plan.groups_n, plan.n)
    if count == 1:
        return const(0)
    group = b.sub(warpgroup_number(ctx), const(product.team[0] // THREADS))
    if side == "m":
        group = b.div(group, const(plan.groups_n))
    elif plan.groups_m > 1:
        group = b.mod(group, const(plan.groups_n))
    return b.mul(group, const(size))


def _descriptor(
    ctx: Context, tiles: dict[str, Tile], region: Region, first: Expr, k: Expr, *, along_k: bool
) -> CCall:
    """K-major where the tile's rows run along K, else MN-major; `first`: the row or column of this part."""
    tile = tiles[region.buffer.name]
    slabs = tile.slabs
    assert slabs is not None
    before, row, column = tile.starts(ctx, region)
    size = const(slabs.row_bytes)
    kind = tile.buffer.dtype
    if along_k:
        element = slabs.element(tile.buffer, before, b.add(row, first), b.add(column, k))
        return descriptor(ctx, "k_major", Address(dtype=kind, element=element), size)
    at = b.add(column, first)
    slab = at if b.literal(at, 0) else b.div(at, const(slabs.width))
    element = slabs.start(tile.buffer, before, slab, b.add(row, k))
    address = Address(dtype=kind, element=element)
    return descriptor(ctx, "mn_major", address, size, slabs.rows)
