"""Values that an iteration of a parallel loop names: which of them a vector of iterations shares."""

from __future__ import annotations

from collections.abc import Sequence

from tile2c.transpile.ir.forms import For, Let, Stmt
from tile2c.transpile.ir.walk import loads, statements, writes
from tile2c.transpile.lower import build as b


def named_inside(body: Sequence[Stmt]) -> frozenset[str]:
    """Values that the iteration itself names."""
    inside = statements(tuple(body))
    return frozenset(stmt.var.name for stmt in inside if isinstance(stmt, Let | For))


def alike_along(body: Sequence[Stmt], last: str) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...]]:
    """Named values that all elements of a vector share, and the other statements.

    `last` is the variable that counts a vector's elements.
    """
    alike: list[Stmt] = []
    rest: list[Stmt] = []
    differs, written = {last}, set[str]()
    for stmt in body:
        written |= {buffer.name for buffer in writes(stmt)}
        if isinstance(stmt, Let):
            changed_here = any(load.buffer.name in written for load in loads(stmt.value))
            if not changed_here and not any(b.mentions(stmt.value, name) for name in differs):
                alike.append(stmt)
                continue
            differs.add(stmt.var.name)
        rest.append(stmt)
    return tuple(alike), tuple(rest)
