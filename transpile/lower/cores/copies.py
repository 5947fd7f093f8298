"""T.copy and T.fill: between global and local memory in whole rows, inside local memory by V.

reads   `forms.Copy`, `forms.Fill`        writes  `CopyIn`, `CopyOut`, vector calls
"""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.diagnostics import InputError
from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir import forms
from tile2c.transpile.ir.dtypes import BOOL, DTYPES, INT32, INT64
from tile2c.transpile.ir.expr import Binary, Compare, Const, Expr, Logical, Unary, Var, const
from tile2c.transpile.ir.forms import Region
from tile2c.transpile.lower.cores import squares
from tile2c.transpile.lower.cores.calls import moved
from tile2c.transpile.lower.cores.columns import copy_column
from tile2c.transpile.lower.cores.context import Context, size_of, width_of
from tile2c.transpile.lower.cores.exchange import Exchange
from tile2c.transpile.lower.cores.extents import Clip, clip_of, is_min, long_dims, positive
from tile2c.transpile.lower.cores.layouts import Layout, long_offset, plus, times
from tile2c.transpile.lower.cores.local_copies import copy_inside, whole_shape
from tile2c.transpile.lower.cores.packed import Interleave
from tile2c.transpile.lower.cores.plan import (
    Branch,
    CopyIn,
    CopyOut,
    Local,
    Loop,
    Step,
    TileRef,
    VectorCall,
)
from tile2c.transpile.lower.cores.scalars import outside_guard
from tile2c.transpile.lower.cores.units import calls_of, zeros
from tile2c.transpile.lower.plan import Wide


def lower_copy(stmt: forms.Copy | forms.AtomicTile, context: Context) -> None:
    """One T.copy, or one addition of a tile to a tensor; staging has made sure that only one side is
    global and no type changes there."""
    if stmt.src.buffer.scope == "global":
        _between(stmt, stmt.dst, stmt.src, True, context)
    elif stmt.dst.buffer.scope == "global":
        _between(stmt, stmt.src, stmt.dst, False, context)
    else:
        assert isinstance(stmt, forms.Copy)
        copy_inside(stmt, context)


def lower_fill(stmt: forms.Fill, context: Context) -> None:
    """Duplicate over the region, gaps included where it is the whole tile."""
    layout = context.layouts[stmt.dst.buffer.name]
    value = context.scalars.lower(stmt.value, context.facts, context.emit)
    shape, dst = whole_shape(stmt.dst, layout, context)
    if not context.target.can("Duplicate", dst.dtype.name):
        raise failure("T2C541", f"the vector unit cannot fill {dst.dtype} tiles", stmt.span)
    calls_of(context.tiles, shape, context.emit).fill(dst, value)


def lower_interleave(stmt: Interleave, context: Context) -> None:
    """Planes as the rows of a matrix, which a transpose makes its columns."""
    planes, tile = context.layouts[stmt.src.buffer.name], context.layouts[stmt.dst.buffer.name]
    dtype = tile.buffer.dtype
    if context.target.vectors == "repeats":
        row = Var(dtype=INT32, name=context.names.unused("part", "plane"), kind="loop")
        squares.interleave(context.tiles, context.emit, planes, tile, stmt.parts, row)
        return
    view = DTYPES["int16"] if dtype.name == "bfloat16" else None
    call = VectorCall(
        function="Transpose",
        dst=TileRef(tile=tile.buffer.name, view=view),
        arguments=(
            TileRef(tile=planes.buffer.name, view=view),
            const(stmt.parts),
            const(planes.size // stmt.parts),
        ),
        covers=True,
        remark="element by element",
    )
    context.emit(call)


# ---- global and local memory


def _between(
    stmt: forms.Copy | forms.AtomicTile,
    tile: Region,
    tensor: Region,
    arrives: bool,
    context: Context,
) -> None:
    layout = context.layouts[tile.buffer.name]
    inner, outer = long_dims(tile), long_dims(tensor)
    if outer and outer[-1] != len(tensor.buffer.shape) - 1 and tensor.buffer.strides is None:
        if not _unit_tail(tensor, outer[-1]):
            if len(outer) == 1 and isinstance(stmt, forms.Copy):
                check_starts(tensor, context)
                if copy_column(tile, tensor, layout, arrives, context):
                    return
            raise failure(
                "T2C545",
                f"the elements of this tile lie apart in {tensor.buffer.name}: "
                "rows are copied along its last dimension",
                tensor.span or stmt.span,
                help="let the last dimension of the region be the long one",
            )
    if tensor.buffer.strides is not None and not _unit(tensor.buffer.strides[-1]):
        raise failure(
            "T2C546",
            f"{tensor.buffer.name} has a last stride that is not known to be 1",
            tensor.span or stmt.span,
            help="use a contiguous T.Tensor",
        )
    guards = point_guards(tensor, outer, context)
    index: list[Expr] = [part.start for part in tensor.ranges]
    at: list[Expr] = [part.start for part in tile.ranges]
    loops: list[Var] = []
    for mine, other in list(zip(inner, outer, strict=True))[:-2]:
        name = context.names.fresh("plane", f"{tile.buffer.name}_plane")
        var = Var(dtype=INT32, name=name, kind="loop")
        loops.append(var)
        index[other], at[mine] = plus(index[other], var), plus(at[mine], var)
        if clip_of(*_dim(tensor, other), context.facts) is not None:
            condition = Compare(dtype=BOOL, op="<", a=index[other], b=tensor.buffer.shape[other])
            guards.append(condition)
        if not context.facts.non_negative(tensor.ranges[other].start):
            guards.append(Compare(dtype=BOOL, op=">=", a=index[other], b=const(0)))
    _copy_rows(stmt, tile, tensor, layout, index, at, loops, guards, arrives, context)


def _copy_rows(
    stmt: forms.Copy | forms.AtomicTile,
    tile: Region,
    tensor: Region,
    layout: Layout,
    index: list[Expr],
    at: list[Expr],
    loops: list[Var],
    guards: list[Expr],
    arrives: bool,
    context: Context,
) -> None:
    """One strided copy, in loops over what goes beyond two dimensions, under its guards."""
    inner, outer = long_dims(tile), long_dims(tensor)
    pairs = list(zip(inner, outer, strict=True))[-2:]
    counts, cut = [], []
    guard = points = joined(guards, context)  # what does not hold where no element is inside
    for mine, other in pairs:
        start, extent, bound = _dim(tensor, other)
        clip = clip_of(start, extent, bound, context.facts)
        key = ("tile", tile.buffer.name, mine)
        inside = positive(extent, context.facts)
        if is_min(extent):  # cut by a condition of the author's
            assert isinstance(extent, Binary)
            cut_here = Clip(const(0), extent.a, extent.b)
            extent = context.edge(cut_here, *context.edge_names(key))
        in_front = not context.facts.non_negative(start)
        if in_front:
            _check_start(mine, layout, tensor, other, context)
        if clip is None and not in_front:
            counts.append(context.scalars.lower(extent, context.facts, context.emit))
            if is_min(tensor.ranges[other].extent):
                cut.append((counts[-1], tile.buffer.shape[mine], False))
        else:
            part = context.inside(Clip(start, extent, bound), *context.edge_names(key))
            counts.append(part.count)
            loose = context.edges.root(key) in context.edges.loose
            cut.append((part.count, tile.buffer.shape[mine], loose))
            inside = inside and not in_front and context.facts.less(start, bound)
            if in_front:
                index[other], at[mine] = part.first, plus(at[mine], part.before)
        if not inside:
            some = Compare(dtype=BOOL, op=">", a=counts[-1], b=const(0))
            guard = some if guard is None else Logical(dtype=BOOL, op="and", a=guard, b=some)
    columns = counts[-1] if counts else const(1)
    rows = counts[-2] if len(counts) == 2 else const(1)
    lowered = tuple(context.scalars.lower(part, context.facts, context.emit) for part in index)
    offset = context.scalars.global_offset(tensor.buffer.shape, tensor.buffer.strides, lowered)
    spot = TileRef(
        tile=tile.buffer.name,
        offset=layout.offset(
            tuple(context.scalars.lower(part, context.facts, context.emit) for part in at)
        ),
    )
    _check_rows(stmt, pairs, tile, spot, layout, context)
    pitch = row_pitch(tensor, pairs[0][1], context) if len(pairs) == 2 else columns
    tile_pitch: Expr = const(layout.weight(pairs[0][0]) if len(pairs) == 2 else layout.pitch)
    if len(layout.kept) == 2:
        tile_pitch = width_of(layout)
    if not loops and long_offset(offset):  # too long to stand in a call
        name = context.names.local(f"{tile.buffer.name}_at")
        context.emit(Local(name=name, dtype=INT64, value=offset))
        offset = Var(dtype=INT64, name=name, kind="temporary")
    row = len(pairs) < 2
    if context.target.vectors == "counts" and pitch == tile_pitch == columns and not loops:
        row, columns = True, times(rows, columns)  # rows without gaps on either side
    common = {
        "tensor": context.scalars.handles[tensor.buffer.name],
        "offset": offset,
        "rows": rows,
        "columns": columns,
        "pitch": pitch,
        "tile_pitch": tile_pitch,
        "row": row,
    }
    if arrives:
        short: list[Expr] = [
            Compare(dtype=BOOL, op="<", a=count, b=extent)
            for count, extent, live in cut
            if not live
        ]
        if points is not None and not loops:
            short.append(Unary(dtype=BOOL, op="not", a=points))
        _prefill(layout, short, bool(loops and guard is not None), context)
    exchanged = isinstance(tensor.buffer, Exchange)
    copy: Step = CopyIn(dst=spot, **common)  # type: ignore[arg-type]
    if not arrives:
        copy = CopyOut(src=spot, exchanged=exchanged, **common)  # type: ignore[arg-type]
    if isinstance(stmt, forms.AtomicTile):
        assert isinstance(copy, CopyOut)
        copy = _added(copy, context)
    if guard is not None:
        copy = Branch(condition=guard, then=(copy,))
    for var in reversed(loops):
        place = loops.index(var)
        stop = tensor.ranges[outer[place]].extent
        copy = Loop(
            var=var, start=const(0), stop=stop, step=const(1), body=(copy,), independent=True
        )
    context.emit(copy)


def _added(copy: CopyOut, context: Context) -> Step:
    """The same as an addition, which takes one row at a time."""
    copy = replace(copy, adds=True)
    if copy.row:
        return copy
    row = Var(dtype=INT32, name=context.names.local("row"), kind="loop")
    there = plus(copy.offset, times(Wide(dtype=INT32, a=row), copy.pitch))
    here = moved(copy.src, times(row, copy.tile_pitch))
    one = replace(copy, src=here, offset=there, rows=const(1), row=True)
    return Loop(
        var=row, start=const(0), stop=copy.rows, step=const(1), body=(one,), independent=True
    )


def prefill(layout: Layout, context: Context) -> None:
    """Zeros all over a tile that copies fill in part."""
    _prefill(layout, [], True, context)


def _prefill(layout: Layout, conditions: list[Expr], always: bool, context: Context) -> None:
    """Zeros for what lies outside the tensor, where the tile's elements meet later."""
    gap = layout.pitch - layout.columns
    always = always or gap >= 2 * context.tiles.lanes(layout.buffer.dtype)  # past a copy's padding
    if not conditions and not always:
        return
    name = layout.buffer.name
    dtype, size = layout.buffer.dtype, size_of(layout)
    view = None
    fills = context.target.can("Duplicate", dtype.name) or context.target.vectors == "counts"
    if dtype.name in context.target.widen or not fills:
        view = DTYPES["int16"]
        size = size if dtype.bytes == view.bytes else const(layout.size * dtype.bytes // view.bytes)
    fill = replace(
        zeros(context.target, TileRef(tile=name, view=view), view or dtype, size),
        remark="what lies outside the tensor is 0",
        prefills=name if always else "",
    )
    if always:
        context.emit(fill)
        return
    whole = conditions[0]
    for part in conditions[1:]:
        whole = Logical(dtype=BOOL, op="or", a=whole, b=part)
    context.emit(Branch(condition=whole, then=(fill,), prefills=name))


def check_starts(tensor: Region, context: Context) -> None:
    """Raises InputError where a region may start in front of its tensor."""
    for part in tensor.ranges:
        if not context.facts.non_negative(part.start):
            raise may_start_before(tensor, part.start)


def may_start_before(tensor: Region, start: Expr) -> InputError:
    return failure(
        "T2C547",
        f"this part of {tensor.buffer.name} may start before the tensor",
        start.span or tensor.span,
        help="start at an index that is never negative; of a name in the kernel say so: "
        "T.assume(start >= 0)",
    )


def _check_start(
    mine: int,
    layout: Layout,
    tensor: Region,
    other: int,
    context: Context,
) -> None:
    """Raises InputError where what is left of a row would not start at a whole block of the tile."""
    columns = not layout.kept or mine == layout.kept[-1]
    if columns and context.tiles.lanes(layout.buffer.dtype) > 1:
        raise may_start_before(tensor, tensor.ranges[other].start)


def _check_rows(
    stmt: forms.Copy | forms.AtomicTile,
    pairs: list[tuple[int, int]],
    tile: Region,
    spot: TileRef,
    layout: Layout,
    context: Context,
) -> None:
    lanes = context.tiles.lanes(layout.buffer.dtype)
    offset = spot.offset or const(0)
    strides = [layout.weight(mine) for mine, _ in pairs[:-1]]
    if not context.facts.divisible(offset, lanes) or any(step % lanes for step in strides):
        raise failure(
            "T2C538",
            f"this part of {layout.buffer.name} does not start at a multiple of "
            f"{context.target.block_bytes} bytes, as copies need it to",
            tile.span or stmt.span,
            help="give it a tile of its own",
        )
    if pairs and layout.kept and pairs[-1][0] != layout.kept[-1]:
        raise failure(
            "T2C539",
            f"this copy does not run along the last dimension of {layout.buffer.name}",
            tile.span or stmt.span,
            help="let the last dimension of the region be the long one",
        )


def point_guards(tensor: Region, long: list[int], context: Context) -> list[Expr]:
    """Conditions under which the single indices of a region lie inside."""
    index, shape = [], []
    for dim, part in enumerate(tensor.ranges):
        if dim not in long:
            index.append(part.start)
            shape.append(tensor.buffer.shape[dim])
    found = outside_guard(tuple(index), tuple(shape), context.facts)
    return [] if found is None else [found]


def joined(guards: list[Expr], context: Context) -> Expr | None:
    if not guards:
        return None
    whole = guards[0]
    for guard in guards[1:]:
        whole = Logical(dtype=BOOL, op="and", a=whole, b=guard)
    return context.scalars.lower(whole, context.facts, context.emit)


def row_pitch(tensor: Region, dim: int, context: Context) -> Expr:
    """Elements between neighbours along a dimension of a tensor."""
    if tensor.buffer.strides is not None:
        return tensor.buffer.strides[dim]
    total: Expr = const(1)
    for extent in tensor.buffer.shape[dim + 1 :]:
        total = times(total, context.scalars.lower(extent, context.facts, context.emit))
    return total


def _dim(region: Region, dim: int) -> tuple[Expr, Expr, Expr]:
    part = region.ranges[dim]
    return part.start, part.extent, region.buffer.shape[dim]


def _unit_tail(region: Region, last: int) -> bool:
    """Whether the dimensions behind `last` have extent 1 in the whole tensor."""
    return all(_unit(extent) for extent in region.buffer.shape[last + 1 :])


def _unit(expr: Expr) -> bool:
    return isinstance(expr, Const) and expr.value == 1
