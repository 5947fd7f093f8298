"""Barriers by dependence: arcs between steps that may touch the same bytes, and the fewest barriers
that order them all.

An arc X -> Y needs a barrier somewhere on every path from X to Y. Places for barriers are the gaps
between steps; a loop that may run zero times orders nothing across it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile2c.transpile.ir.expr import Expr
from tile2c.transpile.lower.plan import Arc, CStmt, Sync
from tile2c.transpile.lower.simt.barrier_words import reason
from tile2c.transpile.lower.simt.gaps import OpenArc, Path, cheapest
from tile2c.transpile.lower.simt.one_thread import (
    names_places,
    never_same,
    one_round,
    one_thread,
)
from tile2c.transpile.lower.simt.overlay import Group
from tile2c.transpile.lower.simt.per_thread import apart
from tile2c.transpile.lower.simt.steps import Access, BranchStep, LoopStep, Node, Step, Team
from tile2c.transpile.record import record


@record
class _Place:
    """A step with its path and the loops around it, outermost first."""

    step: Step
    path: Path
    loops: tuple[Path, ...]


def place_barriers(
    nodes: Sequence[Node],
    *,
    leaves: bool = False,
    overlays: Sequence[Group] = (),
    by_hand: int = 0,
) -> tuple[tuple[Node, ...], tuple[Arc, ...]]:
    """The nodes with barriers between them, each with the arcs it orders; and all arcs.

    `leaves`: some threads return early; no barrier can wait for them.
    `overlays`: buffers that lie in the same bytes.
    `by_hand`: the block's threads, where the author schedules: between threads that have no statement in
    common he keeps order himself, and his barriers count.

    reads   step tree          writes  step tree
    """
    tree = _Tree(nodes, overlays, by_hand)
    if leaves:  # some threads return early and would be missed
        tree.divergent.add(())
    arcs = tree.arcs()
    chosen = cheapest(tree.left(arcs) if by_hand else list(arcs), tree.cost)
    orders = {gap: _orders(gap, chosen, arcs) for gap in chosen}
    return tree.with_barriers(orders), tuple(a.arc for a in arcs)


@record
class _Orders:
    """What a barrier orders, and which of it no other barrier does: what it stands there for."""

    arcs: tuple[Arc, ...]
    alone: tuple[Arc, ...]


def _orders(gap: Path, chosen: Sequence[Path], arcs: Sequence[OpenArc]) -> _Orders:
    here = [arc for arc in arcs if gap in arc.gaps]
    alone = [arc for arc in here if not any(g in arc.gaps for g in chosen if g != gap)]
    return _Orders(tuple(a.arc for a in here), tuple(a.arc for a in alone or here))


class _Tree:
    def __init__(
        self,
        nodes: Sequence[Node],
        overlays: Sequence[Group] = (),
        threads: int = 0,
    ) -> None:
        self.threads, self.by_hand = threads, threads > 0
        self.over = _in_same_bytes(overlays)
        self.nodes = tuple(nodes)
        self.places: list[_Place] = []
        self.runs: dict[Path, bool] = {}
        self.divergent: set[Path] = set()
        self.teams: dict[Path, Team] = {}
        self.names: dict[Path, str] = {}
        self._collect(self.nodes, (), ())

    def _collect(self, nodes: Sequence[Node], path: Path, loops: tuple[Path, ...]) -> None:
        for number, node in enumerate(nodes):
            here = (*path, number)
            if isinstance(node, Step):
                self.places.append(_Place(node, here, loops))
            elif isinstance(node, LoopStep):
                self.runs[here] = node.runs
                self.names[here] = node.name
                if not node.uniform:
                    self.divergent.add(here)
                self._collect(node.body, here, (*loops, here))
            else:
                for side, body in enumerate((node.then, node.orelse)):
                    if not node.uniform:
                        self.divergent.add((*here, side))
                        team = node.teams[side]
                        if team is not None:
                            self.teams[(*here, side)] = team
                    self._collect(body, (*here, side), loops)

    # ---- arcs

    def arcs(self) -> list[OpenArc]:
        found: dict[tuple[object, ...], OpenArc] = {}
        for source in self.places:
            for sink in self.places:
                for arc in self._between(source, sink):
                    key = (source.path, sink.path, arc.arc.buffer, arc.arc.kind, arc.gaps)
                    found.setdefault(key, arc)
        return list(found.values())

    def _between(self, source: _Place, sink: _Place) -> list[OpenArc]:
        found: list[OpenArc] = []
        if self._alone(source, sink) or (self.by_hand and self._strangers(source, sink)):
            return found
        for first in _effects(source.step):
            for second in sink.step.accesses:
                alike = first.buffer == second.buffer
                alike = alike or second.buffer in self.over.get(first.buffer, ())
                if not alike or not (first.write or second.write):
                    continue
                if first.buffer != second.buffer and not second.write:
                    continue  # it reads what was written since, which comes behind that write
                if first.together and self._team(source.path) == self._team(sink.path):
                    continue
                found += self._pair(source, first, sink, second)
        return found

    def _pair(self, source: _Place, first: Access, sink: _Place, second: Access) -> list[OpenArc]:
        ways: list[tuple[Path | None, int, frozenset[Path]]] = []
        if source.path < sink.path and not self._exclusive(source.path, sink.path):
            if self._conflict(first, second, None) and self._meets(first, second, source, sink):
                ways.append((None, 0, self._forward(source, sink)))
        shared = [loop for loop in source.loops if loop in sink.loops]
        for loop in shared:
            if not self._conflict(first, second, loop):
                continue
            distance = self._distance(first, second, loop)
            ways.append((loop, distance, self._around(source, sink, loop, distance)))
        return [
            self._arc(source, first, sink, second, *way)
            for way in ways
            if way[2] or not _scattered(first, second)
        ]

    def _conflict(self, first: Access, second: Access, loop: Path | None) -> bool:
        """Whether different threads may touch the same element, now or in another round of the loop."""
        if first.buffer != second.buffer:
            return True  # in the same bytes, but not by the same elements
        if (first.atomic and second.atomic) or apart(first.cells, second.cells):
            return False
        element, other = first.element, second.element
        if element is None or other is None:
            return True
        around = self._node(loop) if loop is not None else None
        changed = around.binds if isinstance(around, LoopStep) else frozenset[str]()
        if never_same(element, other, changed):
            return False
        if element != other or first.owner != second.owner:
            return True
        if isinstance(around, LoopStep) and around.var and around.uniform:
            if one_round(element, around.var, changed):
                return False
        return not one_thread(element, changed)

    def _exclusive(self, a: Path, c: Path) -> bool:
        """Whether the two lie on different sides of one branch."""
        return isinstance(self._node(a[: _common(a, c)]), BranchStep)

    def _meets(self, first: Access, second: Access, source: _Place, sink: _Place) -> bool:
        """Whether both touch the same copy of a ring in one round of its loop."""
        inside = any(self.names[loop] == first.ring for loop in source.loops if loop in sink.loops)
        if not (inside and first.ring == second.ring):
            return True
        return (first.version - second.version) % max(first.depth, 1) == 0

    def _distance(self, first: Access, second: Access, loop: Path) -> int:
        """The least number of rounds >= 1 after which the sink touches the source's copy."""
        if self.names[loop] != first.ring or first.ring != second.ring:
            return 1
        return (first.version - second.version - 1) % max(first.depth, 1) + 1

    def _arc(
        self,
        source: _Place,
        first: Access,
        sink: _Place,
        second: Access,
        loop: Path | None,
        distance: int,
        gaps: frozenset[Path],
    ) -> OpenArc:
        kind = "RAW" if first.write and not second.write else "WAW" if first.write else "WAR"
        if first.buffer != second.buffer:  # whatever was done there, it is over
            kind = "WAR"
        return OpenArc(
            Arc(
                source=source.step.quote,
                sink=sink.step.quote,
                buffer=first.buffer,
                kind=kind,  # type: ignore[arg-type]
                loop=self.names.get(loop, "") if loop is not None else None,
                distance=distance,
                ring=first.ring if first.depth > 1 and first.ring == second.ring else "",
                proven=first.proven and second.proven and not _perhaps(first, second),
                witness="always"
                if loop is None
                else f"the loop runs at least {distance + 1} times",
                taker=second.buffer if first.buffer != second.buffer else "",
            ),
            gaps,
        )

    # ---- gaps

    def _forward(self, source: _Place, sink: _Place) -> frozenset[Path]:
        """Gaps that every path from source to a later sink passes."""
        depth = _common(source.path, sink.path)
        level = source.path[:depth]
        gaps = {(*level, k) for k in range(source.path[depth] + 1, sink.path[depth] + 1)}
        gaps |= self._after(source.path, depth + 1)
        gaps |= self._before(sink.path, depth + 1)
        return self._legal(gaps, source, sink)

    def _around(self, source: _Place, sink: _Place, loop: Path, distance: int) -> frozenset[Path]:
        """Gaps passed between source in one round of the loop and sink `distance` rounds later."""
        depth = len(loop)
        count = self._length(loop)
        if distance >= 2:
            whole = {(*loop, k) for k in range(count + 1)}
            return self._legal(
                whole | self._after(source.path, depth + 1) | self._before(sink.path, depth + 1),
                source,
                sink,
            )
        gaps = {(*loop, k) for k in range(source.path[depth] + 1, count + 1)}
        gaps |= {(*loop, k) for k in range(0, sink.path[depth] + 1)}
        gaps |= self._after(source.path, depth + 1)
        gaps |= self._before(sink.path, depth + 1)
        return self._legal(gaps, source, sink)

    def _after(self, path: Path, depth: int) -> set[Path]:
        """Gaps behind the step inside the nodes around it, from `depth` on."""
        found: set[Path] = set()
        for level in range(depth, len(path)):
            if self._is_sequence(path[:level]):
                inside = path[:level]
                found |= {(*inside, k) for k in range(path[level] + 1, self._length(inside) + 1)}
        return found

    def _before(self, path: Path, depth: int) -> set[Path]:
        found: set[Path] = set()
        for level in range(depth, len(path)):
            if self._is_sequence(path[:level]):
                found |= {(*path[:level], k) for k in range(0, path[level] + 1)}
        return found

    def _node(self, path: Path) -> Node | Sequence[Node]:
        at: Node | Sequence[Node] = self.nodes
        for number in path:
            if isinstance(at, LoopStep):
                at = at.body[number]
            elif isinstance(at, BranchStep):
                at = at.then if number == 0 else at.orelse
            elif isinstance(at, Step):
                raise LookupError(path)
            else:
                at = at[number]
        return at

    def _is_sequence(self, path: Path) -> bool:
        return not isinstance(self._node(path), BranchStep | Step)

    def _length(self, path: Path) -> int:
        node = self._node(path)
        if isinstance(node, LoopStep):
            return len(node.body)
        assert not isinstance(node, Step | BranchStep)
        return len(node)

    def _legal(self, gaps: set[Path], source: _Place, sink: _Place) -> frozenset[Path]:
        """No barrier where threads diverge, but of a team among its own steps.

        The end of a loop's body is its beginning: kept as such.
        """

        def stands(gap: Path, inside: Path) -> bool:
            if gap[: len(inside)] != inside:
                return True
            team = self.teams.get(inside)
            both = all(step.path[: len(inside)] == inside for step in (source, sink))
            if team is not None and self.by_hand:  # the same threads, elsewhere
                both = both or all(self._team(x.path) == team for x in (source, sink))
            return team is not None and team.meet is not None and both

        return frozenset(gap for gap in gaps if all(stands(gap, part) for part in self.divergent))

    def _alone(self, source: _Place, sink: _Place) -> bool:
        """Whether both are done by one and the same thread."""
        return any(
            team.count == 1 and source.path[: len(part)] == part == sink.path[: len(part)]
            for part, team in self.teams.items()
        )

    def _team(self, path: Path) -> Team | None:
        """The threads that get to this place, where they are some of the block's."""
        inner = [part for part in self.teams if path[: len(part)] == part]
        return self.teams[max(inner, key=len)] if inner else None

    def left(self, arcs: Sequence[OpenArc]) -> list[OpenArc]:
        """What the author's own barriers of all threads that get there leave open; where no barrier can
        stand, he keeps order himself."""
        met = set()
        for place in self.places:
            team = self._team(place.path)
            everyone = team is None and place.step.meets == self.threads
            if everyone or (team is not None and place.step.meets == team.count):
                met.add(place.path)
        return [arc for arc in arcs if arc.gaps and not arc.gaps & met]

    def _strangers(self, source: _Place, sink: _Place) -> bool:
        """Whether no thread does both."""
        one, other = self._team(source.path), self._team(sink.path)
        if one is None or other is None:
            return False
        return one.first >= other.first + other.count or other.first >= one.first + one.count

    def _meeting(self, gap: Path) -> Expr | None:
        """How the threads at this gap meet, where they are a team."""
        team = self._team(gap)
        return team.meet if team is not None else None

    def cost(self, gap: Path) -> int:
        """Barriers in inner loops are dear."""
        return int(
            8 ** sum(1 for loop in self.runs if gap[: len(loop)] == loop and len(gap) > len(loop))
        )

    # ---- result

    def with_barriers(self, orders: dict[Path, _Orders]) -> tuple[Node, ...]:
        return self._rebuild(self.nodes, (), orders)

    def _rebuild(
        self, nodes: Sequence[Node], path: Path, orders: dict[Path, _Orders]
    ) -> tuple[Node, ...]:
        found: list[Node] = []
        for number, node in enumerate(nodes):
            here = (*path, number)
            if here in orders:
                found.append(_barrier(orders[here], self._meeting(here)))
            if isinstance(node, LoopStep):
                found.append(replace(node, body=self._rebuild(node.body, here, orders)))
            elif isinstance(node, BranchStep):
                found.append(
                    replace(
                        node,
                        then=self._rebuild(node.then, (*here, 0), orders),
                        orelse=self._rebuild(node.orelse, (*here, 1), orders),
                    )
                )
            else:
                found.append(node)
        end = (*path, len(nodes))
        if end in orders:
            found.append(_barrier(orders[end], self._meeting(end)))
        return tuple(found)


def _barrier(orders: _Orders, call: Expr | None) -> Step:
    """A barrier step with its reason; of the whole block, or by this call."""
    rings = {arc.buffer: arc.ring for arc in orders.arcs if arc.ring}
    remark = reason(orders.alone, rings)
    sync: CStmt = Sync(kind="barrier", arcs=orders.arcs, remark=remark, call=call)
    return Step(body=(sync,), quote="")


def _perhaps(first: Access, second: Access) -> bool:
    """Whether threads find the same elements unless memory names one of them twice."""
    element = first.element
    alike = element == second.element and first.owner == second.owner
    return element is not None and alike and names_places(element)


def _scattered(first: Access, second: Access) -> bool:
    """Whether both store to a tensor at places that memory names: whether any is the same only the author
    knows, so he keeps the order where no barrier can stand."""
    elements = (first.element, second.element)
    tensors = all(x is not None and x.of_tensor for x in elements)
    named = any(x is not None and names_places(x) for x in elements)
    return first.write and second.write and tensors and named


def _effects(step: Step) -> list[Access]:
    """What a step has done when it is over: asynchronous writes count where they complete."""
    return [access for access in step.accesses if not access.asynchronous] + list(step.completes)


def _in_same_bytes(overlays: Sequence[Group]) -> dict[str, set[str]]:
    """For each array the others that its bytes may hold: those of the other layers of its group."""
    found: dict[str, set[str]] = {}
    for group in overlays:
        for layer in group:
            others = {name for other in group if other is not layer for name in other}
            found.update((name, others) for name in layer)
    return found


def _common(a: Path, c: Path) -> int:
    depth = 0
    while depth < min(len(a), len(c)) and a[depth] == c[depth]:
        depth += 1
    return depth
