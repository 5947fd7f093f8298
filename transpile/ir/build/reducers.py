"""Reducers (language.md 11): fragments in which all iterations of T.Parallel gather."""

from __future__ import annotations

import libcst as cst
from tile2c.transpile.ir.build import arithmetic, conversions
from tile2c.transpile.ir.build.arguments import Arguments, static_shape, tuple_items
from tile2c.transpile.ir.build.context import Builder, Value
from tile2c.transpile.ir.build.elements import element, named_buffer
from tile2c.transpile.ir.build.literals import integer_range
from tile2c.transpile.ir.build.notes import Notes, with_notes
from tile2c.transpile.ir.dtypes import DType
from tile2c.transpile.ir.expr import BinaryOp, Buffer, Const, Expr, Load, const
from tile2c.transpile.ir.forms import Copy, Fill, Range, Region, Stmt, Store

OPERATIONS: dict[str, BinaryOp] = {"sum": "+", "max": "max", "min": "min"}
STATEMENTS = ("finalize_reducer", "reducer_init", "reducer_update")


def allocate_reducer(b: Builder, name: str, node: cst.Call, about: Notes) -> list[Stmt]:
    """`T.alloc_reducer(shape, dtype, op=...)`: a fragment; how partial results are kept is ours."""
    args = Arguments(b, node, "T.alloc_reducer")
    items = tuple_items(args.node_of("shape", 0))
    dtype = args.dtype("dtype", 1)
    op = args.text("op", 2, "sum")
    args.text("replication", 3, "all")
    args.finish()
    if op not in OPERATIONS:
        b.fail("T2C242", f"a reducer's operation is {', '.join(OPERATIONS)}, not `{op}`", node)
    shape = tuple(
        conversions.settle(b, extent, item)
        for extent, item in zip(static_shape(b, items, name), items, strict=True)
    )
    buffer = Buffer(
        name=b.names.unique(name), scope="fragment", shape=shape, dtype=dtype, span=about.span
    )
    buffer = with_notes(buffer, about)
    b.buffers.append(buffer)
    b.reducers[buffer.name] = op
    b.scopes.bind(name, buffer)
    return []


def build_reducer_statement(b: Builder, node: cst.Call, name: str) -> list[Stmt]:
    """Initialising, updating and finalizing: fills, stores, and at most a copy."""
    args = Arguments(b, node, f"T.{name}")
    if name == "reducer_update":
        target, value = args.node_of("target", 0), args.value("value", 1)
        args.finish()
        if not isinstance(target, cst.Subscript):
            b.fail("T2C246", "T.reducer_update needs an element of a reducer, as in r[i]", target)
        place = element(b, target)
        op = _operation(b, place.buffer, target)
        old = Value(Load(dtype=place.buffer.dtype, buffer=place.buffer, index=place.index))
        both = arithmetic.binary(b, OPERATIONS[op], old, value, node)
        stored = conversions.convert(b, both, place.buffer.dtype, node)
        return [Store(buffer=place.buffer, index=place.index, value=stored)]
    buffer = named_buffer(b, args.node_of("reducer", 0))
    op = _operation(b, buffer, node)
    if name == "reducer_init":
        given = args.find("init", 1)
        args.finish()
        start: Expr = _identity(op, buffer.dtype)
        if given is not None:
            from tile2c.transpile.ir.build.expressions import expression

            start = conversions.convert(b, expression(b, given), buffer.dtype, given)
        return [Fill(dst=_whole(buffer), value=start)]
    other = args.find("dst", 1)
    args.finish()
    if other is None:
        return []  # the sum is complete after each loop already
    return [Copy(src=_whole(buffer), dst=_whole(named_buffer(b, other)))]


def _operation(b: Builder, buffer: Buffer, node: cst.CSTNode) -> str:
    op = b.reducers.get(buffer.name)
    if op is None:
        b.fail("T2C306", f"{buffer.name} is no reducer", node, help="r = T.alloc_reducer(...)")
    return op


def _identity(op: str, dtype: DType) -> Const:
    if op == "sum":
        return Const(dtype=dtype, value=0.0 if dtype.is_float else 0)
    if dtype.is_float:
        return Const(dtype=dtype, value=float("-inf") if op == "max" else float("inf"))
    low, high = integer_range(dtype)
    return Const(dtype=dtype, value=low if op == "max" else high)


def _whole(buffer: Buffer) -> Region:
    ranges = tuple(Range(start=const(0), extent=extent) for extent in buffer.shape)
    return Region(buffer=buffer, ranges=ranges)
