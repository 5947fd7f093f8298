"""`--emit plan`: the decisions of a plan with their reasons, for people who review a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import Arc, CStmt, LaunchPlan, Plan, ScalarArg, Sync, TensorArg
from tile2c.transpile.lower.plan_moves import moves
from tile2c.transpile.lower.resources import resources

if TYPE_CHECKING:
    from tile2c.transpile.ir.expr import Expr
    from tile2c.transpile.lower.cores.plan import CoresPlan

Section = tuple[str, list[str]]  # heading, rows

_ARCS = {"RAW": "read after write", "WAR": "write after read", "WAW": "write after write"}


def describe(plan: Plan | CoresPlan, target: str = "") -> str:
    """The plan's tables: arguments, launches, roles, layouts, shared memory, accesses, barriers."""
    if not isinstance(plan, Plan):
        return _cores(plan, target)
    sections: list[Section] = [
        ("arguments", [_argument(arg) for arg in plan.args]),
        ("sizes that a call finds from shapes", [", ".join(size.name for size in plan.sizes)]),
        ("launches: of a group the first whose condition holds", _launches(plan)),
        ("every call needs", list(plan.requires)),
        (
            "decisions: warps, roles, stages",
            [f"{c.name} = {c.value}: {c.reason}" for c in plan.choices],
        ),
        (
            f"registers: who holds which element (arrays fill {resources(plan).registers} a thread)",
            [f"{name}: {words}" for name, words in plan.layouts],
        ),
        (f"shared memory: {resources(plan).local_bytes} bytes of a block", _shared(plan)),
        ("accesses of memory, by statement", moves(plan)),
        ("barriers, and what each orders", _barriers(plan)),
        (
            "dependences that only could not be disproved",
            [str(plan.unproven)] if plan.unproven else [],
        ),
    ]
    return _page(plan.name, plan.summary, target, sections)


def _page(name: str, summary: str, target: str, sections: list[Section]) -> str:
    title = f"plan of {name}" + (f" for {target}" if target else "")
    lines = [f"{title}: {summary}" if summary else title]
    for heading, rows in sections:
        if any(rows):
            lines += ["", heading, *(f"    {row}" for row in rows)]
    return "\n".join(lines) + "\n"


def _cores(plan: CoresPlan, target: str) -> str:
    """The same for a machine without threads; its steps tell which unit does what, and what waits."""
    from tile2c.transpile.lower.cores.plan import ScalarParam
    from tile2c.transpile.lower.cores.printer import print_plan

    steps = print_plan(plan).rstrip("\n").split("\n")
    start = next(index for index, line in enumerate(steps) if line.startswith("  for each block"))
    tiles = [
        f"{t.name}: {t.bytes * t.depth} bytes, {t.depth} x {t.rows} x {t.columns} {t.dtype}, "
        + {"in": "queue of loads", "out": "queue of stores", "work": "one buffer"}[t.place]
        + (f"; {t.purpose}" if t.purpose else "")
        for t in plan.tiles
    ]
    sections: list[Section] = [
        (
            "arguments",
            [
                f"{p.name}: {p.dtype}, {p.kind}"
                if isinstance(p, ScalarParam)
                else f"{p.name}: {p.dtype} [{', '.join(map(_host, p.shape))}], {p.role}"
                for p in plan.params
            ],
        ),
        ("launch", [f"cores: {_host(plan.grid)}"]),
        ("decisions", [f"{c.name} = {c.value}: {c.reason}" for c in plan.choices]),
        (f"local memory: {plan.local_bytes} bytes of a core", tiles),
        ("steps and what orders them", [line.removeprefix("  ") for line in steps[start:]]),
        (
            "orders kept because a dependence could not be disproved",
            [str(plan.unproven)] if plan.unproven else [],
        ),
    ]
    return _page(plan.name, plan.summary, target, sections)


def _argument(arg: TensorArg | ScalarArg) -> str:
    if isinstance(arg, ScalarArg):
        return f"{arg.name}: {arg.dtype}"
    return f"{arg.name}: {arg.dtype} [{', '.join(map(_host, arg.shape))}], {arg.role}"


def _host(expr: Expr) -> str:
    """An expression over sizes as the manifest spells it."""
    from tile2c.transpile import targets
    from tile2c.transpile.render.expressions import CPrinter
    from tile2c.transpile.targets.simt import SimtTarget

    target = targets.find("cuda")
    assert isinstance(target, SimtTarget)
    return CPrinter(target.dialect)(b.for_host(expr))


def _launches(plan: Plan) -> list[str]:
    return [line for launch in plan.launches for line in _launch(launch)]


def _launch(launch: LaunchPlan) -> list[str]:
    """The launch, and below it when it is taken."""
    grid = ", ".join(_host(extent) for extent in launch.grid)
    block = " x ".join(str(extent) for extent in launch.block if extent > 1) or "1"
    dynamic = f"{launch.shared_bytes} bytes" if launch.shared_bytes else "no"
    cluster = f", clusters of {launch.cluster}" if launch.cluster else ""
    words = f"grid ({grid}), block {block}{cluster}, {dynamic} dynamic shared memory"
    lines = [f"group {launch.group}: {launch.entry}, {words}"]
    return [*lines, f"    when {launch.when}"] if launch.when else lines


def _shared(plan: Plan) -> list[str]:
    """One line an array, in columns: where it lies if that is known, its bytes, its layout."""
    width = max((len(placed.name) for placed in plan.placed), default=0)
    rows = []
    for placed in plan.placed:
        at = "" if placed.offset is None else f"at {placed.offset:6}  "
        copies = f"{placed.versions} x {placed.bytes // placed.versions}"
        size = copies if placed.versions > 1 else str(placed.bytes)
        rows.append(f"{at}{placed.name:{width}}  {size} bytes, {placed.layout}")
    return rows


def _barriers(plan: Plan) -> list[str]:
    """Each barrier with the dependences it orders."""
    found: list[str] = []
    bodies = [body.body for body in plan.bodies] + [entry.body for entry in plan.entries]
    for sync in (s for body in bodies for stmt in body for s in _syncs(stmt)):
        kind = "the author's own" if sync.kind == "author" else sync.kind
        found.append(f"{kind}: {sync.remark}" if sync.remark else kind)
        found += [f"    {_arc(arc)}" for arc in sync.arcs]
    return found


def _syncs(stmt: CStmt) -> list[Sync]:
    if isinstance(stmt, Sync):
        return [stmt]
    inner = [*getattr(stmt, "body", ()), *getattr(stmt, "then", ()), *getattr(stmt, "orelse", ())]
    return [sync for part in inner for sync in _syncs(part)]


def _arc(arc: Arc) -> str:
    carried = f", {arc.distance} rounds of {arc.loop} later" if arc.loop else ""
    if arc.distance == 1:
        carried = carried.replace("1 rounds", "1 round")
    doubt = "" if arc.proven else ", not disproved"
    when = arc.witness if arc.witness == "always" else f"when {arc.witness}"
    kind = f"{_ARCS[arc.kind]} of {arc.buffer}"
    return f"{kind}: `{arc.source}`, then `{arc.sink}`{carried} (bites {when}{doubt})"
