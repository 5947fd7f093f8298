"""Which tiles ordinary statements hand to TMA and wgmma: these see writes only behind a fence."""

from __future__ import annotations

from tile2c.transpile.ir.forms import BulkCopy, ElementCopy, Gemm, Stmt
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.divergence import Divergence
from tile2c.transpile.lower.simt.outer_statements import walk
from tile2c.transpile.lower.simt.per_thread import PerThread
from tile2c.transpile.lower.simt.teams import teams_of
from tile2c.transpile.lower.simt.tile_loads import touches
from tile2c.transpile.record import record

Range = tuple[int, int]


@record(kw_only=True)
class Fences:
    """By team (first thread, threads): tiles that its products read, and that its stores read."""

    products: dict[Range, frozenset[str]]
    stores: dict[Range, frozenset[str]]
    touched: frozenset[str]  # fragments that something else than products uses
    copied: bool  # products read tiles that element copies fill

    def wanted(self, written: set[str]) -> bool:
        """Whether the asynchronous side reads some of these tiles, whoever starts it."""
        return any(
            written & names for table in (self.products, self.stores) for names in table.values()
        )

    def read_by_products(self, team: Range) -> tuple[str, ...]:
        return tuple(sorted(self.products.get(team, frozenset())))

    def stored_by(self, team: Range) -> tuple[str, ...]:
        """Tiles whose stores a thread of the team starts."""
        return tuple(
            sorted(
                {
                    name
                    for other, names in self.stores.items()
                    if _meet(team, other)
                    for name in names
                }
            )
        )


def _meet(a: Range, c: Range) -> bool:
    return a[0] < c[0] + c[1] and c[0] < a[0] + a[1]


def fences_of(ctx: Context, body: tuple[Stmt, ...]) -> Fences:
    """Reads the launch's statements, teams by teams."""
    threads = PerThread(
        ctx.launch.threads, {var.name: dim for dim, var in enumerate(ctx.launch.thread_vars)}
    )
    parts = list(teams_of(ctx, body, threads, Divergence(ctx.launch.body)))
    owners = {id(stmt): team for part, team in parts for stmt in walk(part)}
    products: dict[Range, set[str]] = {}
    stores: dict[Range, set[str]] = {}
    for stmt in walk(body):
        team = owners.get(id(stmt), (0, ctx.threads))
        if isinstance(stmt, Gemm):
            shared = [x.buffer.name for x in (stmt.a, stmt.b) if x.buffer.scope == "shared"]
            products.setdefault(team, set()).update(shared)
        elif isinstance(stmt, BulkCopy) and stmt.barrier is None:
            stores.setdefault(team, set()).add(stmt.src.buffer.name)
    filled = {x.dst.name for x in walk(body) if isinstance(x, ElementCopy)}
    return Fences(
        copied=any(filled & names for names in products.values()),
        products={team: frozenset(names) for team, names in products.items()},
        stores={team: frozenset(names) for team, names in stores.items()},
        touched=frozenset(ordinary_uses(body)),
    )


def ordinary_uses(body: tuple[Stmt, ...]) -> set[str]:
    """Buffers that something else than products uses."""
    return {name for stmt in walk(body) if not isinstance(stmt, Gemm) for name in touches(stmt)}
