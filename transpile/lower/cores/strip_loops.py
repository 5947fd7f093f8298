"""Walks over run-time sizes tile by tile: T.Parallel over N becomes a loop over tiles of it.

reads   tile IR        writes  the same, every T.Parallel with constant extents
why     local memory holds tiles of constant size; other chips spread the iterations over threads
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tile2c.transpile.ir import forms, walk
from tile2c.transpile.ir.dtypes import BOOL, INT32
from tile2c.transpile.ir.expr import Binary, Buffer, Compare, Const, Expr, Var, const
from tile2c.transpile.ir.forms import Stmt
from tile2c.transpile.lower.cores.layouts import constant_of, plus, times
from tile2c.transpile.lower.facts import linear
from tile2c.transpile.lower.rewrite import rewrite_statement

_LAST, _OTHER = 1024, 8  # columns and rows at a time: 32 KB of float32


def strip_loops(launch: forms.Launch, taken: set[str]) -> forms.Launch:
    """The launch with serial loops around what is not constant. New names are added to `taken`."""
    return replace(launch, body=_list(launch.body, taken))


def _list(body: tuple[Stmt, ...], taken: set[str]) -> tuple[Stmt, ...]:
    return tuple(_statement(stmt, taken) for stmt in body)


def _statement(stmt: Stmt, taken: set[str]) -> Stmt:
    if isinstance(stmt, forms.Parallel):
        return _parallel(replace(stmt, extents=tuple(map(_constant, stmt.extents))), taken)
    if isinstance(stmt, forms.For | forms.Pipelined | forms.While):
        return replace(stmt, body=_list(stmt.body, taken))
    if isinstance(stmt, forms.If):
        return replace(stmt, then=_list(stmt.then, taken), orelse=_list(stmt.orelse, taken))
    return stmt


def _parallel(stmt: forms.Parallel, taken: set[str]) -> Stmt:
    for place, (var, extent) in enumerate(zip(stmt.loop_vars, stmt.extents, strict=True)):
        if isinstance(extent, Const):
            continue
        width = _width_on_chip(stmt, var)
        if width is not None:
            return _parallel(_within(stmt, place, width), taken)
        last = place == len(stmt.loop_vars) - 1
        size = const(_LAST if last else _OTHER, _fresh(f"{var.name}_tile", taken))
        outer = Var(dtype=INT32, name=_fresh(f"{var.name}_block", taken), kind="loop")
        inner = _cut(stmt, place, outer, size)
        stop = Binary(dtype=INT32, op="ceildiv", a=extent, b=size)
        return forms.For(
            kind="serial",
            var=outer,
            start=const(0),
            stop=stop,
            body=(_parallel(inner, taken),),
            span=stmt.span,
            quote=stmt.quote,
            comments=stmt.comments,
            remark=stmt.remark,
        )
    return stmt


def _width_on_chip(stmt: forms.Parallel, var: Var) -> int | None:
    """How far the variable can count at most, as it walks over an array on the chip; None if over none."""
    found: list[int] = []
    for buffer, index in _accesses(stmt):
        if buffer.scope == "global":
            continue
        for part, extent in zip(index, buffer.shape, strict=True):
            rest = dict(linear(part).terms)
            size = constant_of(extent)
            if rest.pop(var, 0) == 1 and size is not None:
                found.append(size - (0 if rest else max(linear(part).constant, 0)))
    return max(min(found), 1) if found else None


def _accesses(stmt: forms.Parallel) -> Iterator[tuple[Buffer, tuple[Expr, ...]]]:
    for inner in walk.statements(stmt.body):
        if isinstance(inner, forms.Store | forms.Atomic):
            yield inner.buffer, inner.index
        for expr in walk.expressions(inner):
            for load in walk.loads(expr):
                yield load.buffer, load.index


def _within(stmt: forms.Parallel, place: int, width: int) -> forms.Parallel:
    """The loop over all that the array has; iterations past the end do nothing."""
    inside = Compare(dtype=BOOL, op="<", a=stmt.loop_vars[place], b=stmt.extents[place])
    extents = (*stmt.extents[:place], const(width), *stmt.extents[place + 1 :])
    return replace(stmt, extents=extents, body=(forms.If(condition=inside, then=stmt.body),))


def _constant(extent: Expr) -> Expr:
    """An extent of constants as one number: block_N - 16."""
    number = None if isinstance(extent, Const) else constant_of(extent)
    return extent if number is None else const(number)


def _cut(stmt: forms.Parallel, place: int, outer: Var, size: Const) -> forms.Parallel:
    """The loop over one tile; iterations past the end do nothing."""
    var, whole = stmt.loop_vars[place], stmt.extents[place]
    index = plus(times(outer, size), var)

    def moved(part: Expr) -> Expr | None:
        return index if part == var else None

    body = tuple(rewrite_statement(inner, moved) for inner in stmt.body)
    inside = Compare(dtype=BOOL, op="<", a=index, b=whole)
    extents = (*stmt.extents[:place], size, *stmt.extents[place + 1 :])
    guarded = forms.If(condition=inside, then=body)
    return replace(stmt, extents=extents, body=(guarded,), quote="", comments=())


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_other"
    taken.add(name)
    return name
