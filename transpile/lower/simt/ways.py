"""Which way each launch of a function is lowered: by its author's roles, by planned ones, or ordinarily."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.expr import Expr
from tile2c.transpile.ir.forms import Function, Launch
from tile2c.transpile.lower.by_hand import by_hand
from tile2c.transpile.lower.plan import Plan
from tile2c.transpile.lower.rename import rename_reserved
from tile2c.transpile.lower.simt.kernel import LoweredLaunch, NoRoomForRows, SharedNames
from tile2c.transpile.lower.simt.launches import lower_launches
from tile2c.transpile.targets.simt import SimtTarget


def lower_function(function: Function, target: SimtTarget, diagnostics: Diagnostics) -> Plan:
    """The plan of a function; problems the user can mend are raised as InputError."""
    from tile2c.transpile.render.expressions import CPrinter

    function = rename_reserved(function, target.dialect.reserved)
    names = SharedNames()
    several = len(function.launches) > 1

    def one(single: Function, launch: Launch, before: Sequence[Plan]) -> Plan:
        return _lower_launch(single, launch, target, diagnostics, names, before, several)

    return lower_launches(function, one, CPrinter(target.dialect))


def _lower_launch(
    function: Function,
    launch: Launch,
    target: SimtTarget,
    diagnostics: Diagnostics,
    names: SharedNames,
    before: Sequence[Plan],
    several: bool,
) -> Plan:
    """The plan of a function with this one launch; `before` are those of the text's other launches."""
    if launch.threads[0] * launch.threads[1] * launch.threads[2] > target.max_threads:
        raise failure(
            "T2C402", f"{target.name} has at most {target.max_threads} threads a block", launch.span
        )
    taken = frozenset(
        str(dict(helper.fields)["name"])
        for plan in before
        for helper in plan.helpers
        if helper.template in ("shared_struct", "swizzle", "row_groups")
    )

    if target.warpgroup_matrix and by_hand(launch):
        from tile2c.transpile.lower.simt.hopper.by_hand import lower_by_hand

        return lower_by_hand(function, launch, target, diagnostics, taken, only_used=several)
    reason = ""
    scratch = any(buffer.scope == "global" for buffer in launch.buffers)
    if target.warpgroup_matrix and not before and not scratch:
        from tile2c.transpile.lower.simt.hopper import lower_with_roles

        found = lower_with_roles(function, launch, target, diagnostics)
        if isinstance(found, Plan):
            return found
        reason = found

    def lowered(in_rows: bool, pitches: dict[Expr, int] | None = None) -> LoweredLaunch:
        found = LoweredLaunch(
            function, launch, target, diagnostics, variant=pitches is not None, pitches=pitches,
            taken=taken, names=names.copy(), only_used=several, in_rows=in_rows,
        )  # fmt: skip
        if pitches is None and found.ctx.wants_variant:
            return lowered(in_rows, found.ctx.aligned_pitches)
        return found

    known = len(diagnostics.items)
    try:
        found_one = lowered(in_rows=True)
    except NoRoomForRows:
        del diagnostics.items[known:]
        found_one = lowered(in_rows=False)
    plan = found_one.plan()
    names.add(found_one.names)  # an attempt that was given up leaves none
    return replace(plan, notes=(*plan.notes, f"path     mma.sync: {reason}")) if reason else plan
