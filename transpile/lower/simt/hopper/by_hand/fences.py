"""Which tiles ordinary statements hand to TMA and wgmma within a team, where the language implies order."""

from __future__ import annotations

from collections.abc import Sequence

from tile2c.transpile.ir.forms import BulkCopy, Gemm, Stmt
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

    def wanted(self, team: Range, written: set[str]) -> bool:
        """Whether some of these tiles are read by the asynchronous side, for a part of these threads."""
        return any(
            written & names and _meet(team, other)
            for table in (self.products, self.stores)
            for other, names in table.items()
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
    inside = {id(stmt) for part, _ in parts for stmt in walk(part)}
    rest = [stmt for stmt in walk(body) if id(stmt) not in inside]
    products: dict[Range, set[str]] = {}
    stores: dict[Range, set[str]] = {}

    def note(stmts: Sequence[Stmt], team: Range) -> None:
        for stmt in stmts:
            if isinstance(stmt, Gemm):
                shared = [x.buffer.name for x in (stmt.a, stmt.b) if x.buffer.scope == "shared"]
                products.setdefault(team, set()).update(shared)
            elif isinstance(stmt, BulkCopy) and stmt.barrier is None:
                stores.setdefault(team, set()).add(stmt.src.buffer.name)

    for part, team in parts:
        note(list(walk(part)), team)
    note(rest, (0, ctx.threads))
    others = {name for x in walk(body) if not isinstance(x, Gemm) for name in touches(x)}
    return Fences(
        products={team: frozenset(names) for team, names in products.items()},
        stores={team: frozenset(names) for team, names in stores.items()},
        touched=frozenset(others),
    )
