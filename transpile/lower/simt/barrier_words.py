"""Why a barrier stands there, in words of the program."""

from __future__ import annotations

from tile2c.transpile.lower.plan import Arc
from tile2c.transpile.wording import listed


def reason(arcs: tuple[Arc, ...], rings: dict[str, str] | None = None) -> str:
    """What the barrier orders, in words of the program; `rings`: loops whose stages hold a tile."""
    rings = rings or {}
    takers = list(dict.fromkeys(arc.taker for arc in arcs if arc.taker))
    taken = tuple(arc for arc in arcs if arc.taker)
    known, arcs = arcs, tuple(arc for arc in arcs if not arc.taker)
    written, read = _buffers(arcs, ("RAW",)), _buffers(arcs, ("WAR", "WAW"))
    again = [name for name in read if name not in (*written, *_buffers(arcs, ("WAR",)), *rings)]
    read = [name for name in read if name not in again]
    ready = [name for name in written if name not in rings]
    free = [name for name in read if name not in rings]
    tiles = list(dict.fromkeys(f"tile {rings[name]}" for name in written if name in rings))
    parts = []
    if written:
        verb = "are" if len(tiles + ready) > 1 else "is"
        whom = "" if ready else " for all threads"
        parts.append(f"{listed(tiles + ready)} {verb} complete{whom}")
    if read:
        them = "they" if len(free) > 1 else "it"
        old = f"what {them} held" if free == written else f"the old {listed(free)}"
        stage = ["the stage refilled next"] if len(free) < len(read) else []
        parts.append(f"nobody still reads {' or '.join(stage + ([old] if free else []))}")
    if again:
        parts.append(f"earlier stores to {listed(again)} are over")
    if taken:
        verb = "takes" if len(takers) == 1 else "take"
        hosts = listed(_buffers(taken, ("WAR",)))
        parts.append(f"nobody still touches {hosts}, whose bytes {listed(takers)} {verb}")
    if not any(arc.proven for arc in known):
        parts.append("kept because a dependence could not be disproved")
    return "; ".join(parts)


def _buffers(arcs: tuple[Arc, ...], kinds: tuple[str, ...]) -> list[str]:
    return list(dict.fromkeys(arc.buffer for arc in arcs if arc.kind in kinds))
