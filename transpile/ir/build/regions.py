"""Regions: the rectangular part of a buffer that an operand of a tile statement names."""

from __future__ import annotations

import libcst as cst
from tile2c.transpile.ir.build import arithmetic
from tile2c.transpile.ir.build.context import Builder, allocated_here
from tile2c.transpile.ir.build.elements import check_rank, named_buffer, no_barrier, wrapped_index
from tile2c.transpile.ir.build.expressions import expression
from tile2c.transpile.ir.constants import constant_int, difference
from tile2c.transpile.ir.dtypes import INT64
from tile2c.transpile.ir.expr import Binary, Buffer, Const, Expr, const
from tile2c.transpile.ir.forms import Range, Region
from tile2c.transpile.ir.printer import expression_text

ON_CHIP = frozenset({"shared", "fragment", "local"})


def is_region(b: Builder, node: cst.BaseExpression) -> bool:
    """Whether an operand is a buffer or a part of one, rather than a number."""
    if isinstance(node, cst.Subscript):
        return any(isinstance(part.slice, cst.Slice) for part in node.slice)
    found = b.scopes.find(node.value) if isinstance(node, cst.Name) else None
    return isinstance(found, Buffer) and found.scope != "variable"


def region(b: Builder, node: cst.BaseExpression) -> Region:
    """A buffer, or `buffer[lo:hi, i]` with one part per dimension."""
    with b.within(node):
        if not isinstance(node, cst.Subscript):
            buffer = named_buffer(b, node)
            if buffer.scope == "barrier":
                no_barrier(b, buffer, node)
            whole = tuple(Range(start=const(0), extent=extent) for extent in buffer.shape)
            return Region(buffer=buffer, ranges=whole, span=b.span(node))
        buffer = named_buffer(b, node.value)
        check_rank(b, buffer, len(node.slice), node)
        ranges = tuple(_range(b, buffer, dim, part.slice) for dim, part in enumerate(node.slice))
        return Region(buffer=buffer, ranges=ranges, span=b.span(node))


def _range(b: Builder, buffer: Buffer, dim: int, part: cst.BaseSlice) -> Range:
    if isinstance(part, cst.Index):
        index = _whole(b, part.value, f"an index of {buffer.name}")
        index = wrapped_index(b, buffer, dim, index, part.value)
        return Range(start=index, extent=const(1), point=True)
    assert isinstance(part, cst.Slice)
    if part.step is not None and constant_int(_whole(b, part.step, "a step")) != 1:
        b.fail("T2C246", "a region of a tile statement has no step", part.step)
    what = f"a bound of {buffer.name}"
    start = const(0) if part.lower is None else _whole(b, part.lower, what)
    stop = buffer.shape[dim] if part.upper is None else _whole(b, part.upper, what)
    node = part.upper or part.lower or part
    found = Range(start=start, extent=_extent(start, stop))
    _check_inside(b, buffer, dim, found, node)
    return found


def _whole(b: Builder, node: cst.BaseExpression, what: str) -> Expr:
    return arithmetic.whole(b, expression(b, node), node, what)


def _extent(start: Expr, stop: Expr) -> Expr:
    """stop - start, in the author's terms where they show it (`lo:lo + extent`)."""
    if isinstance(start, Const) and start.value == 0:
        return stop
    if isinstance(stop, Binary) and stop.op == "+":
        if stop.a == start:
            return stop.b
        if stop.b == start:
            return stop.a
    known = difference(stop, start)
    if known is not None:
        return Const(dtype=stop.dtype, value=known, span=stop.span)
    dtype = INT64 if INT64 in (start.dtype, stop.dtype) else stop.dtype
    return Binary(dtype=dtype, op="-", a=stop, b=start, span=stop.span)


def _check_inside(b: Builder, buffer: Buffer, dim: int, part: Range, node: cst.CSTNode) -> None:
    extent = constant_int(part.extent)
    if extent is not None and extent <= 0:
        b.fail(
            "T2C312", f"a region of {buffer.name} has extent {extent} along dimension {dim}", node
        )
    if buffer.scope not in ON_CHIP:
        return
    if extent is None:
        b.fail(
            "T2C312",
            f"the extent {expression_text(part.extent)} of {buffer.name} along dimension {dim} is "
            "not known when the kernel is built",
            node,
            notes=allocated_here(buffer),
            help="copy the whole tile: what lies outside a global tensor is clipped by itself",
        )
    start, size = constant_int(part.start), constant_int(buffer.shape[dim])
    if start is None or size is None:
        return
    if start < 0 or start + extent > size:
        b.fail(
            "T2C311",
            f"the region runs past {buffer.name} along dimension {dim}: {start}+{extent} > {size}",
            node,
            notes=allocated_here(buffer),
        )


def essential(shape: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """A shape without its extents of 1."""
    return tuple(extent for extent in shape if constant_int(extent) != 1)


def without_leading_ones(shape: tuple[Expr, ...], rank: int) -> tuple[Expr, ...]:
    """Drops extents of 1 in front until `rank` dimensions are left."""
    while len(shape) > rank and constant_int(shape[0]) == 1:
        shape = shape[1:]
    return shape


def shape_text(shape: tuple[Expr, ...]) -> str:
    """`[128, 32]`, with the values of constants."""
    words = []
    for extent in shape:
        value = constant_int(extent)
        words.append(expression_text(extent) if value is None else str(value))
    return f"[{', '.join(words)}]"
