"""What the steps of a loop leave, name, load and store, for the loop in stages."""

from __future__ import annotations

from dataclasses import fields

from tile2c.transpile.ir.expr import Expr, Var
from tile2c.transpile.lower.cores.plan import (
    Assign,
    Branch,
    CopyIn,
    CopyOut,
    ElementOf,
    Leave,
    Local,
    Loop,
    ReadElement,
    Step,
    TileRef,
    WhileLoop,
    bodies,
)
from tile2c.transpile.lower.plan import CCall, Element


def leaves(step: Step) -> bool:
    """Whether the step ends the loop, or its round."""
    if isinstance(step, Leave):
        return True
    if isinstance(step, Loop | WhileLoop):
        return any(returns(inner) for inner in step.body)
    return any(leaves(inner) for part in bodies(step) for inner in part)


def returns(step: Step) -> bool:
    if isinstance(step, Leave):
        return step.kind == "return"
    return any(returns(inner) for part in bodies(step) for inner in part)


def changing(body: tuple[Step, ...]) -> set[str]:
    """Names that do not mean the same in the whole round, or are read from tiles, or from tensors that
    it stores to."""
    found = {copy.tensor for step in body for copy in copies_in(step) if isinstance(copy, CopyOut)}

    def visit(steps: tuple[Step, ...], top: bool) -> None:
        for step in steps:
            if isinstance(step, Assign | ReadElement):
                found.add(step.name)
            if isinstance(step, Local):
                fixed = step.const and top and not (names_in(step) - {step.name}) & found
                if not fixed:
                    found.add(step.name)
            for inner in bodies(step):
                visit(inner, False)

    visit(body, True)
    return found - own_names(body)


def own_names(body: tuple[Step, ...]) -> set[str]:
    """Locals inside copies under a guard: they move with the copy."""
    return set().union(*(named_inside(step) for step in body if is_copy(step)))


def named_inside(step: Step) -> set[str]:
    """Names that a step gives within its own lists."""
    found: set[str] = set()
    for part in bodies(step):
        for inner in part:
            found |= {inner.name} if isinstance(inner, Local) else named_inside(inner)
    return found


def names_in(node: object) -> set[str]:
    """Every name that an expression or a step mentions."""
    if isinstance(node, Var):
        return {node.name}
    if isinstance(node, tuple):
        return set().union(*(names_in(part) for part in node)) if node else set()
    found: set[str] = set()
    if isinstance(node, Element):
        found.add(node.array)
    if isinstance(node, CCall):
        found.add(node.function.partition(".")[0])
    if isinstance(node, Assign | ReadElement):
        found.add(node.name)
    if isinstance(node, Step | Expr | TileRef | ElementOf):
        for item in fields(node):
            found |= names_in(getattr(node, item.name))
    return found


def copies_in(step: Step) -> list[CopyIn | CopyOut]:
    if isinstance(step, CopyIn | CopyOut):
        return [step]
    return [copy for part in bodies(step) for inner in part for copy in copies_in(inner)]


def arrives(copy: CopyIn | CopyOut) -> bool:
    return isinstance(copy, CopyIn)


def is_copy(step: Step) -> bool:
    """A copy, also under a guard or in loops, with what these name on the way."""
    if isinstance(step, CopyIn | CopyOut):
        return True
    if not isinstance(step, Branch | Loop) or (isinstance(step, Branch) and step.orelse):
        return False
    (body, *_) = bodies(step)
    parts = [inner for inner in body if not (isinstance(inner, Local) and inner.const)]
    return bool(parts) and all(is_copy(inner) for inner in parts)


def tensors_of(body: tuple[Step, ...], tile: str) -> set[str]:
    """Tensors that a tile is stored to."""
    return {
        copy.tensor
        for step in body
        for copy in copies_in(step)
        if isinstance(copy, CopyOut) and copy.src.tile == tile
    }


def stored_otherwise(body: tuple[Step, ...], tiles: set[str]) -> set[str]:
    """Tensors that other tiles are stored to."""
    return {
        copy.tensor
        for step in body
        for copy in copies_in(step)
        if isinstance(copy, CopyOut) and copy.src.tile not in tiles
    }


def stores_to(step: Step, tensor: str) -> bool:
    return any(isinstance(copy, CopyOut) and copy.tensor == tensor for copy in copies_in(step))


def loads_from(step: Step, tensor: str) -> bool:
    return any(isinstance(copy, CopyIn) and copy.tensor == tensor for copy in copies_in(step))
