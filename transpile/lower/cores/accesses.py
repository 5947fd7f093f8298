"""What steps touch: which memory, by which unit, from where on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Literal

from tile2c.transpile.ir.expr import Binary, Expr, Var
from tile2c.transpile.lower.cores.layouts import constant_of
from tile2c.transpile.lower.cores.plan import (
    CopyIn,
    CopyOut,
    ElementOf,
    Leave,
    Local,
    Loop,
    ReadElement,
    Step,
    TensorRef,
    TileRef,
    Unit,
    VectorCall,
    WriteElement,
    bodies,
)
from tile2c.transpile.lower.plan import CCall
from tile2c.transpile.record import record

Mode = Literal["read", "write"]
# memory, who did what, who does not know it is done, and from which element on
Pending = tuple[str, Unit, Mode, Unit, "Expr | Moved | Part | None"]
UNITS: tuple[Unit, ...] = ("MTE2", "V", "MTE3", "S")


@record
class Use:
    """One access of a step: a tile's or a tensor's elements."""

    memory: str
    unit: Unit
    mode: Mode
    offset: Expr | Moved | Part | None = None  # None: from the start, or no telling how much


@record
class Moved:
    """A place that depends on a loop's variable, seen from another round; those it surely had."""

    places: frozenset[int] = frozenset()


@record
class Part:
    """A known part of a tile, which an access stays within."""

    first: int
    count: int


def all_inside(body: tuple[Step, ...]) -> Iterator[Step]:
    """The steps of a list and of those inside it."""
    for step in body:
        yield step
        for part in bodies(step):
            yield from all_inside(part)


def places_of(offset: Expr | Moved | Part | None, loop: Loop) -> frozenset[int]:
    """Where a multiple of the loop's variable lies in its rounds, if these are known."""
    start, stop, step = (constant_of(part) for part in (loop.start, loop.stop, loop.step))
    if start is None or stop is None or not step or not isinstance(offset, Binary):
        return frozenset()
    factor = constant_of(offset.b)
    if offset.op != "*" or offset.a != loop.var or factor is None:
        return frozenset()
    if any(isinstance(inner, Leave) for inner in all_inside(loop.body)):
        return frozenset()
    return frozenset(turn * factor for turn in range(start, stop, step))


def over_rounds(offset: Expr | Moved | Part | None, loop: Loop) -> Expr | Moved | Part | None:
    """A place for all rounds of a loop together."""
    places = places_of(offset, loop)
    return Moved(places=places) if places else offset


def apart(use: Expr | Moved | Part | None, before: Expr | Moved | Part | None) -> bool:
    """Whether two accesses surely touch different elements."""
    if not isinstance(use, Part) or not isinstance(before, Part):
        return False
    first, second = sorted((use, before), key=lambda part: part.first)
    return first.first + first.count <= second.first


def meets(use: Expr | Moved | Part | None, before: Expr | Moved | Part | None) -> bool:
    """Whether two accesses surely start at the same element, or one of them takes all."""
    if use is None or before is None:
        return True
    if isinstance(use, Moved | Part) or isinstance(before, Moved | Part):
        return bool(_starts(use) & _starts(before))
    return before == use


def _starts(offset: Expr | Moved | Part) -> frozenset[int]:
    """The elements where an access surely starts in one of its rounds."""
    if isinstance(offset, Moved):
        return offset.places
    if isinstance(offset, Part):
        return frozenset((offset.first,))
    place = constant_of(offset)
    return frozenset() if place is None else frozenset((place,))


def looked_up(step: Step) -> set[str]:
    """Tensors of which S reads single elements for a step, but for the steps inside it."""

    def visit(node: object) -> Iterator[str]:
        if isinstance(node, CCall) and "." in node.function:
            yield node.function.partition(".")[0]
        if isinstance(node, tuple):
            for part in node:
                yield from visit(part)
        elif isinstance(node, Expr | TileRef | ElementOf | TensorRef):
            for item in fields(node):
                yield from visit(getattr(node, item.name))

    inside = ("body", "then", "orelse")
    own = (getattr(step, item.name) for item in fields(step) if item.name not in inside)
    return {name for value in own for name in visit(value)}


def uses_of(step: Step) -> list[Use]:
    """What a step touches, but for the steps inside it."""
    if isinstance(step, VectorCall):
        reads = [_at(part, "V", "read") for part in step.arguments if isinstance(part, TileRef)]
        worked = () if step.works_in is None else (step.arguments[step.works_in],)
        writes = [
            _at(part, "V", "write") for part in (*worked, step.dst) if isinstance(part, TileRef)
        ]
        return [*dict.fromkeys(reads), *writes]
    if isinstance(step, CopyIn):
        return [Use(step.tensor, "MTE2", "read"), _at(step.dst, "MTE2", "write")]
    if isinstance(step, CopyOut):
        return [_at(step.src, "MTE3", "read"), Use(step.tensor, "MTE3", "write")]
    if isinstance(step, ReadElement):
        return [_at(step.src, "S", "read")]
    if isinstance(step, WriteElement):
        return [_at(step.dst, "S", "write")]
    return []


def _at(part: TileRef, unit: Unit, mode: Mode) -> Use:
    first = 0 if part.offset is None else constant_of(part.offset)
    if part.extent is not None and first is not None:
        return Use(part.tile, unit, mode, Part(first, part.extent))
    return Use(part.tile, unit, mode, part.offset)


def rewritten(body: tuple[Step, ...], loops: frozenset[str]) -> tuple[set[str], set[str]]:
    """Tensors stored to at two places, or in a loop whose variable does not move the place; these
    again, alone."""
    seen: set[str] = set()
    twice: set[str] = set()
    same_place: set[str] = set()
    named: dict[str, set[str]] = {}  # local -> variables of its value

    def visit(steps: tuple[Step, ...], around: frozenset[str]) -> None:
        for step in steps:
            inner = around
            if isinstance(step, Loop):
                inner = around | {step.var.name}
            if isinstance(step, Local):
                named[step.name] = _names(step.value, named)
            if isinstance(step, CopyOut) and not step.exchanged:
                moving = _names(step.offset, named)
                if not around <= moving:
                    same_place.add(step.tensor)
                if step.tensor in seen or step.tensor in same_place:
                    twice.add(step.tensor)
                seen.add(step.tensor)
            for part in bodies(step):
                visit(part, inner)

    visit(body, loops)
    return twice, same_place


def _names(value: object, named: dict[str, set[str]]) -> set[str]:
    """Variables of an expression; for a local those of its value."""
    found: set[str] = set()
    for var in variables_of(value):
        found |= named.get(var.name, {var.name})
    return found


def variables_of(node: object) -> list[Var]:
    """Variables of an expression, a step or a list of them, as often as they occur."""
    if isinstance(node, Var):
        return [node]
    if isinstance(node, tuple):
        return [var for part in node for var in variables_of(part)]
    if isinstance(node, Expr | Step | TileRef | ElementOf):
        return [var for item in fields(node) for var in variables_of(getattr(node, item.name))]
    return []


def left_open(use: Use) -> frozenset[Pending]:
    """What other units, and the unit itself, do not know after this access. S is in order."""
    return frozenset(
        (use.memory, use.unit, use.mode, other, use.offset)
        for other in UNITS
        if other != use.unit or use.unit != "S"
    )
