"""Sums to a tensor through shared memory: stmatrix into swizzled slabs, then TMA stores of whole boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile2c.transpile.ir.dtypes import DTYPES, INT32
from tile2c.transpile.ir.expr import BinaryOp, Buffer, Expr, const
from tile2c.transpile.ir.forms import Copy, Pipelined, Region
from tile2c.transpile.ir.walk import statements
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import (
    Address,
    Branch,
    CCall,
    CStmt,
    Declarator,
    Do,
    Element,
    Local,
    Loop,
    Section,
    TensorMap,
)
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper.calls import call, coordinates, do, slots
from tile2c.transpile.lower.simt.hopper.multiply import group_part
from tile2c.transpile.lower.simt.hopper.producer import box_start
from tile2c.transpile.lower.simt.hopper.roles import Roles
from tile2c.transpile.lower.simt.hopper.slabs import Slabs, box_of, slabs_for, swizzle_of
from tile2c.transpile.lower.simt.hopper.unfit import Unfit
from tile2c.transpile.lower.simt.hopper.warpgroups import (
    THREADS,
    WarpgroupPlan,
    accumulator_layout,
)
from tile2c.transpile.lower.simt.outer_statements import gemms
from tile2c.transpile.lower.simt.steps import Access, Step
from tile2c.transpile.lower.simt.tile_loads import touches
from tile2c.transpile.record import record
from tile2c.transpile.wording import listed

_TYPES = ("float16", "bfloat16")


@record(kw_only=True)
class Bound:
    """`max` or `min` with a number that the tensor's type has."""

    op: BinaryOp
    value: Expr


@record(kw_only=True)
class Passage:
    """A copy of all sums of a product to a tensor of 16-bit elements."""

    copy: Copy
    plan: WarpgroupPlan
    slabs: Slabs
    map_name: str
    map: TensorMap
    # In how many parts a warpgroup's share goes through shared memory that is its own; 0: all at once,
    # over the loaded tiles, which nobody needs any more.
    parts: int = 0
    tile: str = ""  # the name of that memory
    bounds: tuple[Bound, ...] = ()  # taken of rounded pairs

    @property
    def columns(self) -> int:
        """Sums along the instruction's columns in one part."""
        return self.plan.n // max(self.parts, 1)

    @property
    def own_bytes(self) -> int:
        """Shared memory of all warpgroups' parts."""
        if not self.parts:
            return 0
        groups = self.plan.groups_m * self.plan.groups_n
        tile = 64 * self.plan.tiles_m * self.columns
        return groups * tile * self.copy.dst.buffer.dtype.bytes

    @property
    def part(self) -> tuple[int, int]:
        """Rows and columns of a warpgroup's part."""
        return part_of(self.plan)

    def first(self, ctx: Context) -> tuple[Expr, Expr]:
        """Where that part starts."""
        row, column = (group_part(ctx, self.plan, side) for side in ("m", "n"))
        return (column, row) if self.plan.swapped else (row, column)


def part_of(plan: WarpgroupPlan) -> tuple[int, int]:
    """Rows and columns of the tile that a warpgroup has; of a transposed product they change places."""
    rows, columns = 64 * plan.tiles_m, plan.n
    return (columns, rows) if plan.swapped else (rows, columns)


def passage_of(ctx: Context, copy: Copy, roles: Roles, ring_bytes: int) -> Passage | None:
    """How the copy goes through shared memory, in the place of the loaded tiles; None if it cannot."""
    plan = _plan_of(ctx, copy.src.buffer, roles) if _is_behind(ctx, copy) else None
    kind, tensor = copy.dst.buffer.dtype, copy.dst.buffer
    if plan is None or tensor.scope != "global" or kind.name not in _TYPES or plan.n % 16:
        return None
    if not _whole(copy.src) or not _alone(ctx, copy):
        return None
    rows, columns = copy.src.buffer.shape
    part_rows, part_columns = part_of(plan)
    slabs = slabs_for(part_columns, kind.bytes, rows)
    size = (b.known(rows) or 0) * (b.known(columns) or 0) * kind.bytes
    if slabs is None or size > ring_bytes or part_rows % 8 or part_rows > 256:
        return None
    count = (b.known(columns) or 0) // slabs.width
    slabs = Slabs(rows=rows, width=slabs.width, count=count, row_bytes=slabs.row_bytes)
    kept = dict(ctx.aligned_tensors), dict(ctx.aligned_pitches), ctx.wants_variant
    try:
        copied = any(b.known(stride) is not None for stride in ctx.aligned_pitches)
        described = box_of(ctx, copy.dst, slabs, part_rows, may_copy=copied)
    except Unfit:
        ctx.aligned_tensors, ctx.aligned_pitches, ctx.wants_variant = kept
        return None
    name = ctx.namer.ours(f"{tensor.name}_map", f"{tensor.name}_out_map")
    return Passage(copy=copy, plan=plan, slabs=slabs, map_name=name, map=described)


_PARTS = (1, 2, 3, 4, 6, 8)


def in_own_memory(ctx: Context, passages: Sequence[Passage], room: int) -> list[Passage] | None:
    """The passages through shared memory of their own, in as few parts as fit; None if none do."""
    for parts in _PARTS:
        found = [_in_parts(passage, parts) for passage in passages]
        whole = [passage for passage in found if passage is not None]
        if len(whole) == len(passages) and sum(x.own_bytes for x in whole) <= room:
            return [replace(x, tile=tile_name(ctx, x.copy)) for x in whole]
    return None


def _in_parts(passage: Passage, parts: int) -> Passage | None:
    """The passage with its box and slabs cut to a part; None where that is no whole slab."""
    plan, kind = passage.plan, passage.copy.dst.buffer.dtype
    if plan.n % (16 * parts):
        return None
    rows, columns = part_of(replace(plan, n=plan.n // parts))
    slabs = slabs_for(columns, kind.bytes, const(rows))
    if slabs is None or rows > 256:
        return None
    box = list(passage.map.box)
    box[0], box[_row_place(passage)] = slabs.width, rows
    described = replace(passage.map, box=tuple(box), swizzle=swizzle_of(slabs))
    return replace(passage, parts=parts, slabs=slabs, map=described)


def _row_place(passage: Passage) -> int:
    """Which of the map's dimensions, innermost first, counts the tile's rows."""
    ranges = passage.copy.dst.ranges
    moving = next(k for k, part in enumerate(ranges) if b.known(part.extent) != 1)
    return len(ranges) - 1 - moving


def _is_behind(ctx: Context, copy: Copy) -> bool:
    """Whether the copy stands behind the loop: only then is the place of the loaded tiles free."""
    for stmt in ctx.launch.body:
        if stmt is copy:
            return False
        if isinstance(stmt, Pipelined) and gemms(stmt.body):
            return True
    return False


def _alone(ctx: Context, copy: Copy) -> bool:
    """Whether nothing else of the launch reads or writes the tensor.

    TMA stores on its own time: a barrier of the threads orders other accesses to the tensor with the
    start of a store, not with its end.
    """
    others = [stmt for stmt in statements(ctx.launch.body) if stmt is not copy]
    return all(copy.dst.buffer.name not in touches(stmt) for stmt in others)


def _plan_of(ctx: Context, sums: Buffer, roles: Roles) -> WarpgroupPlan | None:
    """The product whose sums these are, or lie as these do: what is made of them, element by element."""
    if sums.dtype.name != "float32":
        return None
    own = next((roles.products[key] for key, name in _sums(roles) if name == sums.name), None)
    layout = ctx.layouts.get(sums.name)
    plans = (plan for plan in roles.products.values() if accumulator_layout(ctx, plan) == layout)
    return own or next(plans, None)


def _sums(roles: Roles) -> list[tuple[int, str]]:
    from tile2c.transpile.ir.forms import Gemm

    return [(id(x), x.c.buffer.name) for x in roles.loop.body if isinstance(x, Gemm)]


def _whole(region: Region) -> bool:
    return all(
        b.literal(part.start, 0) and b.known(part.extent) == b.known(extent)
        for part, extent in zip(region.ranges, region.buffer.shape, strict=True)
    )


def store_through_shared(ctx: Context, passage: Passage, ring: tuple[str, ...]) -> Step:
    """Each warpgroup writes its rows over the used-up tiles and sends them off; waits until read."""
    copy = passage.copy
    tile = passage.tile or tile_name(ctx, copy)
    swizzle = ctx.namer.ours(f"{copy.dst.buffer.name}_col", f"{copy.dst.buffer.name}_tile_col")
    divide, modulus = passage.slabs.exchange
    ctx.need(
        "swizzle", name=swizzle, tile=tile, chunk=8, divide=divide, modulus=modulus, partial=False
    )
    for helper in ("publish_to_async", "warpgroup_sync"):
        ctx.need(helper)
    if passage.parts:
        return _through_own(ctx, passage, tile, swizzle)
    body: list[CStmt] = [
        *_place(ctx, passage, tile, ring),
        _write(ctx, passage, tile, swizzle, const(0)),
        do("publish_to_async", remark="TMA will see what this thread wrote"),
        Do(
            call=call("warpgroup_sync", b.local("warpgroup")),
            remark="the warpgroup's part is complete",
        ),
        _send(ctx, passage, tile, const(0)),
    ]
    section = Section(comments=(*copy.comments, copy.quote), body=tuple(body), span=copy.span)
    accesses = tuple(Access(buffer=name, write=True) for name in ring)
    return Step(body=(section,), accesses=accesses, quote=copy.quote)


def tile_name(ctx: Context, copy: Copy) -> str:
    """What the staged tile is called."""
    tensor = copy.dst.buffer.name
    return ctx.namer.ours(f"{tensor}_tile", f"{tensor}_staged")


def _through_own(ctx: Context, passage: Passage, tile: str, swizzle: str) -> Step:
    """As above, through memory that no load touches: TMA goes on reading it under what follows."""
    copy = passage.copy
    part = ctx.namer.ours("part", "part_of_tile")
    ctx.namer.release(part)
    several = passage.parts > 1
    number: Expr = b.local(part) if several else const(0)
    group = b.local("warpgroup")
    free = do(
        "tma_store_wait_read",
        template=(const(0),),
        remark="TMA has read the last part",
    )
    body: tuple[CStmt, ...] = (
        free,
        Do(call=call("warpgroup_sync", group), remark="its place may be overwritten"),
        _write(ctx, passage, tile, swizzle, number),
        do("publish_to_async", remark="TMA will see what this thread wrote"),
        Do(call=call("warpgroup_sync", group), remark="the warpgroup's part is complete"),
        _send(ctx, passage, tile, number),
    )
    if several:
        loop = Loop(
            var=part, start=const(0), stop=const(passage.parts), step=const(1), body=body,
            unroll=True, dtype=INT32,
        )  # fmt: skip
        body = (loop,)
    section = Section(comments=(*copy.comments, copy.quote), body=body, span=copy.span)
    return Step(body=(section,), quote=copy.quote)


def all_sent() -> Do:
    """At a block's end: nobody else may have the shared memory while TMA reads it."""
    return do(
        "tma_store_wait_read",
        template=(const(0),),
        remark="the shared memory outlives its readers",
    )


def _leads(ctx: Context) -> Expr:
    """One thread a warpgroup starts its stores, and waits for them."""
    return b.compare("==", b.mod(ctx.thread(), const(THREADS)), const(0))


def _place(ctx: Context, passage: Passage, tile: str, ring: tuple[str, ...]) -> list[CStmt]:
    """The staged tile lies over the loaded ones, which nobody needs any more."""
    from tile2c.transpile.render.expressions import CPrinter

    kind = passage.copy.dst.buffer.dtype
    printer = CPrinter(ctx.target.dialect)
    dims = "".join(f"[{printer(dim)}]" for dim in passage.slabs.dims)
    spelled = f"*reinterpret_cast<{printer.type_name(kind)}(*){dims}>(shared_bytes)"
    fits = " + ".join(f"sizeof({name})" for name in ring)
    return [
        Local(
            dtype=kind,
            ctype="auto&",
            const=False,
            names=(Declarator(name=tile, value=b.local(spelled)),),
            remark="in the place of the loaded tiles",
        ),
        Do(call=b.local(f"static_assert(sizeof({tile}) <= {fits})")),
    ]


def _element(passage: Passage, tile: str, slab: Expr, row: Expr, column: Expr) -> Element:
    place = (row, column) if passage.slabs.count == 1 else (slab, row, column)
    if passage.parts:
        place = (b.local("warpgroup"), *place)
    return Element(dtype=passage.copy.dst.buffer.dtype, array=tile, subscripts=place)


def _write(ctx: Context, passage: Passage, tile: str, swizzle: str, part: Expr) -> CStmt:
    """Sixteen columns at a time: four 8 x 8 matrices a warp. `part`: which of the share's parts."""
    plan, kind = passage.plan, passage.copy.dst.buffer.dtype
    names = [ctx.namer.ours(x, f"{x}_of_{tile}") for x in ("m", "n", "row", "col")]
    m, n, row, col = (b.local(name) for name in names)
    for name in names:
        ctx.namer.release(name)
    block: Expr = b.mul(m, const(64)) if plan.tiles_m > 1 else const(0)
    lane = ctx.lane()
    first_row, first_column = passage.first(ctx) if not passage.parts else (const(0), const(0))
    warp = ctx.thread_digit(32, 4, 16)
    halves = b.mul(b.div(lane, const(16)), const(8))
    if plan.swapped:  # lanes 8 to 15 have the warp's other eight columns
        rows = b.add(first_row, b.mul(n, const(8)), halves, b.mod(lane, const(8)))
        across = b.mul(b.mod(b.div(lane, const(8)), const(2)), const(8))
        columns = b.add(first_column, block, warp, across)
    else:
        rows = b.add(first_row, block, warp, b.mod(lane, const(16)))
        columns = b.add(first_column, b.mul(n, const(8)), halves)
    width = const(passage.slabs.width)
    inside: Expr = col if passage.slabs.count == 1 else b.mod(col, width)
    moved = CCall(dtype=INT32, function=swizzle, args=(row, inside))
    target = _element(passage, tile, b.div(col, width), row, moved)
    held = b.add(b.mul(part, const(passage.columns // 8)), n)
    pairs = [_pair(ctx, passage, m, held, right, half) for right in (0, 1) for half in (0, 1)]
    type_name = ctx.target.dialect.types[kind.name]
    function = "store_matrices_transposed" if plan.swapped else "store_matrices"
    ctx.need("store_matrices", type=type_name, name=function, transposed=plan.swapped)
    ctx.need("shared_addr")
    store = Do(call=call(function, Address(dtype=kind, element=target), *pairs))
    place = Local(
        dtype=INT32,
        names=(Declarator(name=names[2], value=rows), Declarator(name=names[3], value=columns)),
    )
    loop: CStmt = Loop(
        var=names[1],
        start=const(0),
        stop=const(passage.columns // 8),
        step=const(2),
        body=(place, store),
        unroll=True,
        dtype=INT32,
        comments=_bounds_in_words(passage) if plan.tiles_m == 1 else (),
    )
    if plan.tiles_m == 1:
        return loop
    return Loop(
        var=names[0],
        start=const(0),
        stop=const(plan.tiles_m),
        step=const(1),
        body=(loop,),
        unroll=True,
        dtype=INT32,
        comments=_bounds_in_words(passage),
    )


def _bounds_in_words(passage: Passage) -> tuple[str, ...]:
    """Where a maximum or minimum of the author's has gone."""
    if not passage.bounds:
        return ()
    words = {"max": "maximum", "min": "minimum"}
    taken = listed([words[bound.op] for bound in passage.bounds])
    return (f"the {taken} of rounded pairs: that of the sums, rounded, is the same",)


def _pair(ctx: Context, passage: Passage, m: Expr, n: Expr, right: int, half: int) -> Expr:
    """Two neighbouring sums, converted and packed: registers of one 8 x 8 matrix."""
    sums, kind = passage.copy.src.buffer, passage.copy.dst.buffer.dtype
    packed = ctx.helper_name("packed_pair", kind.name, kind.name)
    ctx.need("packed_pair", type=kind.name, name=packed)
    block = m if passage.plan.tiles_m > 1 else const(0)
    values = [
        Element(
            dtype=sums.dtype,
            array=sums.name,
            subscripts=(block, b.add(n, const(right)), const(2 * half + v)),
        )
        for v in (0, 1)
    ]
    pair = CCall(dtype=DTYPES["uint32"], function=packed, args=tuple(values))
    for bound in passage.bounds:
        base = "at_least" if bound.op == "max" else "at_most"
        name = ctx.helper_name(base, kind.name, kind.name)
        ctx.need("pair_bound", type=kind.name, op=bound.op, name=name)
        pair = CCall(dtype=DTYPES["uint32"], function=name, args=(pair, bound.value))
    return pair


def _send(ctx: Context, passage: Passage, tile: str, part: Expr) -> CStmt:
    """One thread a warpgroup starts its boxes; TMA leaves out what lies past the edge."""
    slabs = passage.slabs
    rank = len(passage.map.dims)
    declared, given = coordinates(rank)
    ctx.need("tma_store", rank=rank, coordinates=declared, operands=given, slots=slots(2, rank))
    for helper in ("tma_store_commit", "tma_store_wait_read"):
        ctx.need(helper)
    starts = box_start(ctx, passage.copy.dst.starts)
    first_row, first_column = passage.first(ctx)
    own = passage.parts > 0
    across = slabs.count if own else passage.part[1] // slabs.width
    several = slabs.count > across  # other warpgroups have the other slabs
    slab = ctx.namer.ours("slab", "slab_of_tile")
    ctx.namer.release(slab)
    step = b.local(slab) if across > 1 else const(0)
    moved = b.mul(part, const(passage.columns))
    if passage.plan.swapped:
        first_row = b.add(first_row, moved)
    else:
        first_column = b.add(first_column, moved)
    column = b.add(first_column, b.mul(step, const(slabs.width)))
    number = b.add(b.div(first_column, const(slabs.width)) if several else const(0), step)
    row_at = _row_place(passage)
    at = tuple(
        b.add(start, column) if k == 0 else b.add(start, first_row) if k == row_at else start
        for k, start in enumerate(starts)
    )
    source = Address(
        dtype=passage.copy.dst.buffer.dtype,
        element=_element(
            passage, tile, step if own else number, const(0) if own else first_row, const(0)
        ),
    )
    one: CStmt = Do(call=call("tma_store", b.local(passage.map_name), source, *at))
    if across > 1:
        one = Loop(
            var=slab, start=const(0), stop=const(across), step=const(1), body=(one,), dtype=INT32
        )
    wait = () if own else (all_sent(),)
    return Branch(condition=_leads(ctx), then=(one, do("tma_store_commit"), *wait))
