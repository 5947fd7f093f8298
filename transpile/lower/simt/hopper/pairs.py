"""Blocks that stay where tiles differ in rounds: each takes pairs, a long tile and a short one.

The rounds of causal attention grow with the index of the rows: the first tile along it and the last
together have as many as the second and the last but one. So pairs are shared out like tiles that are all
alike. Where the last pairs would leave too many multiprocessors idle, there is a block for each tile
instead, long ones first, and the device hands them out as multiprocessors become free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile2c.runtime.grid import SMS
from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Binary, Expr, Select, Var, const
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import (
    CStmt,
    Declarator,
    Escape,
    LaunchPlan,
    Local,
    Loop,
    Plan,
)
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper.calls import call
from tile2c.transpile.lower.simt.hopper.long_first import growing_indices, mentions
from tile2c.transpile.lower.simt.hopper.roles import Roles
from tile2c.transpile.lower.simt.hopper.stay import Turns
from tile2c.transpile.lower.simt.hopper.tile_count import host_extents, tiles_of
from tile2c.transpile.lower.simt.kernel_head import Walk, block_indices

_REASON = (
    "Blocks stay and take pairs of tiles in turn, one with many rounds and one with few: the next "
    "tile loads while the last is stored."
)
# Pairs are shared out where multiprocessors idle for a sixth of the time at most.
_OF_ALL, _IN_USE = 6, 5


def pairing(ctx: Context, roles: Roles) -> int | None:
    """Which of the block's indices, and no other, the rounds of a tile grow with; None if not so."""
    growing = growing_indices(ctx, roles)
    if ctx.launch.order is not None or len(growing) != 1:
        return None
    ((name, axis),) = growing
    meanings = {let.var.name: let.value for let in roles.bound}
    others = [var.name for var in ctx.launch.blocks if var.name != name]
    ends = (roles.loop.start, roles.loop.stop)
    if any(mentions(end, other, meanings) for end in ends for other in others):
        return None
    return "xyz".index(axis)


class Pairs(Turns):
    """The loops of a role over the block's pairs and the tiles of these."""

    reason = _REASON

    def __init__(self, ctx: Context, place: int) -> None:
        """`place`: which index of the block counts the tiles that make pairs."""
        super().__init__(ctx)
        self._place = place
        self._name = ctx.launch.blocks[place].name
        axis = "xyz"[place]
        self._pair = ctx.namer.ours("pair", "pair_of_tiles")
        names = (f"pairs_{axis}", "pairs", "apart", "first_pair")
        own, self._pairs, self._apart, self._first = (
            ctx.namer.ours(x, f"{x}_of_tiles") for x in names
        )
        halves = b.div(b.add(self._extents[place], const(1)), const(2))
        extents = list(self._extents)
        extents[place] = b.local(own)
        self._walked = tuple(extents)
        pairs, block = b.local(self._pairs), call("int", b.local("blockIdx.x"))
        enough = b.compare(">=", call("int", b.local("gridDim.x")), b.mul(const(2), pairs))
        step = Select(dtype=INT32, condition=enough, a=const(2), b=const(1))
        alone = b.compare("==", b.local(self._apart), const(2))
        first = Select(dtype=INT32, condition=alone, a=b.mod(block, pairs), b=block)
        counted = (
            Declarator(name=own, value=halves),
            Declarator(name=self._pairs, value=tiles_of(self._walked)),
        )
        self.counts += [
            Local(dtype=INT32, names=counted),
            Local(
                dtype=INT32,
                names=(Declarator(name=self._apart, value=step),),
                remark="blocks for all tiles: each takes one",
            ),
            Local(
                dtype=INT32,
                names=(Declarator(name=self._first, value=first),),
                remark="past the pairs a block has nothing to do",
            ),
        ]

    def indices(self, steps: Sequence[CStmt]) -> list[CStmt]:
        """The author's block indices, from the pair's number and which of its tiles it is."""
        whole = self._extents[self._place]
        found: list[CStmt] = []
        for line in block_indices(self._ctx, steps, Walk(b.local(self._pair), self._walked)):
            assert isinstance(line, Local)
            names = tuple(self._of_pair(x) if x.name == self._name else x for x in line.names)
            found.append(replace(line, names=names))
        twice = b.mul(const(2), b.local(self._name))
        middle = b.compare("==", b.add(twice, const(1)), whole)
        again = b.both([b.compare("==", b.local(self._tile), const(1)), middle])
        lone = "the one in the middle has no partner"
        return [*found, Escape(kind="continue", condition=again, remark=lone)]

    def _of_pair(self, index: Declarator) -> Declarator:
        """The index from the end for the first of the two, from the start for the second."""
        assert index.value is not None
        last = b.sub(self._extents[self._place], const(1))
        first = b.compare("==", b.local(self._tile), const(0))
        value = Select(dtype=INT32, condition=first, a=b.sub(last, index.value), b=index.value)
        return replace(index, value=value)

    def loop(self, body: Sequence[CStmt]) -> Loop:
        """`for (int pair = …) for (int tile = …)`"""
        pairs = b.local(self._pairs)
        both = Loop(
            var=self._tile,
            start=b.div(b.local("blockIdx.x"), pairs),
            stop=const(2),
            step=b.local(self._apart),
            body=tuple(body),
            dtype=INT32,
        )
        return Loop(
            var=self._pair,
            start=b.local(self._first),
            stop=pairs,
            step=b.local("gridDim.x"),
            body=(both,),
            dtype=INT32,
        )

    @property
    def names(self) -> set[str]:
        """What differs between the tiles of a block."""
        return {self._pair, self._tile}


def _pairs(ctx: Context, place: int) -> Expr:
    """How many there are, as the host says it."""
    extents = host_extents(ctx)
    extents[place] = b.div(b.add(extents[place], const(1)), const(2))
    return tiles_of(extents)


def grid_of_pairs(ctx: Context, place: int) -> tuple[Expr, Expr, Expr]:
    """`min(sms, pairs)` blocks in one row."""
    sms = Var(dtype=INT32, name=SMS, kind="size")
    return Binary(dtype=INT32, op="min", a=sms, b=_pairs(ctx, place)), const(1), const(1)


def pairs_note() -> str:
    """A line of the file's head."""
    return (
        "tiles    blocks take pairs of them in turn, so any grid along x will do; with two blocks a pair or "
        f"more each takes one tile; {SMS} is the number of the device's multiprocessors"
    )


def with_a_block_a_tile(ctx: Context, plan: Plan, place: int) -> Plan:
    """The plan with a second launch behind each of the entry's: a block for each tile."""
    from tile2c.transpile.render.expressions import CPrinter

    printer = CPrinter(ctx.target.dialect)
    pairs, sms = _pairs(ctx, place), Var(dtype=INT32, name=SMS, kind="size")
    turns = b.div(b.sub(b.add(pairs, sms), const(1)), sms)
    room = b.mul(b.mul(turns, sms), const(_IN_USE))
    evenly = printer(b.compare("<=", room, b.mul(pairs, const(_OF_ALL))))
    alone = (b.mul(pairs, const(2)), const(1), const(1))
    found: list[LaunchPlan] = []
    for launch in plan.launches:
        if launch.entry == ctx.function.name:
            when = f"{launch.when} and {evenly}" if launch.when else evenly
            found += [replace(launch, when=when), replace(launch, grid=alone)]
        else:
            found.append(launch)
    return replace(plan, launches=tuple(found))
