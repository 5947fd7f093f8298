"""Orders the units where a tile passes from one to another outside of a queue.

reads   steps with queue steps        writes  steps with `Order` and `Barrier` steps, with reasons
Walks the steps as the core runs them and keeps, for each tile and each pair of units, the accesses
that the second unit does not know to be done. An access that conflicts with one of them gets an
`Order` in front, which settles everything the first unit was given before. Loops are walked until
nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal

from tile2c.transpile.ir.expr import Expr, Var
from tile2c.transpile.lower.cores.plan import (
    Barrier,
    Branch,
    CopyIn,
    CopyOut,
    Loop,
    Order,
    QueueStep,
    ReadElement,
    Step,
    Tile,
    TileRef,
    Unit,
    VectorCall,
    WhileLoop,
    WriteElement,
    bodies,
)

Mode = Literal["read", "write"]
Pending = tuple[str, Unit, Mode, Unit]  # memory, who did what, and who does not know it is done
_UNITS: tuple[Unit, ...] = ("MTE2", "V", "MTE3", "S")


@dataclass(frozen=True, slots=True)
class _Use:
    memory: str
    unit: Unit
    mode: Mode


def place_flags(
    setup: tuple[Step, ...], body: tuple[Step, ...], tiles: dict[str, Tile]
) -> tuple[Step, ...]:
    """The body of the block loop with its flags; it runs once a block, one after the other."""
    walker = _Walker(tiles, *_rewritten(body, frozenset()))
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

    def steps(
        self, body: tuple[Step, ...], state: frozenset[Pending]
    ) -> tuple[tuple[Step, ...], frozenset[Pending]]:
        new: list[Step] = []
        for step in body:
            added, step, state = self.step(step, state)
            if added and step.comments:  # the author's statement stands above its flags
                added = (replace(added[0], comments=step.comments), *added[1:])
                step = replace(step, comments=())
            new += (*added, step)
        return tuple(new), state

    def step(
        self, step: Step, state: frozenset[Pending]
    ) -> tuple[tuple[Step, ...], Step, frozenset[Pending]]:
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
        for use in _uses(step):
            if not (isinstance(step, VectorCall) and step.goes_on):
                state = self.use(use, state, added)
        for use in _uses(step):
            state = state | _left(use)
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
            if after <= state:
                return tuple(added), replace(step, body=body), state
            state = state | after

    def settled_before(
        self, body: tuple[Step, ...], state: frozenset[Pending], added: list[Step]
    ) -> frozenset[Pending]:
        """Waits for other units once, in front of a loop of nothing but vector calls."""
        own = frozenset(item for item in state if item[1] == "V")
        rest = state - own
        for inner in body:
            for use in _uses(inner):
                rest = self.use(use, rest, added)
        return rest | own

    def rounds_apart(
        self, step: Loop, state: frozenset[Pending]
    ) -> tuple[tuple[Step, ...], Step, frozenset[Pending]]:
        """An independent loop: what came before is settled once, in front of it."""
        added: list[Step] = []
        for inner in step.body:
            if not (isinstance(inner, VectorCall) and inner.goes_on):
                for use in _uses(inner):
                    state = self.use(use, state, added)
        body, after = self.steps(step.body, state)
        return tuple(added), replace(step, body=body), state | after

    def use(self, use: _Use, state: frozenset[Pending], added: list[Step]) -> frozenset[Pending]:
        # V knows most of what the others have done, so waiting for it may settle them too.
        for before in sorted(_UNITS, key=lambda unit: (unit == use.unit, unit != "V")):
            if before == use.unit and not self.repeats(use.memory):
                continue  # stores of one statement to different elements
            modes = {
                item[2]
                for item in state
                if item[0] == use.memory and item[1] == before and item[3] == use.unit
            }
            if use.mode == "read":
                modes -= {"read"}
            if not modes:
                continue
            why = self.reason(use, "write" in modes)
            proven = use.memory in self.tiles or use.memory in self.same_place
            if not proven:
                why = f"{why}; kept because a dependence could not be disproved"
            if before == use.unit:
                added.append(Barrier(unit=before, remark=why, proven=proven))
            else:
                added.append(Order(before=before, after=use.unit, remark=why, proven=proven))
            state = _settled(state, before, use.unit)
        return state

    def repeats(self, memory: str) -> bool:
        """Whether a unit may meet its own writes to this memory again."""
        return memory in self.tiles or memory in self.rewritten

    def reason(self, use: _Use, written: bool) -> str:
        name = use.memory
        if use.mode == "read":
            return f"{name} is complete"
        return f"{name} has been written" if written else f"{name} has been read"

    def passed(self, step: QueueStep, state: frozenset[Pending]) -> frozenset[Pending]:
        """What a queue settles: the hand-over on dequeue, the way back on free (and allocate)."""
        place = self.tiles[step.tile].place
        pair: tuple[Unit, Unit] = ("MTE2", "V") if place == "in" else ("V", "MTE3")
        if step.action == "free":
            pair = (pair[1], pair[0])
        elif step.action == "allocate":  # what one unit did, the other has waited for and done
            pair = ("V", "V") if place == "out" else ("MTE2", "MTE2")
        elif step.action != "dequeue":
            return state
        return frozenset(
            item for item in state if (item[0], item[1], item[3]) != (step.tile, *pair)
        )


def _settled(state: frozenset[Pending], before: Unit, after: Unit) -> frozenset[Pending]:
    """`after` now knows what `before` has done, and what `before` knows to be done."""
    return frozenset(
        item
        for item in state
        if item[3] != after
        or not (item[1] == before or (item[0], item[1], item[2], before) not in state)
    )


def _uses(step: Step) -> list[_Use]:
    if isinstance(step, VectorCall):
        reads = [_Use(name, "V", "read") for name in dict.fromkeys(step.sources)]
        return [*reads, _Use(step.dst.tile, "V", "write")]
    if isinstance(step, CopyIn):
        return [_Use(step.tensor, "MTE2", "read"), _Use(step.dst.tile, "MTE2", "write")]
    if isinstance(step, CopyOut):
        return [_Use(step.src.tile, "MTE3", "read"), _Use(step.tensor, "MTE3", "write")]
    if isinstance(step, ReadElement):
        return [_Use(step.src.tile, "S", "read")]
    if isinstance(step, WriteElement):
        return [_Use(step.dst.tile, "S", "write")]
    return []


def _rewritten(body: tuple[Step, ...], loops: frozenset[str]) -> tuple[set[str], set[str]]:
    """Tensors stored to at two places, or in a loop whose variable does not move the place; these
    again, alone."""
    seen: set[str] = set()
    twice: set[str] = set()
    same_place: set[str] = set()

    def visit(steps: tuple[Step, ...], around: frozenset[str]) -> None:
        for step in steps:
            inner = around
            if isinstance(step, Loop):
                inner = around | {step.var.name}
            if isinstance(step, CopyOut):
                moving = {var.name for var in variables_of(step.offset)}
                if not around <= moving:
                    same_place.add(step.tensor)
                if step.tensor in seen or step.tensor in same_place:
                    twice.add(step.tensor)
                seen.add(step.tensor)
            for part in bodies(step):
                visit(part, inner)

    visit(body, loops)
    return twice, same_place


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
    if isinstance(node, Expr | Step | TileRef):
        return [var for item in fields(node) for var in variables_of(getattr(node, item.name))]
    return []


def _left(use: _Use) -> frozenset[Pending]:
    """What other units, and the unit itself, do not know after this access. S is in order."""
    return frozenset(
        (use.memory, use.unit, use.mode, other)
        for other in _UNITS
        if other != use.unit or use.unit != "S"
    )
