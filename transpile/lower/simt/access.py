"""How one access of a parallel loop moves: neighbours along the last loop variable, or single elements."""

from __future__ import annotations

from collections.abc import Sequence

from tile2c.transpile.ir import walk
from tile2c.transpile.ir.expr import Buffer, Const, Expr, Load, Var, const
from tile2c.transpile.ir.forms import Atomic, Stmt, Store
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


def neighbours(index: tuple[Expr, ...], var: str) -> bool:
    """Whether steps of `var` are steps to the next element: it counts once in the last index only."""
    if not index or any(b.mentions(part, var) for part in index[:-1]):
        return False
    coefficients = [c for atom, c in linear(index[-1]).terms if b.mentions(atom, var)]
    plain = [
        atom for atom, _ in linear(index[-1]).terms if isinstance(atom, Var) and atom.name == var
    ]
    return coefficients == [1] and bool(plain)


def grouped(ctx: Context, buffer: Buffer) -> bool:
    """Whether elements of a row of this shared tile are no neighbours in memory."""
    layout = ctx.shared.get(buffer.name) if buffer.scope == "shared" else None
    return layout is not None and layout.group > 1


def alignment(ctx: Context, buffer: Buffer, index: tuple[Expr, ...], var: str, width: int) -> str:
    """Whether `width` neighbours at multiples of `width` of `var` lie in one aligned access.

    "always"; "rows": if rows start aligned, which a run-time pitch leaves open; or "never".
    """
    start = b.substitute(index[-1], {var: const(0)})
    if not ctx.facts.divisible(start, width) or not ctx.facts.non_negative(index[-1]):
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
        for buffer, index in accesses
        if buffer.scope in ("global", "shared")
        and not grouped(ctx, buffer)
        and neighbours(index, var)
        and buffer.dtype.bits >= 8
    ]
    if not memory or any(buffer.dtype.name in ctx.target.lone_types for buffer, _ in memory):
        return 1
    width = ctx.target.vector_bytes // max(buffer.dtype.bytes for buffer, _ in memory)
    while width > 1 and (
        extent % width
        or any(alignment(ctx, buffer, index, var, width) == "never" for buffer, index in memory)
    ):
        width //= 2
    return width
