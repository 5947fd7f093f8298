"""The grid of a launch as one row of blocks, and the author's block indices from a block's number.

reads   `ir.forms.Launch`        writes  `Grid`
"""

from __future__ import annotations

from tile2c.transpile.ir import forms, walk
from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Binary, Const, Expr, Var, const
from tile2c.transpile.lower.cores.context import Context
from tile2c.transpile.lower.cores.layouts import constant_of, times
from tile2c.transpile.lower.cores.names import Names
from tile2c.transpile.lower.cores.plan import Local
from tile2c.transpile.record import record


@record
class Grid:
    """`persistent`: there may be more blocks than cores, so each core takes block after block.
    `extents`: the author's."""

    blocks: Expr
    last: Expr  # the number of blocks in terms of `sizes`
    tile: Var
    sizes: tuple[Local, ...]
    locals: tuple[Local, ...]
    persistent: bool
    extents: tuple[Expr, ...]


def grid_of(launch: forms.Launch, context: Context, cores: int) -> Grid:
    """The grid of a launch on a chip with so many cores."""
    extents = [context.scalars.lower(e, context.facts, context.emit) for e in launch.grid]
    blocks = _product(extents)
    whole = _number(launch.grid)
    persistent = whole is None or whole > cores
    if len(launch.blocks) == 1:
        return Grid(blocks, blocks, launch.blocks[0], (), (), persistent, launch.grid)
    tile = Var(dtype=INT32, name=context.names.fresh("block", "tile"), kind="loop")
    used_here = {
        var.name
        for stmt in walk.statements(launch.body)
        for expr in walk.expressions(stmt)
        for var in walk.variables(expr)
    }
    sizes = _sizes(extents, context.names)
    names: list[Expr] = [
        Var(dtype=INT32, name=sizes[place].name, kind="temporary") if place in sizes else extent
        for place, extent in enumerate(extents)
    ]
    found: list[Local] = []
    rest: Expr = tile
    for place, var in enumerate(launch.blocks):
        last = place == len(launch.blocks) - 1
        extent = names[place]
        one = isinstance(extent, Const) and extent.value == 1
        value = rest if last or one else Binary(dtype=INT32, op="truncmod", a=rest, b=extent)
        if one:
            value = const(0)
        if var.name in used_here:
            found.append(Local(name=var.name, dtype=INT32, value=value))
        if not last and not one:
            rest = Binary(dtype=INT32, op="truncdiv", a=rest, b=extent)
    return Grid(
        blocks,
        _product(names),
        tile,
        tuple(sizes.values()),
        tuple(found),
        persistent,
        launch.grid,
    )


def _sizes(extents: list[Expr], names: Names) -> dict[int, Local]:
    """A local for each extent of the grid that is not a number."""
    found = {}
    for place, extent in enumerate(extents):
        if not isinstance(extent, Const):
            name = names.fresh(f"grid_{'xyz'[place]}")
            found[place] = Local(name=name, dtype=INT32, value=extent)
    return found


def _number(extents: tuple[Expr, ...]) -> int | None:
    total = 1
    for extent in extents:
        number = constant_of(extent)
        if number is None:
            return None
        total *= number
    return total


def _product(extents: list[Expr]) -> Expr:
    total = extents[0] if extents else const(1)
    for extent in extents[1:]:
        total = times(total, extent)
    return total
