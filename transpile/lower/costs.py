"""Warnings that name what a kernel costs, where its author may not expect it.

reads   a plan of threads          writes  warnings
Registers and shared memory are those of the plan; what the vendor's compiler adds is not known here,
so the limits leave room. Accesses of global memory are looked at where they are lowered
(`simt/coalescing.py`).
"""

from __future__ import annotations

from math import prod

from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.ir.forms import Function
from tile2c.transpile.lower.plan import Plan
from tile2c.transpile.targets.simt import SimtTarget

SPARE = 16  # registers for addresses and operands: attention that holds 236 of 255 spills none, 244 some
SMALL_BLOCK = 128  # threads; a lone block of so few hides no latency


def warn_of_costs(
    plan: Plan, function: Function, target: SimtTarget, diagnostics: Diagnostics
) -> None:
    """Registers that will spill, and shared memory that leaves a multiprocessor nearly empty."""
    from tile2c.transpile.lower.by_hand import by_hand
    from tile2c.transpile.lower.resources import resources

    threads = max(prod(launch.threads) for launch in function.launches)
    span = function.launches[0].span
    taken = resources(plan)
    limit = min(target.registers, target.register_file // max(threads, 1))
    roles = any(
        by_hand(launch) for launch in function.launches
    )  # each has its own tiles and budget
    if taken.registers is not None and taken.registers + SPARE > limit and not roles:
        diagnostics.warning(
            "T2C410",
            f"each of {threads} threads holds {taken.registers} registers of tiles, and "
            f"{target.name} has {limit} for each: the rest goes to local memory, which is slow",
            span,
            help="more threads, smaller tiles, or tiles of a narrower type",
        )
    launched = max(prod(entry.threads) for entry in plan.entries)  # roles add a warpgroup, or two
    if taken.local_bytes * 2 > target.max_shared and launched <= SMALL_BLOCK:
        diagnostics.warning(
            "T2C411",
            f"a block of {launched} threads takes {taken.local_bytes} bytes of shared memory, and "
            f"{target.name} has {target.max_shared}: one block at a time, which hides little latency",
            span,
            help="a smaller tile, fewer stages, or more threads",
        )
