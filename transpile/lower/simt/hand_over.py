"""Fragments whose elements a statement wants from other threads: they go through a shared tile.

The copy to the tile stands as early as the fragment's last change allows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Buffer, Expr, Load, Var, const
from tile2c.transpile.ir.forms import (
    For,
    If,
    Parallel,
    Pipelined,
    Range,
    Reduce,
    Region,
    Stmt,
    Store,
    While,
)
from tile2c.transpile.ir.walk import statements, writes
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.desugar import loop_names
from tile2c.transpile.lower.simt.access import all_loads, all_stores
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.recompute import read_again
from tile2c.transpile.lower.simt.ties import Apart
from tile2c.transpile.lower.simt.unread import without_unread

Rewritten = tuple[list[Stmt], Stmt, list[Stmt]]  # before, instead, after
T = TypeVar("T")


def hand_over(ctx: Context, body: tuple[Stmt, ...], found: Apart) -> tuple[Stmt, ...]:
    """The block with the statement of `found` served through shared memory.

    reads   tile IR with copies as loops      writes  the same
    """
    stmt = found.stmt
    again = read_again(body, stmt, found.buffer) if isinstance(stmt, Parallel) else None
    if again is not None:
        changed = _placed(body, stmt, ([], again, []), found.buffer)
        return without_unread(ctx, changed, aloud=False)
    if isinstance(stmt, Parallel):
        parts = _loop(ctx, stmt, found.buffer)
    elif isinstance(stmt, Reduce):
        parts = _reduction(ctx, stmt)
    else:
        parts = _looked_up(ctx, found)
    if parts[1] is stmt:
        raise found
    return _placed(body, stmt, parts, found.buffer)


def whole_loop(
    ctx: Context, target: Buffer, value: Callable[[tuple[Expr, ...]], Expr], comment: str = ""
) -> Parallel:
    """target[...] = value(index) for every element."""
    names = loop_names(ctx.author_names)
    loop_vars = tuple(
        Var(dtype=INT32, name=names[k], kind="loop") for k in range(len(target.shape))
    )
    store = Store(buffer=target, index=loop_vars, value=value(loop_vars))
    return Parallel(
        loop_vars=loop_vars,
        extents=target.shape,
        body=(store,),
        comments=(comment,) if comment else (),
    )


def copied(ctx: Context, source: Buffer, target: Buffer, comment: str = "") -> Parallel:
    """target = source, of one shape and type."""
    return whole_loop(
        ctx, target, lambda at: Load(dtype=source.dtype, buffer=source, index=at), comment
    )


def whole(buffer: Buffer) -> Region:
    """All of a buffer as a region."""
    ranges = tuple(Range(start=const(0), extent=extent) for extent in buffer.shape)
    return Region(buffer=buffer, ranges=ranges)


def fresh(ctx: Context, like: Buffer, scope: str, *wishes: str) -> Buffer:
    """A buffer of the block that lowering adds."""
    name = ctx.namer.ours(*wishes)
    found = Buffer(name=name, scope=scope, shape=like.shape, dtype=like.dtype)  # type: ignore[arg-type]
    ctx.launch = replace(ctx.launch, buffers=(*ctx.launch.buffers, found))
    return found


# ---- loops


def _loop(ctx: Context, loop: Parallel, source: Buffer) -> Rewritten:
    tile = _tile(ctx, source)
    stored = any(buffer == source for buffer, _ in all_stores(loop.body))
    moved = _renamed(loop, source, tile)
    before: list[Stmt] = []
    after: list[Stmt] = []
    if not (stored and _overwrites(loop, source)):
        what = f"{source.name} changes hands: the next loop's threads hold other elements"
        before.append(copied(ctx, source, tile, what))
    if stored:
        after.append(copied(ctx, tile, source, f"{source.name} is held by its threads again"))
    return before, moved, after


def _looked_up(ctx: Context, found: Apart) -> Rewritten:
    """Serial code that asks for elements by number reads them from the shared tile."""
    stmt, source = found.stmt, found.buffer
    inside = list(statements((stmt,)))
    if any(buffer == source for inner in inside for buffer in writes(inner)):
        raise found
    tile = _tile(ctx, source)
    what = f"{source.name} changes hands: every thread asks for elements of others"
    return [copied(ctx, source, tile, what)], _renamed(stmt, source, tile), []


def _tile(ctx: Context, source: Buffer) -> Buffer:
    """The shared tile that a fragment goes through."""
    tile = ctx.handed.get(source.name)
    if tile is None:
        tile = fresh(ctx, source, "shared", f"{source.name}_shared", f"{source.name}_tile")
        ctx.handed[source.name] = tile
    return tile


def _overwrites(loop: Parallel, target: Buffer) -> bool:
    """Whether the loop writes every element of `target`, and reads none before."""
    if any(load.buffer == target for load in all_loads(loop.body)):
        return False
    for stmt in loop.body:
        if isinstance(stmt, Store) and stmt.buffer == target:
            extents = {
                var.name: b.known(extent)
                for var, extent in zip(loop.loop_vars, loop.extents, strict=True)
            }
            names = [part.name for part in stmt.index if isinstance(part, Var)]
            sizes = [b.known(extent) for extent in target.shape]
            if len(set(names)) == len(target.shape) and [extents.get(n) for n in names] == sizes:
                return None not in sizes
    return False


def _renamed(value: T, source: Buffer, target: Buffer) -> T:
    """Accesses of `source` become accesses of `target`."""
    if isinstance(value, tuple):
        return tuple(_renamed(part, source, target) for part in value)  # type: ignore[return-value]
    if not is_dataclass(value) or isinstance(value, type):
        return value
    changes: dict[str, object] = {}
    for item in fields(value):
        old = getattr(value, item.name)
        if item.name == "buffer" and old == source:
            changes["buffer"] = target
        elif isinstance(old, tuple | Stmt | Expr):
            new = _renamed(old, source, target)
            if new is not old and new != old:
                changes[item.name] = new
    return replace(value, **changes) if changes else value


# ---- reductions


def _reduction(ctx: Context, stmt: Reduce) -> Rewritten:
    """The result goes to a fragment of its own, and from there to where it belongs."""
    target = stmt.dst.buffer
    own = fresh(ctx, target, "fragment", f"{target.name}_result", f"{target.name}_found")
    before: list[Stmt] = [] if stmt.clear else [copied(ctx, target, own)]
    after: list[Stmt] = [copied(ctx, own, target)]
    return before, replace(stmt, dst=whole(own)), after


# ---- where


def _placed(
    body: Sequence[Stmt], wanted: Stmt, parts: Rewritten, source: Buffer
) -> tuple[Stmt, ...]:
    """The statements with the parts in place of `wanted`, wherever it is nested."""
    found: list[Stmt] = []
    for stmt in body:
        if stmt is wanted:
            before, instead, after = parts
            found += [*before, instead, *after]
        elif isinstance(stmt, For | Pipelined | While):
            if _hoistable(stmt, wanted, parts, source):
                found += parts[0]
                parts = ([], parts[1], parts[2])
            inner = _placed(stmt.body, wanted, parts, source)
            found.append(stmt if same(inner, stmt.body) else replace(stmt, body=inner))
        elif isinstance(stmt, If):
            then = _placed(stmt.then, wanted, parts, source)
            orelse = _placed(stmt.orelse, wanted, parts, source)
            alike = same(then, stmt.then) and same(orelse, stmt.orelse)
            found.append(stmt if alike else replace(stmt, then=then, orelse=orelse))
        else:
            found.append(stmt)
    return tuple(found)


def _hoistable(
    loop: For | Pipelined | While, wanted: Stmt, parts: Rewritten, source: Buffer
) -> bool:
    """Whether the fragment does not change in this loop, so that one copy before it will do."""
    if parts[2] or not parts[0]:
        return False
    inside = list(statements(tuple(loop.body)))
    if not any(stmt is wanted for stmt in inside):
        return False
    return not any(buffer == source for stmt in inside for buffer in writes(stmt))


def same(a: Sequence[Stmt], c: Sequence[Stmt]) -> bool:
    """Whether the lists hold the very same statements."""
    return len(a) == len(c) and all(x is y for x, y in zip(a, c, strict=True))
