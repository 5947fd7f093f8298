"""Launches that their author schedules by hand: his barriers, copies, products and roles, one to one.

reads   `ir.forms.Function` with one launch        writes  `lower.plan.Plan`
order   teams and products → fragments → tiles that TMA and wgmma share → steps → barriers that the
        language implies within a team → shared memory → entry point
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tile2c.transpile.diagnostics import Diagnostics
    from tile2c.transpile.ir.forms import Function, Launch
    from tile2c.transpile.lower.plan import Plan
    from tile2c.transpile.targets.simt import SimtTarget


def lower_by_hand(
    function: Function,
    launch: Launch,
    target: SimtTarget,
    diagnostics: Diagnostics,
    taken: frozenset[str] = frozenset(),
    *,
    only_used: bool = False,
) -> Plan:
    """The plan; raises InputError for what cannot be done as the author says.

    `taken`: names of the text's other launches; `only_used`: they have the other parameters.
    """
    from tile2c.transpile.lower.simt.hopper.by_hand.launch import plan_of

    return plan_of(function, launch, target, diagnostics, taken, only_used=only_used)
