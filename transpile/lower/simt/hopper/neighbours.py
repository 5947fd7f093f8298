"""Tiles that neighbouring blocks have in common: a cluster of two blocks loads each of them once.

In the order in which blocks are taken, two that follow one another mostly read the same columns of B. As a
cluster each of them fetches half of such a tile, and TMA writes it to both: the L2 gives out less. A stage is
refilled when the consumers of both blocks have read it. It pays where rows do not start at multiples of 128
bytes: each row of a box is then two requests to the L2, which has no time for that many; elsewhere
blocks are faster on their own. So clusters have an entry of their own, beside the one that works for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tile2c.runtime.expressions import evaluate, names_of
from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Expr, Var, const
from tile2c.transpile.ir.forms import Copy, Gemm, Jump, Pipelined, Stmt
from tile2c.transpile.ir.walk import statements
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import (
    Branch,
    Choice,
    CStmt,
    Declarator,
    Entry,
    LaunchPlan,
    Local,
    Loop,
    Plan,
)
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.entry_points import grid
from tile2c.transpile.lower.simt.hopper.calls import PHASE, STAGE, do, flipped
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
    """What the two blocks of a cluster share: `tiles` are loaded in halves, each half for both.

    rank    name of the text: which block of the cluster this is
    varies  the block index that differs between them
    even    the extent of the grid along which tiles make pairs, as the host says it
    total   tiles of the grid
    apart   bytes from row to row of the tensors that are shared; some are no multiples of a line
    """

    tiles: tuple[str, ...]
    rank: str
    varies: str
    even: Expr
    total: Expr
    apart: tuple[Expr, ...]

    def line(self) -> CStmt:
        """The rank, defined."""
        name = Declarator(name=self.rank, value=b.mod(b.local("blockIdx.x"), const(PAIR)))
        why = f"Blocks 2 i and 2 i + 1 read the same {' and '.join(self.tiles)}: each loads half for both."
        return Local(dtype=INT32, names=(name,), comments=(why,))

    def half(self, count: int) -> tuple[Expr, Expr]:
        """This block's half of so many parts: first and end."""
        first = b.mul(b.local(self.rank), const(count // PAIR))
        return first, b.add(first, const(count // PAIR))


def neighbours_of(
    ctx: Context,
    loop: Pipelined,
    rounds: Sequence[Stmt],
    loads: Sequence[TileLoad],
    meanings: Mapping[str, Expr],
    groups: int,
) -> tuple[Neighbours | None, tuple[TileLoad, ...]]:
    """What blocks that follow one another have in common, and the loads with boxes that fit.

    rounds    statements of a round without its loads      meanings  of names bound in the kernel
    groups    consumer warpgroups: a lone one leaves room for a second block, which shares more
    """
    varies = _varies(ctx)
    if varies is None or groups < 2 or not _plain(ctx, rounds):
        return None, tuple(loads)
    name, even = varies
    common = [
        load
        for load in loads
        if isinstance(load.copy, Copy) and not any(_depends(x, name, meanings) for x in load.places)
    ]
    found = {load.tile.name: part for load in common if (part := _in_parts(load)) is not None}
    maps = {load.map for load in loads if load.tile.name not in found}
    mixed = any(x.map in maps for x in common if x.tile.name in found)
    apart = tuple(
        dict.fromkeys(
            stride
            for load in common
            if load.tile.name in found
            for stride in load.map.strides
            if not ctx.facts.divisible(stride, _LINE)
        )
    )
    ends = (loop.start, loop.stop)
    if mixed or not apart or any(_depends(end, name, meanings) for end in ends):
        return None, tuple(loads)
    shared = Neighbours(
        tiles=tuple(found),
        rank=ctx.namer.ours("rank", "rank_of_block"),
        varies=name,
        even=even,
        total=tiles_of(host_extents(ctx)),
        apart=apart,
    )
    return shared, tuple(found.get(load.tile.name, load) for load in loads)


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


def _in_parts(load: TileLoad) -> TileLoad | None:
    """The load with a box for each of an even number of parts: slabs, or halves of a lone slab's rows."""
    rows = b.known(load.slabs.rows) or 0
    if load.slabs.count > 1:
        return load if load.slabs.count % PAIR == 0 else None
    if rows % (8 * PAIR):
        return None
    box = tuple(extent // PAIR if extent == rows else extent for extent in load.map.box[1:])
    return replace(load, map=replace(load.map, box=(load.map.box[0], *box)))


def still_side_by_side(ctx: Context, shared: Neighbours) -> bool:
    """Whether the order that the launch has now still makes the neighbours that were planned for."""
    found = _varies(ctx)
    return found is not None and found[0] == shared.varies


# ---- text


def released(ctx: Context, shared: Neighbours | None, empty: Expr, remark: str) -> Branch:
    """One arrival of this warp: the tiles of a stage may be refilled, by all blocks that load them."""
    if shared is None:
        ctx.need("barrier_arrive")
        one = b.compare("==", ctx.lane(), const(0))
        return Branch(condition=one, then=(do("barrier_arrive", empty, remark=remark),))
    ctx.need("barrier_arrive_at")
    each = b.compare("<", ctx.lane(), const(PAIR))
    arrive = do("barrier_arrive_at", empty, ctx.lane(), remark=remark)
    return Branch(condition=each, then=(arrive,))


def meet(ctx: Context, remark: str) -> list[CStmt]:
    """All threads of both blocks have got here."""
    ctx.need("cluster_arrive")
    ctx.need("cluster_wait")
    return [do("cluster_arrive"), do("cluster_wait", remark=remark)]


def drained(ctx: Context, roles: Roles) -> Loop:
    """The end of a producer whose stages others give back: it stays for their last arrivals."""
    name = ctx.namer.ours("stage", "slot")
    ctx.namer.release(name)
    waits = [do("barrier_wait", ring.is_free(STAGE), flipped(PHASE)) for ring in roles.rings]
    why = "The block's memory stays until the consumers of both blocks have left all stages."
    return Loop(
        var=name,
        start=const(0),
        stop=roles.extent,
        step=const(1),
        body=(*waits, do("ring.advance")),
        dtype=INT32,
        comments=(why,),
    )


# ---- the entry's launches


def with_clusters(plan: Plan, apart: Entry, shared: Neighbours, dialect: Dialect) -> Plan:
    """The plan with the entry for clusters, launched before the plan's first one where that pays.

    The plan itself where that entry runs over copies alone, or where sizes that are known say no.
    """
    first = plan.entries[0].name
    places = [k for k, x in enumerate(plan.launches) if x.entry == first and x.params is None]
    wanted = _conditions(shared, plan.launches[places[0]], dialect) if places else None
    if wanted is None:
        return plan
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
        entries=(plan.entries[0], apart, *plan.entries[1:]),
        launches=(*plan.launches[:place], mine, *plan.launches[place:]),
        choices=(*plan.choices, choice),
        notes=(*plan.notes, note),
    )


def _conditions(shared: Neighbours, launch: LaunchPlan, dialect: Dialect) -> list[str] | None:
    """What a launch as clusters asks for; None where sizes that are known say no."""
    from tile2c.transpile.render.expressions import CPrinter

    printer = CPrinter(dialect)
    even = dict.fromkeys((b.for_host(launch.grid[0]), shared.even))
    found = [f"{printer(b.mod(extent, const(PAIR)))} == 0" for extent in even]
    found.append(f"{printer(shared.total)} > {BLOCKS}")
    apart = [f"{printer(b.mod(b.for_host(x), const(_LINE)))} != 0" for x in shared.apart]
    found.append(apart[0] if len(apart) == 1 else f"({' or '.join(apart)})")
    if any(not names_of(x) and not evaluate(x, {}) for x in found):
        return None
    return [x for x in found if names_of(x)]


__all__ = [
    "PAIR",
    "Neighbours",
    "drained",
    "meet",
    "neighbours_of",
    "released",
    "still_side_by_side",
    "with_clusters",
]
