"""Lowering of pipelined products for Hopper: one warpgroup loads tiles (TMA), others multiply (wgmma).

reads   `ir.forms.Function` with one launch        writes  `lower.plan.Plan`
order   roles → warpgroups → slabs and tensor maps → consumer's steps → barriers → entry points
A launch that this cannot serve is `Unfit`, with the reason; the ordinary lowering then takes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tile2c.transpile.diagnostics import Diagnostics
    from tile2c.transpile.ir.forms import Function, Launch
    from tile2c.transpile.lower.plan import Plan
    from tile2c.transpile.targets.simt import SimtTarget


def lower_with_roles(
    function: Function, launch: Launch, target: SimtTarget, diagnostics: Diagnostics
) -> Plan | str:
    """The plan; or why the launch takes the ordinary path, "" where it holds no gemm at all."""
    from tile2c.transpile.diagnostics import InputError
    from tile2c.transpile.ir.forms import Gemm
    from tile2c.transpile.lower.simt.hopper.entries import plan_of
    from tile2c.transpile.lower.simt.hopper.roles import Unfit
    from tile2c.transpile.lower.simt.outer_statements import walk

    if not any(isinstance(stmt, Gemm) for stmt in walk(launch.body)):
        return ""
    try:
        return plan_of(function, launch, target, diagnostics)
    except Unfit as reason:
        return str(reason)
    except InputError as problem:  # the ordinary path may do without what is missing here
        return problem.diagnostic.message
