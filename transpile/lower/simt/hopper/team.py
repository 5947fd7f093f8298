"""Barriers that the producer takes no part in, and the flag of the ordinary body."""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.ir.dtypes import BOOL
from tile2c.transpile.ir.expr import Const
from tile2c.transpile.lower.plan import Branch, CStmt, Declarator, Local, Loop, Section, Sync
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper.calls import do


def for_team(ctx: Context, body: tuple[CStmt, ...]) -> tuple[CStmt, ...]:
    """Barriers of the block become those of the consumers."""
    found: list[CStmt] = []
    for stmt in body:
        if isinstance(stmt, Sync):
            ctx.need("consumers_sync", count=ctx.threads)
            stmt = do("consumers_sync", remark=stmt.remark)
        elif isinstance(stmt, Section | Loop):
            stmt = replace(stmt, body=for_team(ctx, stmt.body))
        elif isinstance(stmt, Branch):
            stmt = replace(stmt, then=for_team(ctx, stmt.then), orelse=for_team(ctx, stmt.orelse))
        found.append(stmt)
    return tuple(found)


def unaligned_flag() -> Local:
    """`const bool aligned = false;`: the ordinary body is a template over it."""
    return Local(
        dtype=BOOL,
        names=(Declarator(name="aligned", value=Const(dtype=BOOL, value=False)),),
        remark="rows may start anywhere",
    )
