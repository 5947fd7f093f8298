"""Checks on the finished IR that need the whole kernel: what is read before it is written, and
sums over iterations of T.Parallel."""

from __future__ import annotations

from collections.abc import Collection

from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.ir.build.context import allocated_here
from tile2c.transpile.ir.constants import constant_int
from tile2c.transpile.ir.expr import Buffer
from tile2c.transpile.ir.forms import Function, Gemm, Launch, Parallel, Stmt, Store
from tile2c.transpile.ir.walk import (
    bodies,
    expressions,
    loads,
    reads,
    statements,
    variables,
    writes,
)


def check_function(
    function: Function, diagnostics: Diagnostics, reducers: Collection[str] = ()
) -> None:
    """Warnings about a function that is built without errors."""
    for launch in function.launches:
        _uninitialised(launch, diagnostics)
        for stmt in statements(launch.body):
            if isinstance(stmt, Parallel):
                _sums(stmt, diagnostics, reducers)


def _uninitialised(launch: Launch, diagnostics: Diagnostics) -> None:
    written: set[str] = set()
    warned: set[str] = set()
    if launch.barriers:  # who writes may stand behind who reads
        written = {x.name for stmt in statements(launch.body) for x in writes(stmt)}

    def visit(body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            for buffer in reads(stmt):
                if buffer.scope not in ("shared", "fragment", "local"):
                    continue
                if buffer.name not in written and buffer.name not in warned:
                    warned.add(buffer.name)
                    _warn_unwritten(stmt, buffer, diagnostics)
            for inner in bodies(stmt):
                visit(inner)
            written.update(buffer.name for buffer in writes(stmt))

    visit(launch.body)


def _warn_unwritten(stmt: Stmt, buffer: Buffer, diagnostics: Diagnostics) -> None:
    span = stmt.span
    if isinstance(stmt, Gemm) and buffer == stmt.c.buffer:
        message = f"the gemm adds to {buffer.name}, which nothing has set before"
        help = f"T.clear({buffer.name}) before, or clear_accum=True"
        span = stmt.c.span or span
    else:
        message = f"{buffer.name} is read here, but nothing has written it before"
        help = None
        for expr in expressions(stmt):
            for load in loads(expr):
                if load.buffer == buffer and load.span is not None:
                    span = load.span
    diagnostics.warning("T2C313", message, span, notes=allocated_here(buffer), help=help)


def _sums(loop: Parallel, diagnostics: Diagnostics, reducers: Collection[str]) -> None:
    """`acc[j] += x[i, j]`: right as a sum over all iterations, but seldom what is fast or meant."""
    wide = {
        var.name: var
        for var, extent in zip(loop.loop_vars, loop.extents, strict=True)
        if constant_int(extent) != 1
    }
    for stmt in statements(loop.body):
        if not isinstance(stmt, Store) or stmt.buffer.scope not in ("fragment", "shared", "global"):
            continue
        if stmt.buffer.name in reducers:
            continue
        again = [load for load in loads(stmt.value) if load.buffer == stmt.buffer]
        if not any(load.index == stmt.index for load in again):
            continue
        used = {var.name for expr in stmt.index for var in variables(expr)}
        missing = [var.author or name for name, var in wide.items() if name not in used]
        if not missing:
            continue
        over = ", ".join(f"`{name}`" for name in missing)
        if stmt.buffer.scope == "fragment":
            diagnostics.warning(
                "T2C316",
                f"every iteration over {over} adds to the same elements of {stmt.buffer.name}",
                stmt.span,
                help="T.reduce_sum and its like do this in one statement",
            )
        else:
            diagnostics.warning(
                "T2C319",
                f"iterations over {over} of T.Parallel update the same elements of "
                f"{stmt.buffer.name} at once: a race",
                stmt.span,
                help="T.reduce_sum, or T.atomic_add",
            )
