"""Copies between tiles in local memory: whole tiles and parts of them, as vector calls."""

from __future__ import annotations

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir import forms
from tile2c.transpile.ir.dtypes import DTYPES, INT32
from tile2c.transpile.ir.expr import Const, Expr, Var, const
from tile2c.transpile.ir.forms import Region
from tile2c.transpile.lower.cores.calls import Calls, Shape
from tile2c.transpile.lower.cores.context import Context, width_of
from tile2c.transpile.lower.cores.conversions import no_conversion
from tile2c.transpile.lower.cores.extents import long_dims
from tile2c.transpile.lower.cores.layouts import Layout, times
from tile2c.transpile.lower.cores.plan import (
    TileRef,
)
from tile2c.transpile.lower.cores.units import calls_of
from tile2c.transpile.lower.cores.values import Kind, Value


def whole_shape(region: Region, layout: Layout, context: Context) -> tuple[Shape, Value]:
    """The iterations over a region of a tile, and the region as a value."""
    long = long_dims(region)
    starts = tuple(
        context.scalars.lower(part.start, context.facts, context.emit) for part in region.ranges
    )
    ref = TileRef(tile=layout.buffer.name, offset=layout.offset(starts))
    dims = [dim for dim in layout.kept if dim in long]
    if dims and dims[-1] != layout.kept[-1]:
        raise failure(
            "T2C539",
            f"this part of {layout.buffer.name} does not run along its last dimension",
            region.span,
            help="let the last dimension of the region be the long one",
        )
    whole = all(region.ranges[dim].extent == layout.buffer.shape[dim] for dim in layout.kept)
    if len(dims) > 2 and not whole:
        raise failure(
            "T2C548",
            f"a part of {layout.buffer.name} with more than two dimensions is not lowered",
            region.span,
            help="use the whole tile, or a loop over parts of two dimensions",
        )
    lanes = context.tiles.lanes(layout.buffer.dtype)
    if ref.offset is not None and not context.facts.divisible(ref.offset, lanes):
        raise failure(
            "T2C538",
            f"this part of {layout.buffer.name} does not start at a multiple of "
            f"{context.target.block_bytes} bytes, as vector calls need it to",
            region.span,
            help="give it a tile of its own",
        )
    columns = region.ranges[dims[-1]].extent if dims else const(1)
    rows: Expr = const(1)
    most_rows = 1
    for dim in dims[:-1]:
        extent = region.ranges[dim].extent
        assert isinstance(extent, Const)
        most_rows *= int(extent.value)
        rows = times(rows, context.live(("tile", layout.buffer.name, dim), extent))
    kind: Kind = "tile" if len(dims) > 1 else "row" if dims else "one"
    if dims and len(dims) == 1:
        columns = context.live(("tile", layout.buffer.name, dims[0]), columns)
    most = region.ranges[dims[-1]].extent if dims else const(1)
    assert isinstance(most, Const)
    padded = -(-int(most.value) // lanes) * lanes
    part = dims and region.ranges[dims[-1]].extent != layout.buffer.shape[dims[-1]]
    pitch = padded if part else layout.pitch
    row = Var(dtype=INT32, name=context.names.unused("row", "line"), kind="loop")
    column = Var(dtype=INT32, name=context.names.unused("column", "first"), kind="loop")
    shape = Shape(
        rows=rows,
        columns=columns,
        most_rows=most_rows,
        most_columns=int(most.value),
        pitch=pitch,
        width=const(pitch) if part else width_of(layout),
        row_var=row,
        column_var=column,
    )
    step = layout.weight(dims[-2]) if len(dims) > 1 else 0
    whole = whole and ref.offset is None
    return shape, Value(kind=kind, dtype=layout.buffer.dtype, ref=ref, pitch=step, whole=whole)


def copy_inside(stmt: forms.Copy, context: Context) -> None:
    """From tile to tile, converting."""
    target = context.layouts[stmt.dst.buffer.name]
    source = context.layouts[stmt.src.buffer.name]
    shape, dst = whole_shape(stmt.dst, target, context)
    _, src = whole_shape(stmt.src, source, context)
    calls = calls_of(context.tiles, shape, context.emit)
    if src.dtype == dst.dtype:
        calls.copy(dst, src)
        return
    convert(dst, src, calls, context, stmt)


def convert(dst: Value, src: Value, calls: Calls, context: Context, stmt: forms.Stmt) -> None:
    """dst = src in another element type."""
    found = context.target.conversions.get((src.dtype.name, dst.dtype.name))
    if found is None:
        raise no_conversion(src.dtype, dst.dtype, context.target, stmt.span)
    steps = (*(DTYPES[name] for name in found.through), dst.dtype)
    given = src
    for step, how in zip(steps, found.modes, strict=True):
        out = dst
        if step != dst.dtype:
            name = context.tiles.borrow(_word(dst.kind), step, calls.shape.most(dst.kind))
            pitch = calls.shape.pitch if dst.kind == "tile" else 0
            out = Value(kind=dst.kind, dtype=step, ref=TileRef(tile=name), pitch=pitch)
        calls.cast(out, src, how)
        if src is not given:
            context.tiles.give_back(src.at.tile)
        src = out


def _word(kind: Kind) -> str:
    return "one" if kind == "scalar" else kind
