"""Lines of the header comment: who runs what, and the tensor maps that the host makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import Entry, EntryParam, LaunchPlan, Plan
from tile2c.transpile.lower.simt.hopper.roles import Roles
from tile2c.transpile.lower.simt.hopper.row_copies import CHUNK
from tile2c.transpile.lower.simt.hopper.stay import staying_note
from tile2c.transpile.lower.simt.hopper.warpgroups import THREADS
from tile2c.transpile.render.expressions import CPrinter


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
    return (f"roles    {words}; thread {loader} loads (TMA)", *map(map_note, maps))


def map_note(param: EntryParam, entry: str = "") -> str:
    """What the host makes for a parameter, of one of several entries."""
    assert param.map is not None
    whose = f" of {entry}" if entry else ""
    return f"map      {param.name}{whose}: {param.remark}, {param.map.swizzle} swizzle"


def with_notes_of(clusters: Entry, plan: Plan) -> Plan:
    """The plan with a line for each map of the entry for clusters that differs from the first one's."""
    grid = {staying_note(): staying_note(clusters.name)}
    notes = [grid.get(note, note) for note in plan.notes]
    for param in clusters.params:
        if param.map is None or map_note(param) in notes:
            continue
        theirs = next(x for x in plan.entries[0].params if x.name == param.name)
        notes.insert(notes.index(map_note(theirs)) + 1, map_note(param, clusters.name))
    return replace(plan, notes=tuple(notes))


def with_launch_notes(plan: Plan, printer: CPrinter) -> Plan:
    """The plan with a line for each entry that is launched in another way than the first one."""
    first = plan.entries[0].name
    threads = {entry.name: entry.threads[0] for entry in plan.entries}
    grids = [x.grid for x in plan.launches if x.entry == first and x.cluster is None]
    lines: dict[str, str] = dict.fromkeys((entry.name for entry in plan.entries), "")
    for launch in plan.launches:
        name = launch.entry
        if launch.cluster is not None or lines[name]:
            continue
        if name == first:
            if launch.grid != grids[0]:
                lines[name] = (
                    f"grid {_grid(launch, printer)}, a block a tile: tile2c.json says when"
                )
        elif name == f"{first}_any":
            words = f"grid {_grid(launch, printer)}, {_block(launch, threads[name])}"
            lines[name] = f"{words}; any sizes and addresses, tensors as pointers"
        else:
            words = f"{_block(launch, threads[name])}, a block for {CHUNK} columns of a row"
            lines[name] = f"{words}; tile2c.json says when"
    notes = (f"launch   {name}: {words}" for name, words in lines.items() if words)
    return replace(plan, notes=(*notes, *plan.notes))


def _grid(launch: LaunchPlan, printer: CPrinter) -> str:
    shown = list(launch.grid)
    while len(shown) > 1 and b.known(shown[-1]) == 1:
        shown.pop()
    return f"({', '.join(printer(b.for_host(extent)) for extent in shown)})"


def _block(launch: LaunchPlan, threads: int) -> str:
    size = launch.shared_bytes
    shared = f"{size} bytes of dynamic shared memory" if size else "no dynamic shared memory"
    return f"block {threads}, {shared}"
