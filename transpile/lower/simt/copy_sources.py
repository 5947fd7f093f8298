"""Where started copies read: pointers that are found once, and moved from turn to turn."""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Binary, Expr, Load, const
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import Address, Declarator, Element, Local, Loop, Wide
from tile2c.transpile.lower.simt.access import neighbours_in
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.iteration import Iteration, ParallelLoop
from tile2c.transpile.lower.simt.running import step_of
from tile2c.transpile.lower.simt.values import Place, offset


def source_pointer(ctx: Context, loop: ParallelLoop, it: Iteration, source: Load) -> Expr | None:
    """A pointer that is found once, and the rows that turns lie apart; None where turns do not take
    whole rows.

    An address that is worked out anew in every turn costs instructions between a barrier and the
    products that wait behind the copies.
    """
    found = _rows_apart(ctx, loop, it, source)
    if found is None:
        return None
    turn, rows, stride, first = found
    base = source.buffer.name
    name = ctx.namer.ours(f"{base}_src", f"{base}_source")
    ctype = f"const {ctx.target.dialect.types[source.dtype.name]}*"
    step = _step(ctx, source)
    if step is not None and ctx.running is not None:
        ctx.running.add(name, source.dtype, ctype, first, step)
    else:
        pointer = Declarator(name=name, value=first)
        declared = Local(dtype=source.dtype, ctype=ctype, const=False, names=(pointer,))
        it.outside.append(declared)
    steps: Expr = b.mul(turn, const(rows))
    if ctx.wide(source.buffer):
        steps = Wide(dtype=INT32, a=steps)
    return b.add(b.local(name), b.times(steps, stride))


def _step(ctx: Context, source: Load) -> Expr | None:
    """How far the place moves in a round of the loop that loads ahead, where that is constant."""
    running = ctx.running
    if running is None:
        return None
    index = running.spelled(source.index)
    return step_of(ctx, running.var, source.buffer, index)


def _rows_apart(
    ctx: Context, loop: ParallelLoop, it: Iteration, source: Load
) -> tuple[Expr, int, Expr, Expr] | None:
    """The turn, rows a turn, their pitch and the first address, where turns take whole rows."""
    if len(it.frames) != 1 or len(it.coordinates) != 2 or len(loop.loop_vars) != 2:
        return None
    (frame,), ((_, row), (_, column)) = it.frames, it.coordinates
    if not isinstance(frame, Loop) or b.mentions(column, frame.var):
        return None
    turn = b.local(frame.var)
    if not isinstance(row, Binary) or row.op != "+" or b.mentions(row.b, frame.var):
        return None
    moved, start = row.a, row.b
    if not isinstance(moved, Binary) or moved.op != "*" or moved.a != turn:
        return None
    rows = b.known(moved.b)
    own = loop.loop_vars[0].name
    dims = [dim for dim, part in enumerate(source.index) if b.mentions(part, own)]
    if rows is None or len(dims) != 1 or not neighbours_in(source.index, dims[0], own):
        return None
    values = {**it.place.values, own: start, loop.loop_vars[1].name: column}
    if ctx.running is not None and _step(ctx, source) is not None:
        values[ctx.running.var.name] = ctx.running.start
        source = replace(source, index=ctx.running.spelled(source.index))
    place = Place(values=values)
    where = offset(ctx, source.buffer, source.index, place)
    element = Element(dtype=source.dtype, array=source.buffer.name, subscripts=(where,))
    first = Address(dtype=source.dtype, element=element)
    return turn, rows, b.in_words(ctx.pitch(source.buffer)[dims[0]]), first
