"""Lowering for machines with threads.

reads   `ir.forms.Function`        writes  `lower.plan.Plan`
order   rename → gemms and warps → pinned layouts → shared layouts → leading fills → frames → steps →
        barriers → shared memory map → entries
"""

from __future__ import annotations

from tile2c.transpile.diagnostics import Diagnostics, InputError
from tile2c.transpile.ir.forms import Function
from tile2c.transpile.lower.plan import Plan
from tile2c.transpile.targets.simt import SimtTarget


def lower(function: Function, target: SimtTarget, diagnostics: Diagnostics) -> Plan | None:
    """The plan, or None when a diagnostic says why there is none."""
    from tile2c.transpile.lower.simt.kernel import lower_function

    try:
        return lower_function(function, target, diagnostics)
    except InputError as problem:
        diagnostics.add(problem.diagnostic)
        return None
