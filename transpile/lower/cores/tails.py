"""Rows that a loop sets to 0 right behind the copy that loads them are not loaded at all.

reads   tile IR        writes  the same with `T.copy` cut where the loop says, and without the loop
why     a copy leaves out rows for nothing, and what else touches an operand of a product on other
        cores has to pass through global memory
"""

from __future__ import annotations

from dataclasses import replace
from math import copysign

from tile2c.transpile.ir import forms, walk
from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import (
    Binary,
    Cast,
    Compare,
    CompareOp,
    Const,
    Expr,
    Load,
    Select,
    Var,
    const,
)
from tile2c.transpile.ir.forms import Region, Stmt
from tile2c.transpile.lower.cores.gather import at_zero, compared, slope
from tile2c.transpile.lower.cores.layouts import constant_of

_OPPOSITE: dict[CompareOp, CompareOp] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def cut_loads(launch: forms.Launch) -> forms.Launch:
    """The launch with such loops folded into the copies in front of them."""
    return replace(launch, body=_list(launch.body))


def _list(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    new: list[Stmt] = []
    for stmt in body:
        before = new[-1] if new else None
        if isinstance(before, forms.Copy) and isinstance(stmt, forms.Parallel):
            cut = _cut(before, stmt)
            if cut is not None:
                new[-1] = cut
                continue
        new.append(_inside(stmt))
    return tuple(new)


def _inside(stmt: Stmt) -> Stmt:
    if isinstance(stmt, forms.For | forms.Pipelined | forms.While):
        return replace(stmt, body=_list(stmt.body))
    if isinstance(stmt, forms.If):
        return replace(stmt, then=_list(stmt.then), orelse=_list(stmt.orelse))
    return stmt


def _cut(copy: forms.Copy, loop: forms.Parallel) -> forms.Copy | None:
    """The copy without the rows that the loop sets to 0, None where it does something else."""
    tile = copy.dst.buffer
    outside = copy.src.buffer.scope == "global" and tile.scope in ("shared", "fragment")
    if not outside or not _whole(copy.dst) or len(loop.body) != 1:
        return None
    if tuple(map(constant_of, tile.shape)) != tuple(map(constant_of, loop.extents)):
        return None
    condition = _zeroed(loop.body[0], tile.name, loop.loop_vars)
    if condition is None:
        return None
    row = loop.loop_vars[0]
    limit = _limit(condition, row, loop.loop_vars[1:])
    rows = [dim for dim, part in enumerate(copy.src.ranges) if not _one(part.extent)]
    if limit is None or len(rows) != len(loop.loop_vars) or any(_one(x) for x in tile.shape):
        return None
    ranges = list(copy.src.ranges)
    part = ranges[rows[0]]
    if not isinstance(part.extent, Const):
        return None
    extent = Binary(dtype=INT32, op="min", a=part.extent, b=limit)
    ranges[rows[0]] = replace(part, extent=extent)
    said = (*copy.comments, *((copy.quote,) if copy.quote else ()), *loop.comments)
    inner = loop.body[0]
    quotes = tuple(text for text in (loop.quote, inner.quote) if text)
    return replace(
        copy,
        src=replace(copy.src, ranges=tuple(ranges)),
        comments=(*said, *quotes),
        quote="",
        remark="the rest is set to 0",
    )


def _zeroed(stmt: Stmt, tile: str, index: tuple[Var, ...]) -> Compare | None:
    """The comparison under which the statement sets each element of a tile to 0."""
    if isinstance(stmt, forms.If) and not stmt.orelse and len(stmt.then) == 1:
        (store,) = stmt.then
        if _stores(store, tile, index) and isinstance(store, forms.Store) and _zero(store.value):
            return stmt.condition if isinstance(stmt.condition, Compare) else None
    if not isinstance(stmt, forms.Store) or not _stores(stmt, tile, index):
        return None
    value = stmt.value
    if not isinstance(value, Select) or not isinstance(value.condition, Compare):
        return None
    condition = value.condition
    if _zero(value.a) and _same(value.b, tile, index):
        return condition
    if _zero(value.b) and _same(value.a, tile, index) and condition.op in _OPPOSITE:
        return replace(condition, op=_OPPOSITE[condition.op])
    return None


def _limit(condition: Compare, row: Var, others: tuple[Var, ...]) -> Expr | None:
    """The first row for which a condition holds, where it holds for all that follow."""
    sides = compared(condition)
    if sides is None or not condition.a.dtype.is_integer:
        return None
    low, high, strict = sides  # low < high, or low <= high
    rest = Binary(dtype=INT32, op="-", a=high, b=low)
    if slope(rest, row) != 1 or any(True for part in others if _uses(rest, part)):
        return None
    if any(load.buffer.scope in ("shared", "fragment") for load in walk.loads(rest)):
        return None
    limit = at_zero(low, row), at_zero(high, row)
    found: Expr = Binary(dtype=INT32, op="-", a=limit[0], b=limit[1])
    if isinstance(limit[1], Const) and limit[1].value == 0:
        found = limit[0]
    return Binary(dtype=INT32, op="+", a=found, b=const(1)) if strict else found


def _uses(expr: Expr, var: Var) -> bool:
    return any(part == var for part in walk.variables(expr))


def _stores(stmt: Stmt, tile: str, index: tuple[Var, ...]) -> bool:
    return isinstance(stmt, forms.Store) and stmt.buffer.name == tile and stmt.index == index


def _same(expr: Expr, tile: str, index: tuple[Var, ...]) -> bool:
    return isinstance(expr, Load) and expr.buffer.name == tile and expr.index == index


def _zero(expr: Expr) -> bool:
    """Whether it is the 0 that stands in for what lies outside a tensor: -0.0 is another number."""
    while isinstance(expr, Cast):
        expr = expr.a
    return isinstance(expr, Const) and not expr.value and copysign(1.0, expr.value) > 0


def _one(extent: Expr) -> bool:
    return constant_of(extent) == 1


def _whole(region: Region) -> bool:
    return all(
        part.extent == extent and constant_of(part.start) == 0
        for part, extent in zip(region.ranges, region.buffer.shape, strict=True)
    )
