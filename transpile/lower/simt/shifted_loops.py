"""`tile[i, j] = acc[i + s * 16, j]`: the loop counts the fragment's own rows, under a condition.

Where every use of fragments in a loop over `i` stands at `i + shift`, threads that hold those rows run
the iterations; otherwise the whole fragment would have to go through shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TypeVar, cast

from tile2c.transpile.ir.dtypes import BOOL
from tile2c.transpile.ir.expr import Binary, Buffer, Compare, Expr, Load, Logical, Var, const
from tile2c.transpile.ir.forms import For, If, Let, Parallel, Pipelined, Stmt, While
from tile2c.transpile.ir.walk import statements
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.simt.access import all_loads, all_stores
from tile2c.transpile.lower.simt.divergence import Divergence

T = TypeVar("T")


def count_from_shifts(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements with such loops over the rows of their fragments.

    reads   tile IR with copies as loops      writes  the same
    """
    return _body(body, Divergence(body))


def _body(body: tuple[Stmt, ...], divergence: Divergence) -> tuple[Stmt, ...]:
    found = tuple(_statement(stmt, divergence) for stmt in body)
    return body if all(x is y for x, y in zip(found, body, strict=True)) else found


def _statement(stmt: Stmt, divergence: Divergence) -> Stmt:
    if isinstance(stmt, Parallel):
        return _loop(stmt, divergence)
    if isinstance(stmt, For | Pipelined | While):
        body = _body(stmt.body, divergence)
        return stmt if body is stmt.body else replace(stmt, body=body)
    if isinstance(stmt, If):
        sides = (_body(side, divergence) for side in (stmt.then, stmt.orelse))
        then, orelse = sides
        same = then is stmt.then and orelse is stmt.orelse
        return stmt if same else replace(stmt, then=then, orelse=orelse)
    return stmt


def _loop(loop: Parallel, divergence: Divergence) -> Parallel:
    for position, var in enumerate(loop.loop_vars):
        found = _shift(loop, var, divergence)
        if found is not None:
            loop = _counted(loop, position, *found)
    return loop


def _shift(loop: Parallel, var: Var, divergence: Divergence) -> tuple[Expr, Expr] | None:
    """What all fragments' indices add to the variable, and the extent of their dimension."""
    uses: list[tuple[Buffer, tuple[Expr, ...]]] = [
        *((load.buffer, load.index) for load in all_loads(loop.body)),
        *all_stores(loop.body),
    ]
    seen: set[tuple[Expr, int]] = set()
    for buffer, index in uses:
        if buffer.scope != "fragment":
            continue
        for part, extent in zip(index, buffer.shape, strict=True):
            if b.mentions(part, var.name):
                shift, size = _added(part, var), b.known(extent)
                if shift is None or size is None:
                    return None
                seen.add((shift, size))
    if len(seen) != 1:
        return None
    ((shift, size),) = seen
    own = {x.name for x in loop.loop_vars} | _bound_inside(loop.body)
    uniform = not divergence.differs(shift) and not any(b.mentions(shift, x) for x in own)
    plain = not any(isinstance(part, Load) for part in b.walk(shift))
    return (shift, const(size)) if uniform and plain else None


def _bound_inside(body: Sequence[Stmt]) -> set[str]:
    inside = statements(tuple(body))
    return {stmt.var.name for stmt in inside if isinstance(stmt, Let | For)}


def _added(part: Expr, var: Var) -> Expr | None:
    """`shift` of `var + shift`; None for all else, a plain `var` too."""
    if isinstance(part, Binary) and part.op == "+":
        for one, other in ((part.a, part.b), (part.b, part.a)):
            if isinstance(one, Var) and one.name == var.name and not b.mentions(other, var.name):
                return other
    return None


def _counted(loop: Parallel, position: int, shift: Expr, size: Expr) -> Parallel:
    """The loop over the fragment's rows; the body only where the author's variable has a value."""
    var, extent = loop.loop_vars[position], loop.extents[position]
    wish = f"{var.author or var.name}_held"
    row = Var(dtype=var.dtype, name=f"{var.name}_held", kind="loop", author=wish)
    own = replace(var, kind="temporary")
    names = Let(var=own, value=Binary(dtype=var.dtype, op="-", a=row, b=shift))
    begun = Compare(dtype=BOOL, op=">=", a=own, b=const(0))
    goes_on = Compare(dtype=BOOL, op="<", a=own, b=extent)
    body = tuple(_moved(stmt, var, shift, row) for stmt in loop.body)
    inside = If(condition=Logical(dtype=BOOL, op="and", a=begun, b=goes_on), then=body)
    return replace(
        loop,
        loop_vars=(*loop.loop_vars[:position], row, *loop.loop_vars[position + 1 :]),
        extents=(*loop.extents[:position], size, *loop.extents[position + 1 :]),
        body=(names, inside),
    )


def _moved(node: T, var: Var, shift: Expr, row: Var) -> T:
    """`var + shift` becomes the row; `var` alone keeps its name."""
    if isinstance(node, tuple):
        return cast(T, tuple(_moved(part, var, shift, row) for part in node))
    if isinstance(node, Expr) and _added(node, var) == shift:
        return cast(T, row)
    if isinstance(node, Buffer | Var) or not isinstance(node, Expr | Stmt):
        return node
    changes: dict[str, object] = {}
    for item in fields(node):
        old = getattr(node, item.name)
        if isinstance(old, tuple | Expr | Stmt):
            new = _moved(old, var, shift, row)
            if new is not old and new != old:
                changes[item.name] = new
    return cast(T, replace(node, **changes)) if changes else node  # type: ignore[arg-type]
