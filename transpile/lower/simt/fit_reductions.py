"""Reductions of anything but whole fragments: other operands go through fragments of their own.

A reduction of private arrays is a loop of each thread.
"""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Buffer, Call, Cast, Expr, Load, Var, const
from tile2c.transpile.ir.forms import Copy, For, If, Pipelined, Reduce, Region, Stmt, Store, While
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.desugar import copy_loop, loop_names
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hand_over import fresh, whole
from tile2c.transpile.lower.simt.reduce import identity, pair


def fit_reductions(ctx: Context, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Every reduction is one of a whole fragment into a whole fragment, or loops.

    reads   tile IR with copies as loops      writes  the same
    """
    found: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Reduce):
            found += _fitted(ctx, stmt)
        elif isinstance(stmt, For | Pipelined | While):
            inner = fit_reductions(ctx, stmt.body)
            same = len(inner) == len(stmt.body) and all(map(_is, inner, stmt.body))
            found.append(stmt if same else replace(stmt, body=inner))
        elif isinstance(stmt, If):
            then, orelse = fit_reductions(ctx, stmt.then), fit_reductions(ctx, stmt.orelse)
            found.append(replace(stmt, then=then, orelse=orelse))
        else:
            found.append(stmt)
    return tuple(found)


def _is(a: Stmt, c: Stmt) -> bool:
    return a is c


def _fitted(ctx: Context, stmt: Reduce) -> list[Stmt]:
    scopes = {stmt.src.buffer.scope, stmt.dst.buffer.scope}
    if scopes <= {"local", "variable"}:
        return _private(ctx, stmt)
    before: list[Stmt] = []
    after: list[Stmt] = []
    if not _whole_fragment(stmt.src):
        tile = _like(ctx, stmt.src, f"{stmt.src.buffer.name}_held", f"{stmt.src.buffer.name}_part")
        before.append(_copy(ctx, stmt.src, whole(tile)))
        stmt = replace(stmt, src=whole(tile))
    if not _whole_fragment(stmt.dst):
        name = stmt.dst.buffer.name
        tile = _like(ctx, stmt.dst, f"{name}_result", f"{name}_found")
        if not stmt.clear:
            before.append(_copy(ctx, stmt.dst, whole(tile)))
        after.append(_copy(ctx, whole(tile), stmt.dst))
        stmt = replace(stmt, dst=whole(tile))
    return [*before, stmt, *after]


def _copy(ctx: Context, src: Region, dst: Region) -> Stmt:
    return copy_loop(Copy(src=src, dst=dst), ctx.author_names)


def _whole_fragment(region: Region) -> bool:
    return region.buffer.scope == "fragment" and all(
        b.literal(part.start, 0) and b.known(part.extent) == b.known(extent)
        for part, extent in zip(region.ranges, region.buffer.shape, strict=True)
    )


def _like(ctx: Context, region: Region, *wishes: str) -> Buffer:
    """A fragment of the region's shape."""
    shape = region.shape or (const(1),)
    like = Buffer(name="", scope="fragment", shape=shape, dtype=region.buffer.dtype)
    return fresh(ctx, like, "fragment", *wishes)


def _private(ctx: Context, stmt: Reduce) -> list[Stmt]:
    """Loops of each thread over its own array."""
    names = loop_names(ctx.author_names)
    src, dst = stmt.src, stmt.dst
    dims = [k for k, part in enumerate(src.ranges) if not part.point]
    loop_vars = {k: Var(dtype=INT32, name=names[at], kind="loop") for at, k in enumerate(dims)}
    gone = dims[stmt.dim]
    at = tuple(
        b.add(part.start, loop_vars[k]) if k in loop_vars else part.start
        for k, part in enumerate(src.ranges)
    )
    rest = [loop_vars[k] for k in dims if k != gone]
    own = [k for k, part in enumerate(dst.ranges) if not part.point]
    kept = len(own) > len(rest)
    if kept:
        own = [k for place, k in enumerate(own) if place != (stmt.dim if rest else 0)]
    moving = dict(zip(own, rest, strict=False))
    place = tuple(
        b.add(part.start, moving[k]) if k in moving else part.start
        for k, part in enumerate(dst.ranges)
    )
    dtype = dst.buffer.dtype
    value: Expr = Load(dtype=src.buffer.dtype, buffer=src.buffer, index=at)
    if value.dtype != dtype:
        value = Cast(dtype=dtype, a=value)
    if stmt.op in ("abssum", "absmax"):
        value = Call(dtype=dtype, function="abs", args=(value,))
    old = Load(dtype=dtype, buffer=dst.buffer, index=place)
    update: Stmt = Store(buffer=dst.buffer, index=place, value=pair(stmt, old, value))
    inner: list[Stmt] = [_for(loop_vars[gone], src.ranges[gone].extent, (update,))]
    if stmt.clear:
        start = Store(buffer=dst.buffer, index=place, value=identity(stmt.op, dtype))
        inner.insert(0, start)
    for k in reversed([k for k in dims if k != gone]):
        inner = [_for(loop_vars[k], src.ranges[k].extent, tuple(inner))]
    head = replace(inner[0], comments=(*stmt.comments, stmt.quote))
    return [head, *inner[1:]]


def _for(var: Var, extent: Expr, body: tuple[Stmt, ...]) -> For:
    return For(kind="serial", var=var, start=const(0), stop=extent, body=body)
