"""Blocks that stay: one an SM, each takes tiles of the grid in turn.

The producer then loads the next tile's first rounds while the consumers still store the last one, and
the start of a block is paid once. Blocks of a launch do not depend on each other, so any number of them
may share the tiles in any order: the launch has as many as run at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile2c.runtime.grid import SMS
from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Binary, Expr, Var, const
from tile2c.transpile.ir.forms import Jump, Stmt
from tile2c.transpile.ir.walk import statements
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import Assign, Choice, CStmt, Declarator, Lambda, Local, Loop
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper.calls import do
from tile2c.transpile.lower.simt.hopper.long_first import mentions
from tile2c.transpile.lower.simt.hopper.panels import BLOCKS
from tile2c.transpile.lower.simt.hopper.roles import Roles
from tile2c.transpile.lower.simt.hopper.tile_count import host_extents, tiles_of
from tile2c.transpile.lower.simt.kernel_head import Walk, block_indices
from tile2c.transpile.lower.simt.unread import shared_tiles
from tile2c.transpile.lower.simt.uses import names_in
from tile2c.transpile.lower.simt.values import Place, convert

_FEW_LINES = 3  # that may be said twice
_REASON = "Blocks stay and take tiles in turn: the next one loads while the last is stored."


def may_stay(ctx: Context, roles: Roles, body: Sequence[Stmt], *, paired: bool) -> bool:
    """Whether blocks can take several tiles, and would gain by it.

    One block an SM runs then, which several consumer warpgroups' registers make sure of anyway. Apart from
    what the producer loads nothing in shared memory outlives a tile, all tiles or all pairs of them
    (`paired`) have as many rounds, and there are more of them than SMs as far as is known.
    """
    tiles = {load.tile.name for load in (*roles.loads, *roles.once)}
    others = shared_tiles(ctx) - tiles
    inner = list(statements(tuple(body)))
    if roles.groups < 2 or others:
        return False
    if any(isinstance(x, Jump) for x in inner):
        return False
    author = {size.name for size in ctx.function.sizes} | {x.name for x in ctx.function.params}
    if SMS in author | ctx.author_names:
        return False
    meanings = {let.var.name: let.value for let in roles.bound}
    ends = (roles.loop.start, roles.loop.stop)
    uneven = any(mentions(end, var.name, meanings) for end in ends for var in ctx.launch.blocks)
    if uneven and not paired:
        return False
    count = b.known(tiles_of(tuple(b.for_host(extent) for extent in ctx.launch.grid)))
    return count is None or count > BLOCKS


def staying_note(clusters: str = "") -> str:
    """A line of the file's head; `clusters`: an entry whose blocks come in pairs, if there is one."""
    even = f", any even one for {clusters}" if clusters else ""
    return (
        f"tiles    blocks take them in turn, so any grid along x will do{even}; {SMS} is the number of "
        "the device's multiprocessors"
    )


def staying_choice() -> Choice:
    """For `--emit plan`."""
    return Choice(name="blocks", value="each takes tiles of the grid in turn", reason=_REASON)


def grid_of_staying(ctx: Context) -> tuple[Expr, Expr, Expr]:
    """`min(sms, tiles)` blocks in one row, as the host writes it."""
    sms = Var(dtype=INT32, name=SMS, kind="size")
    tiles = tiles_of(host_extents(ctx))
    return Binary(dtype=INT32, op="min", a=sms, b=tiles), const(1), const(1)


class Turns:
    """The loop of a role over the block's tiles, and the names that both roles say it with."""

    reason = _REASON

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._tile = ctx.namer.ours("tile", "tile_of_grid")
        extents = [convert(ctx, extent, Place(values={})) for extent in ctx.launch.grid]
        extents += [const(1)] * (3 - len(extents))
        names: list[Expr] = []
        lines: list[Declarator] = []
        for extent, axis in zip(extents, "xyz", strict=True):
            if b.known(extent) is not None:
                names.append(const(b.known(extent) or 0))
                continue
            name = ctx.namer.ours(f"tiles_{axis}", f"grid_{axis}")
            lines.append(Declarator(name=name, value=extent))
            names.append(b.local(name))
        self._extents = tuple(names)
        named: list[CStmt] = [Local(dtype=INT32, names=tuple(lines))] if lines else []
        self.counts = [CStmt(comments=(self.reason,)), *named]

    def indices(self, steps: Sequence[CStmt]) -> list[CStmt]:
        """The author's block indices, from the tile's number."""
        return block_indices(self._ctx, steps, Walk(b.local(self._tile), self._extents))

    @property
    def names(self) -> set[str]:
        """What differs between the tiles of a block."""
        return {self._tile}

    def loop(self, body: Sequence[CStmt]) -> Loop:
        """`for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x)`"""
        return Loop(
            var=self._tile,
            start=b.local("blockIdx.x"),
            stop=tiles_of(self._extents),
            step=b.local("gridDim.x"),
            body=tuple(body),
            dtype=INT32,
        )


def place_of_tile(
    ctx: Context, numbers: set[str], indices: Sequence[Sequence[CStmt]]
) -> tuple[list[CStmt], list[list[CStmt]]]:
    """The lines in which both roles find a tile's place, as a function, and what each then says.

    `numbers`: the name of the tile's number. The lines stay where they are few, or differ.
    """
    (tile,) = numbers
    first, *others = (list(lines) for lines in indices)
    blocks = {var.name for var in ctx.launch.blocks}
    if len(first) < _FEW_LINES or any(lines != first for lines in others):
        return [], [first, *others]
    body: list[CStmt] = []
    found: list[str] = []
    for line in without_comments(first):
        assert isinstance(line, Local)
        own = [name for name in line.names if name.name in blocks]
        found += [name.name for name in own]
        rest = tuple(name for name in line.names if name.name not in blocks)
        body += [replace(line, names=rest)] if rest else []
        body += [Assign(target=b.local(name.name), value=name.value) for name in own if name.value]
    name = ctx.namer.ours("find_tile", "find_tile_of_grid")
    params = (f"int {tile}", *(f"int& {x}" for x in found))
    function = Lambda(name=name, params=params, body=tuple(body), comments=first[0].comments)
    places = Local(dtype=INT32, names=tuple(Declarator(name=x) for x in found), const=False)
    call = do(name, b.local(tile), *(b.local(x) for x in found))
    return [function], [[places, call] for _ in indices]


def names_bound(indices: Sequence[Sequence[CStmt]]) -> set[str]:
    """Names that the lines declare."""
    return {x.name for lines in indices for line in lines for x in getattr(line, "names", ())}


def without_comments(lines: Sequence[CStmt]) -> list[CStmt]:
    """The lines as they are said a second time."""
    return [replace(line, comments=()) if line.comments else line for line in lines]


def split_by_tile(lines: Sequence[CStmt], inner: set[str]) -> tuple[list[CStmt], list[CStmt]]:
    """Lines that are the same for all tiles, and those that depend on names of one tile."""
    before: list[CStmt] = []
    inside: list[CStmt] = []
    inner = set(inner)
    for line in lines:
        if names_in((line,)) & inner:
            inside.append(line)
            inner |= {x.name for x in getattr(line, "names", ())}
        else:
            before.append(line)
    return before, inside
