"""Who does what: the loads that a producer takes over, the products that stay with the consumers."""

from __future__ import annotations

from collections.abc import Sequence

from tile2c.transpile.ir.expr import Buffer, Const, Expr, Load, Var
from tile2c.transpile.ir.forms import (
    Copy,
    Foreign,
    Gemm,
    If,
    Im2col,
    Jump,
    Let,
    Parallel,
    Pipelined,
    Print,
    Stmt,
)
from tile2c.transpile.ir.walk import statements, writes
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.desugar import stages
from tile2c.transpile.lower.plan import Choice, TensorMap
from tile2c.transpile.lower.simt.access import all_loads, all_stores
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper.calls import STAGE
from tile2c.transpile.lower.simt.hopper.im2col import pixel_map, pixel_slabs
from tile2c.transpile.lower.simt.hopper.neighbours import Neighbours, neighbours_of
from tile2c.transpile.lower.simt.hopper.rings import (
    Again,
    TileRing,
    barrier_of_kept,
    batches_of,
    rings_of,
)
from tile2c.transpile.lower.simt.hopper.slabs import Slabs, box_of, slabs_of
from tile2c.transpile.lower.simt.hopper.unfit import Unfit
from tile2c.transpile.lower.simt.hopper.warpgroups import (
    WarpgroupPlan,
    oriented,
    plan_warpgroups,
)
from tile2c.transpile.lower.simt.matrix import gemm_extents
from tile2c.transpile.lower.simt.outer_statements import gemms, walk
from tile2c.transpile.lower.simt.pipeline import rest_of
from tile2c.transpile.lower.simt.tile_loads import (
    bound_for,
    movable,
    tile_of,
    touched,
    touches,
    written,
)
from tile2c.transpile.record import record

RING_STAGES = "ring_stages"  # the depth's name where it is not the author's
_BARRIER_BYTES = 16  # full and empty of one stage, for each ring
_ON_THEIR_WAY = 96 * 1024  # bytes


@record(kw_only=True)
class TileLoad:
    """One copy or im2col of the loop body: a box of a tensor for each slab of the tile."""

    copy: Copy | Parallel
    tile: Buffer
    slabs: Slabs
    map_name: str
    map: TensorMap
    once: str = ""  # the flag that tells the L2 that it is read once

    @property
    def im2col(self) -> Im2col | None:
        return self.copy.im2col if isinstance(self.copy, Parallel) else None

    @property
    def places(self) -> tuple[Expr, ...]:
        """What the place of the box is said with."""
        if isinstance(self.copy, Copy):
            return self.copy.src.starts
        found = self.im2col
        return () if found is None else (found.pixel, found.tap, found.height, found.width)


@record(kw_only=True)
class Roles:
    """The pipelined loop with its loads and products, and how deep its ring is."""

    loop: Pipelined
    loads: tuple[TileLoad, ...]
    once: tuple[TileLoad, ...]  # tiles that are loaded before the loop and stay
    kept: str  # the barrier on which these arrive
    bound: tuple[Let, ...]  # names in front of the loop that the producer needs too
    inside: tuple[Let, ...]  # names that each round binds for its loads
    held: frozenset[str]  # fragments that are first operands: their warpgroup multiplies them
    products: dict[int, WarpgroupPlan]  # by identity of the gemm
    depth: int
    extent: Expr  # the depth as the text says it
    groups: int  # consumer warpgroups
    batches: tuple[tuple[Gemm, ...], ...]  # products of a round that are started together
    rings: tuple[TileRing, ...]  # barriers, by the batches that read the tiles
    alike: bool = False  # blocks that follow one another have tiles in common
    neighbours: Neighbours | None = None  # and load them for each other
    again: Again | None = None  # tiles that are loaded once come again with each tile of the grid
    at: Expr = STAGE  # the stage that products read
    in_turns: bool = False  # warpgroups start their products one after the other

    def load_of(self, tile: Buffer) -> TileLoad:
        """The load that fills an operand."""
        return next(load for load in (*self.loads, *self.once) if load.tile.name == tile.name)

    @property
    def kept_full(self) -> Expr:
        """The barrier of tiles that are loaded once."""
        return b.local(self.kept)

    def stage_of(self, load: TileLoad) -> tuple[Expr, ...]:
        """The subscript that says which stage of a tile is meant; a tile that stays has none."""
        return () if load in self.once else (self.at,)


def plan_roles(ctx: Context, body: tuple[Stmt, ...], *, together: bool = False) -> Roles:
    """Splits the launch; raises Unfit with the first thing in the way.

    `together`: for clusters, whose blocks load what they have in common for each other.
    """
    if any(isinstance(x, Print | Foreign) for x in walk(body)):
        raise Unfit("T.print and foreign code are for all threads of the block")
    loop = _loop(body)
    products = gemms(body)
    groups = ctx.threads // 128
    plans = {
        id(gemm): plan_warpgroups(ctx, gemm, groups, may_swap=_only_ends(ctx, loop, gemm))
        for gemm in products
    }
    held = _held(products, plans)
    loads, once = _loads(ctx, body, loop, products, _parts(products, plans))
    _check_whole(products)
    copies = [load.copy for load in loads]
    inside = bound_for(loop, copies)
    if inside is None:
        raise Unfit("what a round loads depends on what it reads")
    rounds = rest_of(loop, copies, inside, ())
    batches = batches_of(rounds, plans)
    rings = rings_of(ctx, {load.tile.name: load.map.tensor for load in loads}, batches)
    depth, extent = _depth(ctx, loop, loads, len(rings))
    bound = _bound(body, loop, (*loads, *once))
    meanings = {let.var.name: let.value for let in (*bound, *inside)}
    neighbours = neighbours_of(ctx, loop, rounds, loads, meanings, groups)
    if neighbours is not None and not together:
        for name in (neighbours.rank, neighbours.size):
            ctx.namer.release(name)
    return Roles(
        loop=loop,
        loads=loads,
        once=once,
        kept=barrier_of_kept(ctx, {load.tile.name: load.map.tensor for load in once}),
        bound=bound,
        inside=inside,
        held=held,
        products=plans,
        depth=depth,
        extent=extent,
        groups=groups,
        batches=batches,
        rings=rings,
        neighbours=neighbours if together else None,
        alike=neighbours is not None,
    )


def _only_ends(ctx: Context, loop: Pipelined, gemm: Gemm) -> bool:
    """Whether the sums wait for the loop's end, and then go to a tensor as 16-bit elements or are few.

    Their layout is then nobody's matter: the tile may be computed as its transpose.
    """
    name = gemm.c.buffer.name
    if any(not isinstance(x, Gemm) and name in touched(x) for x in loop.body):
        return False
    few = gemm_extents(gemm)[0] < 64
    return few or any(
        isinstance(x, Copy)
        and x.src.buffer.name == name
        and x.dst.buffer.scope == "global"
        and x.dst.buffer.dtype.bytes == 2
        for x in ctx.launch.body
    )


def _bound(body: tuple[Stmt, ...], loop: Pipelined, loads: tuple[TileLoad, ...]) -> tuple[Let, ...]:
    """Names that the loop's ends and the places of its loads are said with, in order.

    Raises Unfit where one of them stands for what only some threads know.
    """
    before = body[: next(k for k, x in enumerate(body) if x is loop)]
    inside = {x.var.name: x for x in loop.body if isinstance(x, Let)}
    lets = {x.var.name: x for x in before if isinstance(x, Let)}
    wanted: set[str] = set()
    pending = [loop.start, loop.stop, *(x for load in loads for x in load.places)]
    while pending:
        for part in b.walk(pending.pop()):
            if isinstance(part, Load) and part.buffer.scope != "global":
                raise Unfit(f"what the loop loads depends on {part.buffer.name}")
            if not isinstance(part, Var) or part.name in wanted:
                continue
            if part.name in inside or part.name in lets:
                wanted.add(part.name)
                pending.append((inside | lets)[part.name].value)
    return tuple(let for name, let in lets.items() if name in wanted)


def _held(products: list[Gemm], plans: dict[int, WarpgroupPlan]) -> frozenset[str]:
    """Operands that stay in registers: wgmma takes its first one from there, rows along K."""
    found = set()
    for gemm in products:
        if gemm.b.buffer.scope == "fragment":
            raise Unfit(f"{gemm.b.buffer.name} is a fragment, and wgmma reads b from shared memory")
        if gemm.a.buffer.scope != "fragment":
            continue
        name = gemm.a.buffer.name
        if gemm.transpose_a:
            raise Unfit(f"{name} is a fragment, and wgmma takes those as they are, not transposed")
        if plans[id(gemm)].groups_n > 1:
            raise Unfit(f"{name} is a fragment whose rows several warpgroups would need")
        found.add(name)
    return frozenset(found)


def _loop(body: tuple[Stmt, ...]) -> Pipelined:
    """The one loop that holds every gemm."""
    loops = [x for x in walk(body) if isinstance(x, Pipelined) and gemms(x.body)]
    outside = [x for x in body if not isinstance(x, Pipelined) and gemms((x,))]
    if outside or not loops:
        raise Unfit("a gemm stands outside the pipelined loop at the top of the kernel")
    if len(loops) > 1:
        raise Unfit("several pipelined loops hold gemms")
    (loop,) = loops
    if any(not isinstance(x, Gemm) and gemms((x,)) for x in loop.body):
        raise Unfit("a gemm of the pipelined loop stands under a condition or in an inner loop")
    if int(loop.num_stages.value) < 1:
        raise Unfit(f"num_stages={loop.num_stages.value} leaves nothing to load ahead")
    before = body[: next(k for k, x in enumerate(body) if x is loop)]
    if any(isinstance(x, Jump) and x.kind == "return" for x in walk(before)) or _jumps(loop.body):
        raise Unfit("a block may end, or leave a round, while its tiles are still being loaded")
    return loop


def _jumps(rounds: Sequence[Stmt]) -> bool:
    """Whether something leaves a round early: a loop in it may break off itself."""
    for stmt in rounds:
        if isinstance(stmt, Jump):
            return True
        if isinstance(stmt, If) and (_jumps(stmt.then) or _jumps(stmt.orelse)):
            return True
        if any(isinstance(x, Jump) and x.kind == "return" for x in walk((stmt,))):
            return True
    return False


def _parts(products: list[Gemm], plans: dict[int, WarpgroupPlan]) -> dict[str, int]:
    """Columns of a warpgroup, of tiles whose rows are split: each part has to be whole slabs."""
    found: dict[str, int] = {}
    for gemm in products:
        plan = plans[id(gemm)]
        seen = oriented(gemm, plan)
        if not seen.transpose_b and plan.groups_n > 1:
            found[seen.b.buffer.name] = plan.n
    return found


def _loads(
    ctx: Context,
    body: tuple[Stmt, ...],
    loop: Pipelined,
    products: list[Gemm],
    parts: dict[str, int],
) -> tuple[tuple[TileLoad, ...], tuple[TileLoad, ...]]:
    """Tiles of the ring, and tiles that are loaded once, in front of the loop."""
    stored = written(*ctx.launch.body)
    operands = {
        region.buffer.name
        for gemm in products
        for region in (gemm.a, gemm.b)
        if region.buffer.scope == "shared"
    }
    names: dict[TensorMap, str] = {}

    def load(copy: Copy | Parallel) -> TileLoad:
        tile = tile_of(copy)
        if isinstance(copy, Copy):
            slabs = slabs_of(tile, parts.get(tile.name))
            rows = b.known(tile.shape[0]) or 0
            described = box_of(ctx, copy.src, slabs, rows, may_copy=True)
        else:
            assert copy.im2col is not None
            slabs = pixel_slabs(ctx, tile, copy.im2col)
            described = pixel_map(ctx, tile, copy.im2col, slabs)
        if described not in names:
            wish = f"{described.tensor}_map"
            names[described] = ctx.namer.ours(wish, f"{tile.name}_map")
        return TileLoad(copy=copy, tile=tile, slabs=slabs, map_name=names[described], map=described)

    rounds, once = [], []
    for copy in body[: next(k for k, x in enumerate(body) if x is loop)]:
        if isinstance(copy, Copy) and copy.dst.buffer.name in operands:
            if not _stays(copy, body, stored):
                raise Unfit(f"`{copy.quote}` is more than a load of a tile that stays as it is")
            once.append(load(copy))
    for copy in loop.body:
        if isinstance(copy, Parallel) and copy.im2col is not None:
            if tile_of(copy).name in operands and movable(ctx, loop, copy, stored):
                rounds.append(load(copy))
        if isinstance(copy, Copy) and copy.dst.buffer.name in operands:
            if not stages(copy) or not movable(ctx, loop, copy, stored):
                raise Unfit(f"`{copy.quote}` is more than a copy of a tensor's box to a whole tile")
            rounds.append(load(copy))
    if not rounds:
        raise Unfit("the loop loads no operand of a gemm")
    loaded = {part.tile.name for part in (*rounds, *once)}
    for name in sorted(operands):
        if name not in loaded:
            raise Unfit(f"{name}, an operand of a gemm, is not loaded in its loop or before it")
    _check_readers(body, loaded, [part.copy for part in rounds])
    return tuple(rounds), tuple(once)


def _stays(copy: Copy, body: tuple[Stmt, ...], stored: set[str]) -> bool:
    """Whether the copy fills a whole tile that nothing else writes, from a tensor that nothing does."""
    tile = copy.dst.buffer
    whole = all(
        b.literal(part.start, 0) and b.known(part.extent) == b.known(extent)
        for part, extent in zip(copy.dst.ranges, tile.shape, strict=True)
    )
    plain = not any(isinstance(part, Load) for x in copy.src.starts for part in b.walk(x))
    alone = not any(
        tile.name == x.name for stmt in statements(body) if stmt is not copy for x in writes(stmt)
    )
    return stages(copy) and whole and plain and alone and copy.src.buffer.name not in stored


def _check_readers(body: tuple[Stmt, ...], loaded: set[str], loads: Sequence[Stmt]) -> None:
    """Tiles that TMA loads are wgmma's alone: their layout is its own."""
    for stmt in walk(body):
        if isinstance(stmt, Gemm | Copy) or any(stmt is load for load in loads):
            continue
        names = touches(stmt)
        if isinstance(stmt, Parallel):
            names = {x.buffer.name for x in all_loads(stmt.body)} | {
                x.name for x, _ in all_stores(stmt.body)
            }
        shared = sorted(loaded & names)
        if shared:
            raise Unfit(f"{shared[0]} is read by `{stmt.quote}` too, not by gemms alone")


def _check_whole(products: list[Gemm]) -> None:
    for gemm in products:
        for region in (gemm.a, gemm.b):
            whole = len(region.ranges) == 2 and all(
                b.literal(part.start, 0) and b.known(part.extent) == b.known(extent)
                for part, extent in zip(region.ranges, region.buffer.shape, strict=True)
            )
            if not whole:
                raise Unfit(f"a gemm reads a part of {region.buffer.name}, not the whole tile")


def _depth(
    ctx: Context, loop: Pipelined, loads: tuple[TileLoad, ...], rings: int
) -> tuple[int, Expr]:
    """As many stages as the author asked for, more where they are small, as shared memory allows.

    Loads take about a microsecond; an SM has to have enough bytes on their way to be fed meanwhile.
    """
    ring = {load.tile.name for load in loads}
    stage = sum(_bytes(load.tile) for load in loads)
    rest = sum(
        -(-_bytes(x) // 1024) * 1024
        for x in ctx.launch.buffers
        if x.scope == "shared" and x.name not in ring
    )
    asked = int(loop.num_stages.value)
    fits = (ctx.target.max_shared - rest - 1024) // (stage + _BARRIER_BYTES * rings)
    enough = -(-_ON_THEIR_WAY // stage)
    depth = min(max(asked, enough), fits)
    if depth < 2:
        raise Unfit(f"two stages of {stage} bytes do not fit in shared memory")
    reason = {
        asked: "as the author asked (num_stages)",
        enough: f"the author asked for {asked}; so many keep {_ON_THEIR_WAY // 1024} KiB on their way",
    }.get(depth, "more do not fit in shared memory")
    ctx.choices.append(Choice(name=f"stages of {loop.var.name}", value=str(depth), reason=reason))
    if depth == asked:
        return depth, loop.num_stages
    return depth, Const(dtype=loop.num_stages.dtype, value=depth, name=RING_STAGES)


def _bytes(buffer: Buffer) -> int:
    total = buffer.dtype.bytes
    for extent in buffer.shape:
        total *= b.known(extent) or 1
    return total


__all__ = ["Roles", "TileLoad", "Unfit", "plan_roles"]
