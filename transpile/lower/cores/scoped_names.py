"""Gives loop variables back their author's names: C scopes them, so two loops may both count `ko`.

reads   steps        writes  steps with `ko_2` spelled `ko` where no other `ko` is in sight
"""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import TypeVar

from tile2c.transpile.ir.expr import Expr, Var
from tile2c.transpile.lower.cores.accesses import variables_of
from tile2c.transpile.lower.cores.plan import (
    Assign,
    Branch,
    ElementOf,
    Local,
    Loop,
    QueueStep,
    ReadElement,
    Step,
    TensorRef,
    TileRef,
    WhileLoop,
)

_NUMBERED = re.compile(r"(.+?)_\d+$")
Node = TypeVar("Node")


def scoped_names(body: tuple[Step, ...], visible: frozenset[str]) -> tuple[Step, ...]:
    """The steps renamed; `visible` are the names declared outside of them."""
    new: list[Step] = []
    for step in body:
        if isinstance(step, Local | ReadElement):
            visible |= {step.name}
        if isinstance(step, Loop):
            step = _shorter(step, visible)
            inner = scoped_names(step.body, visible | {step.var.name})
            step = replace(step, body=inner)
        elif isinstance(step, WhileLoop):
            step = replace(step, body=scoped_names(step.body, visible))
        elif isinstance(step, Branch):
            then, orelse = scoped_names(step.then, visible), scoped_names(step.orelse, visible)
            step = replace(step, then=then, orelse=orelse)
        new.append(step)
    return tuple(new)


def _shorter(loop: Loop, visible: frozenset[str]) -> Loop:
    match = _NUMBERED.match(loop.var.name)
    if match is None:
        return loop
    name = match[1]
    if name in visible or name in _names(loop.body):
        return loop
    return _renamed(loop, loop.var.name, name)


def _names(node: object) -> set[str]:
    """Every name in some steps."""
    found = {var.name for var in variables_of(node)}
    if isinstance(node, tuple):
        return found.union(*(_names(part) for part in node)) if node else found
    if isinstance(node, TileRef | QueueStep):
        found.add(node.tile)
    if isinstance(node, Local | ReadElement | Assign):
        found.add(node.name)
    if isinstance(node, Step | ElementOf | TensorRef):
        found = found.union(*(_names(getattr(node, item.name)) for item in fields(node)))
    return found


def _renamed(node: Node, old: str, new: str) -> Node:
    if isinstance(node, Var):
        return replace(node, name=new) if node.name == old else node
    if isinstance(node, tuple):
        return tuple(_renamed(part, old, new) for part in node)  # type: ignore[return-value]
    if isinstance(node, Step | Expr | TileRef | ElementOf | TensorRef):
        changes = {}
        for item in fields(node):
            value = getattr(node, item.name)
            changed = _renamed(value, old, new)
            if changed is not value:
                changes[item.name] = changed
        return replace(node, **changes) if changes else node
    return node
