"""The grid of a launch at the sizes of a call, checked against what a device takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from tile2c.runtime.expressions import evaluate, names_of
from tile2c.runtime.records import Expression, KernelRecord, Launch

Triple = tuple[int, int, int]

SMS = "sms"  # in grids and conditions: how many multiprocessors the device has

# Most blocks along x, y and z. A device refuses more with a number only.
_LIMITS: dict[str, Triple] = {"ascendc": (65535, 1, 1)}
_THREADED: Triple = (2**31 - 1, 65535, 65535)


# Blocks that take tiles in turn count them in an int, also those past the last.
MOST_TILES = 2**31 - 2**16


class GridError(ValueError):
    """A grid that the target cannot launch; `dimension` is "x", "y" or "z"."""

    def __init__(self, message: str, dimension: str) -> None:
        super().__init__(message)
        self.dimension = dimension


def asks_device(record: KernelRecord) -> bool:
    """Whether a grid or condition of the kernel depends on the device: no size has that name then."""
    if SMS in (*record.sizes, *(argument.name for argument in record.arguments)):
        return False
    asked = (x for launch in record.launches for x in (*launch.grid, launch.when or 0))
    return any(SMS in names_of(expression) for expression in asked)


def grid_of(kernel: str, family: str, launch: Launch, names: Mapping[str, int]) -> Triple:
    """Blocks along x, y and z. Raises GridError with the dimension, its text and the sizes."""
    if launch.tiles:
        _check_tiles(kernel, launch.tiles, names)
    x, y, z = (evaluate(extent, names) for extent in launch.grid)
    limits = _LIMITS.get(family, _THREADED)
    if 0 <= x <= limits[0] and 0 <= y <= limits[1] and 0 <= z <= limits[2]:
        return x, y, z
    for dimension, extent, blocks, limit in zip("xyz", launch.grid, (x, y, z), limits, strict=True):
        if not 0 <= blocks <= limit:
            raise GridError(_message(kernel, dimension, extent, names, blocks, limit), dimension)
    raise AssertionError("one of three was out of bounds")


def _check_tiles(kernel: str, tiles: Sequence[Expression], names: Mapping[str, int]) -> None:
    """A grid that blocks share has no negative extents either, and few enough tiles to be counted."""
    extents = [evaluate(extent, names) for extent in tiles]
    for dimension, extent, count in zip("xyz", tiles, extents, strict=True):
        if count < 0:
            raise GridError(_message(kernel, dimension, extent, names, count, 0), dimension)
    if prod(extents) > MOST_TILES:
        known = {name: names[name] for extent in tiles for name in names_of(extent)}
        because = f" with {_listed(known)}" if known else ""
        raise GridError(
            f"{kernel}: the grid has {' x '.join(map(str, extents))} tiles{because}, and blocks that "
            f"take them in turn count to {MOST_TILES}",
            "x",
        )


def _listed(names: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {names[name]}" for name in sorted(names))


def _message(
    kernel: str,
    dimension: str,
    extent: Expression,
    names: Mapping[str, int],
    blocks: int,
    limit: int,
) -> str:
    known = {name: names[name] for name in names_of(extent) if name in names}
    because = f" ({extent} with {_listed(known)})" if known else ""
    if blocks < 0:
        return f"{kernel}: the grid has {blocks} blocks along {dimension}{because}"
    return (
        f"{kernel}: the grid has {blocks} blocks along {dimension}{because}, and a device takes "
        f"at most {limit} there"
    )
