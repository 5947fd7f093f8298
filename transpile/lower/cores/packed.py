"""Parallel loops over packed elements, several in one: `b[i, j // 2]` and `j % 2` become two loops.

reads   tile IR        writes  a loop for each remainder, into planes of a tile, and `Interleave`
why     a vector call reads neighbours; elements of one remainder are neighbours in what they come
        from, and lie apart in what they go to
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tile2c.transpile.ir import forms, walk
from tile2c.transpile.ir.dtypes import BOOL, INT32
from tile2c.transpile.ir.expr import (
    Binary,
    Buffer,
    Compare,
    Const,
    Expr,
    Select,
    Var,
    const,
)
from tile2c.transpile.ir.forms import Range, Region, Stmt
from tile2c.transpile.lower.cores.layouts import constant_of
from tile2c.transpile.lower.rewrite import rewrite
from tile2c.transpile.record import record

_MOST = 8  # elements in one


@record(kw_only=True)
class Interleave(forms.Copy):
    """dst[i, j * parts + r] = src[r, i, j]: the planes of `src` element by element."""

    parts: int


def unpack_loops(launch: forms.Launch, taken: set[str]) -> forms.Launch:
    """The launch with such loops taken apart. `taken` are names in use; new ones are added to it."""
    unpacking = _Unpacking(taken)
    body = unpacking.statements(launch.body)
    return replace(launch, body=body, buffers=(*launch.buffers, *unpacking.buffers))


class _Unpacking:
    def __init__(self, taken: set[str]) -> None:
        self.taken = taken
        self.buffers: list[Buffer] = []

    def statements(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(new for stmt in body for new in self.statement(stmt))

    def statement(self, stmt: Stmt) -> Iterator[Stmt]:
        if isinstance(stmt, forms.For | forms.Pipelined | forms.While):
            yield replace(stmt, body=self.statements(stmt.body))
        elif isinstance(stmt, forms.If):
            then, orelse = self.statements(stmt.then), self.statements(stmt.orelse)
            yield replace(stmt, then=then, orelse=orelse)
        elif isinstance(stmt, forms.Parallel) and (parts := parts_of(stmt)):
            yield from self.apart(stmt, parts) or (stmt,)
        else:
            yield stmt

    def apart(self, stmt: forms.Parallel, parts: int) -> list[Stmt]:
        """A loop for each remainder of the last variable, then the elements in their order; nothing
        where one of them does not surely store all of its elements."""
        var, extent = stmt.loop_vars[-1], constant_of(stmt.extents[-1])
        assert extent is not None
        short = const(extent // parts)
        tiles = {s.buffer.name: s.buffer for s in _stores(stmt.body)}
        bodies = [_part(stmt.body, var, parts, number) for number in range(parts)]
        if any(
            {s.buffer.name for s in body if isinstance(s, forms.Store)} < set(tiles)
            for body in bodies
        ):
            return []
        planes = {
            name: self.planes(tile, (const(parts), *tile.shape[:-1], short))
            for name, tile in tiles.items()
        }
        found: list[Stmt] = []
        for number, body in enumerate(bodies):
            about = f"element {number} of each {parts}"
            loop = replace(
                stmt,
                extents=(*stmt.extents[:-1], short),
                body=tuple(_into(inner, planes, number) for inner in body),
                comments=(about,) if number else (*stmt.comments, about),
                quote="" if number else stmt.quote,
            )
            found.append(loop)
        for name, tile in tiles.items():
            source, target = _whole(planes[name]), _whole(tile)
            found.append(Interleave(src=source, dst=target, parts=parts, span=stmt.span))
        return found

    def planes(self, buffer: Buffer, shape: tuple[Expr, ...]) -> Buffer:
        name = f"{buffer.name}_parts"
        while name in self.taken:
            name += "_other"
        self.taken.add(name)
        found = Buffer(name=name, scope="fragment", shape=shape, dtype=buffer.dtype)
        self.buffers.append(found)
        return found


def parts_of(stmt: forms.Parallel) -> int:
    """In how many parts the elements of a loop come, 0 where its last variable is not divided.

    The loop only stores whole tiles that it does not read, each element once.
    """
    var, extent = stmt.loop_vars[-1], constant_of(stmt.extents[-1])
    divisors = {
        constant_of(part.b) or 0
        for inner in walk.statements(stmt.body)
        for expr in walk.expressions(inner)
        for part in walk.parts(expr)
        if isinstance(part, Binary) and part.op in ("//", "%") and part.a == var
    }
    if len(divisors) != 1 or extent is None:
        return 0
    (parts,) = divisors
    if not 1 < parts <= _MOST or extent % parts:
        return 0
    written: set[str] = set()
    for inner in walk.statements(stmt.body):
        if isinstance(inner, forms.Let | forms.If):
            continue
        if not isinstance(inner, forms.Store) or inner.buffer.scope not in ("shared", "fragment"):
            return 0
        if inner.index != stmt.loop_vars:
            return 0
        if tuple(map(constant_of, inner.buffer.shape)) != tuple(map(constant_of, stmt.extents)):
            return 0
        written.add(inner.buffer.name)
    read = {
        load.buffer.name
        for inner in walk.statements(stmt.body)
        for expr in walk.expressions(inner)
        for load in walk.loads(expr)
    }
    return 0 if read & written or not written else parts


def _stores(body: tuple[Stmt, ...]) -> Iterator[forms.Store]:
    return (stmt for stmt in walk.statements(body) if isinstance(stmt, forms.Store))


def _into(stmt: Stmt, planes: dict[str, Buffer], number: int) -> Stmt:
    """A statement that stores to a plane in place of the tile."""
    if isinstance(stmt, forms.Store):
        index = (const(number), *stmt.index)
        return replace(stmt, buffer=planes[stmt.buffer.name], index=index)
    if isinstance(stmt, forms.If):
        then, orelse = (
            tuple(_into(inner, planes, number) for inner in body)
            for body in (stmt.then, stmt.orelse)
        )
        return replace(stmt, then=then, orelse=orelse)
    return stmt


def _part(body: tuple[Stmt, ...], var: Var, parts: int, number: int) -> tuple[Stmt, ...]:
    """Statements for var = parts * place + number, where `var` now counts the places."""

    def change(part: Expr) -> Expr | None:
        if isinstance(part, Binary) and part.op in ("//", "%") and part.a == var:
            return var if part.op == "//" else const(number)
        if part == var:
            scaled = Binary(dtype=INT32, op="*", a=var, b=const(parts))
            return Binary(dtype=INT32, op="+", a=scaled, b=const(number)) if number else scaled
        return None

    def changed(stmt: Stmt) -> tuple[Stmt, ...]:
        if isinstance(stmt, forms.If):
            condition = _folded(rewrite(stmt.condition, change))
            holds = _truth(condition)
            if holds is not None:
                chosen = stmt.then if holds else stmt.orelse
                return tuple(new for inner in chosen for new in changed(inner))
            then, orelse = (
                tuple(new for inner in side for new in changed(inner))
                for side in (stmt.then, stmt.orelse)
            )
            return (replace(stmt, condition=condition, then=then, orelse=orelse),)
        assert isinstance(stmt, forms.Store | forms.Let)
        return (replace(stmt, value=_folded(rewrite(stmt.value, change))),)

    return tuple(new for stmt in body for new in changed(stmt))


def _folded(expr: Expr) -> Expr:
    """The expression with choices made whose conditions compare numbers."""

    def change(part: Expr) -> Expr | None:
        if isinstance(part, Select):
            condition = _truth(part.condition)
            if condition is not None:
                return _folded(part.a if condition else part.b)
        return None

    return rewrite(expr, change)


def _truth(condition: Expr) -> bool | None:
    if isinstance(condition, Const) and condition.dtype == BOOL:
        return bool(condition.value)
    if not isinstance(condition, Compare):
        return None
    a, b = constant_of(condition.a), constant_of(condition.b)
    if a is None or b is None:
        return None
    return {
        "<": a < b,
        "<=": a <= b,
        ">": a > b,
        ">=": a >= b,
        "==": a == b,
        "!=": a != b,
    }[condition.op]


def _whole(buffer: Buffer) -> Region:
    ranges = tuple(Range(start=const(0), extent=extent) for extent in buffer.shape)
    return Region(buffer=buffer, ranges=ranges)
