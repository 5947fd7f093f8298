"""Fits the tiles into local memory: two copies of queued tiles where there is room, else one.

reads   placed tiles        writes  tiles with depth; None when even single copies do not fit
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tile2c.transpile.lower.cores.plan import Tile
from tile2c.transpile.targets.cores import CoresTarget


@dataclass(frozen=True, slots=True)
class Fit:
    """Tiles with their copies, and the bytes they take."""

    tiles: dict[str, Tile]
    bytes: int
    depth: str  # what was chosen, for the plan
    reason: str


def capacity(target: CoresTarget, selects: bool) -> int:
    """Bytes that tiles may take; selects keep a part for themselves."""
    return target.local_bytes - (target.select_bytes if selects else 0)


def fit(tiles: dict[str, Tile], target: CoresTarget, room: int, *, repeats: bool) -> Fit | None:
    """The first of: two copies of every queued tile, of those that arrive, of none.

    `repeats`: whether tiles are used more than once, so that a second copy is of use.
    """
    choices: tuple[tuple[set[str], str, str], ...] = (
        ({"in", "out"}, "2", "loads, computing and stores of different rounds overlap"),
        ({"in"}, "2 for loads, 1 for stores", "two copies of every tile do not fit"),
        (set(), "1", "two copies do not fit" if repeats else "nothing is loaded twice"),
    )
    for places, depth, reason in choices:
        if places and not repeats:
            continue
        found = {
            name: replace(tile, depth=2 if tile.place in places else 1)
            for name, tile in tiles.items()
        }
        size = used(found)
        if size <= room and _few_enough(found, target):
            return Fit(found, size, depth, reason)
    return None


def used(tiles: dict[str, Tile]) -> int:
    """Bytes of all copies of all tiles."""
    return sum(tile.bytes * tile.depth for tile in tiles.values())


def _few_enough(tiles: dict[str, Tile], target: CoresTarget) -> bool:
    for place in ("in", "out"):
        copies = sum(tile.depth for tile in tiles.values() if tile.place == place)
        if copies > target.max_queue_buffers:
            return False
    return sum(tile.depth for tile in tiles.values()) <= target.max_buffers
