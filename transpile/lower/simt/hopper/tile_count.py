"""How many tiles a grid has, where blocks take several of them."""

from __future__ import annotations

from collections.abc import Sequence

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Binary, Expr, const
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.entry_points import grid


def tiles_of(extents: Sequence[Expr]) -> Expr:
    """How many a grid of these extents has."""
    total: Expr = const(1)
    for extent in extents:
        total = b.mul(total, extent)
    return total


def host_extents(ctx: Context) -> list[Expr]:
    """The grid's extents as the host multiplies them: two that are negative make no tiles."""
    extents = [b.for_host(extent) for extent in grid(ctx)]
    unsure = [k for k, x in enumerate(ctx.launch.grid) if not ctx.facts.at_least(x, 0)]
    if len(unsure) > 1:  # a lone one makes a negative number, which the launch reports
        for k in unsure:
            extents[k] = Binary(dtype=INT32, op="max", a=extents[k], b=const(0))
    return extents
