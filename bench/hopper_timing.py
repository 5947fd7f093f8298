"""Rounds of burst, steady and flush times with contenders taking turns; see measure.py for the three."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import torch
from measure import _train

Graph = torch.cuda.CUDAGraph
OF_FLUSH = 5  # rounds for one: a launch is fast or 4 % slower, and stays so for a whole round


@dataclass(slots=True)
class Series:
    """Milliseconds of one contender, one a round."""

    rounds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)

    @property
    def spread(self) -> float:
        """Slowest less fastest round, as a part of the median."""
        return (max(self.rounds) - min(self.rounds)) / self.median


def timed(
    way: str,
    graphs: Mapping[str, Graph],
    rounds: int,
    seconds: float,
    still: Callable[[Mapping[str, Series]], Iterable[str]] | None = None,
) -> dict[str, Series]:
    """`rounds` turns of each contender, fewer where the time runs out, at least one; more of `flush`.

    `still` names, from the first two rounds, those that take part in the others.
    """
    one = {"burst": _burst, "steady": _steady, "flush": _flush()}[way]
    found = {name: Series() for name in graphs}
    order = list(graphs)
    end = time.monotonic() + seconds
    for number in range(rounds * OF_FLUSH if way == "flush" else rounds):
        if number == 2 and still:
            chosen = set(still(found))
            order = [name for name in order if name in chosen]
        for name in order:
            found[name].rounds.append(one(graphs[name]))
        order.reverse()
        if time.monotonic() > end:
            break
    return found


def _burst(graph: Graph) -> float:
    """Ten launches after a rest; the better of two."""
    return min(_train(graph, 10) for _ in range(2))


def _steady(graph: Graph) -> float:
    """The last 60 % of 0.8 s of unbroken load."""
    first, ready = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    for _ in range(3):
        graph.replay()
    ready.record()
    torch.cuda.synchronize()
    count = max(10, int(800 / (first.elapsed_time(ready) / 3)))
    middle, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for number in range(count):
        if number == count * 2 // 5:
            middle.record()
        graph.replay()
    last.record()
    torch.cuda.synchronize()
    return middle.elapsed_time(last) / (count - count * 2 // 5)


def _flush() -> Callable[[Graph], float]:
    spoiler = torch.empty(1 << 26, dtype=torch.int32, device="cuda")

    def one(graph: Graph) -> float:
        """The median of twenty launches, the L2 emptied before each."""
        pairs = []
        for _ in range(20):
            spoiler.zero_()
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            graph.replay()
            last.record()
            pairs.append((first, last))
        torch.cuda.synchronize()
        return statistics.median(first.elapsed_time(last) for first, last in pairs)

    return one
