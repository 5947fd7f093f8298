"""Orders the units where a tile passes from one to another outside of a queue.

reads   steps with queue steps        writes  steps with `Order` and `Barrier` steps, with reasons
Walks the steps as the core runs them and keeps, for each tile and each pair of units, the accesses
that the second unit does not know to be done. An access that conflicts with one of them gets an
`Order` in front, which settles everything the first unit was given before. Loops are walked until
nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Literal

from tile2c.transpile.ir.expr import Binary, Expr, Var
from tile2c.transpile.lower.cores.layouts import constant_of
from tile2c.transpile.lower.cores.plan import (
    Barrier,
    Branch,
    CopyIn,
    CopyOut,
    ElementOf,
    Leave,
    Local,
    Loop,
    Order,
    QueueStep,
    ReadElement,
    Step,
    TensorRef,
    Tile,
    TileRef,
    Unit,
    VectorCall,
    WhileLoop,
    WriteElement,
    bodies,
)
from tile2c.transpile.lower.plan import CCall
from tile2c.transpile.record import record
from tile2c.transpile.wording import listed

Mode = Literal["read", "write"]
# memory, who did what, who does not know it is done, and from which element on
Pending = tuple[str, Unit, Mode, Unit, "Expr | Moved | Part | None"]
_UNITS: tuple[Unit, ...] = ("MTE2", "V", "MTE3", "S")


@record
class _Use:
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


def place_flags(
    setup: tuple[Step, ...], body: tuple[Step, ...], tiles: dict[str, Tile]
) -> tuple[Step, ...]:
    """The body of the block loop with its flags; it runs once a block, one after the other."""
    walker = _Walker(tiles, *_rewritten(body, frozenset()))
    walker.stored = {step.tensor for step in _all_inside(body) if isinstance(step, CopyOut)}
    _, state = walker.steps(setup, frozenset())
    while True:
        steps, after = walker.steps(body, state)
        merged = state | after
        if merged == state:
            return steps
        state = merged


class _Walker:
    def __init__(self, tiles: dict[str, Tile], rewritten: set[str], same_place: set[str]) -> None:
        self.tiles = tiles
        self.same_place = same_place  # of these, surely
        self.rewritten = rewritten  # tensors of which a block may write an element twice
        self.stored: set[str] = set()  # tensors that the blocks store to
        # of a queued tile: what its taker learns at the dequeue, by what its filler knew before
        self.told: dict[str, set[Pending]] = {}

    def steps(
        self, body: tuple[Step, ...], state: frozenset[Pending]
    ) -> tuple[tuple[Step, ...], frozenset[Pending]]:
        new: list[Step] = []
        for step in body:
            if isinstance(step, QueueStep) and step.action == "enqueue":
                self.told[step.tile] = set(state - _learnt(state, *self.pair(step)))
            elif isinstance(step, QueueStep) and step.action == "dequeue":
                state -= self.told.pop(step.tile, set())
            added, step, state = self.step(step, state)
            if added and step.comments:  # the author's statement stands above its flags
                added = (replace(added[0], comments=step.comments), *added[1:])
                step = replace(step, comments=())
            new += (*added, step)
        return tuple(new), state

    def step(
        self, step: Step, state: frozenset[Pending]
    ) -> tuple[tuple[Step, ...], Step, frozenset[Pending]]:
        for name in sorted(_looked_up(step) & self.stored):  # before it is stored to, or never
            state = state | _left(_Use(name, "S", "read"))
        if isinstance(step, Loop | WhileLoop):
            return self.loop(step, state)
        if isinstance(step, Branch):
            then, first = self.steps(step.then, state)
            if step.prefills and self.tiles[step.prefills].place == "in":
                why = "the zeros are there before the copy"
                then = (*then, Order(before="V", after="MTE2", remark=why))
                first = _settled(first, "V", "MTE2")
            orelse, second = self.steps(step.orelse, state)
            return (), replace(step, then=then, orelse=orelse), first | second
        if isinstance(step, QueueStep):
            return (), step, self.passed(step, state)
        if isinstance(step, Order):
            return (), step, _settled(state, step.before, step.after)
        added: list[Step] = []
        if not (isinstance(step, VectorCall) and step.goes_on):
            state = self.settle(_uses(step), state, added)
        for use in _uses(step):
            left = _left(use)
            state = state | left
            for told in self.told.values():
                told -= left
        return tuple(added), step, state

    def loop(
        self, step: Loop | WhileLoop, state: frozenset[Pending]
    ) -> tuple[tuple[Step, ...], Step, frozenset[Pending]]:
        if isinstance(step, Loop) and step.independent:
            return self.rounds_apart(step, state)
        added: list[Step] = []
        if all(isinstance(inner, VectorCall) for inner in step.body):
            state = self.settled_before(step.body, state, added)
        while True:
            body, after = self.steps(step.body, state)
            after = _moved_on(after, step)
            if after <= state:
                left = after if _surely_ends(step) else state
                return tuple(added), replace(step, body=body), left
            state = state | after

    def settled_before(
        self, body: tuple[Step, ...], state: frozenset[Pending], added: list[Step]
    ) -> frozenset[Pending]:
        """Waits for other units once, in front of a loop of nothing but vector calls."""
        for inner in body:
            state = self.settle(_uses(inner), state, added, but="V")
        return state

    def rounds_apart(
        self, step: Loop, state: frozenset[Pending]
    ) -> tuple[tuple[Step, ...], Step, frozenset[Pending]]:
        """An independent loop: what came before is settled once, in front of it."""
        added: list[Step] = []
        for inner in _all_inside(step.body):
            if not (isinstance(inner, VectorCall) and inner.goes_on):
                uses = [replace(use, offset=_over(use.offset, step)) for use in _uses(inner)]
                state = self.settle(uses, state, added)
        body, after = self.steps(step.body, state)
        return tuple(added), replace(step, body=body), state | after

    def settle(
        self,
        uses: list[_Use],
        state: frozenset[Pending],
        added: list[Step],
        but: Unit | None = None,
    ) -> frozenset[Pending]:
        """Waits for what the accesses of one step have to come after, except for `but`."""
        while True:
            open_uses = [
                (before, use)
                for use in uses
                for before in _UNITS
                if before != but and self.conflicts(use, before, state)
            ]
            if not open_uses:
                return state
            before, use = min(open_uses, key=lambda found: self.left(found, open_uses, state))
            met = [
                (other, self.conflicts(other, before, state))
                for unit, other in open_uses
                if (unit, other.unit) == (before, use.unit)
            ]
            why = _told([self.reason(*one) for one in met])
            proven = any(self.proven(*one) for one in met)
            if not proven:
                why = f"{why}; kept because a dependence could not be disproved"
            if before == use.unit:
                added.append(Barrier(unit=before, remark=why, proven=proven))
            else:
                added.append(Order(before=before, after=use.unit, remark=why, proven=proven))
            state = _settled(state, before, use.unit)

    def left(
        self,
        found: tuple[Unit, _Use],
        open_uses: list[tuple[Unit, _Use]],
        state: frozenset[Pending],
    ) -> tuple[int, bool, bool]:
        """What would be open after this wait, which may settle others; V knows most of the rest."""
        before, use = found
        then = _settled(state, before, use.unit)
        count = sum(bool(self.conflicts(other, unit, then)) for unit, other in open_uses)
        return count, before == use.unit, before != "V"

    def conflicts(self, use: _Use, before: Unit, state: frozenset[Pending]) -> list[Pending]:
        """What `before` did that this has to come after."""
        if before == use.unit and not self.repeats(use.memory):
            return []  # stores of one statement to different elements
        return [
            item
            for item in state
            if (item[0], item[1], item[3]) == (use.memory, before, use.unit)
            and "write" in (use.mode, item[2])
            and not _apart(use.offset, item[4])
        ]

    def proven(self, use: _Use, items: list[Pending]) -> bool:
        """Whether one of them surely meets the same bytes."""
        if use.memory not in self.tiles:
            return use.memory in self.same_place
        return any(_meets(use.offset, item[4]) for item in items)

    def repeats(self, memory: str) -> bool:
        """Whether a unit may meet its own writes to this memory again."""
        return memory in self.tiles or memory in self.rewritten

    def reason(self, use: _Use, items: list[Pending]) -> tuple[str, str]:
        """A memory, and what is true of it."""
        if use.mode == "read":
            return use.memory, "complete"
        written = any(item[2] == "write" for item in items)
        return use.memory, "written" if written else "read"

    def passed(self, step: QueueStep, state: frozenset[Pending]) -> frozenset[Pending]:
        """What a queue settles: the hand-over on dequeue, the way back on free (and allocate)."""
        place = self.tiles[step.tile].place
        pair = self.pair(step)
        if step.action == "free":
            pair = (pair[1], pair[0])
        elif step.action == "allocate":  # what one unit did, the other has waited for and done
            pair = ("V", "V") if place == "out" else ("MTE2", "MTE2")
        elif step.action != "dequeue":
            return state
        return frozenset(
            item for item in state if (item[0], item[1], item[3]) != (step.tile, *pair)
        )

    def pair(self, step: QueueStep) -> tuple[Unit, Unit]:
        """Who fills the tile, and who takes it."""
        return ("MTE2", "V") if self.tiles[step.tile].place == "in" else ("V", "MTE3")


def _told(reasons: list[tuple[str, str]]) -> str:
    """What an order is for: each memory once, those of which the same is true together."""
    of: dict[str, str] = {}
    for name, what in reasons:
        of.setdefault(name, what)
    parts = []
    for what in dict.fromkeys(of.values()):
        names = [name for name in of if of[name] == what]
        one = len(names) == 1
        verb = ("is" if one else "are") if what == "complete" else ("has" if one else "have")
        parts.append(f"{listed(names)} {verb} {what if what == 'complete' else f'been {what}'}")
    return "; ".join(parts)


def _all_inside(body: tuple[Step, ...]) -> Iterator[Step]:
    """The steps of a list and of those inside it."""
    for step in body:
        yield step
        for part in bodies(step):
            yield from _all_inside(part)


def _learnt(state: frozenset[Pending], before: Unit, after: Unit) -> frozenset[Pending]:
    """`after` now knows what `before` knows of the others."""
    return frozenset(
        item
        for item in state
        if item[3] != after or item[1] == before or (*item[:3], before, item[4]) in state
    )


def _surely_ends(loop: Loop | WhileLoop) -> bool:
    """Whether its body is done from end to end at least once."""
    if not isinstance(loop, Loop) or any(
        isinstance(step, Leave) for step in _all_inside(loop.body)
    ):
        return False
    start, stop, step = (constant_of(part) for part in (loop.start, loop.stop, loop.step))
    if start is None or stop is None or step is None:
        return False
    return start < stop if step > 0 else start > stop


def _moved_on(state: frozenset[Pending], loop: Loop | WhileLoop) -> frozenset[Pending]:
    """The same seen from the next round: places that the loop moves lie elsewhere."""
    if not isinstance(loop, Loop):
        return state
    name = loop.var.name
    return frozenset(
        (*item[:4], Moved(places=_places(item[4], loop)))
        if name in {var.name for var in variables_of(item[4])}
        else item
        for item in state
    )


def _places(offset: Expr | Moved | Part | None, loop: Loop) -> frozenset[int]:
    """Where a multiple of the loop's variable lies in its rounds, if these are known."""
    start, stop, step = (constant_of(part) for part in (loop.start, loop.stop, loop.step))
    if start is None or stop is None or not step or not isinstance(offset, Binary):
        return frozenset()
    factor = constant_of(offset.b)
    if offset.op != "*" or offset.a != loop.var or factor is None:
        return frozenset()
    if any(isinstance(inner, Leave) for inner in _all_inside(loop.body)):
        return frozenset()
    return frozenset(turn * factor for turn in range(start, stop, step))


def _over(offset: Expr | Moved | Part | None, loop: Loop) -> Expr | Moved | Part | None:
    """A place for all rounds of a loop together."""
    places = _places(offset, loop)
    return Moved(places=places) if places else offset


def _apart(use: Expr | Moved | Part | None, before: Expr | Moved | Part | None) -> bool:
    """Whether two accesses surely touch different elements."""
    if not isinstance(use, Part) or not isinstance(before, Part):
        return False
    first, second = sorted((use, before), key=lambda part: part.first)
    return first.first + first.count <= second.first


def _meets(use: Expr | Moved | Part | None, before: Expr | Moved | Part | None) -> bool:
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


def _settled(state: frozenset[Pending], before: Unit, after: Unit) -> frozenset[Pending]:
    """`after` now knows what `before` has done, and what `before` knows to be done."""
    return frozenset(
        item
        for item in state
        if item[3] != after or not (item[1] == before or (*item[:3], before, item[4]) not in state)
    )


def _looked_up(step: Step) -> set[str]:
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


def _uses(step: Step) -> list[_Use]:
    if isinstance(step, VectorCall):
        reads = [_at(part, "V", "read") for part in step.arguments if isinstance(part, TileRef)]
        return [*dict.fromkeys(reads), _at(step.dst, "V", "write")]
    if isinstance(step, CopyIn):
        return [_Use(step.tensor, "MTE2", "read"), _at(step.dst, "MTE2", "write")]
    if isinstance(step, CopyOut):
        return [_at(step.src, "MTE3", "read"), _Use(step.tensor, "MTE3", "write")]
    if isinstance(step, ReadElement):
        return [_at(step.src, "S", "read")]
    if isinstance(step, WriteElement):
        return [_at(step.dst, "S", "write")]
    return []


def _at(part: TileRef, unit: Unit, mode: Mode) -> _Use:
    first = 0 if part.offset is None else constant_of(part.offset)
    if part.extent is not None and first is not None:
        return _Use(part.tile, unit, mode, Part(first, part.extent))
    return _Use(part.tile, unit, mode, part.offset)


def _rewritten(body: tuple[Step, ...], loops: frozenset[str]) -> tuple[set[str], set[str]]:
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


def flags_used(body: tuple[Step, ...]) -> frozenset[frozenset[Unit]]:
    """Pairs of units between which an `Order` stands, but for those that prepare a copy: these come
    right after their tile gave its own event back."""
    found: set[frozenset[Unit]] = set()
    for step in body:
        if isinstance(step, Order):
            found.add(frozenset((step.before, step.after)))
        if not (isinstance(step, Branch) and step.prefills):
            for inner in bodies(step):
                found |= flags_used(inner)
    return frozenset(found)


def variables_of(node: object) -> list[Var]:
    """Variables of an expression, a step or a list of them, as often as they occur."""
    if isinstance(node, Var):
        return [node]
    if isinstance(node, tuple):
        return [var for part in node for var in variables_of(part)]
    if isinstance(node, Expr | Step | TileRef | ElementOf):
        return [var for item in fields(node) for var in variables_of(getattr(node, item.name))]
    return []


def _left(use: _Use) -> frozenset[Pending]:
    """What other units, and the unit itself, do not know after this access. S is in order."""
    return frozenset(
        (use.memory, use.unit, use.mode, other, use.offset)
        for other in _UNITS
        if other != use.unit or use.unit != "S"
    )
