"""Loops that never run are left out, so that no text has to bound what is not there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile2c.transpile.ir.forms import For, Function, If, Parallel, Pipelined, Stmt, While
from tile2c.transpile.lower import build as b


def drop_dead_loops(function: Function) -> Function:
    """The function without loops whose extents are known and not positive.

    reads   tile IR          writes  tile IR
    """
    launches = tuple(replace(launch, body=_alive(launch.body)) for launch in function.launches)
    return replace(function, launches=launches)


def _alive(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    return tuple(_pruned(stmt) for stmt in body if not _dead(stmt))


def _dead(stmt: Stmt) -> bool:
    if isinstance(stmt, Parallel):
        known = [b.known(extent) for extent in stmt.extents]
        return any(extent is not None and extent <= 0 for extent in known)
    if isinstance(stmt, For | Pipelined):
        start, stop = b.known(stmt.start), b.known(stmt.stop)
        step = stmt.step if isinstance(stmt, For) else 1
        return start is not None and stop is not None and not range(start, stop, step)
    return False


def _pruned(stmt: Stmt) -> Stmt:
    if isinstance(stmt, Parallel | For | Pipelined | While):
        return replace(stmt, body=_alive(stmt.body))
    if isinstance(stmt, If):
        return replace(stmt, then=_alive(stmt.then), orelse=_alive(stmt.orelse))
    return stmt
