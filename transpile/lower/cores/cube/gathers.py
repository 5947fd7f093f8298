"""Gathered operands of products: parts of rows come to L1 as fractals, zeros all around.

reads   `gather.Gather`        writes  steps of MTE2
"""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.ir import forms
from tile2c.transpile.ir.expr import Expr
from tile2c.transpile.ir.forms import Stmt
from tile2c.transpile.lower.cores.cube.roles import Roles
from tile2c.transpile.lower.cores.cube.tiles import Matrix, lanes
from tile2c.transpile.lower.cores.cube.transfers import Transfers
from tile2c.transpile.lower.cores.gather import Gather, gather_of
from tile2c.transpile.lower.cores.gathers import Gathering, unaligned
from tile2c.transpile.lower.cores.layouts import is_zero, times
from tile2c.transpile.lower.cores.plan import CubeCall, Step, TensorRef, TileRef
from tile2c.transpile.lower.cores.regions import without


def find_gathers(body: tuple[Stmt, ...], roles: Roles) -> tuple[Stmt, ...]:
    """The body with the loops that gather operands of products as `Gather`."""
    return tuple(_found(stmt, roles) for stmt in body)


def _found(stmt: Stmt, roles: Roles) -> Stmt:
    if isinstance(stmt, forms.Parallel):
        gather = gather_of(stmt)
        return gather if gather is not None and gather.tile.name in roles.operands else stmt
    if isinstance(stmt, forms.For | forms.Pipelined | forms.While):
        return replace(stmt, body=find_gathers(stmt.body, roles))
    if isinstance(stmt, forms.If):
        then, orelse = find_gathers(stmt.then, roles), find_gathers(stmt.orelse, roles)
        return replace(stmt, then=then, orelse=orelse)
    return stmt


class CubeGathering(Gathering):
    """The copies of one gather to a tile of L1."""

    some = False

    def __init__(self, stmt: Gather, transfers: Transfers, tile: Matrix) -> None:
        super().__init__(stmt, transfers.context)
        self.tile = tile
        self.transfers = transfers

    def lower(self) -> None:
        """Zeros, then the copies. Raises InputError for parts that do not start at whole blocks."""
        if self.stmt.tile.name in self.transfers.turned or not self.aligned():
            raise unaligned(self.stmt, self.context)
        self.transfers.clear_all(self.tile)
        super().lower()

    def aligned(self) -> bool:
        """Whether runs of columns start at whole blocks of the tile."""
        parts = self.columns.parts
        if parts.unit is None:
            return True
        block = lanes(self.stmt.tile.dtype, self.transfers.unit)
        first = without(parts.counted, parts.var)
        return parts.unit % block == 0 and self.context.facts.divisible(first, block)

    def step(self, source: TensorRef, height: Expr, width: Expr, pitch: Expr) -> Step:
        if not self.columns.inside:
            raise unaligned(self.stmt, self.context)
        tall = self.tile.tall_expr()
        offset = times(self.columns.low, tall)
        return CubeCall(
            unit="MTE2",
            function="copy_some_fractals",
            dst=TileRef(tile=self.stmt.tile.name, offset=None if is_zero(offset) else offset),
            arguments=(source, self.rows.low, height, width, pitch, tall),
        )
