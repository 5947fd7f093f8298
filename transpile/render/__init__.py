"""Rendering: the plan becomes text, statement by statement, through the templates of its target.

reads   `lower.plan.Plan` (or the NPU plan)        writes  `output.generated.GeneratedKernel`
Nothing is decided here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tile2c.transpile.lower.cores.plan import CoresPlan
    from tile2c.transpile.lower.plan import Plan
    from tile2c.transpile.output.generated import GeneratedKernel
    from tile2c.transpile.stage import NormalKernel
    from tile2c.transpile.targets import Target


def render(plan: Plan | CoresPlan, target: Target, kernel: NormalKernel) -> GeneratedKernel:
    """The finished text and manifest entry of one kernel for one target."""
    if target.planner == "cores":
        from tile2c.transpile.lower.cores.plan import CoresPlan
        from tile2c.transpile.render import cores

        assert isinstance(plan, CoresPlan)
        return cores.render(plan, target, kernel)
    from tile2c.transpile.lower.plan import Plan
    from tile2c.transpile.render import simt

    assert isinstance(plan, Plan)
    return simt.render(plan, target, kernel)
