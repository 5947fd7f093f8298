"""Reductions in serial loops whose result nobody wants before the loop's end: threads meet once, behind it.

In the loop each thread gathers its own elements; what T.reduce_sum(..., clear=False) would do across
lanes and warps in every round is done after the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile2c.transpile.ir.expr import Binary, Buffer, Load, Var
from tile2c.transpile.ir.forms import For, If, Parallel, Pipelined, Reduce, Stmt, Store, While
from tile2c.transpile.ir.walk import loads, reads, statements, writes
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.gathered import Gather, Meet
from tile2c.transpile.lower.simt.hand_over import fresh, same, whole, whole_loop
from tile2c.transpile.lower.simt.reduce import identity


def meet_after_loops(ctx: Context, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Splits such reductions; one in nested loops leaves all of them that do not use its result.

    reads   tile IR with copies as loops, reductions of whole fragments
    writes  the same, with Gather inside the loops and Meet behind them
    """
    found: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For | Pipelined):
            stmt = _joined_at_once(ctx, stmt)
            inside, after = stmt.body, []
            for reduction in _late(stmt):
                if _scaled_from_before(found, stmt, reduction):
                    continue
                found, inside, meet = _split(ctx, found, inside, reduction)
                after.append(meet)
            inside = meet_after_loops(ctx, inside)
            found += [stmt if same(inside, stmt.body) else replace(stmt, body=inside), *after]
        elif isinstance(stmt, While):
            inside = meet_after_loops(ctx, stmt.body)
            found.append(stmt if same(inside, stmt.body) else replace(stmt, body=inside))
        elif isinstance(stmt, If):
            then, orelse = meet_after_loops(ctx, stmt.then), meet_after_loops(ctx, stmt.orelse)
            alike = same(then, stmt.then) and same(orelse, stmt.orelse)
            found.append(stmt if alike else replace(stmt, then=then, orelse=orelse))
        else:
            found.append(stmt)
    return tuple(found)


def _scaled_from_before(before: Sequence[Stmt], loop: For | Pipelined, stmt: Reduce) -> bool:
    """Whether the loop scales what the result was before it, too: the threads' parts have none of that."""
    target = stmt.dst.buffer
    scaled = any(x.buffer == target for inner in loop.body for x in _scalings(inner))
    return scaled and _fill(before, target, identity(stmt.op, target.dtype)) is None


def _late(loop: For | Pipelined) -> list[Reduce]:
    """Reductions in the loop, or in loops inside it, whose result only they touch.

    Sums may shrink between rounds, as those of a softmax do when its largest score grows: what each
    thread has gathered shrinks alike.
    """
    inside = list(statements(loop.body))
    touched: dict[str, list[Stmt]] = {}
    for stmt in inside:
        for name in {buffer.name for buffer in (*reads(stmt), *writes(stmt))}:
            touched.setdefault(name, []).append(stmt)
    scaled = {id(store) for stmt in loop.body for store in _scalings(stmt)}
    return [
        stmt
        for stmt in _in_loops(loop.body)
        if type(stmt) is Reduce
        and not stmt.clear
        and stmt.src.buffer.scope == stmt.dst.buffer.scope == "fragment"
        and all(
            x is stmt or (stmt.op == "sum" and id(x) in scaled)
            for x in touched[stmt.dst.buffer.name]
        )
        and stmt.src.buffer.name != stmt.dst.buffer.name
    ]


def _joined_at_once(ctx: Context, loop: For | Pipelined) -> For | Pipelined:
    """The loop with `t *= f; reduce_sum(x, t, clear=False)` for `reduce_sum(x, p); t = t * f + p`,
    where nobody else looks at p, nor at t in the loop."""
    body = list(loop.body)
    inside = list(statements(loop.body))
    for at, first in enumerate(loop.body):
        if type(first) is not Reduce or first.op != "sum" or not first.clear:
            continue
        part, source = first.dst.buffer, first.src.buffer
        users = [x for x in inside if x is not first and _touches(x, part)]
        everywhere = [x for x in statements(ctx.launch.body) if _touches(x, part)]
        if len(users) != 1 or len(everywhere) != 2 or part.scope != "fragment":
            continue
        for later in range(at + 1, len(body)):
            stmt = body[later]
            found = _adds(stmt, users[0], part)
            if found is not None:
                total, scaled = found
                alone = [x for x in inside if _touches(x, total)] == [users[0]]
                alike = (total.scope, total.shape, total.dtype) == (
                    part.scope,
                    part.shape,
                    part.dtype,
                )
                apart = not any(x == source for inner in statements((stmt,)) for x in writes(inner))
                if alone and alike and apart:
                    body[at] = replace(first, dst=whole(total), clear=False)
                    body[at : later + 1] = [*body[at + 1 : later], scaled, body[at]]
                    return _joined_at_once(ctx, replace(loop, body=tuple(body)))
            if any(x in (source, part) for inner in statements((stmt,)) for x in writes(inner)):
                break
    return loop


def _touches(stmt: Stmt, buffer: Buffer) -> bool:
    return any(x == buffer for x in (*reads(stmt), *writes(stmt)))


def _adds(loop: Stmt, stmt: Stmt, part: Buffer) -> tuple[Buffer, Parallel] | None:
    """What `t[i] = t[i] * f + part[i]` adds to, and the loop that only scales it."""
    if not isinstance(loop, Parallel) or not any(x is stmt for x in loop.body):
        return None
    if not isinstance(stmt, Store):  # a name for it, say
        return None
    value = stmt.value
    added = Load(dtype=part.dtype, buffer=part, index=stmt.index)
    if not isinstance(value, Binary) or value.op != "+" or added not in (value.a, value.b):
        return None
    scaled = replace(stmt, value=value.b if value.a == added else value.a)
    if not _scales(loop, scaled) or any(x.buffer == part for x in loads(scaled.value)):
        return None
    inside = tuple(scaled if x is stmt else x for x in loop.body)
    return stmt.buffer, replace(loop, body=inside)


def _scalings(loop: Stmt) -> list[Store]:
    """Stores `x[i] = x[i] * factor` of a parallel loop over all of a fragment of floats x."""
    if not isinstance(loop, Parallel):
        return []
    return [stmt for stmt in loop.body if isinstance(stmt, Store) and _scales(loop, stmt)]


def _scales(loop: Parallel, stmt: Store) -> bool:
    value, buffer = stmt.value, stmt.buffer
    names = [part.name for part in stmt.index if isinstance(part, Var)]
    if names != [var.name for var in loop.loop_vars] or loop.extents != buffer.shape:
        return False
    if not isinstance(value, Binary) or value.op != "*" or not buffer.dtype.is_float:
        return False
    own = Load(dtype=buffer.dtype, buffer=buffer, index=stmt.index)
    factor = value.b if value.a == own else value.a if value.b == own else None
    return factor is not None and all(x.buffer.name != buffer.name for x in loads(factor))


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
    return before, _scaled(_with(body, stmt, gather), target, part), meet


def _scaled(body: tuple[Stmt, ...], target: Buffer, part: Buffer) -> tuple[Stmt, ...]:
    """The body with stores that scale `part` for those that scaled the target."""
    found: list[Stmt] = []
    for stmt in body:
        wanted = {id(x) for x in _scalings(stmt) if x.buffer == target}
        if isinstance(stmt, Parallel) and wanted:
            inside = tuple(
                _of_part(x, part) if id(x) in wanted and isinstance(x, Store) else x
                for x in stmt.body
            )
            stmt = replace(stmt, body=inside)
        found.append(stmt)
    return tuple(found)


def _of_part(stmt: Store, part: Buffer) -> Store:
    value = stmt.value
    assert isinstance(value, Binary)
    own = Load(dtype=stmt.buffer.dtype, buffer=stmt.buffer, index=stmt.index)
    theirs = replace(own, buffer=part)
    scaled = replace(
        value, a=theirs if value.a == own else value.a, b=theirs if value.b == own else value.b
    )
    return replace(stmt, buffer=part, value=scaled)


def _with(body: tuple[Stmt, ...], old: Stmt, new: Stmt) -> tuple[Stmt, ...]:
    """The body with one statement for another, in loops too."""
    found: list[Stmt] = []
    for stmt in body:
        if stmt is old:
            found.append(new)
        elif isinstance(stmt, For | Pipelined):
            inner = _with(stmt.body, old, new)
            found.append(stmt if same(inner, stmt.body) else replace(stmt, body=inner))
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
