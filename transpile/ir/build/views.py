"""`T.reshape(x, shape)`, `T.view(x, shape, dtype)`: the same storage otherwise (language.md 9.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import libcst as cst
from tile2c.transpile.ir.build import arithmetic
from tile2c.transpile.ir.build.arguments import Arguments, tuple_items
from tile2c.transpile.ir.build.context import Builder, allocated_here
from tile2c.transpile.ir.build.elements import named_buffer
from tile2c.transpile.ir.build.expressions import expressions
from tile2c.transpile.ir.build.notes import Notes
from tile2c.transpile.ir.build.regions import shape_text
from tile2c.transpile.ir.build.tile_views import bind_tile_view
from tile2c.transpile.ir.constants import Polynomial, constant_int, polynomial
from tile2c.transpile.ir.dtypes import BOOL
from tile2c.transpile.ir.expr import Binary, Buffer, Compare, Expr, const
from tile2c.transpile.ir.forms import Launch, Stmt
from tile2c.transpile.ir.walk import reads, statements, writes

VIEWS = frozenset({"reshape", "view"})


def bind_view(b: Builder, name: str, node: cst.Call, function: str, about: Notes) -> list[Stmt]:
    """`name = T.reshape(x, shape)`: binds the name; nothing is done when the kernel runs."""
    args = Arguments(b, node, f"T.{function}")
    source, shape_node = args.node_of("src", 0), args.find("shape", 1)
    asked = "dtype" in args.keywords or len(args.positional) > 2
    dtype = args.dtype("dtype", 2) if asked else None
    args.finish()
    base = named_buffer(b, source)
    if base.scope != "global":
        items = None if shape_node is None else tuple_items(shape_node)
        bind_tile_view(b, name, node, base, items, dtype)
        return []
    if dtype is not None and dtype != base.dtype:
        b.fail(
            "T2C231",
            f"{base.name} is a parameter of {base.dtype}: it cannot be seen as {dtype}",
            node,
            help=f"declare it as {dtype}, or T.reinterpret its elements",
        )
    if shape_node is None:
        b.scopes.bind(name, base)
        return []
    if base.strides is not None:
        b.fail("T2C317", f"{base.name} has strides: its elements have one shape only", source)
    items = tuple_items(shape_node)
    shape = tuple(
        arithmetic.whole(b, value, item, f"an extent of {name}")
        for value, item in zip(expressions(b, items), items, strict=True)
    )
    _check_count(b, base, shape, node)
    found = replace(base, shape=shape, span=b.span(node), comments=about.comments)
    b.views.append(found)
    b.scopes.bind(name, found)
    return []


def check_views(b: Builder, launch: Launch) -> None:
    """One launch sees a tensor that it writes under one shape: indices tell what overlaps."""
    written = {buffer.name for stmt in statements(launch.body) for buffer in writes(stmt)}
    seen: dict[str, Buffer] = {}
    for stmt in statements(launch.body):
        for buffer in (*reads(stmt), *writes(stmt)):
            first = seen.setdefault(buffer.name, buffer)
            if first.shape != buffer.shape and buffer.name in written:
                b.diagnostics.error(
                    "T2C317",
                    f"{buffer.name} is stored to in this kernel, where it is "
                    f"{shape_text(first.shape)} and {shape_text(buffer.shape)}",
                    stmt.span,
                    notes=allocated_here(buffer),
                    help="use one of the shapes throughout the kernel",
                )
                return


def _check_count(b: Builder, base: Buffer, shape: tuple[Expr, ...], node: cst.CSTNode) -> None:
    """Both shapes have as many elements; `n // 8` counts as an eighth where 8 divides n."""
    old, new = _count(base.shape), _count(shape)
    if not _equal(old, new):
        b.fail(
            "T2C317",
            f"{base.name} is {shape_text(base.shape)}, which is not shown to have as many elements "
            f"as {shape_text(shape)}",
            node,
            notes=allocated_here(base),
        )
    for part in (*_quotients(base.shape), *_quotients(shape)):
        rest = replace(part, op="%")
        holds = Compare(dtype=BOOL, op="==", a=rest, b=const(0, dtype=part.dtype))
        if holds not in b.assumptions:
            b.assumptions.append(holds)


def _quotients(shape: tuple[Expr, ...]) -> Iterator[Binary]:
    """The extents of the form `n // 8` whose value is not known."""
    for extent in shape:
        if isinstance(extent, Binary) and extent.op == "//" and constant_int(extent) is None:
            if constant_int(extent.b):
                yield extent


def _count(shape: tuple[Expr, ...]) -> tuple[Polynomial, int]:
    """The product of extents, and what it is to be divided by."""
    quotients = {id(part): part for part in _quotients(shape)}
    product: Expr = const(1)
    divisor = 1
    for extent in shape:
        if id(extent) in quotients:
            part = quotients[id(extent)]
            divisor *= constant_int(part.b) or 1
            extent = part.a
        product = Binary(dtype=product.dtype, op="*", a=product, b=extent)
    return polynomial(product), divisor


def _equal(a: tuple[Polynomial, int], b: tuple[Polynomial, int]) -> bool:
    return _times(a[0], b[1]) == _times(b[0], a[1])


def _times(found: Polynomial, factor: int) -> Mapping[object, int]:
    return {monomial: count * factor for monomial, count in found.items()}
