"""Lowering for machines without threads: one instruction stream a core, whole tiles at a time.

reads   `ir.forms.Function`        writes  `plan.CoresPlan`
order   check, fixed_extents, tails, stage_globals, (split_tiles,) extents, statements, queues, memory, flags
"""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.ir.forms import Function
from tile2c.transpile.lower.cores.check import check
from tile2c.transpile.lower.cores.cube.roles import has_products
from tile2c.transpile.lower.cores.fixed_extents import fix_extents
from tile2c.transpile.lower.cores.plan import CoresPlan
from tile2c.transpile.lower.cores.planner import make_plan
from tile2c.transpile.lower.cores.printer import print_plan
from tile2c.transpile.lower.cores.tails import cut_loads
from tile2c.transpile.lower.rename import rename_reserved
from tile2c.transpile.targets.cores import CoresTarget

__all__ = ["CoresPlan", "lower", "print_plan"]


def lower(function: Function, target: CoresTarget, diagnostics: Diagnostics) -> CoresPlan | None:
    """The plan of `function`, or None when diagnostics say why there is none.

    Raises InputError for a problem that ends the lowering where it is met.
    """
    function = rename_reserved(function, target.dialect.reserved)
    before = len(diagnostics.items)
    check(function, target, diagnostics)
    if any(item.severity == "error" for item in diagnostics.items[before:]):
        return None
    launches = tuple(cut_loads(fix_extents(launch)) for launch in function.launches)
    function = replace(function, launches=launches)
    if target.cube is not None and has_products(function.launches[0]):
        from tile2c.transpile.lower.cores.cube.kernel import make_product_plan

        return make_product_plan(function, target)
    return make_plan(function, target)
