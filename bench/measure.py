"""How kernels are timed here, so that rivals compare within one run: flush, burst and steady.

flush   median of event times, a large buffer written before each launch to empty the L2; contenders
        take turns. For memory-bound kernels.
burst   mean of 10 back-to-back launches after a rest of 0.2 s, better of two. For compute-bound ones.
steady  mean over the last 60 % of 0.8 s of unbroken load: the hot card.
Every contender is a function of no arguments that enqueues one launch on the current stream; a graph
of it is timed, so that the host's launch overhead stays out.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

import torch

Launch = Callable[[], object]


def graph_of(launch: Launch) -> torch.cuda.CUDAGraph:
    """One launch as a graph; shows at the same time that the launch can be captured."""
    launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch()
    return graph


def flush(contenders: Mapping[str, Launch], rounds: int = 3, repeat: int = 20) -> dict[str, float]:
    """Milliseconds of each contender, the L2 emptied before each launch."""
    graphs = {name: graph_of(launch) for name, launch in contenders.items()}
    spoiler = torch.empty(1 << 28, dtype=torch.int32, device="cuda")
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, graph in graphs.items():
            pairs = []
            for _ in range(repeat):
                spoiler.zero_()
                first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                first.record()
                graph.replay()
                last.record()
                pairs.append((first, last))
            torch.cuda.synchronize()
            times[name] += [first.elapsed_time(last) for first, last in pairs]
    return {name: statistics.median(found) for name, found in times.items()}


def burst(contenders: Mapping[str, Launch], rounds: int = 5) -> dict[str, float]:
    """Milliseconds of one launch within ten, after a rest; the median of several rounds' better ones."""
    graphs = {name: graph_of(launch) for name, launch in contenders.items()}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, graph in graphs.items():
            times[name].append(min(_train(graph, 10) for _ in range(2)))
    return {name: statistics.median(found) for name, found in times.items()}


def _train(graph: torch.cuda.CUDAGraph, count: int) -> float:
    torch.cuda.synchronize()
    time.sleep(0.2)
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    graph.replay()
    first.record()
    for _ in range(count):
        graph.replay()
    last.record()
    torch.cuda.synchronize()
    return first.elapsed_time(last) / count


def steady(contenders: Mapping[str, Launch], rounds: int = 3) -> dict[str, float]:
    """Milliseconds of one launch in the last 60 % of 0.8 s of unbroken load; medians of rounds."""
    graphs = {name: graph_of(launch) for name, launch in contenders.items()}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, graph in graphs.items():
            one = _train(graph, 3)
            count = max(10, int(800 / one))
            middle, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            for number in range(count):
                if number == count * 2 // 5:
                    middle.record()
                graph.replay()
            last.record()
            torch.cuda.synchronize()
            times[name].append(middle.elapsed_time(last) / (count - count * 2 // 5))
    return {name: statistics.median(found) for name, found in times.items()}


def relative_error(found: torch.Tensor, reference: torch.Tensor) -> float:
    """Norm of the difference over the norm of the reference, in float64."""
    a, b = found.double(), reference.double()
    return float(((a - b).norm() / b.norm()).item())
