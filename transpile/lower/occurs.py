"""Whether names occur in C statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from tile2c.transpile.ir.expr import Expr, Var
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import CStmt, Declarator, Element


def reads_memory(value: Expr | None) -> bool:
    """Whether the C expression reads an array or a tensor."""
    return value is not None and any(isinstance(part, Element) for part in b.walk(value))


def uses(statements: Sequence[CStmt], name: str) -> bool:
    """Whether the C variable occurs in the statements."""
    return any(_occurs(statement, name) for statement in statements)


def _occurs(value: object, name: str) -> bool:
    if isinstance(value, Expr):
        return any(
            (isinstance(part, Var) and part.name == name)
            or (isinstance(part, Element) and part.array == name)
            for part in b.walk(value)
        )
    if isinstance(value, CStmt | Declarator):
        return any(_occurs(getattr(value, item.name), name) for item in fields(value))
    if isinstance(value, tuple):
        return any(_occurs(part, name) for part in value)
    return False
