"""Scalar statements: those of one iteration of a parallel loop, and those every thread runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.expr import Binary, Expr, Load, Var, const
from tile2c.transpile.ir.forms import (
    Assert,
    Atomic,
    Declare,
    For,
    Foreign,
    If,
    Jump,
    Let,
    Print,
    Stmt,
    Store,
    While,
)
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import (
    Assign,
    Branch,
    CStmt,
    Declarator,
    Escape,
    Local,
    Loop,
    Repeat,
    Section,
)
from tile2c.transpile.lower.simt.atomics import lower_atomic
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.debugging import lower_assert, lower_print
from tile2c.transpile.lower.simt.divergence import lasts
from tile2c.transpile.lower.simt.foreign import lower_foreign
from tile2c.transpile.lower.simt.values import Place, convert, guards


def lower_scalars(ctx: Context, body: Sequence[Stmt], place: Place) -> tuple[CStmt, ...]:
    """The statements in C, comments and remarks kept."""
    return tuple(stmt for part in body for stmt in _lower(ctx, part, place))


def _lower(ctx: Context, stmt: Stmt, place: Place) -> tuple[CStmt, ...]:
    if isinstance(stmt, Store):
        return (_store(ctx, stmt, place),)
    if isinstance(stmt, Atomic):
        return lower_atomic(ctx, stmt, place)
    if isinstance(stmt, Let):
        value = convert(ctx, stmt.value, place)
        name = Declarator(name=stmt.var.name, value=value)
        return (
            Local(dtype=stmt.var.dtype, names=(name,), comments=stmt.comments, remark=stmt.remark),
        )
    if isinstance(stmt, Declare):
        init = convert(ctx, stmt.init, place) if stmt.init is not None else None
        name = Declarator(name=stmt.buffer.name, value=init)
        return (
            Local(
                dtype=stmt.buffer.dtype,
                names=(name,),
                const=False,
                comments=stmt.comments,
                remark=stmt.remark,
            ),
        )
    if isinstance(stmt, If):
        return (_branch(ctx, stmt, place),)
    if isinstance(stmt, For):
        return (_loop(ctx, stmt, place),)
    if isinstance(stmt, While):
        condition = convert(ctx, stmt.condition, place)
        body = lower_scalars(ctx, stmt.body, place)
        return (Repeat(condition=condition, body=body, comments=stmt.comments, remark=stmt.remark),)
    if isinstance(stmt, Jump):
        return (Escape(kind=stmt.kind, comments=stmt.comments, remark=stmt.remark),)
    if isinstance(stmt, Assert):
        return (lower_assert(ctx, stmt, place),)
    if isinstance(stmt, Foreign):
        return (lower_foreign(ctx, stmt, place),)
    if isinstance(stmt, Print):
        return (lower_print(ctx, stmt, place),)
    raise failure(
        "T2C502",
        f"`{stmt.quote or type(stmt).__name__}` is not lowered for {ctx.target.name} yet",
        stmt.span,
    )


def _store(ctx: Context, stmt: Store, place: Place) -> CStmt:
    """buffer[index] = value, under the conditions that keep a global store inside."""
    checks = guards(ctx, stmt.buffer, stmt.index, place) if stmt.buffer.scope == "global" else []
    load = Load(dtype=stmt.buffer.dtype, buffer=stmt.buffer, index=stmt.index)
    if load in place.loads:
        checks = []  # the vector's store looks after the edge
    inside = replace(place, guarded=(*place.guarded, *checks))
    target = _target(ctx, load, inside)
    value = convert(ctx, stmt.value, inside)
    update = _update(target, value)
    assign = Assign(
        target=target,
        value=update[1],
        op=update[0],  # type: ignore[arg-type]
        comments=stmt.comments if not checks else (),
        remark=stmt.remark if not checks else "",
    )
    held = Load(dtype=stmt.buffer.dtype, buffer=stmt.buffer, index=stmt.index) in place.loads
    memory = stmt.buffer.scope in ("global", "shared") and not held  # a vector is stored as a whole
    once = list(place.once) if memory else []
    conditions = once + [convert(ctx, check, place) for check in checks]
    if not conditions:
        return assign
    if checks:
        reason = "the last tile may reach past the edge"
    else:
        reason = "several threads hold the same: one writes"
    return Branch(
        condition=b.both(conditions),
        then=(replace(assign, comments=(), remark=""),),
        comments=stmt.comments,
        remark=stmt.remark or reason,
    )


def _target(ctx: Context, load: Load, place: Place) -> Expr:
    """The stored element itself, without the guard of a load."""
    from tile2c.transpile.lower.simt.values import global_element

    if load.buffer.scope == "global" and load not in place.loads:
        return global_element(ctx, load.buffer, load.index, place)
    return convert(ctx, load, place)


def _update(target: Expr, value: Expr) -> tuple[str, Expr]:
    """`x = x + y` as `x += y`."""
    if isinstance(value, Binary) and value.op in ("+", "-", "*", "/") and value.a == target:
        return f"{value.op}=", value.b
    return "=", value


def _branch(ctx: Context, stmt: If, place: Place) -> CStmt:
    facts = ctx.facts
    if not stmt.orelse and facts.holds(stmt.condition):  # a promise has decided it
        body = lower_scalars(ctx, stmt.then, place)
        return Section(body=body, blank=False, comments=stmt.comments)
    condition = convert(ctx, stmt.condition, place)
    if lasts(stmt.condition, stmt.then):
        ctx.facts = facts.with_condition(stmt.condition)
    then = lower_scalars(ctx, stmt.then, place)
    ctx.facts = facts
    if lasts(stmt.condition, stmt.orelse):
        ctx.facts = facts.with_condition(b.negate(stmt.condition))
    orelse = lower_scalars(ctx, stmt.orelse, place)
    ctx.facts = facts
    return Branch(
        condition=condition, then=then, orelse=orelse, comments=stmt.comments, remark=stmt.remark
    )


def _loop(ctx: Context, stmt: For, place: Place) -> CStmt:
    """A serial loop of one thread."""
    name = ctx.namer.author(stmt.var.author or stmt.var.name)
    facts = ctx.facts
    ctx.facts = facts.with_loop(stmt)
    counter = Var(dtype=stmt.var.dtype, name=name, kind="loop")
    inner = replace(place, values={**place.values, stmt.var.name: counter})
    loop = Loop(
        var=name,
        start=convert(ctx, stmt.start, place),
        stop=convert(ctx, stmt.stop, place),
        step=const(stmt.step),
        body=lower_scalars(ctx, stmt.body, inner),
        unroll=stmt.kind == "unroll",
        dtype=stmt.var.dtype,
        comments=(*stmt.comments, *((stmt.quote,) if stmt.quote else ())),
        remark=stmt.remark,
    )
    ctx.facts = facts
    ctx.namer.release(name)
    return loop
