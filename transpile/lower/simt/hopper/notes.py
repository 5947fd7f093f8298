"""Lines of the header comment: who runs what, and the tensor maps that the host makes."""

from __future__ import annotations

from collections.abc import Sequence

from tile2c.transpile.lower.plan import EntryParam
from tile2c.transpile.lower.simt.hopper.roles import Roles
from tile2c.transpile.lower.simt.hopper.warpgroups import THREADS


def role_notes(roles: Roles, maps: Sequence[EntryParam]) -> tuple[str, ...]:
    """`roles …`, then one line a map."""
    loader = roles.groups * THREADS
    plan = next(iter(roles.products.values()))
    part = f"{64 * plan.tiles_m} x {plan.n}{' of the transpose' if plan.swapped else ''}"
    who = (
        f"{roles.groups} warpgroups multiply {part} each"
        if roles.groups > 1
        else f"multiply {part}"
    )
    words = f"threads 0 to {loader - 1}{':' if roles.groups > 1 else ''} {who} (wgmma)"
    lines = [f"roles    {words}; thread {loader} loads (TMA)"]
    for param in maps:
        assert param.map is not None
        lines.append(f"map      {param.name}: {param.remark}, {param.map.swizzle} swizzle")
    return tuple(lines)
