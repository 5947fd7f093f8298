"""Results of matrix instructions that go to a tensor: by way of a shared tile, so that whole rows leave.

An accumulator lies in pieces of rows: eight rows meet in one store of a warp, with 8 or 16 bytes of each.
A tile in the bytes of operands that nobody reads any more turns them into rows, 16 bytes a thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import lcm

from tile2c.transpile.ir.expr import Buffer, Expr, Load, Var, const
from tile2c.transpile.ir.forms import Copy, Jump, Parallel, Stmt, Store
from tile2c.transpile.ir.walk import statements
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.simt.access import alignment, all_loads, neighbours
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.matrix import MatrixPlan
from tile2c.transpile.lower.simt.operands import Gemms
from tile2c.transpile.lower.simt.outer_statements import walk

_LEAST_ROW = 128  # bytes: a line of the cache


def through_rows(ctx: Context, settled: Gemms) -> Gemms:
    """Stores of accumulators to tensors become two loops: to a tile, and row by row to the tensor.

    reads   tile IR with copies as loops, gemms planned      writes  the same
    `ctx.leaving` gets the tiles. Only at the end of a block that no thread leaves early: there operands are
    dead, and a barrier can stand.
    """
    if not ctx.target.results_in_rows or any(
        isinstance(stmt, Jump) for stmt in statements(settled.body)
    ):
        return settled
    sums = {
        gemm.c.buffer.name
        for gemm in settled.gemms
        if isinstance(settled.plans[id(gemm)], MatrixPlan)
    }
    found: list[Stmt] = []
    for stmt in settled.body:
        target = _target(ctx, stmt, sums, settled.body)
        if target is None:
            found.append(stmt)
        else:
            assert isinstance(stmt, Parallel)
            found += _two_loops(ctx, stmt, target)
    return replace(settled, body=tuple(found))


def _target(
    ctx: Context, stmt: Stmt, sums: set[str], body: Sequence[Stmt]
) -> tuple[Buffer, tuple[Expr, ...]] | None:
    """The tensor and the index that the loop stores an accumulator to, where that pays in rows."""
    if not isinstance(stmt, Parallel) or len(stmt.loop_vars) != 2 or len(stmt.body) != 1:
        return None
    (store,) = stmt.body
    if not isinstance(store, Store) or store.buffer.scope != "global":
        return None
    held = [load for load in all_loads(stmt.body) if load.buffer.name in sums]
    if not held or any(load.index != stmt.loop_vars for load in held):
        return None
    others = {load.buffer.scope for load in all_loads(stmt.body)} - {"global", "fragment"}
    if others or any(load.buffer == store.buffer for load in all_loads(stmt.body)):
        return None
    extents = [b.known(extent) for extent in stmt.extents]
    shape = [b.known(extent) for extent in held[0].buffer.shape]
    size, columns = store.buffer.dtype.bytes, extents[1]
    if extents != shape or columns is None or store.buffer.dtype.bits % 8:
        return None
    width = ctx.target.vector_bytes // size
    if columns * size < _LEAST_ROW or columns % width:
        return None
    row, last = (var.name for var in stmt.loop_vars)
    if any(b.mentions(part, last) for part in store.index[:-1]) or b.mentions(store.index[-1], row):
        return None
    facts = ctx.facts
    for var, extent in zip(stmt.loop_vars, stmt.extents, strict=True):
        ctx.facts = ctx.facts.with_range(var, const(0), extent)
    moves = neighbours(ctx, store.index, last, width) and _rows_start(ctx, store, last, width, body)
    ctx.facts = facts
    return (store.buffer, store.index) if moves else None


def _rows_start(ctx: Context, store: Store, last: str, width: int, body: Sequence[Stmt]) -> bool:
    """Whether rows start where wide accesses may: always, or where those of an operand's copy do too."""
    answer = alignment(ctx, store.buffer, store.index, last, width)
    if answer != "rows":
        return answer == "always"
    facts = ctx.facts
    for stmt in walk(body):
        if isinstance(stmt, Copy) and stmt.src.buffer.dtype.bits >= 8:
            elements = ctx.target.vector_bytes // stmt.src.buffer.dtype.bytes
            for pitch in ctx.pitch(stmt.src.buffer)[:-1]:
                if isinstance(pitch, Var):
                    known = facts.divisors.get(pitch.name, 1)
                    facts = facts.with_divisor(pitch, lcm(known, elements))
    return all(facts.divisible(pitch, width) for pitch in ctx.pitch(store.buffer)[:-1])


def _two_loops(
    ctx: Context, stmt: Parallel, target: tuple[Buffer, tuple[Expr, ...]]
) -> tuple[Stmt, Stmt]:
    """The loop with a tile in place of the tensor, and the loop that takes the tile there."""
    buffer, index = target
    (store,) = stmt.body
    assert isinstance(store, Store)
    name = ctx.namer.ours(f"{buffer.name}_tile", f"{buffer.name}_rows")
    tile = Buffer(name=name, scope="shared", shape=stmt.extents, dtype=buffer.dtype)
    ctx.launch = replace(ctx.launch, buffers=(*ctx.launch.buffers, tile))
    ctx.leaving.add(name)
    at: tuple[Var, ...] = stmt.loop_vars
    into = replace(stmt, body=(replace(store, buffer=tile, index=at),))
    leave = Store(
        buffer=buffer, index=index, value=Load(dtype=tile.dtype, buffer=tile, index=at),
        span=store.span,
    )  # fmt: skip
    words = f"whole rows of {buffer.name} leave together, {ctx.target.vector_bytes} bytes a thread"
    return into, Parallel(
        loop_vars=at, extents=stmt.extents, body=(leave,), span=stmt.span, comments=(words,)
    )
