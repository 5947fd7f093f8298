"""One element of a buffer: index counts, and where fragments and private arrays may be indexed."""

from __future__ import annotations

from typing import NoReturn

import libcst as cst
from tile2c.transpile.ir.build import arithmetic
from tile2c.transpile.ir.build.context import Builder, Poison, Stop, allocated_here
from tile2c.transpile.ir.constants import constant_int
from tile2c.transpile.ir.expr import Binary, Buffer, Const, Expr
from tile2c.transpile.ir.walk import variables
from tile2c.transpile.record import record


@record
class Element:
    buffer: Buffer
    index: tuple[Expr, ...]


def named_buffer(b: Builder, node: cst.BaseExpression) -> Buffer:
    """The buffer that an expression names, or an error."""
    from tile2c.transpile.ir.build.expressions import undefined

    if not isinstance(node, cst.Name):
        b.fail("T2C246", "a buffer is needed here", node)
    found = b.scopes.find(node.value)
    match found:
        case Buffer():
            return found
        case Poison():
            raise Stop
        case None:
            undefined(b, node)
    b.fail("T2C246", f"`{node.value}` is a number, but a buffer is needed here", node)


def element(b: Builder, node: cst.Subscript) -> Element:
    """`buffer[i, j]`, with every index an integer and as many as the buffer has dimensions."""
    from tile2c.transpile.ir.build.expressions import expressions

    buffer = named_buffer(b, node.value)
    parts: list[cst.BaseExpression] = []
    for part in node.slice:
        if not isinstance(part.slice, cst.Index):
            b.fail("T2C246", "a slice is a region, but one element is needed here", node)
        parts.append(part.slice.value)
    if buffer.scope == "variable":
        return _variable(b, buffer, parts, node)
    check_rank(b, buffer, len(parts), node)
    found = [
        arithmetic.whole(b, value, part, f"an index of {buffer.name}")
        for value, part in zip(expressions(b, parts), parts, strict=True)
    ]
    index = tuple(wrapped_index(b, buffer, dim, expr, parts[dim]) for dim, expr in enumerate(found))
    _check_place(b, buffer, index, node)
    return Element(buffer, index)


def no_barrier(b: Builder, buffer: Buffer, node: cst.CSTNode) -> NoReturn:
    """Refuses a barrier where elements are read or written."""
    b.fail(
        "T2C246",
        f"{buffer.name} is a barrier: it has no elements",
        node,
        notes=allocated_here(buffer),
        help=f"T.barrier_arrive({buffer.name}), T.barrier_wait({buffer.name}, parity)",
    )


def check_rank(b: Builder, buffer: Buffer, given: int, node: cst.CSTNode) -> None:
    rank = len(buffer.shape)
    if given != rank:
        b.fail(
            "T2C232",
            f"{buffer.name} has {rank} dimension{'s' * (rank != 1)} "
            f"but is given {given} ind{'ices' if given != 1 else 'ex'}",
            node,
            notes=allocated_here(buffer),
        )


def wrapped_index(b: Builder, buffer: Buffer, dim: int, index: Expr, node: cst.CSTNode) -> Expr:
    """A provably negative index counts from the end; a constant one has to lie inside on chip."""
    value = constant_int(index)
    if value is None:
        return index
    extent = buffer.shape[dim]
    if value < 0:
        size = constant_int(extent)
        if size is None:
            return Binary(dtype=extent.dtype, op="+", a=extent, b=index, span=index.span)
        index = Const(dtype=index.dtype, value=value + size, span=index.span)
        value += size
    size = constant_int(extent)
    if buffer.scope != "global" and size is not None and not 0 <= value < size:
        b.fail(
            "T2C311",
            f"index {value} is outside {buffer.name}, whose dimension {dim} has {size} elements",
            node,
            notes=allocated_here(buffer),
        )
    return index


def _variable(
    b: Builder, buffer: Buffer, parts: list[cst.BaseExpression], node: cst.Subscript
) -> Element:
    """`v[0]` is the old spelling of a variable."""
    zero = len(parts) == 1 and isinstance(parts[0], cst.Integer) and parts[0].evaluated_value == 0
    if not zero:
        b.fail("T2C232", f"{buffer.name} is a variable: write `{buffer.name}`", node)
    return Element(buffer, ())


def _check_place(b: Builder, buffer: Buffer, index: tuple[Expr, ...], node: cst.Subscript) -> None:
    if buffer.scope == "local" and b.in_parallel:
        for expr in index:
            if any(var.name in b.parallel_vars for var in variables(expr)):
                b.fail(
                    "T2C310",
                    f"{buffer.name} is private to each thread, but the T.Parallel variable in its "
                    "index is spread over threads",
                    node,
                    notes=allocated_here(buffer),
                    help=f"make {buffer.name} a fragment (T.alloc_fragment)",
                )
