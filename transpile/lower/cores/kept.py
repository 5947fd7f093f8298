"""Tiles that are the same for every block of a core: they are loaded once, before the first block.

reads   steps of a block        writes  steps of the set-up, steps of a block without them
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tile2c.transpile.lower.cores.accesses import variables_of
from tile2c.transpile.lower.cores.plan import (
    CopyIn,
    CopyOut,
    Order,
    QueueStep,
    Step,
    Tile,
    bodies,
)
from tile2c.transpile.lower.cores.queues import accesses


def keep_tiles(
    body: tuple[Step, ...], outside: frozenset[str]
) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """(set-up, body). `outside` are names that mean the same in every block.

    A tile is kept that one copy alone fills, from a tensor that is not written here.
    """
    written = _written(body)
    setup: list[Step] = []
    rest: list[Step] = []
    comments: tuple[str, ...] = ()  # of a statement whose first step has gone
    for step in body:
        if isinstance(step, CopyIn) and step.tensor not in written and _same(step, outside):
            used = [access for other in body for access in accesses(other, step.dst.tile)]
            if used[0] == "load" and set(used[1:]) == {"read"}:
                said = f"{step.dst.tile}: the same for every block"
                setup.append(replace(step, comments=(said,), remark=""))
                comments += step.comments
                continue
        rest.append(replace(step, comments=(*comments, *step.comments)) if comments else step)
        comments = ()
    return ((), body) if not setup or comments else (tuple(setup), tuple(rest))


KEPT = Order(before="MTE2", after="V", remark="what is kept is complete")


def waits(body: tuple[Step, ...], kept: tuple[Step, ...], tiles: Mapping[str, Tile]) -> bool:
    """Whether V has to be told that the set-up's copies are done.

    It learns so from a queue that it takes a later copy from: MTE2 works in order.
    """
    names = [step.dst.tile for step in kept if isinstance(step, CopyIn)]
    for step in body:
        if isinstance(step, QueueStep) and step.action == "dequeue":
            if tiles[step.tile].place == "in":
                return False
        if any(accesses(step, name) for name in names):
            return True
    return True


def _same(step: CopyIn, outside: frozenset[str]) -> bool:
    """Whether what is copied, and where to, does not depend on the block."""
    names = {var.name for var in variables_of(step)}
    return not step.ahead and names <= outside


def _written(body: tuple[Step, ...]) -> set[str]:
    found = {step.tensor for step in body if isinstance(step, CopyOut)}
    return found.union(*(_written(inner) for step in body for inner in bodies(step)))
