"""Which elements of a shared tile the lanes of the first warp access together, in a parallel loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from tile2c.transpile.ir.expr import Buffer, Expr, Load, Var, const
from tile2c.transpile.ir.forms import For, Let, Parallel, Pipelined, Stmt, Store
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.simt.access import alignment, neighbours, vector_width
from tile2c.transpile.lower.simt.banks import Phase, phases
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.frames import Frames
from tile2c.transpile.lower.simt.iteration import ParallelLoop, chunk_width, memory_accesses
from tile2c.transpile.lower.simt.layouts import Layout
from tile2c.transpile.lower.simt.outer_statements import walk
from tile2c.transpile.lower.simt.per_thread import PerThread

Place = tuple[int, ...]  # values of the loop's variables


def tile_phases(
    ctx: Context, body: Sequence[Stmt], frames: Frames
) -> Iterator[tuple[Buffer, tuple[Phase, ...]]]:
    """The accesses of all parallel loops to shared tiles of two dimensions; others are left out."""
    facts = ctx.facts
    for stmt in walk(body):
        if isinstance(stmt, For | Pipelined):
            ctx.facts = ctx.facts.with_loop(stmt)
    outer = ctx.facts
    for stmt in walk(body):
        if isinstance(stmt, Parallel):
            for var, extent in zip(stmt.loop_vars, stmt.extents, strict=True):
                ctx.facts = ctx.facts.with_range(var, const(0), extent)
            yield from _loop(ctx, stmt, frames.of(stmt))
            ctx.facts = outer
    ctx.facts = facts


def _loop(
    ctx: Context, stmt: Parallel, layout: Layout | None
) -> Iterator[tuple[Buffer, tuple[Phase, ...]]]:
    loop = ParallelLoop(
        loop_vars=stmt.loop_vars, extents=stmt.extents, body=stmt.body, quote="", comments=()
    )
    found = _places(ctx, loop, layout)
    if not found:
        return
    last, width = loop.loop_vars[-1].name, len(found[0])
    plain = all(isinstance(inner, Store | Let) for inner in loop.body)
    for buffer, index in memory_accesses(loop):
        if buffer.scope != "shared" or len(buffer.shape) != 2 or buffer.dtype.bits % 8:
            continue
        vector = (
            plain
            and neighbours(ctx, index, last, width)
            and alignment(ctx, buffer, index, last, width) != "never"
        )
        size = buffer.dtype.bytes * (width if vector else 1)
        for v in range(1 if vector else width):
            at = [_element(loop, index, lane[v]) for lane in found]
            if None not in at:
                yield buffer, phases([place for place in at if place is not None], size)


def _places(ctx: Context, loop: ParallelLoop, layout: Layout | None) -> list[tuple[Place, ...]]:
    """For each lane of the first warp: its iterations, as many as a vector has."""
    lanes = range(min(ctx.threads, ctx.target.lanes))
    if layout is not None:
        last = len(loop.loop_vars) - 1
        first = layout.dims[last][:1]
        width = step = 1
        if first and first[0].holder == "value":
            name, extent = loop.loop_vars[last].name, first[0].extent
            if vector_width(ctx, memory_accesses(loop), name, extent) == extent:
                width, step = extent, first[0].weight
        return [tuple(layout.locate(lane, v * step) for v in range(width)) for lane in lanes]
    extents = [b.known(extent) for extent in loop.extents]
    sizes = [extent for extent in extents if extent is not None]
    if len(sizes) != len(extents):
        return []
    width = chunk_width(ctx, loop, extents)
    row = sizes[-1] // width
    chunks = range(min(len(lanes), prod(sizes[:-1]) * row))
    return [tuple(_chunk(chunk, row, width, sizes, v) for v in range(width)) for chunk in chunks]


def _chunk(chunk: int, row: int, width: int, sizes: list[int], v: int) -> Place:
    rest, column = divmod(chunk, row)
    at = [column * width + v]
    for size in reversed(sizes[:-1]):
        rest, own = divmod(rest, size)
        at.insert(0, own)
    return tuple(at)


def _element(loop: ParallelLoop, index: tuple[Expr, ...], at: Place) -> tuple[int, int] | None:
    """(row, column) of an access; what other names hold counts as zero. None where it is looked up."""
    values: dict[str, Expr] = {
        var.name: const(value) for var, value in zip(loop.loop_vars, at, strict=True)
    }
    found = []
    for part in index:
        if any(isinstance(inner, Load) for inner in b.walk(part)):
            return None
        free = {inner.name: const(0) for inner in b.walk(part) if isinstance(inner, Var)}
        values_here = PerThread((1, 1, 1), {}).values(b.substitute(part, {**free, **values}))
        if values_here is None:
            return None
        found.append(values_here[0])
    return found[0], found[1]
