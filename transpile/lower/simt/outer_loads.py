"""Loads of a parallel loop that do not depend on all of its loops: they stand in the outer ones.

`C[m][n][h] + bias[n]`: the loop over n comes first, what it reads next, then those over m and h. The order of
a parallel loop's iterations is free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile2c.transpile.lower.occurs import reads_memory, uses
from tile2c.transpile.lower.plan import CCall, CStmt, Do, Element, Local, Loop
from tile2c.transpile.record import record


@record
class _Unit:
    """One statement of a round's start: the names that it gives, the loops that it depends on."""

    stmt: CStmt
    names: frozenset[str]
    loops: frozenset[str]
    load: bool


def nested(frames: Sequence[Loop], body: tuple[CStmt, ...]) -> tuple[CStmt, ...]:
    """The body inside the loops, with loads as far out as they can be."""
    if len(frames) > 1:
        units, rest = _units(frames, body)
        loads = [unit for unit in units if unit.load and len(unit.loops) < len(frames)]
        if loads:
            outer = min((unit.loops for unit in loads), key=len)
            early = [unit for unit in units if unit.loops <= outer and _wanted(unit, loads, units)]
            late = [unit for unit in units if unit not in early]
            return _arranged(frames, outer, early, (*_joined(late), *rest))
    return _inside(frames, body)


def _units(
    frames: Sequence[Loop], body: tuple[CStmt, ...]
) -> tuple[list[_Unit], tuple[CStmt, ...]]:
    """Declarations and loads at the start of a round one by one, and what comes behind them."""
    found: list[_Unit] = []
    for number, stmt in enumerate(body):
        if isinstance(stmt, Local) and not stmt.shared:
            for name in stmt.names:
                one = replace(stmt, names=(name,))
                loops = _loops(frames, found, one)
                found.append(_Unit(one, frozenset((name.name,)), loops, reads_memory(name.value)))
        elif (array := _loaded(stmt)) is not None:
            loops = _loops(frames, found, stmt)
            declared = next((unit for unit in found if array in unit.names), None)
            if declared is None:
                return found, body[number:]
            found[found.index(declared)] = replace(declared, loops=loops)
            found.append(_Unit(stmt, frozenset(), loops, True))
        else:
            return found, body[number:]
    return found, ()


def _loaded(stmt: CStmt) -> str | None:
    """The array that a load fills."""
    if isinstance(stmt, Do) and isinstance(stmt.call, CCall) and stmt.call.args:
        target = stmt.call.args[0]
        if stmt.call.function.startswith("load_") and isinstance(target, Element):
            return None if target.subscripts else target.array
    return None


def _loops(frames: Sequence[Loop], before: Sequence[_Unit], stmt: CStmt) -> frozenset[str]:
    """The loops that a statement depends on, by itself or by a name."""
    own = {frame.var for frame in frames if uses((stmt,), frame.var)}
    through = (unit.loops for unit in before if any(uses((stmt,), name) for name in unit.names))
    return frozenset(own).union(*through)


def _wanted(unit: _Unit, loads: Sequence[_Unit], units: Sequence[_Unit]) -> bool:
    """Whether a load in front of the inner loops is this unit, or needs it."""
    waiting = [load for load in loads]
    seen: list[_Unit] = []
    while waiting:
        one = waiting.pop()
        if one == unit:
            return True
        seen.append(one)
        waiting += [
            other
            for other in units
            if other not in seen and any(uses((one.stmt,), name) for name in other.names)
        ]
    return False


def _arranged(
    frames: Sequence[Loop],
    outer: frozenset[str],
    early: Sequence[_Unit],
    rest: tuple[CStmt, ...],
) -> tuple[CStmt, ...]:
    around = [frame for frame in frames if frame.var in outer]
    inner = [frame for frame in frames if frame.var not in outer]
    unroll = any(frame.unroll for frame in frames)
    plain = [replace(frame, unroll=False) for frame in (*around, *inner)]
    if unroll and around:
        plain[0] = replace(plain[0], unroll=True)
    body = (*_joined(early), *_inside(plain[len(around) :], rest))
    return _inside(plain[: len(around)], body)


def _joined(units: Sequence[_Unit]) -> tuple[CStmt, ...]:
    """Names of one declaration stand in one line again."""
    found: list[CStmt] = []
    for unit in units:
        last = found[-1] if found else None
        if isinstance(unit.stmt, Local) and isinstance(last, Local):
            if replace(unit.stmt, names=last.names) == last and not any(
                name.dims for name in (*unit.stmt.names, *last.names)
            ):
                found[-1] = replace(last, names=(*last.names, *unit.stmt.names))
                continue
        found.append(unit.stmt)
    return tuple(found)


def _inside(frames: Sequence[Loop], body: tuple[CStmt, ...]) -> tuple[CStmt, ...]:
    for frame in reversed(frames):
        body = (replace(frame, body=body),)
    return body
