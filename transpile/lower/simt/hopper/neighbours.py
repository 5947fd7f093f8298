"""Tiles that neighbouring blocks have in common: a cluster of two blocks loads each of them once.

The text says what a block does once, for clusters of any size; a block that is alone is a cluster of one.

In the order in which blocks are taken, two that follow one another mostly read the same columns of B. As a
cluster each of them fetches half of such a tile, and TMA writes it to both: the L2 gives out less. A stage is
refilled when the consumers of both blocks have read it. It pays where rows do not start at multiples of 128
bytes: each row of a box is then two requests to the L2, which has no time for that many; elsewhere
blocks are faster on their own. So clusters have an entry of their own, beside the one for blocks that are
alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tile2c.runtime.expressions import evaluate, names_of
from tile2c.runtime.grid import SMS
from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Expr, Var, const
from tile2c.transpile.ir.forms import Copy, Gemm, Jump, Pipelined, Stmt
from tile2c.transpile.ir.walk import statements
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import (
    Body,
    Branch,
    Choice,
    CStmt,
    Declarator,
    Do,
    Entry,
    EntryParam,
    LaunchPlan,
    Local,
    Loop,
    Plan,
    Sync,
    TensorMap,
)
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.entry_points import grid
from tile2c.transpile.lower.simt.hopper.calls import PHASE, STAGE, call, do, flipped
from tile2c.transpile.lower.simt.hopper.panels import BLOCKS
from tile2c.transpile.lower.simt.hopper.tile_count import host_extents, tiles_of
from tile2c.transpile.lower.simt.matrix import gemm_extents
from tile2c.transpile.record import record

if TYPE_CHECKING:
    from tile2c.transpile.lower.simt.hopper.roles import Roles, TileLoad
    from tile2c.transpile.targets.target import Dialect

PAIR = 2  # blocks
_FEW = 64  # rows of a product that few blocks share anyway
_LINE = 128  # bytes of the L2's lines


@record(kw_only=True)
class Neighbours:
    """What the blocks of a cluster share: each loads its part of `tiles` for all of them.

    size    name of the text, a parameter of its template: how many these are, PAIR or one
    rank    name of the text: which one of them this is
    varies  the block index that differs between them
    even    the extent of the grid along which tiles make pairs, as the host says it
    total   tiles of the grid
    apart   bytes from row to row of the tensors that are shared; some are no multiples of a line
    """

    tiles: tuple[str, ...]
    size: str
    rank: str
    varies: str
    even: Expr
    total: Expr
    apart: tuple[Expr, ...]

    def line(self) -> CStmt:
        """The rank, defined."""
        name = Declarator(name=self.rank, value=b.mod(b.local("blockIdx.x"), b.local(self.size)))
        which = " and ".join(self.tiles)
        why = f"Blocks of a cluster read the same {which}: each loads its part for all of them."
        return Local(dtype=INT32, names=(name,), comments=(why,))


def neighbours_of(
    ctx: Context,
    loop: Pipelined,
    rounds: Sequence[Stmt],
    loads: Sequence[TileLoad],
    meanings: Mapping[str, Expr],
    groups: int,
) -> Neighbours | None:
    """What blocks that follow one another have in common.

    rounds    statements of a round without its loads      meanings  of names bound in the kernel
    groups    consumer warpgroups: a lone one leaves room for a second block, which shares more
    """
    varies = _varies(ctx)
    if varies is None or groups < 2 or not _plain(ctx, rounds):
        return None
    name, even = varies
    common = [
        load
        for load in loads
        if isinstance(load.copy, Copy) and not any(_depends(x, name, meanings) for x in load.places)
    ]
    found = [load for load in common if _has_halves(load)]
    names = tuple(load.tile.name for load in found)
    maps = {load.map for load in loads if load.tile.name not in names}
    mixed = any(load.map in maps for load in found)
    apart = tuple(
        dict.fromkeys(
            stride
            for load in found
            for stride in load.map.strides
            if not ctx.facts.divisible(stride, _LINE)
        )
    )
    ends = (loop.start, loop.stop)
    if mixed or not apart or any(_depends(end, name, meanings) for end in ends):
        return None
    return Neighbours(
        tiles=names,
        size=ctx.namer.ours("cluster_size", "blocks_of_cluster"),
        rank=ctx.namer.ours("rank", "rank_of_block"),
        varies=name,
        even=even,
        total=tiles_of(host_extents(ctx)),
        apart=apart,
    )


def _varies(ctx: Context) -> tuple[str, Expr] | None:
    """The block index that differs between two blocks that follow one another, and its extent."""
    launch = ctx.launch
    if launch.cluster != (1, 1, 1) or not launch.blocks:
        return None
    order = launch.order if len(launch.blocks) > 1 else None
    if order is not None and order.panel % PAIR:
        return None
    slow = 1 if order is not None and order.order == "row" else 0
    return launch.blocks[slow].name, b.for_host(grid(ctx)[slow])


def _plain(ctx: Context, rounds: Sequence[Stmt]) -> bool:
    """Whether rounds are products of many rows alone, and every block comes to the kernel's end."""
    many = all(isinstance(x, Gemm) and gemm_extents(x)[0] > _FEW for x in rounds)
    return many and not any(isinstance(x, Jump) for x in statements(ctx.launch.body))


def _depends(expr: Expr, name: str, meanings: Mapping[str, Expr]) -> bool:
    return any(
        part.name == name
        or (part.name in meanings and _depends(meanings[part.name], name, meanings))
        for part in b.walk(expr)
        if isinstance(part, Var)
    )


def _has_halves(load: TileLoad) -> bool:
    """Whether two blocks can share the tile: its slabs, or the rows of a lone one."""
    if load.slabs.count > 1:
        return load.slabs.count % PAIR == 0
    return (b.known(load.slabs.rows) or 0) % (8 * PAIR) == 0


def rows_of_box(load: TileLoad) -> int:
    """The dimension of the box along which the tile's rows lie."""
    return next(k for k, extent in enumerate(load.map.box) if k and extent > 1)


def half_box(load: TileLoad) -> TensorMap:
    """The map of a shared tile with the box that one of two blocks loads at once."""
    if load.slabs.count > 1:
        return load.map
    box = list(load.map.box)
    box[rows_of_box(load)] //= PAIR
    return replace(load.map, box=tuple(box))


def still_side_by_side(ctx: Context, shared: Neighbours) -> bool:
    """Whether the order that the launch has now still makes the neighbours that were planned for."""
    found = _varies(ctx)
    return found is not None and found[0] == shared.varies


# ---- text


def released(ctx: Context, shared: Neighbours | None, empty: Expr, remark: str) -> Branch:
    """One arrival of this warp: the tiles of a stage may be refilled, by all blocks that load them."""
    ctx.need("barrier_arrive")
    if shared is None:
        one = b.compare("==", ctx.lane(), const(0))
        return Branch(condition=one, then=(do("barrier_arrive", empty),), remark=remark)
    ctx.need("barrier_arrive_at")
    size = b.local(shared.size)
    each = b.compare("<", ctx.lane(), size)
    arrive = do("barrier_arrive_at", empty, ctx.lane(), template=(size,))
    return Branch(condition=each, then=(arrive,), remark=remark)


def meet(ctx: Context, shared: Neighbours, alone: Sync) -> Branch:
    """All threads of the cluster have got here; `alone`: those of a block that is one."""
    ctx.need("cluster_arrive")
    ctx.need("cluster_wait")
    together = (do("cluster_arrive"), do("cluster_wait", remark=f"{alone.remark} in the cluster"))
    one = b.compare("==", b.local(shared.size), const(1))
    return Branch(condition=one, then=(alone,), orelse=together, constexpr=True)


def drained(ctx: Context, roles: Roles, shared: Neighbours) -> Branch:
    """The end of a producer whose stages others give back: it stays for their last arrivals."""
    name = ctx.namer.ours("stage", "slot")
    ctx.namer.release(name)
    waits = [do("barrier_wait", ring.is_free(STAGE), flipped(PHASE)) for ring in roles.rings]
    why = "The block's memory stays until the consumers of all blocks have left all stages."
    rest = Loop(
        var=name,
        start=const(0),
        stop=roles.extent,
        step=const(1),
        body=(*waits, do("ring.advance")),
        dtype=INT32,
    )
    others = b.compare(">", b.local(shared.size), const(1))
    return Branch(condition=others, then=(rest,), constexpr=True, comments=(why,))


# ---- entries and their launches


def sharing_entries(
    ctx: Context, shared: Neighbours, alone: Entry, params: tuple[EntryParam, ...]
) -> tuple[Body, Entry, Entry]:
    """What a block does as a function of the cluster's size, the entry `alone` that calls it, and that of
    pairs, which takes `params`."""
    name = ctx.namer.ours(f"{alone.name}_block", f"{alone.name}_body")
    block = Body(
        name=name,
        template=(f"int {shared.size}",),
        params=tuple(replace(x, remark="") if x.map else x for x in alone.params),
        body=alone.body,
        comments=("What a block does; one that is alone is a cluster of one.",),
    )

    def calling(size: int) -> tuple[CStmt, ...]:
        given = (b.local(param.name, param.dtype) for param in alone.params)
        return (Do(call=call(name, *given, template=(const(size),))),)

    words = f"The same for clusters of two blocks: they load {' and '.join(shared.tiles)} for each other."
    pairs = replace(
        alone, name=f"{alone.name}_clusters", params=params, body=calling(PAIR), comments=(words,)
    )
    return block, replace(alone, body=calling(1)), pairs


def with_clusters(plan: Plan, shared: Neighbours, dialect: Dialect) -> Plan | None:
    """The plan with a launch of the entry for clusters before that of its first one, where it pays.

    None where that entry would run over copies alone, or where sizes that are known say no.
    """
    first = plan.entries[0].name
    places = [k for k, x in enumerate(plan.launches) if x.entry == first and x.params is None]
    named = {x.name for x in (*plan.sizes, *plan.args)}
    most = BLOCKS if SMS in named or b.known(shared.total) is not None else SMS
    wanted = _conditions(shared, plan.launches[places[0]], most, dialect) if places else None
    if wanted is None:
        return None
    apart = plan.entries[1]
    (place, *_) = places
    launch, words = plan.launches[place], " and ".join(wanted)
    when = " and ".join(x for x in (launch.when, *wanted) if x) or None
    mine = replace(launch, entry=apart.name, when=when, cluster=(PAIR, 1, 1))
    which = " and ".join(shared.tiles)
    why = "; rows of whole lines of 128 bytes load as fast without" if names_of(wanted[-1]) else ""
    note = (
        f"cluster  {apart.name}: the same launch in clusters of {PAIR} along x, an even grid, "
        f"where {words}{why}"
    )
    choice = Choice(
        name="blocks of a cluster",
        value=f"{PAIR}, where rows are not whole lines of the L2",
        reason=f"neighbours in the order of blocks read the same {which}",
    )
    return replace(
        plan,
        launches=(*plan.launches[:place], mine, *plan.launches[place:]),
        choices=(*plan.choices, choice),
        notes=(*plan.notes, note),
    )


def _conditions(
    shared: Neighbours, launch: LaunchPlan, most: int | str, dialect: Dialect
) -> list[str] | None:
    """What a launch as clusters asks for; None where sizes that are known say no.

    `most`: blocks that run at once, which more tiles than that keep busy.
    """
    from tile2c.transpile.render.expressions import CPrinter

    printer = CPrinter(dialect)
    even = dict.fromkeys((b.for_host(launch.grid[0]), shared.even))
    found = [f"{printer(b.mod(extent, const(PAIR)))} == 0" for extent in even]
    found.append(f"{printer(shared.total)} > {most}")
    apart = [f"{printer(b.mod(b.for_host(x), const(_LINE)))} != 0" for x in shared.apart]
    found.append(apart[0] if len(apart) == 1 else f"({' or '.join(apart)})")
    if any(not names_of(x) and not evaluate(x, {}) for x in found):
        return None
    return [x for x in found if names_of(x)]


__all__ = [
    "PAIR",
    "Neighbours",
    "drained",
    "half_box",
    "meet",
    "neighbours_of",
    "released",
    "rows_of_box",
    "sharing_entries",
    "still_side_by_side",
    "with_clusters",
]
