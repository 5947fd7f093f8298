"""Loops whose iterations several threads do: what they may not do to memory."""

from __future__ import annotations

from collections.abc import Sequence

from tile2c.transpile.ir.forms import Parallel, Stmt
from tile2c.transpile.lower.simt.access import all_loads, all_stores
from tile2c.transpile.lower.simt.frames import Frames
from tile2c.transpile.lower.simt.outer_statements import walk
from tile2c.transpile.lower.simt.ties import Apart

_MEMORY = ("shared", "global")


def keep_replicas_apart(body: Sequence[Stmt], frames: Frames) -> None:
    """Raises Apart for a fragment that is written by replicas of a loop that changes what it reads.

    One replica stores to memory while the others may not have read it yet; each needs the value for its
    copy of the fragment. Through a shared tile the fragment gets it from one.
    """
    for loop in walk(body):
        if not isinstance(loop, Parallel):
            continue
        layout = frames.of(loop)
        if layout is None or not layout.replicas():
            continue
        stored = {buffer.name for buffer, _ in all_stores(loop.body) if buffer.scope in _MEMORY}
        if any(load.buffer.name in stored for load in all_loads(loop.body)):
            for buffer, _ in all_stores(loop.body):
                if buffer.scope == "fragment":
                    raise Apart(loop, buffer)
