"""Regions of tiles and tensors, and the parts of indices and guards that say where they lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tile2c.transpile.ir import walk
from tile2c.transpile.ir.expr import Binary, Buffer, Const, Expr, Logical, Var, const
from tile2c.transpile.ir.forms import Range, Region
from tile2c.transpile.lower.facts import Facts
from tile2c.transpile.lower.rewrite import rewrite


def whole(buffer: Buffer) -> Region:
    return Region(
        buffer=buffer, ranges=tuple(Range(start=const(0), extent=e) for e in buffer.shape)
    )


def region_like(tile: Buffer, region: Region) -> Region:
    """The part of `tile` that goes to `region`."""
    extents = [part.extent for part in region.ranges if not part.point] or [const(1)]
    return Region(
        buffer=tile, ranges=tuple(Range(start=const(0), extent=extent) for extent in extents)
    )


def conjuncts(guards: tuple[Expr, ...]) -> Iterator[Expr]:
    for guard in guards:
        if isinstance(guard, Logical) and guard.op == "and":
            yield from conjuncts((guard.a, guard.b))
        elif isinstance(guard, Binary) and guard.op == "&":
            yield from conjuncts((guard.a, guard.b))
        else:
            yield guard


def all_of(guards: tuple[Expr, ...]) -> Expr:
    whole = guards[0]
    for guard in guards[1:]:
        whole = Logical(dtype=whole.dtype, op="and", a=whole, b=guard)
    return whole


def same(a: Expr, b: Expr) -> bool:
    return Facts().equal(a, b)


def added_up(a: Expr, b: Expr) -> Expr:
    return Binary(dtype=a.dtype, op="+", a=a, b=b)


def less(a: Expr, b: Expr) -> Expr:
    if isinstance(b, Const) and b.value == 0:
        return a
    return Binary(dtype=a.dtype, op="-", a=a, b=b)


def without(index: Expr, var: Var) -> Expr:
    """The index for `var` = 0, in the author's shape: `bx * block_N + i` becomes `bx * block_N`."""
    if index == var:
        return const(0)
    if isinstance(index, Binary) and index.op in ("+", "-"):
        if index.b == var and index.op == "+":
            return index.a
        if index.a == var and index.op == "+":
            return index.b
        if any(used == var for used in walk.variables(index.a)):
            rest = without(index.a, var)
            zero = isinstance(rest, Const) and rest.value == 0
            if zero and index.op == "+":
                return index.b
            return replace(index, a=rest)
        if index.b == var:
            return index.a
        return replace(index, b=without(index.b, var))
    return rewrite(index, lambda part: const(0) if part == var else None)
