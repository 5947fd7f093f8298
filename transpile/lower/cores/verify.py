"""Rules that a plan satisfies; a broken one is a bug of the planner, not of the input."""

from __future__ import annotations

from tile2c.transpile.ir.expr import Const
from tile2c.transpile.lower.cores.plan import (
    CopyIn,
    CopyOut,
    CoresPlan,
    QueueStep,
    ReadElement,
    Step,
    Strides,
    TileRef,
    VectorCall,
    WriteElement,
    bodies,
)
from tile2c.transpile.targets.cores import CoresTarget


def verify(plan: CoresPlan, target: CoresTarget) -> None:
    """Raises AssertionError with the rule that does not hold."""
    tiles = {tile.name: tile for tile in plan.tiles}
    assert len(tiles) == len(plan.tiles), "tile names are unique"
    assert plan.local_bytes <= target.local_bytes, "tiles fit into local memory"
    for tile in plan.tiles:
        assert tile.bytes % target.block_bytes == 0, f"{tile.name} is whole blocks"
    for step in _all((*plan.setup, *plan.body)):
        for ref in _refs(step):
            assert ref.tile in tiles, f"{ref.tile} is a tile"
            if isinstance(ref.offset, Const):
                tile = tiles[ref.tile]
                assert int(ref.offset.value) * tile.dtype.bytes < tile.bytes, "offsets are inside"
        if isinstance(step, VectorCall):
            _verify_call(step, target)
        if isinstance(step, QueueStep):
            assert tiles[step.tile].place != "work", f"{step.tile} has a queue"
    _verify_queues(plan.body, {tile.name for tile in plan.tiles if tile.place != "work"})


def _verify_call(step: VectorCall, target: CoresTarget) -> None:
    for part in step.arguments:
        if isinstance(part, Strides):
            limit = target.max_stride
            assert all(0 <= value <= limit for value in part.values), "strides fit their fields"
    assert step.dst.tile or step.function, "a call has a destination"


def _verify_queues(body: tuple[Step, ...], queued: set[str]) -> None:
    """In each list: allocate before free, as often, and nothing in use at the end."""
    held: dict[str, str] = {}
    for step in body:
        if isinstance(step, QueueStep):
            before = held.get(step.tile, "free")
            order = {
                "allocate": ("free",),
                "enqueue": ("allocate",),
                "dequeue": ("enqueue",),
                "free": ("dequeue",),
            }[step.action]
            assert before in order, f"{step.tile}: {step.action} after {before}"
            held[step.tile] = step.action
        for inner in bodies(step):
            _verify_queues(inner, queued)
    assert all(action == "free" for action in held.values()), "every allocated tile is freed"


def _refs(step: Step) -> tuple[TileRef, ...]:
    if isinstance(step, VectorCall):
        return (step.dst, *(part for part in step.arguments if isinstance(part, TileRef)))
    if isinstance(step, CopyIn | WriteElement):
        return (step.dst,)
    if isinstance(step, CopyOut | ReadElement):
        return (step.src,)
    return ()


def _all(steps: tuple[Step, ...]) -> list[Step]:
    found: list[Step] = []
    for step in steps:
        found.append(step)
        for inner in bodies(step):
            found += _all(inner)
    return found
