"""Fragments that only hold what a vector in memory says: a loop of other threads reads it there again.

`acc[i, j] + b[j]` with `b` copied from a tensor then needs no way through shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar, cast

from tile2c.transpile.ir.expr import Buffer, Cast, Expr, Load, Var
from tile2c.transpile.ir.forms import For, If, Parallel, Pipelined, Stmt, Store, While
from tile2c.transpile.ir.walk import statements, writes
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.simt.access import all_stores

T = TypeVar("T")


def read_again(body: tuple[Stmt, ...], loop: Parallel, source: Buffer) -> Parallel | None:
    """The loop with loads from memory in place of `source`, or None where that is not the same.

    reads   tile IR with copies as loops      writes  the same
    """
    if sum((b.known(extent) or 2) > 1 for extent in source.shape) > 1:
        return None
    if any(buffer == source for buffer, _ in all_stores(loop.body)):
        return None
    inside = list(statements(body))
    writers = [stmt for stmt in inside if any(x == source for x in writes(stmt))]
    origin = _origin(inside, writers[0]) if len(writers) == 1 else None
    if origin is None or not _in_scope(body, origin[0], loop):
        return None
    definition, store, load = origin
    if not _lasts(body, inside, load.buffer):
        return None
    names = [var.name for var in definition.loop_vars]
    return _replaced(loop, source, names, store)


def _origin(inside: Sequence[Stmt], store: Stmt) -> tuple[Parallel, Store, Load] | None:
    """The loop that copies a vector from memory to the fragment, whole."""
    if not isinstance(store, Store):
        return None
    value = store.value.a if isinstance(store.value, Cast) else store.value
    for stmt in inside:
        if isinstance(stmt, Parallel) and len(stmt.body) == 1 and stmt.body[0] is store:
            extents = [b.known(extent) for extent in stmt.extents]
            whole = [b.known(extent) for extent in store.buffer.shape]
            names = [part.name if isinstance(part, Var) else "" for part in store.index]
            plain = names == [var.name for var in stmt.loop_vars] and extents == whole
            if plain and isinstance(value, Load) and value.buffer.scope in ("global", "shared"):
                return stmt, store, value
    return None


def _in_scope(body: Sequence[Stmt], definition: Stmt, loop: Stmt) -> bool:
    """Whether the loop comes after the definition, in the same round of all that encloses it."""
    for number, stmt in enumerate(body):
        if stmt is definition:
            return any(inner is loop for inner in statements(tuple(body[number + 1 :])))
        for part in _bodies(stmt):
            if any(inner is definition for inner in statements(part)):
                return _in_scope(part, definition, loop)
    return False


def _bodies(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    if isinstance(stmt, If):
        return stmt.then, stmt.orelse
    return (stmt.body,) if isinstance(stmt, For | Pipelined | While) else ()


def _lasts(body: Sequence[Stmt], inside: Sequence[Stmt], memory: Buffer) -> bool:
    """Whether the memory keeps its contents: a tensor nobody writes, a tile that is filled once."""
    writers = [stmt for stmt in inside if any(x.name == memory.name for x in writes(stmt))]
    if memory.scope == "global":
        return not writers
    return len(writers) == 1 and any(
        stmt is writers[0] or (isinstance(stmt, Parallel) and writers[0] in stmt.body)
        for stmt in body
    )


def _replaced(node: T, source: Buffer, names: Sequence[str], store: Store) -> T:
    """Elements of `source` become the stored value at their index."""
    if isinstance(node, Load) and node.buffer == source:
        values: dict[str, Expr] = dict(zip(names, node.index, strict=True))
        return cast(T, b.substitute(store.value, values))
    if isinstance(node, tuple):
        return cast(T, tuple(_replaced(part, source, names, store) for part in node))
    if not is_dataclass(node) or isinstance(node, type | Buffer):
        return node
    changes = {
        item.name: new
        for item in fields(node)
        if isinstance(old := getattr(node, item.name), tuple | Expr | Stmt)
        and (new := _replaced(old, source, names, store)) != old
    }
    return cast(T, replace(node, **changes)) if changes else node
