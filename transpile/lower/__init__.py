"""Lowering: the tile IR becomes a plan for one target.

reads   `ir.forms.Function`        writes  `lower.plan.Plan` (threads) or `lower.cores.plan` (NPUs)
All decisions are taken here; rendering only lays out text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tile2c.transpile.diagnostics import Diagnostics
    from tile2c.transpile.ir.forms import Function
    from tile2c.transpile.lower.cores.plan import CoresPlan
    from tile2c.transpile.lower.plan import Plan
    from tile2c.transpile.targets import Target


__all__ = ["lower", "print_plan"]


def print_plan(plan: Plan | CoresPlan, target: str = "") -> str:
    """`--emit plan`: the decisions of a plan, in words."""
    from tile2c.transpile.lower.describe_plan import describe

    return describe(plan, target)


def lower(function: Function, target: Target, diagnostics: Diagnostics) -> Plan | CoresPlan | None:
    """The plan of `function` for `target`, or None when a diagnostic says why there is none."""
    from tile2c.transpile.diagnostics import InputError
    from tile2c.transpile.lower.by_hand import settle
    from tile2c.transpile.lower.dead_loops import drop_dead_loops

    try:
        function = settle(drop_dead_loops(function), target)
    except InputError as problem:
        diagnostics.add(problem.diagnostic)
        return None
    if target.planner == "cores":
        from tile2c.transpile.lower import cores
        from tile2c.transpile.targets.cores import CoresTarget

        assert isinstance(target, CoresTarget)
        return cores.lower(function, target, diagnostics)
    from tile2c.transpile.lower import simt
    from tile2c.transpile.targets.simt import SimtTarget

    assert isinstance(target, SimtTarget)
    return simt.lower(function, target, diagnostics)
