"""Dynamic shared memory of a launch that its author schedules: his tiles, then his barriers."""

from __future__ import annotations

from math import prod

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Buffer, Expr, const
from tile2c.transpile.ir.forms import Barriers
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import (
    Branch,
    CStmt,
    Element,
    Loop,
    Placed,
    Section,
    Sync,
)
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper.by_hand.tiles import Tile
from tile2c.transpile.lower.simt.hopper.calls import do
from tile2c.transpile.lower.simt.hopper.struct import SharedStruct, reference


def declare(
    ctx: Context, tiles: dict[str, Tile], used: list[Buffer], barriers: tuple[Barriers, ...]
) -> tuple[list[CStmt], list[Placed], int]:
    """The struct as a helper of the text, its members as names, and its size; raises InputError."""
    struct = SharedStruct(ctx)
    in_order = sorted(used, key=lambda x: x.name not in tiles or tiles[x.name].slabs is None)
    for buffer in in_order:
        tile = tiles.get(buffer.name, Tile(buffer=buffer, slabs=None))
        layout = ctx.shared.get(buffer.name)
        dims, words = tile.dims, "row-major"
        if layout is not None and layout.pad and tile.slabs is None:
            dims = (*dims[:-1], b.add(dims[-1], const(layout.pad)))
            words = f"rows with {layout.pad} elements more, which spread them over the banks"
        elif layout is not None and layout.function:
            row = "r" if layout.divide == 1 else f"r / {layout.divide}"
            words = f"chunk c of row r at c ^ ({row} % {layout.modulus})"
        size = prod(b.known(extent) or 1 for extent in dims) * buffer.dtype.bytes
        if tile.slabs is not None:
            struct.slabs(buffer.name, buffer.dtype, tile.slabs, dims, size)
        else:
            struct.array(buffer.name, buffer.dtype, dims, size, words)
    struct.own_arrays()
    for group in barriers:
        name = group.buffer.name
        text = name if group.single else f"{name}[{struct.printer(group.buffer.shape[0])}]"
        member = f"unsigned long long {text};  // {_arrivals(group)}"
        struct.barriers([name], len(group.counts), "mbarriers", [member])
    total = struct.size(struct.period)
    if total > ctx.target.max_shared:
        largest = max(struct.placed, key=lambda entry: entry.bytes)
        raise failure(
            "T2C401",
            f"the block's shared tiles take {total} bytes, and {ctx.target.name} has "
            f"{ctx.target.max_shared} a block; {largest.name} alone takes {largest.bytes}",
            ctx.launch.span,
            help="try a smaller tile or fewer stages",
        )
    if not struct.names:
        return [], [], 0
    name = ctx.namer.ours("Shared", "SharedTiles")
    raw = ctx.namer.ours("shared_bytes", "shared_memory")
    struct.need(name, raw)
    members = f"[{', '.join(struct.names)}]"
    whole = reference("auto&", members, f"*reinterpret_cast<{name}*>({raw})")
    return [whole], struct.placed, total


def _arrivals(group: Barriers) -> str:
    """What ends a phase of these barriers."""
    several = len(group.counts) > 1
    what = "mbarriers" if several else "mbarrier"
    counts = set(group.counts)
    if len(counts) == 1:
        count = group.counts[0]
        return f"{what}: {count} arrival{'s' * (count != 1)} end a phase"
    return f"{what}: {', '.join(map(str, group.counts))} arrivals end a phase"


def initialise(ctx: Context, barriers: tuple[Barriers, ...], *, cluster: bool) -> list[CStmt]:
    """One thread makes the barriers; then they are ready for everyone."""
    if not barriers:
        return []
    for name in ("shared_addr", "barrier_init", "barriers_visible"):
        ctx.need(name)
    lines: list[CStmt] = []
    for group in barriers:
        name = group.buffer.name
        if group.single:
            lines.append(do("barrier_init", b.local(name), const(group.counts[0])))
            continue
        if len(set(group.counts)) == 1:
            at = ctx.namer.ours("slot", "barrier_slot")
            ctx.namer.release(at)
            made = do("barrier_init", _element(name, b.local(at)), const(group.counts[0]))
            stop = group.buffer.shape[0]
            lines.append(
                Loop(var=at, start=const(0), stop=stop, step=const(1), body=(made,), dtype=INT32)
            )
            continue
        lines += [
            do("barrier_init", _element(name, const(slot)), const(count))
            for slot, count in enumerate(group.counts)
        ]
    first = b.compare("==", b.local("threadIdx.x"), const(0))
    everyone = "the barriers are ready for everyone"
    meet: list[CStmt] = [Sync(kind="barrier", remark=everyone)]
    if cluster:
        for name in ("cluster_arrive", "cluster_wait"):
            ctx.need(name)
        meet = [do("cluster_arrive"), do("cluster_wait", remark=f"{everyone} in the cluster")]
    branch = Branch(condition=first, then=(*lines, do("barriers_visible")))
    return [Section(body=(branch, *meet))]


def _element(name: str, slot: Expr) -> Element:
    return Element(dtype=INT32, array=name, subscripts=(slot,))
