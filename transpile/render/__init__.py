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


def render(
    plan: Plan | CoresPlan,
    target: Target,
    kernel: NormalKernel,
    *,
    several: bool = False,
    line_info: bool = False,
    again: str = "",
) -> GeneratedKernel:
    """The finished text and manifest entry of one kernel for one target.

    `several`: the run names several targets, so exported symbols end in the architecture.
    `line_info`: `#line` directives lead compilers and profilers to the tile program. `again` is the
    command that makes the text, for its head.
    """
    if target.planner == "cores":
        from tile2c.transpile.lower.cores.plan import CoresPlan
        from tile2c.transpile.render import cores
        from tile2c.transpile.targets.cores import CoresTarget

        assert isinstance(plan, CoresPlan) and isinstance(target, CoresTarget)
        return cores.render(plan, target, kernel, several=several, line_info=line_info, again=again)
    from tile2c.transpile.lower.plan import Plan
    from tile2c.transpile.render import simt

    assert isinstance(plan, Plan)
    return simt.render(plan, target, kernel, several=several, line_info=line_info, again=again)
