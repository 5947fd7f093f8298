"""Where a block is: its memory, its variables, and which of its lanes are active.

Lanes are what one scalar statement runs for at once: the threads of the block, shape (threads,),
or inside T.Parallel its iterations, shape (extent, ...). Values and masks broadcast to the lanes'
shape; a value with one element is the same for all of them.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np
from tile2c.transpile.diagnostics import Span
from tile2c.transpile.ir.expr import Buffer
from tile2c.transpile.ir.interpret.numbers import Array, Numbers

if TYPE_CHECKING:
    from tile2c.transpile.ir.interpret.roles import Roles
from tile2c.transpile.record import record

Mask = Array | bool


class MeaningError(Exception):
    """The program does something that has no meaning, such as an index outside shared memory."""

    def __init__(self, message: str, span: Span | None = None) -> None:
        super().__init__(f"{span.start()}: {message}" if span is not None else message)
        self.span = span


@record(frozen=False)
class Escapes:
    """Lanes that left the present iteration or loop."""

    broken: Mask = False
    continued: Mask = False


@record(frozen=False)
class State:
    """One block. `tensors` are shared by all blocks; the rest starts anew for each."""

    numbers: Numbers
    tensors: dict[str, Array]
    threads: tuple[int, int, int]
    env: dict[str, Array] = field(default_factory=dict)  # variables of the IR by name
    tiles: dict[str, Array] = field(default_factory=dict)  # shared memory and fragments
    arrays: dict[str, Array] = field(default_factory=dict)  # private: (1 or threads, *shape)
    scalars: dict[str, Array] = field(default_factory=dict)  # private, of alloc_var
    views: list[tuple[Buffer, Array]] = field(default_factory=list)  # of tensors
    lanes: tuple[int, ...] = (1,)
    mask: Mask = True
    returned: Mask = False
    loops: list[Escapes] = field(default_factory=list)
    axes: dict[int, int] = field(default_factory=dict)  # id of a loop variable's array -> its axis
    memory: dict[int, object] = field(default_factory=dict)  # facts found once, by id of a node
    span: Span | None = None  # of the statement that is running
    steps: int = 0  # statements executed so far
    roles: Roles | None = None  # where threads part and wait for each other
    role: int = 0  # whose state this is
    present: frozenset[int] = frozenset()  # roles that get to what is running

    @property
    def count(self) -> int:
        """Threads of the block."""
        return self.threads[0] * self.threads[1] * self.threads[2]

    def fail(self, message: str) -> MeaningError:
        return MeaningError(message, self.span)

    def storage(self, buffer: Buffer) -> Array:
        """The elements of a buffer that all lanes share."""
        if buffer.scope == "global":
            for view, array in self.views:
                if view == buffer:
                    return array
            return self.tensors[buffer.name]
        return self.tiles[buffer.name]

    def active(self) -> list[int]:
        """Threads that take part, where lanes are threads."""
        return [int(lane) for lane in np.flatnonzero(np.broadcast_to(self.mask, (self.count,)))]


def uniform(value: Array) -> bool:
    """Whether all lanes have the same value for sure."""
    return bool(np.size(value) == 1)


def both(a: Mask, b: Mask) -> Mask:
    """Lanes in both masks."""
    if a is True:
        return b
    if b is True:
        return a
    if a is False or b is False:
        return False
    return _plain(np.logical_and(a, b))


def without(a: Mask, b: Mask) -> Mask:
    """Lanes of `a` that are not in `b`."""
    if b is False:
        return a
    if b is True:
        return False
    return both(a, _plain(np.logical_not(b)))


def either(a: Mask, b: Mask) -> Mask:
    if a is False:
        return b
    if b is False:
        return a
    if a is True or b is True:
        return True
    return _plain(np.logical_or(a, b))


def mask_of(value: Array) -> Mask:
    """A condition's value as a mask."""
    return _plain(value)


def some(mask: Mask) -> bool:
    """Whether any lane is active."""
    return mask if isinstance(mask, bool) else bool(np.any(mask))


def _plain(mask: Array) -> Mask:
    return bool(np.asarray(mask).item()) if np.size(mask) == 1 else mask
