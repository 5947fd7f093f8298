"""`--emit plan`: the decisions of a plan with their reasons, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile2c.transpile.lower.plan import Arc, CStmt, Plan, Sync

if TYPE_CHECKING:
    from tile2c.transpile.lower.cores.plan import CoresPlan


def print_plan(plan: Plan | CoresPlan) -> str:
    """The plan's tables: arguments, launches, layouts, shared-memory map, choices, barriers."""
    if not isinstance(plan, Plan):
        from tile2c.transpile.lower.cores.printer import print_plan as print_cores

        return print_cores(plan)
    sections = [
        ("arguments", [f"{arg.name}: {arg.dtype}" for arg in plan.args]),
        ("sizes", [size.name for size in plan.sizes]),
        ("launches", [_launch(launch) for launch in plan.launches]),
        ("every call needs", list(plan.requires)),
        ("layouts (who holds what)", [f"{name}: {words}" for name, words in plan.layouts]),
        (
            "shared memory",
            [
                f"{p.name}: {p.bytes} bytes, {p.versions} "
                f"{'copies' if p.versions > 1 else 'copy'}, {p.layout}"
                for p in plan.placed
            ],
        ),
        ("choices", [f"{c.name} = {c.value}: {c.reason}" for c in plan.choices]),
        ("barriers", _barriers(plan)),
        (
            "dependences that only could not be disproved",
            [str(plan.unproven)] if plan.unproven else [],
        ),
    ]
    lines = [f"plan of {plan.name}"]
    for title, rows in sections:
        if rows:
            lines += ["", title, *(f"    {row}" for row in rows)]
    return "\n".join(lines) + "\n"


def _launch(launch: object) -> str:
    from tile2c.transpile.lower.plan import LaunchPlan

    assert isinstance(launch, LaunchPlan)
    when = f" when {launch.when}" if launch.when else ""
    return (
        f"group {launch.group}: {launch.entry}{when}, block {launch.block}, "
        f"{launch.shared_bytes} bytes of dynamic shared memory"
    )


def _barriers(plan: Plan) -> list[str]:
    """Each barrier with the dependences it orders."""
    found: list[str] = []
    bodies = [body.body for body in plan.bodies] + [entry.body for entry in plan.entries]
    for sync in (s for body in bodies for stmt in body for s in _syncs(stmt)):
        found.append(f"{sync.kind}: {sync.remark}")
        found += [f"    {_arc(arc)}" for arc in sync.arcs]
    return found


def _syncs(stmt: CStmt) -> list[Sync]:
    if isinstance(stmt, Sync):
        return [stmt]
    inner = [*getattr(stmt, "body", ()), *getattr(stmt, "then", ()), *getattr(stmt, "orelse", ())]
    return [sync for part in inner for sync in _syncs(part)]


def _arc(arc: Arc) -> str:
    carried = f", carried by {arc.loop} over {arc.distance}" if arc.loop else ""
    doubt = "" if arc.proven else ", not disproved"
    when = arc.witness if arc.witness == "always" else f"when {arc.witness}"
    return f"{arc.kind} {arc.buffer}: `{arc.source}` -> `{arc.sink}`{carried} (bites {when}{doubt})"
