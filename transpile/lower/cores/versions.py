"""Gives a tile that is loaded, changed in place and stored a second tile for the result.

reads   tile IR with staged globals       writes  the same with `x` split into `x` and `x_out`
why     MTE2 fills the one and MTE3 empties the other: each travels in a queue of its own, and the
        next load need not wait for this store
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile2c.transpile.ir import forms, walk
from tile2c.transpile.ir.expr import Buffer, Const, Expr
from tile2c.transpile.ir.forms import Region, Stmt
from tile2c.transpile.lower.rewrite import rewrite_statement


def split_versions(launch: forms.Launch, taken: set[str]) -> forms.Launch:
    """The launch with second tiles for what is changed in place. New names are added to `taken`."""
    for buffer in launch.buffers:
        if buffer.scope not in ("shared", "fragment"):
            continue
        homes = _homes(launch.body, buffer)
        if not homes or not all(_loads_first(home, buffer) for home in homes):
            continue
        if not any(_change(home, buffer) is not None for home in homes):
            continue
        name = f"{buffer.name}_out"
        while name in taken:
            name += "_tile"
        taken.add(name)
        result = replace(buffer, name=name)
        body = _renamed(launch.body, buffer, result)
        launch = replace(launch, body=body, buffers=(*launch.buffers, result))
    return launch


def _touches(stmt: Stmt, buffer: Buffer) -> bool:
    inside = [stmt, *(inner for body in walk.bodies(stmt) for inner in walk.statements(body))]
    return any(
        buffer.name in {used.name for used in (*walk.reads(part), *walk.writes(part))}
        for part in inside
    )


def _lists(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """Lists of statements done in turn; the body of a parallel loop is one statement here."""
    return () if isinstance(stmt, forms.Parallel) else walk.bodies(stmt)


def _homes(body: tuple[Stmt, ...], buffer: Buffer) -> list[tuple[Stmt, ...]]:
    """The innermost lists that hold all accesses to a tile."""
    touched = [stmt for stmt in body if _touches(stmt, buffer)]
    if not touched:
        return []
    if all(_lists(stmt) for stmt in touched):
        return [home for stmt in touched for part in _lists(stmt) for home in _homes(part, buffer)]
    return [body]


def _loads_first(home: Sequence[Stmt], buffer: Buffer) -> bool:
    """Whether the tile is wholly loaded at its first access, and only there."""
    touched = [stmt for stmt in home if _touches(stmt, buffer)]
    return _loads(touched[0], buffer) and not any(_loads(s, buffer) for s in touched[1:])


def _loads(stmt: Stmt, buffer: Buffer) -> bool:
    return (
        isinstance(stmt, forms.Copy)
        and stmt.src.buffer.scope == "global"
        and stmt.dst.buffer.name == buffer.name
        and _whole(stmt.dst)
    )


def _change(home: Sequence[Stmt], buffer: Buffer) -> int | None:
    """The place of the statement that first writes the tile, if all of it, and it is stored."""
    writers = [
        place
        for place, stmt in enumerate(home)
        if not _loads(stmt, buffer) and _writes(stmt, buffer)
    ]
    stores = [
        place
        for place, stmt in enumerate(home)
        if isinstance(stmt, forms.Copy)
        and stmt.dst.buffer.scope == "global"
        and stmt.src.buffer.name == buffer.name
    ]
    if not writers or not stores or stores[0] < writers[0]:
        return None
    return writers[0] if _rewrites_all(home[writers[0]], buffer) else None


def _writes(stmt: Stmt, buffer: Buffer) -> bool:
    inside = [stmt, *(inner for body in walk.bodies(stmt) for inner in walk.statements(body))]
    return any(used.name == buffer.name for part in inside for used in walk.writes(part))


def _rewrites_all(stmt: Stmt, buffer: Buffer) -> bool:
    """Whether each iteration assigns its own element once, from that element and other tiles; or a
    scan does so from elements before it."""
    if isinstance(stmt, forms.Scan):
        return stmt.src.buffer.name == buffer.name and _whole(stmt.src) and _whole(stmt.dst)
    if not isinstance(stmt, forms.Parallel):
        return False
    if tuple(stmt.extents) != tuple(buffer.shape):
        return False
    index = tuple(stmt.loop_vars)
    stores = [
        inner
        for inner in walk.statements(stmt.body)
        if isinstance(inner, forms.Store) and inner.buffer.name == buffer.name
    ]
    if not stores or any(store.index != index for store in stores):
        return False
    if not any(_surely_stores(inner, buffer) for inner in stmt.body[:1]):
        return len(stmt.body) > 1 and _first_store_is_sure(stmt.body, buffer)
    return True


def _first_store_is_sure(body: tuple[Stmt, ...], buffer: Buffer) -> bool:
    for stmt in body:
        if _surely_stores(stmt, buffer):
            return True
        if _writes(stmt, buffer):
            return False
    return False


def _surely_stores(stmt: Stmt, buffer: Buffer) -> bool:
    if isinstance(stmt, forms.Store):
        return stmt.buffer.name == buffer.name
    if isinstance(stmt, forms.If):  # one store on each side
        sides = (stmt.then, stmt.orelse)
        return all(len(side) == 1 and _surely_stores(side[0], buffer) for side in sides)
    return False


def _renamed(body: tuple[Stmt, ...], old: Buffer, new: Buffer) -> tuple[Stmt, ...]:
    touched = [stmt for stmt in body if _touches(stmt, old)]
    if not touched:
        return body
    if all(_lists(stmt) for stmt in touched):
        return tuple(_inside(stmt, old, new) for stmt in body)
    place = _change(body, old)
    if place is None:
        return body
    changing = body[place]
    after = tuple(rewrite_statement(stmt, _same, {old.name: new}) for stmt in body[place + 1 :])
    if isinstance(changing, forms.Scan):
        scanned = replace(changing, dst=replace(changing.dst, buffer=new))
        return (*body[:place], scanned, *after)
    assert isinstance(changing, forms.Parallel)
    return (*body[:place], _switched(changing, old, new), *after)


def _switched(stmt: forms.Parallel, old: Buffer, new: Buffer) -> forms.Parallel:
    """Reads the old tile up to the first store, then the new one."""
    done = False
    body: list[Stmt] = []
    for inner in stmt.body:
        if done:
            body.append(rewrite_statement(inner, _same, {old.name: new}))
        elif _writes(inner, old):
            body.append(_stored(inner, old, new))
            done = True
        else:
            body.append(inner)
    return replace(stmt, body=tuple(body))


def _stored(stmt: Stmt, old: Buffer, new: Buffer) -> Stmt:
    if isinstance(stmt, forms.Store):
        return replace(stmt, buffer=new)
    assert isinstance(stmt, forms.If)
    then = tuple(_stored(inner, old, new) for inner in stmt.then)
    return replace(stmt, then=then, orelse=tuple(_stored(inner, old, new) for inner in stmt.orelse))


def _inside(stmt: Stmt, old: Buffer, new: Buffer) -> Stmt:
    if isinstance(stmt, forms.If):
        then, orelse = _renamed(stmt.then, old, new), _renamed(stmt.orelse, old, new)
        return replace(stmt, then=then, orelse=orelse)
    if isinstance(stmt, forms.For | forms.Pipelined | forms.While):
        return replace(stmt, body=_renamed(stmt.body, old, new))
    return stmt


def _whole(region: Region) -> bool:
    return all(
        isinstance(part.start, Const) and part.start.value == 0 and part.extent == extent
        for part, extent in zip(region.ranges, region.buffer.shape, strict=True)
    )


def _same(part: Expr) -> Expr | None:
    return None
