"""Warpgroups that start their products in turns: one adds up while another multiplies.

A round whose sums leave the matrix unit is: start products, wait, add. Warpgroups that come into step
multiply together, each at a part of the rate, then all add while the matrix unit idles. In turns the
products of one stand behind those of another, and what follows them runs beside. The turn is a named
barrier of the warpgroup that waits for it and of the one before; it stays with warpgroup 0 from tile to
tile, so that one stores while another goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile2c.transpile.ir.expr import const
from tile2c.transpile.ir.forms import Jump, Stmt
from tile2c.transpile.ir.walk import statements
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import Branch, CStmt, Do
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper.calls import call, do
from tile2c.transpile.lower.simt.hopper.roles import Roles
from tile2c.transpile.lower.simt.hopper.warpgroups import THREADS

_BARRIERS = 16  # named ones of a block
_TAKEN = 2  # __syncthreads and that of all consumers; then one a warpgroup
_WARPGROUP = b.local("warpgroup")


def with_turns(ctx: Context, roles: Roles, body: Sequence[Stmt], *, alone: bool) -> Roles:
    """Roles whose warpgroups take turns, where a round is one product whose sums leave the matrix unit.

    All of them together: turns are too short where they leave in parts. `alone`: no other block of the SM
    fills the gaps. All warpgroups of a block have the same rounds, and none of them leaves it early.
    """
    leaves = any(isinstance(x, Jump) for x in statements(tuple(body)))
    promoted = all(x.part == x.n and x.tiles_m == 1 for x in roles.products.values())
    several = roles.groups > 1 and _first(roles) + roles.groups <= _BARRIERS
    authors = ctx.launch.thread_vars or ctx.named_barriers  # their threads may meet at any barrier
    if leaves or authors or not (alone and several and promoted and len(roles.batches) == 1):
        return roles
    ctx.need("turn_wait", first=_first(roles))
    ctx.need("turn_pass", first=_first(roles), groups=roles.groups)
    return replace(roles, in_turns=True)


def _first(roles: Roles) -> int:
    """The barrier of warpgroup 0's turn."""
    return _TAKEN + roles.groups


def wait_turn(roles: Roles) -> list[CStmt]:
    """Before the products of a batch."""
    return [do("turn_wait", _WARPGROUP)] if roles.in_turns else []


def pass_turn(roles: Roles) -> list[CStmt]:
    """Behind their start."""
    why = "products of the next one queue up behind these"
    return [do("turn_pass", _WARPGROUP, remark=why)] if roles.in_turns else []


def first_turn(roles: Roles) -> list[CStmt]:
    """Before the rounds of the block's first tile."""
    if not roles.in_turns:
        return []
    last = b.compare("==", _WARPGROUP, const(roles.groups - 1))
    why = "Warpgroups start products in turns: one adds up while another multiplies."
    first = Do(call=call("turn_pass", _WARPGROUP), remark="the first turn is that of warpgroup 0")
    return [Branch(condition=last, then=(first,), comments=(why,))]


def last_turn(roles: Roles) -> list[CStmt]:
    """Behind the rounds of its last tile."""
    if not roles.in_turns:
        return []
    # Not by `warpgroup`: where that lives so long, nvcc fetches the base of shared memory anew each round.
    first = b.compare("<", b.local("threadIdx.x"), const(THREADS))
    back = Do(call=call("turn_wait", const(0)), remark="the turn that nobody takes any more")
    return [Branch(condition=first, then=(back,))]
