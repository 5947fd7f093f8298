"""What the L2 is told of the weights of a product with few rows: read once, they are the first to go.

Else they drive out what was written before, and that goes to memory while the weights come from it.
"""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Expr, const, true
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import CStmt, Declarator, Local
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper.calls import call
from tile2c.transpile.lower.simt.hopper.roles import Roles, TileLoad
from tile2c.transpile.lower.simt.outer_statements import gemms


def with_policies(ctx: Context, roles: Roles) -> Roles:
    """Loads of second operands name the policy that they are loaded by. The grid counts tiles."""
    weights = {x.b.buffer.name for x in gemms(roles.loop.body)}
    weights -= {x.a.buffer.name for x in gemms(roles.loop.body)}
    loads = [load for load in roles.loads if load.tile.name in weights and load.im2col is None]
    conditions = {_read_once(ctx, load) for load in loads}
    if len(conditions) != 1:
        return roles
    name = ctx.namer.ours("policy", "l2_policy_of_weights")
    chosen = [replace(x, policy=name) if x in loads else x for x in roles.loads]
    return replace(roles, loads=tuple(chosen))


def policy_line(ctx: Context, roles: Roles) -> list[CStmt]:
    """`const unsigned long long policy = l2_policy(gridDim.y == 1);`, where a load asks for it."""
    load = next((x for x in roles.loads if x.policy), None)
    if load is None:
        return []
    ctx.need("l2_policy")
    value = call("l2_policy", _read_once(ctx, load))
    return [
        Local(
            dtype=INT32,
            ctype="const unsigned long long",
            const=False,
            names=(Declarator(name=load.policy, value=value),),
            remark=f"whether a single block reads each part of {load.map.tensor}",
        )
    ]


def _read_once(ctx: Context, load: TileLoad) -> Expr:
    """A C condition: the grid has one block along each dimension that the load does not depend on."""
    found: list[Expr] = []
    launch = ctx.launch
    for var, extent, axis in zip(launch.blocks, launch.grid, "xyz", strict=False):
        if any(b.mentions(place, var.name) for place in load.places):
            continue
        if b.known(b.for_host(extent)) != 1:
            found.append(b.compare("==", b.local(f"gridDim.{axis}"), const(1)))
    return b.both(found) if found else true()
