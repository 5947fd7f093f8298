"""Copies of a column of a tensor: elements that lie apart go through a tile with a block for each.

reads   `forms.Copy`        writes  `CopyIn` or `CopyOut`, and the call that spreads or gathers
"""

from __future__ import annotations

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Binary, Const, Expr, const
from tile2c.transpile.ir.forms import Region
from tile2c.transpile.lower.cores.context import Context
from tile2c.transpile.lower.cores.extents import clip_of, long_dims
from tile2c.transpile.lower.cores.layouts import Layout, times
from tile2c.transpile.lower.cores.plan import (
    Argument,
    CopyIn,
    CopyOut,
    Strides,
    TileRef,
    VectorCall,
)
from tile2c.transpile.lower.cores.scalars import outside_guard


def copy_column(
    tile: Region, tensor: Region, layout: Layout, arrives: bool, context: Context
) -> bool:
    """Lowers the copy and says so, or leaves it where the column has too many elements, an edge
    that needs zeros, or a type that V does not gather."""
    (dim,) = long_dims(tensor)
    part, bound = tensor.ranges[dim], tensor.buffer.shape[dim]
    dtype = layout.buffer.dtype
    whole = tile.ranges[long_dims(tile)[0]].extent
    if not isinstance(whole, Const) or int(whole.value) > context.target.max_repeats:
        return False
    points = [d for d in range(len(tensor.ranges)) if d != dim]
    index = tuple(tensor.ranges[d].start for d in points)
    shape = tuple(tensor.buffer.shape[d] for d in points)
    if outside_guard(index, shape, context.facts) is not None:
        return False
    clip = clip_of(part.start, part.extent, bound, context.facts)
    key = ("tile", tile.buffer.name, long_dims(tile)[0])
    count: Expr = context.scalars.lower(part.extent, context.facts, context.emit)
    if clip is not None:
        loose = context.edges.root(key) in context.edges.loose
        if not context.facts.less(clip.start, clip.bound) or (arrives and not loose):
            return False
        count = context.edge(clip, *context.edge_names(key))
    if len(layout.kept) != 1:
        return False
    if context.target.vectors == "counts":
        _emit_directly(tile, tensor, dim, layout, arrives, count, context)
        return True
    call = "ReduceSum" if arrives else "Brcb"
    if not context.target.can(call, dtype.name):
        return False
    _emit(tile, tensor, dim, layout, arrives, count, int(whole.value), context)
    return True


def _place(tensor: Region, dim: int, count: Expr, context: Context) -> dict[str, object]:
    """Where the elements lie in the tensor: rows of one element."""
    lower = context.scalars.lower
    starts = tuple(lower(p.start, context.facts, context.emit) for p in tensor.ranges)
    pitch: Expr = const(1)
    for extent in tensor.buffer.shape[dim + 1 :]:
        pitch = times(pitch, lower(extent, context.facts, context.emit))
    return {
        "tensor": context.scalars.handles[tensor.buffer.name],
        "offset": context.scalars.global_offset(tensor.buffer.shape, tensor.buffer.strides, starts),
        "rows": count,
        "columns": const(1),
        "pitch": pitch,
    }


def _spot(tile: Region, layout: Layout, context: Context) -> TileRef:
    lower = context.scalars.lower
    index = tuple(lower(p.start, context.facts, context.emit) for p in tile.ranges)
    return TileRef(tile=tile.buffer.name, offset=layout.offset(index))


def _emit_directly(
    tile: Region,
    tensor: Region,
    dim: int,
    layout: Layout,
    arrives: bool,
    count: Expr,
    context: Context,
) -> None:
    """Element by element, where copies take rows of any length."""
    place = {**_place(tensor, dim, count, context), "tile_pitch": const(1)}
    spot = _spot(tile, layout, context)
    copy = CopyIn(dst=spot, **place) if arrives else CopyOut(src=spot, **place)  # type: ignore[arg-type]
    context.emit(copy)


def _emit(
    tile: Region,
    tensor: Region,
    dim: int,
    layout: Layout,
    arrives: bool,
    count: Expr,
    most: int,
    context: Context,
) -> None:
    dtype = layout.buffer.dtype
    lanes = context.tiles.lanes(dtype)
    blocks = TileRef(tile=context.tiles.borrow("blocks", dtype, -(-most // 8) * 8 * lanes))
    place = {**_place(tensor, dim, count, context), "tile_pitch": const(lanes)}
    spot = _spot(tile, layout, context)
    if arrives:
        context.emit(CopyIn(dst=blocks, **place))  # type: ignore[arg-type]
        gather: tuple[Argument, ...] = (blocks, const(1), count, const(1), const(1), const(1))
        context.emit(
            VectorCall(
                function="WholeReduceSum",
                dst=spot,
                arguments=gather,
                covers=spot.offset is None,
                remark="the first element of each block",
            )
        )
    else:
        groups: Expr = const(-(-most // 8))
        if not isinstance(count, Const):
            up = Binary(dtype=INT32, op="+", a=count, b=const(7))
            groups = Binary(dtype=INT32, op="truncdiv", a=up, b=const(8))
        context.emit(
            VectorCall(
                function="Brcb",
                dst=blocks,
                arguments=(spot, groups, Strides(values=(1, 8))),
                remark="a block for each element",
            )
        )
        context.emit(CopyOut(src=blocks, **place))  # type: ignore[arg-type]
    context.tiles.give_back(blocks.tile)
