"""Tiles that are waited for and given back together: those that the same products read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tile2c.transpile.ir.expr import Expr
from tile2c.transpile.ir.forms import Gemm, Stmt
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper.calls import barrier
from tile2c.transpile.lower.simt.hopper.warpgroups import WarpgroupPlan
from tile2c.transpile.record import record

RING = "ring"  # where a role stands in the ring of stages


@record(kw_only=True)
class TileRing:
    """Barriers of some tiles: `full` in a stage when they have arrived, `empty` when it is free again.

    `first` and `last`: the batches of products of a round that read the tiles first and last.
    """

    tiles: tuple[str, ...]
    full: str
    empty: str
    first: int
    last: int

    def has_arrived(self, stage: Expr) -> Expr:
        """`full[ring.stage]`."""
        return barrier(self.full, stage)

    def is_free(self, stage: Expr) -> Expr:
        """`empty[ring.stage]`."""
        return barrier(self.empty, stage)


@record(kw_only=True)
class Again:
    """Tiles that stay for a tile of the grid, where a block takes several of these.

    `empty`: barrier on which consumers say that they have read them; `visit`: a ring of one stage, for the
    parity of the tile at hand.
    """

    empty: str
    visit: str

    @property
    def is_free(self) -> Expr:
        """The barrier."""
        return b.local(self.empty)

    @property
    def phase(self) -> Expr:
        """`visit.phase`."""
        return b.local(f"{self.visit}.phase")

    @property
    def advance(self) -> str:
        """The call that goes on to the next tile."""
        return f"{self.visit}.advance"


def barrier_of_kept(ctx: Context, tiles: Mapping[str, str]) -> str:
    """The name of the barrier on which tiles arrive that are loaded once; `tiles` as for `rings_of`."""
    if not tiles:
        return ""
    (tile, tensor), *others = tiles.items()
    return ctx.namer.ours("kept_full" if others else f"{tensor}_full", f"{tile}_full")


def batches_of(
    statements: Sequence[Stmt], products: Mapping[int, WarpgroupPlan]
) -> tuple[tuple[Gemm, ...], ...]:
    """Products of a round that are started together: neighbours, but for those whose sums leave the
    matrix unit in the middle of things."""
    found: list[list[Gemm]] = []
    before: Stmt | None = None
    for stmt in statements:
        if isinstance(stmt, Gemm):
            apart = any(isinstance(x, Gemm) and products[id(x)].part > 0 for x in (before, stmt))
            if not isinstance(before, Gemm) or apart:
                found.append([])
            found[-1].append(stmt)
        before = stmt
    return tuple(tuple(batch) for batch in found)


def rings_of(
    ctx: Context, tiles: Mapping[str, str], batches: Sequence[Sequence[Gemm]]
) -> tuple[TileRing, ...]:
    """One pair of barriers for the tiles of the same batches, in the order of their first use.

    `tiles`: name of the tile -> of the tensor that it is a part of. A product need not wait for tiles
    of a later one, and what it has read can be refilled while the others still run.
    """
    spans: dict[tuple[int, int], list[str]] = {}
    for tile in tiles:
        used = [
            k
            for k, batch in enumerate(batches)
            for gemm in batch
            if tile in (gemm.a.buffer.name, gemm.b.buffer.name)
        ]
        spans.setdefault((min(used), max(used)), []).append(tile)
    found = []
    for (first, last), names in sorted(spans.items()):
        full, empty = "full", "empty"
        if len(spans) > 1:
            base = tiles[names[0]]
            full = ctx.namer.ours(f"{base}_full", f"{names[0]}_full")
            empty = ctx.namer.ours(f"{base}_empty", f"{names[0]}_empty")
        found.append(TileRing(tiles=tuple(names), full=full, empty=empty, first=first, last=last))
    return tuple(found)
