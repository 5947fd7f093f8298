"""Decides which tiles travel in queues, and takes them from there and gives them back.

reads   steps, tiles        writes  steps with `QueueStep`s, tiles with their places
A queue carries order with it: a tile that MTE2 fills (in) is V's after dequeue and MTE2's again
after free; one that V fills (out) likewise goes to MTE3. With two copies a unit works on the next
tile while the other is busy with this one. A tile fits a queue when each of its lives lies in one
list of steps: filled whole at first, never written by the filling unit again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

from tile2c.transpile.lower.cores.plan import (
    Branch,
    CopyIn,
    CopyOut,
    Local,
    Loop,
    QueueStep,
    ReadElement,
    Step,
    Tile,
    VectorCall,
    WhileLoop,
    WriteElement,
    bodies,
)
from tile2c.transpile.record import record

Access = Literal["load", "fill", "write", "read", "store", "prefill"]


@record
class Life:
    """Positions in one list: first access, first use by the other unit, last access."""

    first: int
    handed: int
    last: int


def place_tiles(
    body: tuple[Step, ...], tiles: Mapping[str, Tile], most: int, setup: tuple[Step, ...] = ()
) -> tuple[tuple[Step, ...], dict[str, Tile]]:
    """The steps with queue steps in them, and the tiles with place and position set.

    Tiles that the `setup` before them fills stay where they are. At most `most` tiles a place travel in
    queues, the first ones; flags order the rest.
    """
    placed: dict[str, Tile] = {}
    for name, tile in tiles.items():
        place = _place(body, name)
        if sum(other.place == place for other in placed.values()) >= most:
            place = "work"
        if place != "work":
            body = _inserted(body, name, place)
        position = {"in": "VECIN", "out": "VECOUT"}.get(place, _position((*setup, *body), name))
        placed[name] = replace(tile, place=place, position=position)
    return body, placed


def accesses(step: Step, tile: str) -> tuple[Access, ...]:
    """What a step and those inside it do with a tile, in order."""
    found: list[Access] = []
    if isinstance(step, CopyIn) and step.dst.tile == tile:
        found.append("load")
    elif isinstance(step, CopyOut) and step.src.tile == tile:
        found.append("store")
    elif isinstance(step, VectorCall):
        reads = tile in step.sources
        if reads:
            found.append("read")
        if step.dst.tile == tile:
            if step.prefills == tile:
                found.append("prefill")
            else:
                found.append("fill" if step.covers and not reads else "write")
    elif isinstance(step, ReadElement) and step.src.tile == tile:
        found.append("read")
    elif isinstance(step, WriteElement) and step.dst.tile == tile:
        found.append("write")
    for inner in bodies(step):
        for part in inner:
            found += accesses(part, tile)
    if isinstance(step, Branch) and step.prefills == tile:
        found = ["prefill"]
    return tuple(found)


def _place(body: tuple[Step, ...], tile: str) -> Literal["in", "out", "work"]:
    if _every_list(body, tile, in_lives):
        return "in"
    if _every_list(body, tile, out_lives):
        return "out"
    return "work"


def _position(body: tuple[Step, ...], tile: str) -> str:
    """Copies reach VECIN and VECOUT only."""
    found = {access for step in body for access in accesses(step, tile)}
    if "load" in found:
        return "VECIN"
    return "VECOUT" if "store" in found else "VECCALC"


def _every_list(
    body: tuple[Step, ...],
    tile: str,
    lives: Callable[[tuple[Step, ...], str], list[Life] | None],
) -> bool:
    """Whether the tile is used at all, and every list it is used in splits into lives."""
    homes = list(_homes(body, tile))
    return bool(homes) and all(lives(home, tile) is not None for home in homes)


def _homes(body: tuple[Step, ...], tile: str) -> list[tuple[Step, ...]]:
    """The innermost lists that hold all accesses to a tile: one, or one in each branch or loop."""
    touched = [step for step in body if accesses(step, tile)]
    if not touched:
        return []
    if all(_enters(step, tile) for step in touched):
        return [home for step in touched for inner in bodies(step) for home in _homes(inner, tile)]
    return [body]


def _enters(step: Step, tile: str) -> bool:
    """Whether a tile's life may lie inside this step."""
    if isinstance(step, Branch) and step.prefills == tile:
        return False
    return isinstance(step, Loop | WhileLoop | Branch)


def in_lives(home: tuple[Step, ...], tile: str) -> list[Life] | None:
    """Each life: an optional prefill, a load that stands in the list itself, then only reads."""
    lives: list[Life] = []
    for place, step in enumerate(home):
        done = accesses(step, tile)
        if not done:
            continue
        if done == ("prefill",):
            lives.append(Life(place, -1, place))
        elif _is_load(step, done):
            if lives and lives[-1].handed == -1 and lives[-1].first == lives[-1].last:
                lives[-1] = Life(lives[-1].first, -1, place)
            else:
                lives.append(Life(place, -1, place))
        elif lives and set(done) == {"read"}:
            life = lives[-1]
            handed = place if life.handed == -1 else life.handed
            lives[-1] = Life(life.first, handed, place)
        else:
            return None
    return None if any(life.handed == -1 for life in lives) else lives


def _is_load(step: Step, done: tuple[Access, ...]) -> bool:
    """A load in the list itself, also in loops or under the guard that keeps it inside the tensor."""
    if done != ("load",):
        return False
    if isinstance(step, Branch) and step.orelse:
        return False
    if isinstance(step, Loop | Branch):
        (body, *_) = bodies(step)
        parts = [inner for inner in body if not (isinstance(inner, Local) and inner.const)]
        return all(_is_load(inner, done) for inner in parts)
    return isinstance(step, CopyIn)


def out_lives(home: tuple[Step, ...], tile: str) -> list[Life] | None:
    """Each life: filled whole by V, worked on by V, stored, not written after that."""
    lives: list[Life] = []
    for place, step in enumerate(home):
        done = accesses(step, tile)
        if not done:
            continue
        stored = bool(lives) and lives[-1].handed != -1
        if done[0] == "fill" and (not lives or stored) and _fills(step, tile):
            if "store" in done:
                return None
            lives.append(Life(place, -1, place))
        elif not lives or "load" in done or "prefill" in done:
            return None
        elif "store" in done:
            if set(done) != {"store"}:
                return None
            handed = lives[-1].handed if stored else place
            lives[-1] = Life(lives[-1].first, handed, place)
        elif stored and set(done) != {"read"}:
            return None
        else:
            lives[-1] = Life(lives[-1].first, lives[-1].handed, place)
    return None if any(life.handed == -1 for life in lives) else lives


def _fills(step: Step, tile: str) -> bool:
    """Whether the step surely runs and writes the tile before anyone reads it."""
    if isinstance(step, VectorCall):
        return True
    if isinstance(step, Loop):  # over the rows of the tile, in one call each
        return step.own and all(isinstance(inner, VectorCall) for inner in step.body)
    if isinstance(step, Branch):
        return bool(step.orelse) and all(
            any(accesses(inner, tile)[:1] == ("fill",) for inner in side)
            for side in (step.then, step.orelse)
        )
    return False


def _inserted(
    body: tuple[Step, ...], tile: str, place: Literal["in", "out", "work"]
) -> tuple[Step, ...]:
    """The steps with those of one queue added, in every list where the tile lives."""
    touched = [step for step in body if accesses(step, tile)]
    if touched and all(_enters(step, tile) for step in touched):
        return tuple(_deeper(step, tile, place) for step in body)
    if not touched:
        return body
    find = in_lives if place == "in" else out_lives
    lives = find(body, tile) or []
    new: list[Step] = []
    for number, step in enumerate(body):
        for count, life in enumerate(lives):
            if life.first == number:
                allocate = QueueStep(action="allocate", tile=tile, declare=count == 0)
                new.append(replace(allocate, comments=step.comments))
                step = replace(step, comments=())
            if life.handed == number:
                passing = ["dequeue"] if place == "in" else ["enqueue", "dequeue"]
                for action in passing:
                    passed = QueueStep(action=action, tile=tile)  # type: ignore[arg-type]
                    new.append(replace(passed, comments=step.comments))
                    step = replace(step, comments=())
        new.append(step)
        for life in lives:
            if place == "in" and _loaded_at(body, life, tile) == number:
                new.append(QueueStep(action="enqueue", tile=tile))
            if life.last == number:
                new.append(QueueStep(action="free", tile=tile))
    return tuple(new)


def _loaded_at(body: tuple[Step, ...], life: Life, tile: str) -> int:
    return next(
        place for place in range(life.first, life.last + 1) if "load" in accesses(body[place], tile)
    )


def _deeper(step: Step, tile: str, place: Literal["in", "out", "work"]) -> Step:
    if isinstance(step, Loop | WhileLoop):
        return replace(step, body=_inserted(step.body, tile, place))
    if isinstance(step, Branch):
        then = _inserted(step.then, tile, place)
        return replace(step, then=then, orelse=_inserted(step.orelse, tile, place))
    return step
