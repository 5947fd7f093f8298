"""Rebuilds expressions and statements with parts replaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import TypeVar

from tile2c.transpile.ir.expr import Buffer, Expr
from tile2c.transpile.ir.forms import Range, Region, Stmt

Node = TypeVar("Node", Expr, Stmt, Region, Range)


def rewrite(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """The expression with each part that `change` answers for replaced, outermost first."""
    changed = change(expr)
    if changed is not None:
        return changed
    return _rebuilt(expr, change)


def rewrite_statement(
    stmt: Stmt,
    change: Callable[[Expr], Expr | None],
    buffers: Mapping[str, Buffer] | None = None,
) -> Stmt:
    """The statement and those inside it with parts changed and buffers exchanged by name."""
    return _rebuilt(stmt, change, buffers or {})


def _rebuilt(
    node: Node, change: Callable[[Expr], Expr | None], buffers: Mapping[str, Buffer] | None = None
) -> Node:
    changes: dict[str, object] = {}
    for item in fields(node):
        value = getattr(node, item.name)
        new = _value(value, change, buffers or {})
        if new is not value:
            changes[item.name] = new
    return replace(node, **changes) if changes else node  # type: ignore[arg-type]


def _value(
    value: object, change: Callable[[Expr], Expr | None], buffers: Mapping[str, Buffer]
) -> object:
    if isinstance(value, Buffer):
        return buffers.get(value.name, value)
    if isinstance(value, Expr):
        changed = change(value)
        return changed if changed is not None else _rebuilt(value, change, buffers)
    if isinstance(value, Stmt):
        return _rebuilt(value, change, buffers)
    if isinstance(value, Region):
        return _rebuilt(value, change, buffers)
    if isinstance(value, Range):
        return _rebuilt(value, change, buffers)
    if isinstance(value, tuple) and value and isinstance(value[0], Expr | Stmt | Range):
        parts = tuple(_value(part, change, buffers) for part in value)
        return parts if any(a is not b for a, b in zip(parts, value, strict=True)) else value
    return value
