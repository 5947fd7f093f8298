"""Queues of the cube core's tiles: who fills a tile and who takes it from there.

reads   steps, tiles        writes  steps with `QueueStep`s
Tiles in L1 go from MTE2 to MTE1, the bias table from MTE1 to M, sums from M to FIX. Each life of a
tile lies in one list: filled, handed on once, and given back after its last use. The parts in L0A
and L0B get their queue steps where they are made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.expr import Buffer
from tile2c.transpile.lower.cores.plan import (
    Branch,
    CubeCall,
    Loop,
    QueueStep,
    Step,
    TileRef,
    WhileLoop,
    bodies,
)
from tile2c.transpile.record import record


@record
class _Life:
    """Positions in one list: first and last fill, first and last use by the next unit."""

    first: int
    filled: int
    handed: int
    last: int


def place_queues(
    body: tuple[Step, ...], tiles: Iterable[str], buffers: dict[str, Buffer]
) -> tuple[Step, ...]:
    """The steps with those of the queues of these tiles. Raises InputError for what has no queue."""
    for tile in tiles:
        body = _placed(body, tile, buffers)
    return _without_marks(body)


def _uses(step: Step, tile: str) -> list[bool]:
    """What a step and those inside it do with a tile, in order: whether it fills it."""
    found: list[bool] = []
    if isinstance(step, CubeCall):
        if isinstance(step.dst, TileRef) and step.dst.tile == tile:
            found.append(True)
        elif tile in step.sources:
            found.append(False)
    for inner in bodies(step):
        for part in inner:
            found += _uses(part, tile)
    return found


def _placed(body: tuple[Step, ...], tile: str, buffers: dict[str, Buffer]) -> tuple[Step, ...]:
    lives, inside = _lives(body, tile, buffers)
    new: list[Step] = []
    for place, step in enumerate(body):
        if place in inside:
            new.append(_deeper(step, tile, buffers))
            continue
        for count, life in enumerate(lives):
            if life.first == place:
                taken = QueueStep(action="allocate", tile=tile, declare=count == 0)
                new.append(replace(taken, comments=step.comments, span=step.span))
                step = replace(step, comments=())
            if life.handed == place:
                given = QueueStep(action="dequeue", tile=tile, comments=step.comments)
                new.append(replace(given, span=step.span))
                step = replace(step, comments=())
        new.append(step)
        for life in lives:
            if life.filled == place:
                new.append(QueueStep(action="enqueue", tile=tile, span=step.span))
            if life.last == place:
                new.append(QueueStep(action="free", tile=tile, span=step.span))
    return tuple(new)


def _enters(step: Step, tile: str) -> bool:
    """Whether a life of the tile may lie inside this step."""
    return isinstance(step, Loop | WhileLoop | Branch) and set(_uses(step, tile)) == {True, False}


def _deeper(step: Step, tile: str, buffers: dict[str, Buffer]) -> Step:
    if not _uses(step, tile):
        return step
    if isinstance(step, Loop | WhileLoop):
        return replace(step, body=_placed(step.body, tile, buffers))
    if isinstance(step, Branch):
        then, orelse = _placed(step.then, tile, buffers), _placed(step.orelse, tile, buffers)
        return replace(step, then=then, orelse=orelse)
    return step


def _lives(
    body: tuple[Step, ...], tile: str, buffers: dict[str, Buffer]
) -> tuple[list[_Life], set[int]]:
    """The tile's lives in a list, and places of steps that have whole lives inside."""
    lives: list[_Life] = []
    inside: set[int] = set()
    over = True  # nothing of the tile is left to be used
    for place, step in enumerate(body):
        done = _uses(step, tile)
        if not done:
            continue
        handed = bool(lives) and lives[-1].handed != -1
        if all(done):  # filled, or filled further
            if lives and not handed:
                lives[-1] = replace(lives[-1], filled=place, last=place)
            else:
                lives.append(_Life(place, place, -1, place))
            over = False
        elif not any(done) and not over:
            first = lives[-1].handed if handed else place
            lives[-1] = replace(lives[-1], handed=first, last=place)
        elif _enters(step, tile) and (over or handed):
            inside.add(place)
            over = True
        else:
            raise _no_queue(tile, step, buffers)
    if any(life.handed == -1 for life in lives):
        raise _no_queue(tile, body[lives[-1].first], buffers)
    return lives, inside


def _no_queue(tile: str, step: Step, buffers: dict[str, Buffer]) -> Exception:
    span = step.span
    if span is None and tile in buffers:
        span = buffers[tile].span
    return failure(
        "T2C575",
        f"{tile} is not filled and then used in one list of statements, as tiles on their way "
        "through the cube core are",
        span,
        help="load a tile right before the T.gemm that reads it, and store sums after the last one",
    )


def _without_marks(body: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps without those that only said where sums begin."""
    new: list[Step] = []
    for step in body:
        if isinstance(step, CubeCall) and step.begins:
            continue
        if isinstance(step, Loop | WhileLoop):
            step = replace(step, body=_without_marks(step.body))
        elif isinstance(step, Branch):
            then, orelse = _without_marks(step.then), _without_marks(step.orelse)
            step = replace(step, then=then, orelse=orelse)
        new.append(step)
    return tuple(new)
