"""Fragments that start at zero say so where they are declared."""

from __future__ import annotations

from collections.abc import Sequence

from tile2c.transpile.ir.expr import Const, Var
from tile2c.transpile.ir.forms import Parallel, Stmt, Store
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.simt.tile_loads import touched


def drop_leading_fills(body: Sequence[Stmt]) -> tuple[dict[str, str], tuple[Stmt, ...]]:
    """Zero fills of whole fragments before anything touches them become initialisers: name -> quote."""
    zeroed: dict[str, str] = {}
    seen: set[str] = set()
    rest: list[Stmt] = []
    for stmt in body:
        target = None
        if isinstance(stmt, Parallel) and len(stmt.body) == 1 and not stmt.comments:
            (store,) = stmt.body
            if isinstance(store, Store) and store.buffer.scope == "fragment":
                whole = [b.known(e) for e in store.buffer.shape if b.known(e) != 1]
                covered = [b.known(e) for e in stmt.extents if b.known(e) != 1]
                zero = isinstance(store.value, Const) and store.value.value == 0
                starts = all(isinstance(p, Var) or b.literal(p, 0) for p in store.index)
                if zero and starts and whole == covered and store.buffer.name not in seen:
                    target = store.buffer.name
        if target is not None:
            zeroed[target] = stmt.quote
            seen.add(target)
            continue
        seen |= touched(stmt)
        rest.append(stmt)
    return zeroed, tuple(rest)
