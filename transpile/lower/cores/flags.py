"""Orders the units where a tile passes from one to another outside of a queue.

reads   steps with queue steps        writes  steps with `Order` and `Barrier` steps, with reasons
Walks the steps as the core runs them and keeps, for each tile and each pair of units, the accesses
that the second unit does not know to be done. An access that conflicts with one of them gets an
`Order` in front, which settles everything the first unit was given before. Loops are walked until
nothing changes.
"""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.lower.cores.accesses import (
    UNITS,
    Moved,
    Pending,
    Use,
    all_inside,
    apart,
    left_open,
    looked_up,
    meets,
    over_rounds,
    places_of,
    rewritten,
    uses_of,
    variables_of,
)
from tile2c.transpile.lower.cores.layouts import constant_of
from tile2c.transpile.lower.cores.plan import (
    Barrier,
    Branch,
    CopyOut,
    Leave,
    Loop,
    Order,
    QueueStep,
    Step,
    Tile,
    Unit,
    VectorCall,
    WhileLoop,
    bodies,
)
from tile2c.transpile.wording import listed


def place_flags(
    setup: tuple[Step, ...], body: tuple[Step, ...], tiles: dict[str, Tile]
) -> tuple[Step, ...]:
    """The body of the block loop with its flags; it runs once a block, one after the other."""
    walker = _Walker(tiles, *rewritten(body, frozenset()))
    walker.stored = {step.tensor for step in all_inside(body) if isinstance(step, CopyOut)}
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
        for name in sorted(looked_up(step) & self.stored):  # before it is stored to, or never
            state = state | left_open(Use(name, "S", "read"))
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
            state = self.settle(uses_of(step), state, added)
        for use in uses_of(step):
            left = left_open(use)
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
            state = self.settle(uses_of(inner), state, added, but="V")
        return state

    def rounds_apart(
        self, step: Loop, state: frozenset[Pending]
    ) -> tuple[tuple[Step, ...], Step, frozenset[Pending]]:
        """An independent loop: what came before is settled once, in front of it."""
        added: list[Step] = []
        for inner in all_inside(step.body):
            if not (isinstance(inner, VectorCall) and inner.goes_on):
                uses = [
                    replace(use, offset=over_rounds(use.offset, step)) for use in uses_of(inner)
                ]
                state = self.settle(uses, state, added)
        body, after = self.steps(step.body, state)
        return tuple(added), replace(step, body=body), state | after

    def settle(
        self,
        uses: list[Use],
        state: frozenset[Pending],
        added: list[Step],
        but: Unit | None = None,
    ) -> frozenset[Pending]:
        """Waits for what the accesses of one step have to come after, except for `but`."""
        while True:
            open_uses = [
                (before, use)
                for use in uses
                for before in UNITS
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
        found: tuple[Unit, Use],
        open_uses: list[tuple[Unit, Use]],
        state: frozenset[Pending],
    ) -> tuple[int, bool, bool]:
        """What would be open after this wait, which may settle others; V knows most of the rest."""
        before, use = found
        then = _settled(state, before, use.unit)
        count = sum(bool(self.conflicts(other, unit, then)) for unit, other in open_uses)
        return count, before == use.unit, before != "V"

    def conflicts(self, use: Use, before: Unit, state: frozenset[Pending]) -> list[Pending]:
        """What `before` did that this has to come after."""
        if before == use.unit and not self.repeats(use.memory):
            return []  # stores of one statement to different elements
        return [
            item
            for item in state
            if (item[0], item[1], item[3]) == (use.memory, before, use.unit)
            and "write" in (use.mode, item[2])
            and not apart(use.offset, item[4])
        ]

    def proven(self, use: Use, items: list[Pending]) -> bool:
        """Whether one of them surely meets the same bytes."""
        if use.memory not in self.tiles:
            return use.memory in self.same_place
        return any(meets(use.offset, item[4]) for item in items)

    def repeats(self, memory: str) -> bool:
        """Whether a unit may meet its own writes to this memory again."""
        return memory in self.tiles or memory in self.rewritten

    def reason(self, use: Use, items: list[Pending]) -> tuple[str, str]:
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


def _learnt(state: frozenset[Pending], before: Unit, after: Unit) -> frozenset[Pending]:
    """`after` now knows what `before` knows of the others."""
    return frozenset(
        item
        for item in state
        if item[3] != after or item[1] == before or (*item[:3], before, item[4]) in state
    )


def _surely_ends(loop: Loop | WhileLoop) -> bool:
    """Whether its body is done from end to end at least once."""
    if not isinstance(loop, Loop) or any(isinstance(step, Leave) for step in all_inside(loop.body)):
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
        (*item[:4], Moved(places=places_of(item[4], loop)))
        if name in {var.name for var in variables_of(item[4])}
        else item
        for item in state
    )


def _settled(state: frozenset[Pending], before: Unit, after: Unit) -> frozenset[Pending]:
    """`after` now knows what `before` has done, and what `before` knows to be done."""
    return frozenset(
        item
        for item in state
        if item[3] != after or not (item[1] == before or (*item[:3], before, item[4]) not in state)
    )


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
