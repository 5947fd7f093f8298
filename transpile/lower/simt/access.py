"""How one access of a parallel loop moves: neighbours along the last loop variable, or single elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tile2c.transpile.ir.expr import Buffer, Const, Expr, Load, Var, const
from tile2c.transpile.ir.forms import Atomic, Declare, For, If, Let, Stmt, Store, While
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.facts import linear
from tile2c.transpile.lower.simt.context import Context


def loads_in(expr: Expr) -> list[Load]:
    """Every load inside, outside first."""
    return [part for part in b.walk(expr) if isinstance(part, Load)]


def expressions(stmt: Stmt) -> Iterator[Expr]:
    """Every expression of a statement and of the statements in it."""
    if isinstance(stmt, Store | Atomic):
        yield from stmt.index
        yield stmt.value
    elif isinstance(stmt, Let):
        yield stmt.value
    elif isinstance(stmt, Declare):
        if stmt.init is not None:
            yield stmt.init
    elif isinstance(stmt, If | While):
        yield stmt.condition
        for inner in (*stmt.then, *stmt.orelse) if isinstance(stmt, If) else stmt.body:
            yield from expressions(inner)
    elif isinstance(stmt, For):
        yield stmt.start
        yield stmt.stop
        for inner in stmt.body:
            yield from expressions(inner)


def all_loads(body: Sequence[Stmt]) -> list[Load]:
    return [load for stmt in body for expr in expressions(stmt) for load in loads_in(expr)]


def all_stores(body: Sequence[Stmt]) -> list[tuple[Buffer, tuple[Expr, ...]]]:
    """(buffer, index) of every store and atomic, nested ones too."""
    found: list[tuple[Buffer, tuple[Expr, ...]]] = []
    for stmt in body:
        if isinstance(stmt, Store | Atomic):
            found.append((stmt.buffer, stmt.index))
        elif isinstance(stmt, If):
            found += all_stores((*stmt.then, *stmt.orelse))
        elif isinstance(stmt, For | While):
            found += all_stores(stmt.body)
    return found


def neighbours(index: tuple[Expr, ...], var: str) -> bool:
    """Whether steps of `var` are steps to the next element: it counts once in the last index only."""
    if not index or any(b.mentions(part, var) for part in index[:-1]):
        return False
    coefficients = [c for atom, c in linear(index[-1]).terms if b.mentions(atom, var)]
    plain = [
        atom for atom, _ in linear(index[-1]).terms if isinstance(atom, Var) and atom.name == var
    ]
    return coefficients == [1] and bool(plain)


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
        and neighbours(index, var)
        and buffer.dtype.bits >= 8
    ]
    if not memory:
        return 1
    width = ctx.target.vector_bytes // max(buffer.dtype.bytes for buffer, _ in memory)
    while width > 1 and (
        extent % width
        or any(alignment(ctx, buffer, index, var, width) == "never" for buffer, index in memory)
    ):
        width //= 2
    return width
