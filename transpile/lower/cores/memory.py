"""Fits the tiles into local memory: two copies of queued tiles where there is room, else one.

reads   placed tiles        writes  tiles with depth; None when even single copies do not fit
"""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.lower.cores.plan import WEIGHTS, Tile, Unit
from tile2c.transpile.record import record
from tile2c.transpile.targets.cores import CoresTarget


@record
class Fit:
    """Tiles with their copies, and the bytes they take."""

    tiles: dict[str, Tile]
    bytes: int
    depth: str  # what was chosen, for the plan
    reason: str
    roomy: bool  # memory would hold two copies of everything


def capacity(target: CoresTarget, selects: bool) -> int:
    """Bytes that tiles may take; selects keep a part for themselves."""
    return target.local_bytes - (target.select_bytes if selects else 0)


def fit(
    tiles: dict[str, Tile],
    target: CoresTarget,
    room: int,
    flags: frozenset[frozenset[Unit]],
    *,
    repeats: bool,
) -> Fit | None:
    """Two copies of every queued tile if they fit, else of as many as do: loads come first.

    `flags` are the pairs of units that flags outside of queues order; they need an event id too.
    `repeats`: whether tiles are used more than once, so that a second copy is of use.
    """
    single = {name: replace(tile, depth=1) for name, tile in tiles.items()}
    if used(single) > room or not _few_enough(single, target, flags):
        return None
    if not repeats:
        return Fit(single, used(single), "1", "nothing is loaded twice", True)
    queued = [name for name, tile in tiles.items() if tile.place != "work"]
    found, short = single, []
    for name in sorted(queued, key=lambda name: tiles[name].place != "in"):
        more = {**found, name: replace(found[name], depth=2)}
        if used(more) <= room and _few_enough(more, target, flags):
            found = more
        else:
            short.append(name)
    bytes_of_all = used(single) + sum(tiles[name].bytes for name in queued)
    roomy = bytes_of_all <= room
    if not short:
        reason = "loads, computing and stores of different rounds overlap"
        return Fit(found, used(found), "2", reason, roomy)
    why = "event ids" if roomy else "bytes"
    depth = f"2, but 1 of {', '.join(short)}"
    return Fit(found, used(found), depth, f"there are not enough {why} for more", roomy)


def fit_stages(tiles: dict[str, Tile], room: int, roomy: bool) -> Fit | None:
    """Tiles that have their copies already: whether they fit. `roomy`: nothing had to give way."""
    if used(tiles) > room:
        return None
    if all(tile.depth == 1 for tile in tiles.values()):
        reason = "no copy runs ahead" if roomy else "two copies do not fit"
        return Fit(tiles, used(tiles), "1", reason, roomy)
    reason = "loads, work and stores of different rounds overlap"
    return Fit(tiles, used(tiles), "2", reason, roomy)


def used(tiles: dict[str, Tile]) -> int:
    """Bytes of all copies of all tiles."""
    return sum(tile.bytes * tile.depth for tile in tiles.values() if tile.position != WEIGHTS)


def _few_enough(
    tiles: dict[str, Tile], target: CoresTarget, flags: frozenset[frozenset[Unit]]
) -> bool:
    """Whether event ids suffice: each copy of a queued tile may hold one."""
    pairs: dict[str, frozenset[Unit]] = {
        "in": frozenset(("MTE2", "V")),
        "out": frozenset(("V", "MTE3")),
    }
    for place, pair in pairs.items():
        copies = sum(tile.depth for tile in tiles.values() if tile.place == place)
        if copies + (pair in flags) > target.max_queue_buffers:
            return False
    return sum(tile.depth for tile in tiles.values()) <= target.max_buffers
