"""T.tma_copy: boxes between tensors and shared tiles, started by one thread of those that get there."""

from __future__ import annotations

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Expr, const
from tile2c.transpile.ir.forms import BulkCopy, Region
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import Address, CStmt, Do, Element, Loop, Section, TensorMap
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper.by_hand.tiles import Tile
from tile2c.transpile.lower.simt.hopper.calls import call, coordinates, slots
from tile2c.transpile.lower.simt.hopper.producer import box_start
from tile2c.transpile.lower.simt.hopper.slabs import Slabs, align, box_of
from tile2c.transpile.lower.simt.hopper.unfit import Unfit
from tile2c.transpile.lower.simt.values import Place, convert
from tile2c.transpile.record import record

_MOST = 256  # elements of a box along each dimension


@record(kw_only=True)
class Boxes:
    """The boxes that move one tile or part of it: `count` across, each `width` columns wide."""

    copy: BulkCopy
    tile: Tile
    map_name: str
    map: TensorMap
    count: int
    width: int

    @property
    def on_chip(self) -> Region:
        return self.copy.dst if self.copy.dst.buffer.scope == "shared" else self.copy.src

    @property
    def tensor(self) -> Region:
        return self.copy.src if self.copy.dst.buffer.scope == "shared" else self.copy.dst


def boxes_of(
    ctx: Context, copy: BulkCopy, tiles: dict[str, Tile], names: dict[TensorMap, str]
) -> Boxes:
    """How the copy is cut into boxes; equal maps have one name. Raises InputError where none fits."""
    loads = copy.dst.buffer.scope == "shared"
    chip, tensor = (copy.dst, copy.src) if loads else (copy.src, copy.dst)
    tile = tiles[chip.buffer.name]
    try:
        if tile.slabs is None:
            described, count, width = _packed(ctx, chip, tensor)
        else:
            slabs = _box(ctx, tile, chip)
            described = box_of(ctx, tensor, slabs, b.known(slabs.rows) or 0)
            count, width = slabs.count, slabs.width
    except Unfit as reason:
        raise failure(
            "T2C592",
            f"TMA cannot do this copy: {reason}",
            copy.span,
            help="T.copy moves any tile, and T.Pipelined lets it run ahead",
        ) from reason
    if described not in names:
        names[described] = ctx.namer.ours(
            f"{tensor.buffer.name}_map", f"{chip.buffer.name}_map", f"{tensor.buffer.name}_box_map"
        )
    return Boxes(
        copy=copy, tile=tile, map_name=names[described], map=described, count=count, width=width
    )


def _packed(ctx: Context, chip: Region, tensor: Region) -> tuple[TensorMap, int, int]:
    """The map of a part that lies without gaps in shared memory, how many boxes it is, and how wide one
    is; raises Unfit."""
    name, kind = chip.buffer.name, tensor.buffer.dtype
    extents = [b.known(part.extent) or 1 for part in chip.ranges]
    whole = [b.known(extent) or 1 for extent in chip.buffer.shape]
    first = next((k for k, extent in enumerate(extents) if extent != 1), len(extents) - 1)
    if extents[first + 1 :] != whole[first + 1 :]:
        raise Unfit(f"the part of {name} does not lie together")
    moving = [k for k, part in enumerate(tensor.ranges) if b.known(part.extent) != 1]
    last = len(tensor.ranges) - 1
    if not moving or moving[-1] != last:
        raise Unfit(f"the copied part of {tensor.buffer.name} is not made of contiguous rows")
    if last > 4:
        raise Unfit(f"{tensor.buffer.name} has {last + 1} dimensions, and a tensor map at most 5")
    box = [b.known(part.extent) or 1 for part in tensor.ranges]
    count, width = 1, box[last]
    if len(moving) == 1 and width > _MOST:  # one row: as many boxes as it takes
        width = next((w for w in range(_MOST, 0, -1) if box[last] % w == 0), 1)
        count, box[last] = box[last] // width, width
    if width * kind.bytes % 16:
        raise Unfit(f"rows of {width * kind.bytes} bytes of {name} are no multiple of 16")
    if max(box) > _MOST:
        raise Unfit(f"{name} has {max(box)} elements along a dimension, and a box at most {_MOST}")
    strides = ctx.pitch(tensor.buffer)
    if not b.literal(strides[-1], 1):
        raise Unfit(f"neighbours in a row of {tensor.buffer.name} are not contiguous in memory")
    align(ctx, tensor.buffer, strides[:-1])
    steps = tuple(b.mul(stride, const(kind.bytes)) for stride in reversed(strides[:-1]))
    described = TensorMap(
        tensor=tensor.buffer.name, dtype=kind, dims=tuple(reversed(tensor.buffer.shape)),
        strides=steps, box=tuple(reversed(box)), swizzle="none",
    )  # fmt: skip
    return described, count, width


def _box(ctx: Context, tile: Tile, chip: Region) -> Slabs:
    """The part of the tile that is copied, as slabs of whole boxes; raises Unfit."""
    name, whole = tile.buffer.name, tile.slabs
    extents = [b.known(part.extent) or 1 for part in chip.ranges]
    assert whole is not None
    if any(extent != 1 for extent in extents[:-2]):
        raise Unfit(f"the part of {name} has more than two dimensions")
    rows, columns = extents[-2:]
    row, column = chip.ranges[-2].start, chip.ranges[-1].start
    if rows > _MOST:
        raise Unfit(f"{name} has {rows} rows here, and a box at most {_MOST}")
    if not ctx.facts.divisible(row, 8):
        raise Unfit(f"the part of {name} starts at a row that is no multiple of 8")
    if columns % whole.width == 0 and ctx.facts.divisible(column, whole.width):
        count, width = columns // whole.width, whole.width
    elif columns < whole.width and columns * tile.buffer.dtype.bytes % 16 == 0:
        if not b.literal(column, 0):
            raise Unfit(f"the part of {name} starts inside a swizzled row")
        count, width = 1, columns
    else:
        raise Unfit(f"{columns} columns of {name} are not made of slabs of {whole.width}")
    return Slabs(rows=const(rows), width=width, count=count, row_bytes=whole.row_bytes)


def load(ctx: Context, boxes: Boxes, barrier: Expr) -> Section:
    """The barrier learns of the bytes, then the boxes are started."""
    ctx.need("barrier_bytes")
    rank = len(boxes.map.dims)
    declared, given = coordinates(rank)
    ctx.need("tma_load", rank=rank, coordinates=declared, operands=given, slots=slots(3, rank))
    announced = Do(call=call("barrier_bytes", barrier, _bytes(boxes)))
    source = b.local(boxes.map_name)

    def start(address: Expr, at: tuple[Expr, ...]) -> CStmt:
        return Do(call=call("tma_load", address, source, barrier, *at))

    return _section(boxes, (announced, _each(ctx, boxes, start)))


def store(ctx: Context, boxes: Boxes) -> Section:
    """The boxes are started; a commit closes their group."""
    rank = len(boxes.map.dims)
    declared, given = coordinates(rank)
    ctx.need("tma_store", rank=rank, coordinates=declared, operands=given, slots=slots(2, rank))

    def start(address: Expr, at: tuple[Expr, ...]) -> CStmt:
        return Do(call=call("tma_store", b.local(boxes.map_name), address, *at))

    return _section(boxes, (_each(ctx, boxes, start),))


def _section(boxes: Boxes, body: tuple[CStmt, ...]) -> Section:
    copy = boxes.copy
    return Section(comments=(*copy.comments, copy.quote), body=body, span=copy.span, blank=False)


def _bytes(boxes: Boxes) -> Expr:
    """`sizeof(A_shared)` where the whole tile arrives; boxes arrive whole, also past a tensor's edge."""
    buffer, region = boxes.tile.buffer, boxes.on_chip
    moved = [b.known(part.extent) or 1 for part in region.ranges]
    extents = [b.known(extent) or 1 for extent in buffer.shape]
    if moved == extents:
        return call("sizeof", b.local(buffer.name))
    if len(moved) > 2 and moved[-2:] == extents[-2:]:
        first = tuple(const(0) for _ in buffer.shape[:-2])
        return call("sizeof", Element(dtype=INT32, array=buffer.name, subscripts=first))
    total = buffer.dtype.bytes
    for extent in moved:
        total *= extent
    return const(total)


def _each(ctx: Context, boxes: Boxes, start: object) -> CStmt:
    """One box, or a loop over those side by side."""
    assert callable(start)
    slabs, tile = boxes.tile.slabs, boxes.tile.buffer
    at = box_start(ctx, boxes.tensor.starts)
    first: Expr = const(0)
    if slabs is not None:
        before, row, column = boxes.tile.starts(ctx, boxes.on_chip)
        first = const(0) if b.literal(column, 0) else b.div(column, const(slabs.width))
    else:
        place = [convert(ctx, start, Place(values={})) for start in boxes.on_chip.starts]

    def one(slab: Expr, moved: tuple[Expr, ...]) -> CStmt:
        if slabs is not None:
            element = slabs.start(tile, before, slab, row)
        else:
            step = b.mul(slab, const(boxes.width)) if boxes.count > 1 else const(0)
            subscripts = (*place[:-1], b.add(place[-1], step))
            element = Element(dtype=tile.dtype, array=tile.name, subscripts=subscripts)
        found = start(Address(dtype=tile.dtype, element=element), moved)
        assert isinstance(found, CStmt)
        return found

    if boxes.count == 1:
        return one(first, at)
    name = ctx.namer.ours("slab", "slab_of_tile")
    ctx.namer.release(name)
    moved = (b.add(at[0], b.mul(b.local(name), const(boxes.width))), *at[1:])
    return Loop(
        var=name,
        start=const(0),
        stop=const(boxes.count),
        step=const(1),
        body=(one(b.add(first, b.local(name)), moved),),
        dtype=INT32,
    )
