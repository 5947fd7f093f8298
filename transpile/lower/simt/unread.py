"""Statements whose only effect is on arrays of the block that nothing reads: they are left out.

C compilers warn about such arrays, and the work on them is for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile2c.transpile.ir.forms import (
    Atomic,
    Copy,
    Declare,
    Fill,
    For,
    If,
    Let,
    Parallel,
    Pipelined,
    Reduce,
    Scan,
    Stmt,
    Store,
)
from tile2c.transpile.ir.walk import expressions, reads, statements, variables, writes
from tile2c.transpile.lower.simt.context import Context

_ARRAYS = ("shared", "fragment", "local", "variable")


def without_unread(ctx: Context, body: tuple[Stmt, ...], *, aloud: bool = True) -> tuple[Stmt, ...]:
    """The block without them; `aloud`: the author wrote them for nothing, and is told.

    reads   tile IR      writes  the same
    """
    told: set[str] = set()
    while True:
        inside = list(statements(body))
        used = {buffer.name for stmt in inside for buffer in reads(stmt)}
        used |= {stmt.buffer.name for stmt in inside if isinstance(stmt, Atomic)}
        values = {var.name for stmt in inside for e in expressions(stmt) for var in variables(e)}
        for stmt in inside:
            for buffer in writes(stmt):
                if aloud and buffer.scope in _ARRAYS and buffer.name not in used | told:
                    told.add(buffer.name)
                    ctx.diagnostics.warning(
                        "T2C322",
                        f"{buffer.name} is written but never read: it is left out",
                        buffer.span or stmt.span,
                    )
        rest = _kept(body, used, values)
        if len(list(statements(rest))) == len(inside):
            return body
        body = rest


def shared_tiles(ctx: Context) -> set[str]:
    """Names of the shared tiles that what is not left out reads or writes."""
    inside = statements(without_unread(ctx, ctx.launch.body, aloud=False))
    touched = {x.name for stmt in inside for x in (*reads(stmt), *writes(stmt))}
    return {x.name for x in ctx.launch.buffers if x.scope == "shared" and x.name in touched}


def _kept(body: Sequence[Stmt], used: set[str], values: set[str]) -> tuple[Stmt, ...]:
    found: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Copy | Fill | Reduce | Scan | Store | Declare):
            written = stmt.buffer if isinstance(stmt, Store | Declare) else stmt.dst.buffer
            if written.scope in _ARRAYS and written.name not in used:
                continue
        elif isinstance(stmt, Let):
            if stmt.var.name not in values:
                continue
        elif isinstance(stmt, Parallel | For | Pipelined):
            inner = _kept(stmt.body, used, values)
            if stmt.body and not inner:
                continue
            if len(list(statements(inner))) < len(list(statements(stmt.body))):
                stmt = replace(stmt, body=inner)
        elif isinstance(stmt, If):
            then, orelse = (_kept(part, used, values) for part in (stmt.then, stmt.orelse))
            if not then and not orelse:
                continue
            both = (*stmt.then, *stmt.orelse)
            if len(list(statements((*then, *orelse)))) < len(list(statements(both))):
                stmt = replace(stmt, then=then, orelse=orelse)
        found.append(stmt)
    return tuple(found)
