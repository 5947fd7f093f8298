"""Tiles that a pipelined loop may load ahead of their round, and what has to be known for it."""

from __future__ import annotations

from collections.abc import Sequence

from tile2c.transpile.ir.expr import Buffer, Expr, Load, Var
from tile2c.transpile.ir.forms import Copy, Let, Parallel, Pipelined, Stmt, Store
from tile2c.transpile.ir.walk import reads, statements, writes
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.desugar import copy_loop, stages
from tile2c.transpile.lower.simt.access import plain_load
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.outer_statements import walk

TileLoad = Copy | Parallel  # a parallel loop that stores elements of a tensor to a tile, one each


def tile_of(load: TileLoad) -> Buffer:
    """The shared tile that is filled."""
    return load.dst.buffer if isinstance(load, Copy) else _store(load).buffer


def loop_of(ctx: Context, load: TileLoad) -> Parallel:
    """The load as a loop over the tile's elements."""
    taken = frozenset(x.name for x in ctx.launch.blocks) | frozenset(ctx.author_names)
    return copy_loop(load, taken) if isinstance(load, Copy) else load


def movable_loads(ctx: Context, stmt: Pipelined) -> tuple[TileLoad, ...]:
    """The loads of the loop that may run ahead of their round."""
    stored = written(*ctx.launch.body)
    return tuple(
        load
        for load in stmt.body
        if (isinstance(load, Copy) and stages(load))
        or (isinstance(load, Parallel) and _stages(load))
        if movable(ctx, stmt, load, stored) and bound_for(stmt, (load,)) is not None
    )


def movable(ctx: Context, stmt: Pipelined, load: TileLoad, stored: set[str]) -> bool:
    """Whether the load may run ahead of the loop; `stored` are the names of what the kernel writes."""
    tile = tile_of(load)
    if not _fills(load) or any(x.buffer.name in stored for x in _read(load)):
        return False
    if any(isinstance(part, Load) for expr in _places(load) for part in b.walk(expr)):
        return False
    others = [x for x in walk(stmt.body) if x is not load and tile.name in touches(x)]
    outside = sum(1 for x in walk(ctx.launch.body) if tile.name in touches(x)) - len(others) - 1
    first_use = next(
        (k for k, x in enumerate(stmt.body) if x is not load and tile.name in touched(x)), None
    )
    own = next(k for k, x in enumerate(stmt.body) if x is load)
    if outside or first_use is None or first_use < own:
        return False
    return not any(tile.name in written(x) for x in others)


def bound_for(stmt: Pipelined, loads: Sequence[TileLoad]) -> tuple[Let, ...] | None:
    """The names bound in the loop that the loads' places are said with, in order; None where one
    of them is more than arithmetic."""
    bound = {x.var.name: x for x in stmt.body if isinstance(x, Let)}
    wanted: set[str] = set()
    pending = [expr for load in loads for expr in _places(load)]
    while pending:
        for part in b.walk(pending.pop()):
            if isinstance(part, Load):
                return None
            if isinstance(part, Var) and part.name in bound and part.name not in wanted:
                wanted.add(part.name)
                pending.append(bound[part.name].value)
    return tuple(let for name, let in bound.items() if name in wanted)


def touched(*body: Stmt) -> set[str]:
    """Names of the buffers that statements read or write, nested ones too."""
    return set().union(*(touches(stmt) for stmt in walk(body)))


def touches(stmt: Stmt) -> set[str]:
    """Names of the buffers that a statement reads or writes; of loops and branches, only their own."""
    inside = statements((stmt,)) if isinstance(stmt, Parallel) else (stmt,)
    return {x.name for part in inside for x in (*reads(part), *writes(part))}


def written(*body: Stmt) -> set[str]:
    """Names of the buffers that statements write, nested ones too."""
    return {buffer.name for stmt in statements(body) for buffer in writes(stmt)}


def _stages(loop: Parallel) -> bool:
    """Whether the loop brings elements of a tensor to a shared tile as they are, or zeros."""
    found = plain_load(loop.body)
    if found is None:
        return False
    _, store, _, source = found
    return store.buffer.scope == "shared" and source.buffer.scope == "global"


def _store(loop: Parallel) -> Store:
    store = loop.body[-1]
    assert isinstance(store, Store)
    return store


def _read(load: TileLoad) -> list[Load]:
    """What is read of tensors; of a copy one element stands for all."""
    if isinstance(load, Copy):
        return [Load(dtype=load.src.buffer.dtype, buffer=load.src.buffer, index=load.src.starts)]
    found = plain_load(load.body)
    return [found[3]] if found is not None else []


def _places(load: TileLoad) -> list[Expr]:
    """What says where the load reads."""
    if isinstance(load, Copy):
        return list(load.src.starts)
    found = plain_load(load.body)
    if found is None:
        return []
    lets, _, condition, source = found
    conditions = [condition] if condition is not None else []
    return [*(let.value for let in lets), *source.index, *conditions]


def _fills(load: TileLoad) -> bool:
    """Whether every element of the tile is written."""
    tile = tile_of(load)
    if isinstance(load, Copy):
        return all(
            b.literal(part.start, 0) and b.known(part.extent) == b.known(extent)
            for part, extent in zip(load.dst.ranges, tile.shape, strict=True)
        )
    reach = dict(zip((var.name for var in load.loop_vars), load.extents, strict=True))
    index = _store(load).index
    names = [part.name for part in index if isinstance(part, Var)]
    return sorted(names) == sorted(reach) and all(
        isinstance(part, Var) and b.known(reach[part.name]) == b.known(extent)
        for part, extent in zip(index, tile.shape, strict=True)
    )
