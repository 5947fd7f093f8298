"""Registers that the author deals out: setmaxnreg waits for ever where they are more than there are."""

from __future__ import annotations

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.forms import SetRegisters, Stmt
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.divergence import Divergence
from tile2c.transpile.lower.simt.outer_statements import walk
from tile2c.transpile.lower.simt.per_thread import PerThread
from tile2c.transpile.lower.simt.teams import teams_of

_FILE = 65536  # registers of an SM
_MOST = 255
_UNIT = 8


def check_registers(ctx: Context, body: tuple[Stmt, ...]) -> None:
    """Refuses budgets whose sum is more than the launch starts with."""
    threads = PerThread(
        ctx.launch.threads, {var.name: dim for dim, var in enumerate(ctx.launch.thread_vars)}
    )
    at_start = min(_FILE // ctx.threads // _UNIT * _UNIT, _MOST // _UNIT * _UNIT)
    teams = list(teams_of(ctx, body, threads, Divergence(ctx.launch.body)))
    budgets: dict[int, int] = {group: at_start for group in range(ctx.threads // 128)}
    last: SetRegisters | None = None
    for part, (first, count) in teams:
        for stmt in walk(part):
            if not isinstance(stmt, SetRegisters):
                continue
            last = stmt
            for group in range(first // 128, (first + count) // 128):
                budgets[group] = stmt.count
    total = sum(budgets.values()) * 128
    if last is not None and total > at_start * ctx.threads:
        shares = " + ".join(map(str, budgets.values()))
        raise failure(
            "T2C334",
            f"the warpgroups ask for {shares} registers a thread, and the launch has {at_start} for each of "
            f"{ctx.threads} threads, {at_start * ctx.threads // 128} for {len(budgets)} of them: they would "
            "wait for ever",
            last.span,
            help="let the warpgroup that loads give up more: T.dec_max_nreg(24)",
        )
