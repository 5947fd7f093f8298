"""What consumers do beside the first products of a tile: where it lies is found there too.

That takes two divisions, which the products would wait for in front of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile2c.transpile.lower.plan import Branch, CStmt
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.uses import names_in, parts
from tile2c.transpile.record import inner_names


def found_late(
    ctx: Context,
    opening: Branch,
    places: Sequence[CStmt],
    before: Sequence[CStmt],
    steps: Sequence[CStmt],
) -> tuple[list[CStmt], tuple[CStmt, ...]]:
    """The names of a tile's place, and the steps with the call that finds it in the opening.

    places  those names, and the call; both stay where something asks for the place earlier
    before  what stands between them and the steps
    """
    names, call = places
    blocks = {var.name for var in ctx.launch.blocks}
    at = next((k for k, x in enumerate(steps) if any(y == opening for y in parts(x))), None)
    if at is None:
        return list(places), tuple(steps)
    rest = exchanged(steps[at], opening, replace(opening, then=()))
    if names_in((*before, *steps[:at], rest)) & blocks:
        return list(places), tuple(steps)
    moved = exchanged(steps[at], opening, replace(opening, then=(call, *opening.then)))
    return [names], (*steps[:at], moved, *steps[at + 1 :])


def exchanged(stmt: CStmt, old: CStmt, new: CStmt) -> CStmt:
    """The statement with `new` in the place of `old`, wherever that stands in it."""
    if stmt == old:
        return new
    changes: dict[str, object] = {}
    for name in inner_names(type(stmt)):  # type: ignore[arg-type]  # a type has a hash
        inside = getattr(stmt, name)
        if isinstance(inside, tuple) and any(isinstance(x, CStmt) for x in inside):
            changes[name] = tuple(
                exchanged(x, old, new) if isinstance(x, CStmt) else x for x in inside
            )
    return replace(stmt, **changes) if changes else stmt  # type: ignore[arg-type]
