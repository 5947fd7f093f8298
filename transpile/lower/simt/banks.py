"""Bank conflicts: what one warp's access to a shared tile costs, counted by enumerating its lanes.

Shared memory has banks of 4 bytes; an access of 4, 8 or 16 bytes a lane is done in phases of 32, 16
or 8 lanes (fewer bytes count as 4). A phase takes as many turns as the busiest bank has words asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tile2c.transpile.record import record

Coordinates = tuple[int, int]


@record
class Phase:
    """Lanes that access the tile together: (row, column) of each one's first element, and bytes."""

    places: tuple[Coordinates, ...]
    bytes: int


def phases(places: Sequence[Coordinates], size: int) -> tuple[Phase, ...]:
    """The phases of an access of `size` bytes by the lanes at `places`."""
    together = {16: 8, 8: 16}.get(size, 32)
    return tuple(
        Phase(tuple(places[first : first + together]), size)
        for first in range(0, len(places), together)
    )


def extra_turns(found: Sequence[Phase], address: Callable[[int, int], int], banks: int) -> int:
    """Turns beyond one a phase; `address` gives the byte offset of an element."""
    total = 0
    for phase in found:
        words: dict[int, set[int]] = {}
        for row, column in phase.places:
            start = address(row, column)
            for word in range(start // 4, (start + phase.bytes - 1) // 4 + 1):
                words.setdefault(word % banks, set()).add(word)
        total += max((len(asked) for asked in words.values()), default=1) - 1
    return total
