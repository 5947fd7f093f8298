"""What the L2 is told of the weights of a product with few rows: read once, they are the first to go.

Else they drive out what was written before, and that goes to memory while the weights come from it.
Weights that are several times as large as the L2 do so in any case, and are slower with the hint: by 4 % at
470 MB on an H200, where it gives 10 % at 134 MB and 1 % at 268.
"""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.ir.dtypes import BOOL, INT32
from tile2c.transpile.ir.expr import Expr, const
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import CStmt, Declarator, Element, Local
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper.calls import call
from tile2c.transpile.lower.simt.hopper.roles import Roles, TileLoad
from tile2c.transpile.lower.simt.outer_statements import gemms

_MOST = "256 << 20"  # bytes of a tensor that the hint is good for


def with_policies(ctx: Context, roles: Roles) -> Roles:
    """The load of the second operand names the flag for that. The grid counts tiles."""
    products = gemms(roles.loop.body)
    weights = {x.b.buffer.name for x in products} - {x.a.buffer.name for x in products}
    loads = [load for load in roles.loads if load.tile.name in weights and load.im2col is None]
    if len(loads) != 1:
        return roles
    name = ctx.namer.ours("once", "read_once")
    chosen = [replace(x, once=name) if x in loads else x for x in roles.loads]
    return replace(roles, loads=tuple(chosen))


def policy_lines(ctx: Context, roles: Roles, stop: Expr) -> tuple[CStmt, ...]:
    """`const bool once = …;`, where a load asks for it. `stop`: how many rounds a tile has, in C."""
    load = next((x for x in roles.loads if x.once), None)
    if load is None:
        return ()
    tensor = load.map.tensor
    declared = Declarator(name=load.once, value=_read_once(ctx, load, stop))
    why = f"{tensor} is read once, and not so large that the L2 keeps nothing else anyway."
    return (Local(dtype=BOOL, names=(declared,), comments=(f"Whether {why}",)),)


def _read_once(ctx: Context, load: TileLoad, stop: Expr) -> Expr:
    """One block along each dimension that the load does not depend on; along others the grid counts tiles."""
    alone: list[Expr] = []
    tile = Element(dtype=INT32, array=load.tile.name, subscripts=(const(0),))
    size: Expr = call("sizeof", tile)
    launch = ctx.launch
    for var, extent, axis in zip(launch.blocks, launch.grid, "xyz", strict=False):
        blocks = b.local(f"gridDim.{axis}")
        if any(b.mentions(place, var.name) for place in load.places):
            size = b.mul(size, blocks)
        elif b.known(b.for_host(extent)) != 1:
            alone.append(b.compare("==", blocks, const(1)))
    return b.both([*alone, b.compare("<=", b.mul(size, stop), b.local(f"({_MOST})"))])
