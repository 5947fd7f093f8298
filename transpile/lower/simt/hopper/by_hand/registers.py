"""Registers that the author deals out: setmaxnreg waits for ever where they are more than there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.forms import For, If, Pipelined, SetRegisters, Stmt, While
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.per_thread import PerThread

_FILE = 65536  # registers of an SM
_MOST = 255
_UNIT = 8


def at_start(threads: int) -> int:
    """Registers that each thread of a launch starts with."""
    return min(_FILE // threads // _UNIT * _UNIT, _MOST // _UNIT * _UNIT)


def check_registers(ctx: Context, body: tuple[Stmt, ...]) -> None:
    """Refuses budgets whose sum is more than the launch starts with."""
    threads = PerThread(
        ctx.launch.threads, {var.name: dim for dim, var in enumerate(ctx.launch.thread_vars)}
    )
    share = at_start(ctx.threads)
    budgets = [share] * ctx.threads
    last: SetRegisters | None = None
    for stmt, active in _asked(body, threads, (True,) * ctx.threads):
        last = stmt
        budgets = [stmt.count if here else old for here, old in zip(active, budgets, strict=True)]
    if last is not None and sum(budgets) > share * ctx.threads:
        shares = " + ".join(map(str, budgets[::128]))
        raise failure(
            "T2C334",
            f"the warpgroups ask for {shares} registers a thread, but the launch gives {share} to each of "
            f"its {ctx.threads} threads: they would wait for ever",
            last.span,
            help="let the warpgroup that loads give up more, as in T.dec_max_nreg(24)",
        )


def _asked(
    body: Sequence[Stmt], threads: PerThread, active: tuple[bool, ...]
) -> Iterator[tuple[SetRegisters, tuple[bool, ...]]]:
    """Every setmaxnreg with the threads that get to it."""
    for stmt in body:
        if isinstance(stmt, SetRegisters):
            yield stmt, active
        elif isinstance(stmt, For | Pipelined | While):
            yield from _asked(stmt.body, threads, active)
        elif isinstance(stmt, If):
            chosen = threads.values(stmt.condition) or (1,) * len(active)
            known = threads.values(stmt.condition) is not None
            for side, part in ((True, stmt.then), (False, stmt.orelse)):
                pairs = zip(active, chosen, strict=True)
                inside = tuple(a and (bool(c) == side or not known) for a, c in pairs)
                yield from _asked(part, threads, inside)
