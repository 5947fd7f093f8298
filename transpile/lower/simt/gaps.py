"""The cheapest places for barriers that order every arc."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from tile2c.transpile.lower.plan import Arc
from tile2c.transpile.record import record

_EXACT = 14  # gaps up to which all sets are tried
Path = tuple[int, ...]  # child numbers from the root; in a branch, 0 then / 1 else comes between


@record
class OpenArc:
    arc: Arc
    gaps: frozenset[Path]  # a gap is named by the path of the node it stands before; end: one past


def cheapest(arcs: list[OpenArc], cost: Callable[[Path], int]) -> list[Path]:
    """A cheapest set of gaps that stabs every arc; ties go to gaps that stab more, then come first."""
    open_arcs = [arc for arc in arcs if arc.gaps]
    missing = [arc for arc in arcs if not arc.gaps]
    if missing:
        raise NoPlaceForBarrier(missing[0].arc)
    gaps = sorted({gap for arc in open_arcs for gap in arc.gaps})
    signature = {
        gap: frozenset(k for k, arc in enumerate(open_arcs) if gap in arc.gaps) for gap in gaps
    }
    best: dict[frozenset[int], Path] = {}
    for (
        gap
    ) in gaps:  # of gaps that order the same, the cheapest, then the last: nearest to the sink
        held = best.get(signature[gap])
        if held is None or cost(gap) <= cost(held):
            best[signature[gap]] = gap
    candidates = sorted(best.values())
    wanted = frozenset(range(len(open_arcs)))
    if len(candidates) <= _EXACT:
        return _exact(candidates, signature, wanted, cost)
    return _greedy(candidates, signature, wanted, cost)


def _exact(
    candidates: list[Path],
    signature: dict[Path, frozenset[int]],
    wanted: frozenset[int],
    cost: Callable[[Path], int],
) -> list[Path]:
    found: list[tuple[int, int, tuple[Path, ...]]] = []
    for size in range(len(candidates) + 1):
        for group in combinations(candidates, size):
            covered = frozenset().union(*(signature[gap] for gap in group))
            if covered >= wanted:
                found.append((sum(cost(gap) for gap in group), size, group))
        if found and size >= min(entry[1] for entry in found) + 1:
            break
    return list(min(found)[2])


def _greedy(
    candidates: list[Path],
    signature: dict[Path, frozenset[int]],
    wanted: frozenset[int],
    cost: Callable[[Path], int],
) -> list[Path]:
    chosen: list[Path] = []
    left = set(wanted)
    while left:
        gap = max(candidates, key=lambda g: (len(left & signature[g]) / cost(g), [-x for x in g]))
        chosen.append(gap)
        left -= signature[gap]
    for gap in list(chosen):  # drop what is not alone in ordering something
        others = frozenset().union(*(signature[g] for g in chosen if g != gap))
        if others >= wanted:
            chosen.remove(gap)
    return sorted(chosen)


class NoPlaceForBarrier(Exception):
    """A dependence lies wholly inside code that only some threads run."""

    def __init__(self, arc: Arc) -> None:
        super().__init__(f"{arc.source} -> {arc.sink} on {arc.buffer}")
        self.arc = arc
