"""Reductions in serial loops whose result nobody wants before the loop's end: threads meet once, behind it.

In the loop each thread gathers its own elements; what T.reduce_sum(..., clear=False) would do across
lanes and warps in every round is done after the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile2c.transpile.ir.expr import Buffer, Var
from tile2c.transpile.ir.forms import For, If, Parallel, Pipelined, Reduce, Stmt, Store, While
from tile2c.transpile.ir.walk import reads, statements, writes
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.gathered import Gather, Meet
from tile2c.transpile.lower.simt.hand_over import fresh, whole, whole_loop
from tile2c.transpile.lower.simt.reduce import identity


def meet_after_loops(ctx: Context, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Splits such reductions; one in nested loops leaves all of them that do not use its result.

    reads   tile IR with copies as loops, reductions of whole fragments
    writes  the same, with Gather inside the loops and Meet behind them
    """
    found: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For | Pipelined):
            inside, after = stmt.body, []
            for reduction in _late(stmt):
                found, inside, meet = _split(ctx, found, inside, reduction)
                after.append(meet)
            inside = meet_after_loops(ctx, inside)
            found += [stmt if _same(inside, stmt.body) else replace(stmt, body=inside), *after]
        elif isinstance(stmt, While):
            inside = meet_after_loops(ctx, stmt.body)
            found.append(stmt if _same(inside, stmt.body) else replace(stmt, body=inside))
        elif isinstance(stmt, If):
            then, orelse = meet_after_loops(ctx, stmt.then), meet_after_loops(ctx, stmt.orelse)
            same = _same(then, stmt.then) and _same(orelse, stmt.orelse)
            found.append(stmt if same else replace(stmt, then=then, orelse=orelse))
        else:
            found.append(stmt)
    return tuple(found)


def _same(a: Sequence[Stmt], c: Sequence[Stmt]) -> bool:
    return len(a) == len(c) and all(x is y for x, y in zip(a, c, strict=True))


def _late(loop: For | Pipelined) -> list[Reduce]:
    """Reductions in the loop, or in loops inside it, whose result only they touch."""
    inside = list(statements(loop.body))
    touched: dict[str, int] = {}
    for stmt in inside:
        for name in {buffer.name for buffer in (*reads(stmt), *writes(stmt))}:
            touched[name] = touched.get(name, 0) + 1
    return [
        stmt
        for stmt in _in_loops(loop.body)
        if type(stmt) is Reduce
        and not stmt.clear
        and stmt.src.buffer.scope == stmt.dst.buffer.scope == "fragment"
        and touched[stmt.dst.buffer.name] == 1
        and stmt.src.buffer.name != stmt.dst.buffer.name
    ]


def _in_loops(body: Sequence[Stmt]) -> list[Stmt]:
    """Statements of the body and of serial loops in it; what stands under a condition is left out."""
    found: list[Stmt] = []
    for stmt in body:
        found += _in_loops(stmt.body) if isinstance(stmt, For | Pipelined) else [stmt]
    return found


def _split(
    ctx: Context, before: list[Stmt], body: tuple[Stmt, ...], stmt: Reduce
) -> tuple[list[Stmt], tuple[Stmt, ...], Meet]:
    """What stands before the loop, its body, and what stands behind it."""
    target = stmt.dst.buffer
    part = fresh(ctx, target, "fragment", f"{target.name}_part", f"{target.name}_own")
    ctx.own_parts.add(part.name)
    value = identity(stmt.op, target.dtype)
    start = whole_loop(ctx, part, lambda _: value)
    at = _fill(before, target, value)
    if at is not None:  # the result starts as what changes nothing: its parts do instead
        old = before[at]
        start = replace(start, comments=old.comments, quote=old.quote, span=old.span)
        before = [*before[:at], start, *before[at + 1 :]]
    else:
        before = [*before, start]
    gather = Gather(
        op=stmt.op, src=stmt.src, dst=whole(part), dim=stmt.dim, clear=False,
        nan_propagate=stmt.nan_propagate, comments=stmt.comments, quote=stmt.quote, span=stmt.span,
        remark=stmt.remark,
    )  # fmt: skip
    meet = Meet(
        op=stmt.op, src=stmt.src, dst=stmt.dst, dim=stmt.dim, clear=at is not None, part=part,
        nan_propagate=stmt.nan_propagate, span=stmt.span,
        comments=(f"{target.name}: what the threads have gathered comes together, once",),
    )  # fmt: skip
    return before, _with(body, stmt, gather), meet


def _with(body: tuple[Stmt, ...], old: Stmt, new: Stmt) -> tuple[Stmt, ...]:
    """The body with one statement for another, in loops too."""
    found: list[Stmt] = []
    for stmt in body:
        if stmt is old:
            found.append(new)
        elif isinstance(stmt, For | Pipelined):
            inner = _with(stmt.body, old, new)
            found.append(stmt if _same(inner, stmt.body) else replace(stmt, body=inner))
        else:
            found.append(stmt)
    return tuple(found)


def _fill(before: Sequence[Stmt], target: Buffer, value: object) -> int | None:
    """Where all of the target was set to this value, if nothing has touched it since."""
    for at in range(len(before) - 1, -1, -1):
        stmt = before[at]
        if isinstance(stmt, Parallel) and len(stmt.body) == 1 and stmt.extents == target.shape:
            (store,) = stmt.body
            if isinstance(store, Store) and store.buffer == target and store.value == value:
                names = [part.name for part in store.index if isinstance(part, Var)]
                if names == [var.name for var in stmt.loop_vars]:
                    return at
        inside = statements((stmt,))
        if any(x == target for inner in inside for x in (*reads(inner), *writes(inner))):
            return None
    return None
