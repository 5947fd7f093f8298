"""Copies and fills as parallel loops: one engine then serves them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Cast, Expr, Load, Var, const
from tile2c.transpile.ir.forms import (
    Atomic,
    AtomicTile,
    Copy,
    Fill,
    For,
    If,
    Parallel,
    Pipelined,
    Region,
    Stmt,
    Store,
    While,
)
from tile2c.transpile.ir.walk import expressions, loads, variables, writes
from tile2c.transpile.lower import build as b

_NAMES = ("i", "j", "k", "l", "m", "n", "ii", "jj", "kk", "ll", "mm", "nn")


def copies_as_loops(body: Sequence[Stmt], taken: frozenset[str]) -> tuple[Stmt, ...]:
    """Every fill, and every copy but those from global to shared memory, as a parallel loop.

    reads   tile IR          writes  tile IR
    why     copies to shared memory may become asynchronous; all others are element-wise loops
    """
    return tuple(_rewrite(stmt, taken) for stmt in body)


def _rewrite(stmt: Stmt, taken: frozenset[str]) -> Stmt:
    if isinstance(stmt, Copy):
        return stmt if stages(stmt) else by_each_thread(copy_loop(stmt, taken))
    if isinstance(stmt, AtomicTile):
        return by_each_thread(atomic_loop(stmt, taken))
    if isinstance(stmt, Fill):
        return by_each_thread(fill_loop(stmt, taken))
    if isinstance(stmt, For | Pipelined | While):
        return replace(stmt, body=copies_as_loops(stmt.body, taken))
    if isinstance(stmt, If):
        return replace(
            stmt,
            then=copies_as_loops(stmt.then, taken),
            orelse=copies_as_loops(stmt.orelse, taken),
        )
    return stmt


def by_each_thread(loop: Parallel) -> Stmt:
    """The loop itself; where a private array takes part, serial loops that every thread runs."""
    names = {var.name for var in loop.loop_vars}
    private = ("local", "variable")
    spread = [
        load
        for stmt in loop.body
        for expr in expressions(stmt)
        for load in loads(expr)
        if load.buffer.scope in private and any(var.name in names for var in variables(load))
    ]
    if not spread and all(x.scope not in private for stmt in loop.body for x in writes(stmt)):
        return loop
    body: tuple[Stmt, ...] = loop.body
    for var, extent in zip(reversed(loop.loop_vars), reversed(loop.extents), strict=True):
        body = (For(kind="serial", var=var, start=const(0), stop=extent, body=body),)
    return replace(
        body[0], span=loop.span, quote=loop.quote, comments=loop.comments, remark=loop.remark
    )


def stages(copy: Copy) -> bool:
    """Whether the copy brings a tile of a tensor to shared memory as it is."""
    return (
        copy.src.buffer.scope == "global"
        and copy.dst.buffer.scope == "shared"
        and copy.src.buffer.dtype == copy.dst.buffer.dtype
    )


def loop_names(taken: frozenset[str]) -> list[str]:
    """Words for loop variables that nothing else is called."""
    free = [name for name in _NAMES if name not in taken]
    return [*free, *(f"{name}_at" for name in _NAMES if f"{name}_at" not in taken)]


def copy_loop(copy: Copy, taken: frozenset[str]) -> Parallel:
    """dst[...] = src[...] for every element; the sides are matched over extents other than 1."""
    names = loop_names(taken)
    side = copy.dst if copy.dst.buffer.scope != "global" else copy.src
    extents = [side.ranges[k].extent for k in _moving(side)] or [const(1)]
    loop_vars = [Var(dtype=INT32, name=names[k], kind="loop") for k in range(len(extents))]
    src = _index(copy.src, loop_vars)
    value: Expr = Load(
        dtype=copy.src.buffer.dtype, buffer=copy.src.buffer, index=src, span=copy.span
    )
    if copy.src.buffer.dtype != copy.dst.buffer.dtype:
        value = Cast(dtype=copy.dst.buffer.dtype, a=value, span=copy.span)
    store = Store(
        buffer=copy.dst.buffer, index=_index(copy.dst, loop_vars), value=value, span=copy.span
    )
    return _loop(copy, loop_vars, extents, store)


def atomic_loop(tile: AtomicTile, taken: frozenset[str]) -> Parallel:
    """dst[...] op= src[...] for every element, each one atomic."""
    plain = copy_loop(Copy(src=tile.src, dst=tile.dst, span=tile.span, quote=tile.quote,
                           comments=tile.comments, remark=tile.remark), taken)  # fmt: skip
    (store,) = plain.body
    assert isinstance(store, Store)
    update = Atomic(
        op=tile.op, buffer=store.buffer, index=store.index, value=store.value, span=tile.span
    )
    return replace(plain, body=(update,))


def fill_loop(fill: Fill, taken: frozenset[str]) -> Parallel:
    """dst[...] = value for every element."""
    names = loop_names(taken)
    extents = [fill.dst.ranges[k].extent for k in _moving(fill.dst)] or [const(1)]
    loop_vars = [Var(dtype=INT32, name=names[k], kind="loop") for k in range(len(extents))]
    store = Store(
        buffer=fill.dst.buffer, index=_index(fill.dst, loop_vars), value=fill.value, span=fill.span
    )
    return _loop(fill, loop_vars, extents, store)


def _loop(stmt: Stmt, loop_vars: list[Var], extents: Sequence[Expr], store: Store) -> Parallel:
    return Parallel(
        loop_vars=tuple(loop_vars),
        extents=tuple(extents),
        body=(store,),
        span=stmt.span,
        quote=stmt.quote,
        comments=stmt.comments,
        remark=stmt.remark,
    )


def _moving(region: Region) -> list[int]:
    """Dimensions that a loop runs over: those with more than one element, else the last."""
    ranges = [k for k, part in enumerate(region.ranges) if not part.point]
    return [k for k in ranges if b.known(region.ranges[k].extent) != 1] or ranges[-1:]


def _index(region: Region, loop_vars: list[Var]) -> tuple[Expr, ...]:
    """Start plus loop variable in every dimension that a loop runs over."""
    moving = dict(zip(_moving(region), loop_vars, strict=False))
    return tuple(
        b.add(part.start, moving[k]) if k in moving else part.start
        for k, part in enumerate(region.ranges)
    )
