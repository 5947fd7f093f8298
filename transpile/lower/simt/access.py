"""How one access of a parallel loop moves: neighbours along the last loop variable, or single elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile2c.transpile.ir import walk
from tile2c.transpile.ir.expr import (
    Binary,
    Buffer,
    Compare,
    Const,
    Expr,
    Load,
    Select,
    Var,
    const,
)
from tile2c.transpile.ir.forms import Atomic, Let, Stmt, Store
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.facts import linear
from tile2c.transpile.lower.simt.context import Context


def all_loads(body: Sequence[Stmt]) -> list[Load]:
    """Every element read by the statements, nested ones too."""
    return [
        load
        for stmt in walk.statements(tuple(body))
        for expr in walk.expressions(stmt)
        for load in walk.loads(expr)
    ]


def all_stores(body: Sequence[Stmt]) -> list[tuple[Buffer, tuple[Expr, ...]]]:
    """(buffer, index) of every store and atomic, nested ones too."""
    return [
        (stmt.buffer, stmt.index)
        for stmt in walk.statements(tuple(body))
        if isinstance(stmt, Store | Atomic)
    ]


def neighbours(ctx: Context, index: tuple[Expr, ...], var: str, width: int) -> bool:
    """Whether `width` steps of `var` from a multiple of it are steps to the next element."""
    parts = [ctx.facts.spelled(part) for part in index]
    if not parts or not all(steady(ctx, part, var, width) for part in parts[:-1]):
        return False
    return _counts(ctx, parts[-1], var, width)


def steps_an_element(ctx: Context, index: tuple[Expr, ...], var: str, width: int) -> int:
    """Steps of `var` after which the next element is meant, of the `width` from a multiple of it, where
    these are whole elements; else 1. `x // 2` is two."""
    parts = [ctx.facts.spelled(part) for part in index]
    if not parts or not all(steady(ctx, part, var, width) for part in parts[:-1]):
        return 1
    last = parts[-1]
    if not isinstance(last, Binary) or last.op not in ("//", "truncdiv"):
        return 1
    steps = b.known(last.b) or 0
    if steps < 2 or width % steps or not ctx.facts.non_negative(last.a):
        return 1
    whole = _counts(ctx, last.a, var, width) and _starts_whole(ctx, last.a, var, width)
    return steps if whole else 1


def steady(ctx: Context, expr: Expr, var: str, width: int) -> bool:
    """Whether the expression stays the same for `width` steps of `var` from a multiple of it."""
    expr = ctx.facts.spelled(expr)
    if not b.mentions(expr, var):
        return True
    if isinstance(expr, Compare) and expr.op == "<" and steady(ctx, expr.b, var, width):
        if _counts(ctx, expr.a, var, width) and ctx.facts.divisible(expr.b, width):
            return _starts_whole(ctx, expr.a, var, width)  # a whole group is below, or none of it
    if not isinstance(expr, Binary):
        return False
    if expr.op in ("//", "truncdiv") and not b.mentions(expr.b, var):
        if _counts(ctx, expr.a, var, width) and _starts_whole(ctx, expr.a, var, width):
            return ctx.facts.divisible(expr.b, width)
    return steady(ctx, expr.a, var, width) and steady(ctx, expr.b, var, width)


def _counts(ctx: Context, expr: Expr, var: str, width: int) -> bool:
    """Whether the expression grows by one with each of `width` steps of `var`."""
    moving = [(atom, c) for atom, c in linear(expr).terms if not steady(ctx, atom, var, width)]
    if len(moving) != 1 or moving[0][1] != 1:
        return False
    ((atom, _),) = moving
    if isinstance(atom, Var):
        return atom.name == var
    return (
        isinstance(atom, Binary)
        and atom.op in ("%", "truncmod")
        and not b.mentions(atom.b, var)
        and _counts(ctx, atom.a, var, width)
        and _starts_whole(ctx, atom.a, var, width)
        and ctx.facts.divisible(atom.b, width)
    )


def _starts_whole(ctx: Context, expr: Expr, var: str, width: int) -> bool:
    """Whether the expression is a multiple of `width` where `var` is."""
    return ctx.facts.divisible(b.substitute(expr, {var: const(0)}), width)


PlainLoad = tuple[tuple[Let, ...], Store, Expr | None, Load]


def plain_load(body: Sequence[Stmt]) -> PlainLoad | None:
    """(names bound before, store, condition, load) of a body that stores one element of a buffer as it
    is, or zero where a condition does not hold; None of any other."""
    *lets, store = body
    if not isinstance(store, Store):
        return None
    bound = tuple(let for let in lets if isinstance(let, Let))
    value: Expr = store.value
    condition: Expr | None = None
    if isinstance(value, Select) and isinstance(value.b, Const) and value.b.value == 0:
        condition, value = value.condition, value.a
    if len(bound) != len(lets) or not isinstance(value, Load):
        return None
    return bound, store, condition, value


def in_memory(
    ctx: Context, buffer: Buffer, index: tuple[Expr, ...]
) -> tuple[Buffer, tuple[Expr, ...]]:
    """The buffer and the index in the order in which elements lie: of a shared tile with rows together
    [rows / group][columns][group], columns as if they kept their places."""
    layout = ctx.shared.get(buffer.name) if buffer.scope == "shared" else None
    if layout is None or layout.group == 1:
        return buffer, index
    *lead, row, column = index
    *outer, rows, columns = buffer.shape
    group = const(layout.group)
    whole, inside = (Binary(dtype=row.dtype, op=op, a=row, b=group) for op in ("//", "%"))
    shape = (*outer, const((b.known(rows) or 0) // layout.group), columns, group)
    return replace(buffer, shape=shape), (*lead, whole, column, inside)


def alignment(ctx: Context, buffer: Buffer, index: tuple[Expr, ...], var: str, width: int) -> str:
    """Whether `width` neighbours at multiples of `width` of `var` lie in one aligned access.

    "always"; "rows": if rows start aligned, which a run-time pitch leaves open; or "never".
    """
    if not _starts_whole(
        ctx, ctx.facts.spelled(index[-1]), var, width
    ) or not ctx.facts.non_negative(index[-1]):
        return "never"
    answer = "always"
    for part, stride in zip(index[:-1], ctx.pitch(buffer)[:-1], strict=True):
        if isinstance(part, Const) and part.value == 0:
            continue
        if ctx.facts.divisible(stride, width):
            continue
        if b.known(stride) is not None or buffer.scope != "global":
            return "never"
        answer = "rows"
    return answer


def vector_width(
    ctx: Context, accesses: Sequence[tuple[Buffer, tuple[Expr, ...]]], var: str, extent: int
) -> int:
    """The widest access, in elements, that every neighbouring memory access of the loop allows."""
    memory = [
        (buffer, index)
        for buffer, index in (in_memory(ctx, *access) for access in accesses)
        if buffer.scope in ("global", "shared")
        and neighbours(ctx, index, var, 2)
        and buffer.dtype.bits >= 8
    ]
    if not memory or any(buffer.dtype.name in ctx.target.lone_types for buffer, _ in memory):
        return 1
    width = ctx.target.vector_bytes // max(buffer.dtype.bytes for buffer, _ in memory)
    while width > 1 and (
        extent % width
        or not all(neighbours(ctx, index, var, width) for _, index in memory)
        or any(alignment(ctx, buffer, index, var, width) == "never" for buffer, index in memory)
    ):
        width //= 2
    return width


def neighbours_in(index: tuple[Expr, ...], dim: int, var: str) -> bool:
    """Whether steps of `var` are steps of one in dimension `dim`."""
    found = [c for atom, c in linear(index[dim]).terms if b.mentions(atom, var)]
    plain = [a for a, _ in linear(index[dim]).terms if isinstance(a, Var) and a.name == var]
    return found == [1] and bool(plain)
