"""Walks over expressions and statements: children, variables, loads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never, cast

from tile2c.transpile.ir import forms
from tile2c.transpile.ir.expr import (
    AnyExpr,
    Binary,
    Buffer,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Logical,
    Reinterpret,
    Select,
    Unary,
    Var,
)
from tile2c.transpile.ir.forms import AnyStmt, Region, Stmt


def children(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside one."""
    node = cast(AnyExpr, expr)
    match node:
        case Const() | Var():
            return ()
        case Load():
            return node.index
        case Binary() | Compare() | Logical():
            return (node.a, node.b)
        case Unary() | Cast() | Reinterpret():
            return (node.a,)
        case Select():
            return (node.condition, node.a, node.b)
        case Call():
            return node.args
        case _:
            assert_never(node)


def parts(expr: Expr) -> Iterator[Expr]:
    """The expression and everything inside it, outermost first."""
    yield expr
    for child in children(expr):
        yield from parts(child)


def variables(expr: Expr) -> Iterator[Var]:
    """Every variable in an expression, as often as it occurs."""
    return (part for part in parts(expr) if isinstance(part, Var))


def loads(expr: Expr) -> Iterator[Load]:
    """Every element read by an expression."""
    return (part for part in parts(expr) if isinstance(part, Load))


def bodies(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """The statement lists directly inside a statement."""
    node = cast(AnyStmt, stmt)
    match node:
        case forms.Parallel() | forms.For() | forms.Pipelined() | forms.While():
            return (node.body,)
        case forms.If():
            return (node.then, node.orelse)
        case _:
            return ()


def statements(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Every statement of a list, nested ones included, in the order of the text."""
    for stmt in body:
        yield stmt
        for inner in bodies(stmt):
            yield from statements(inner)


def names_bound(body: tuple[Stmt, ...]) -> frozenset[str]:
    """Names of the values that the statements bind: loop variables, temporaries, results of atomics."""
    found: set[str] = set()
    for stmt in statements(body):
        match stmt:
            case forms.For() | forms.Pipelined() | forms.Let():
                found.add(stmt.var.name)
            case forms.Parallel():
                found |= {var.name for var in stmt.loop_vars}
            case forms.Atomic() if stmt.result is not None:
                found.add(stmt.result.name)
            case _:
                pass
    return frozenset(found)


def regions(stmt: Stmt) -> tuple[tuple[Region, ...], tuple[Region, ...]]:
    """Regions that a tile statement reads and writes (an accumulator is in both)."""
    node = cast(AnyStmt, stmt)
    match node:
        case forms.Copy() | forms.Scan() | forms.BulkCopy():
            return (node.src,), (node.dst,)
        case forms.Fill():
            return (), (node.dst,)
        case forms.Gemm():
            cleared = isinstance(node.clear, Const) and bool(node.clear.value)
            return (node.a, node.b) if cleared else (node.a, node.b, node.c), (node.c,)
        case forms.Reduce():
            return ((node.src,) if node.clear else (node.src, node.dst)), (node.dst,)
        case forms.AtomicTile():
            return (node.src, node.dst), (node.dst,)
        case _:
            return (), ()


def expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """Expressions directly in a statement, not those of statements inside it."""
    node = cast(AnyStmt, stmt)
    match node:
        case forms.Copy() | forms.Scan() | forms.Reduce() | forms.AtomicTile():
            return (*_bounds(node.src), *_bounds(node.dst))
        case forms.Fill():
            return (*_bounds(node.dst), node.value)
        case forms.Gemm():
            return (*_bounds(node.a), *_bounds(node.b), *_bounds(node.c), node.clear)
        case forms.Parallel():
            return node.extents
        case forms.Atomic() | forms.Store():
            return (*node.index, node.value)
        case forms.Let():
            return (node.value,)
        case forms.Declare():
            return () if node.init is None else (node.init,)
        case forms.For() | forms.Pipelined():
            return (node.start, node.stop)
        case forms.While() | forms.If() | forms.Assert():
            return (node.condition,)
        case forms.Print():
            return (*node.index, node.value)
        case forms.Foreign():
            return tuple(
                expr
                for arg in node.args
                for expr in (arg.index if isinstance(arg, forms.Pointer) else (arg,))
            )
        case forms.Jump() | forms.AuthorSync() | forms.Order() | forms.Hold():
            return ()
        case forms.SetRegisters():
            return ()
        case forms.BulkCopy():
            index = () if node.index is None else (node.index,)
            return (*_bounds(node.src), *_bounds(node.dst), *index)
        case forms.ElementCopy():
            return (*node.source, *node.target)
        case forms.BarrierArrive():
            return (node.index,) if node.bytes is None else (node.index, node.bytes)
        case forms.BarrierWait():
            return (node.index, node.parity)
        case _:
            assert_never(node)


def reads(stmt: Stmt) -> Iterator[Buffer]:
    """Buffers whose elements a statement reads by itself, regions first."""
    for region in regions(stmt)[0]:
        yield region.buffer
    if isinstance(stmt, forms.ElementCopy):
        yield stmt.src
    for expr in expressions(stmt):
        for load in loads(expr):
            yield load.buffer
    yield from (x.buffer for x in pointers(stmt) if "r" in x.access)


def pointers(stmt: Stmt) -> tuple[forms.Pointer, ...]:
    """Addresses that a statement hands to foreign code."""
    args = stmt.args if isinstance(stmt, forms.Foreign) else ()
    return tuple(arg for arg in args if isinstance(arg, forms.Pointer))


def writes(stmt: Stmt) -> Iterator[Buffer]:
    """Buffers a statement writes by itself."""
    for region in regions(stmt)[1]:
        yield region.buffer
    if isinstance(stmt, (forms.Store, forms.Atomic, forms.Declare)):
        yield stmt.buffer
    yield from (x.buffer for x in pointers(stmt) if "w" in x.access)
    if isinstance(stmt, forms.ElementCopy):
        yield stmt.dst


def _bounds(region: Region) -> tuple[Expr, ...]:
    return tuple(expr for part in region.ranges for expr in (part.start, part.extent))
