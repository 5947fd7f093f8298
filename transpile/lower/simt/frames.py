"""Frames: dimensions that parallel loops and reductions tie together get one distribution.

`acc[i, j]`, `m[i]` and a loop over (i, j) form a frame: it is distributed over the threads once, and
each fragment in it is a projection; dimensions a fragment lacks are replicas.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.expr import Buffer, Expr, Var, const
from tile2c.transpile.ir.forms import For, Gemm, If, Parallel, Pipelined, Reduce, Stmt, While
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.simt.access import all_loads, all_stores, vector_width
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.layouts import Layout, default_layout, project

Slot = tuple[str, int]  # ("x", dimension) or ("loop 3", dimension)


@dataclass(slots=True)
class Frames:
    """Result: a layout for every fragment (in the context) and for every loop that needs one."""

    loops: dict[int, Layout] = field(default_factory=dict)  # id of the statement

    def of(self, loop: Parallel) -> Layout | None:
        return self.loops.get(id(loop))


class _Classes:
    """Union-find over slots."""

    def __init__(self) -> None:
        self.parent: dict[Slot, Slot] = {}

    def find(self, slot: Slot) -> Slot:
        self.parent.setdefault(slot, slot)
        while self.parent[slot] != slot:
            slot = self.parent[slot]
        return slot

    def tie(self, a: Slot, c: Slot) -> None:
        self.parent[self.find(a)] = self.find(c)


def walk(body: Sequence[Stmt]) -> Iterator[Stmt]:
    """Statements and those inside them, but not the bodies of parallel loops."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, For | Pipelined | While):
            yield from walk(stmt.body)
        elif isinstance(stmt, If):
            yield from walk(stmt.then)
            yield from walk(stmt.orelse)


def assign_layouts(ctx: Context, body: Sequence[Stmt], pinned: dict[str, Layout]) -> Frames:
    """Distributes every fragment. `pinned` holds accumulators' layouts, by name.

    reads   tile IR with copies as loops      writes  ctx.layouts, and the loops' layouts
    """
    classes = _Classes()
    loops: list[tuple[str, Parallel]] = []
    reduced: set[Slot] = set()
    fragments = {x.name: x for x in ctx.launch.buffers if x.scope == "fragment"}
    for number, stmt in enumerate(walk(body)):
        if isinstance(stmt, Parallel):
            loops.append((f"loop {number}", stmt))
            _tie_loop(classes, f"loop {number}", stmt)
        elif isinstance(stmt, Reduce):
            _tie_reduction(classes, stmt, reduced)
    frames = Frames()
    for members in _components(classes, fragments, loops):
        _distribute(ctx, classes, members, pinned, reduced, frames)
    return frames


def _accessed(loop: Parallel) -> list[tuple[Buffer, tuple[Expr, ...]]]:
    return [*((x.buffer, x.index) for x in all_loads(loop.body)), *all_stores(loop.body)]


def _tie_loop(classes: _Classes, name: str, loop: Parallel) -> None:
    positions = {var.name: place for place, var in enumerate(loop.loop_vars)}
    for buffer, index in _accessed(loop):
        if buffer.scope != "fragment":
            continue
        for dim, part in enumerate(index):
            if isinstance(part, Var) and part.name in positions:
                classes.tie((buffer.name, dim), (name, positions[part.name]))


def _tie_reduction(classes: _Classes, stmt: Reduce, reduced: set[Slot]) -> None:
    src, dst = stmt.src.buffer, stmt.dst.buffer
    dims = [k for k, part in enumerate(stmt.src.ranges) if not part.point]
    gone = dims[stmt.dim]
    if src.scope == "fragment":
        reduced.add((src.name, gone))
    rest = [dim for dim in dims if dim != gone]
    own = [k for k, part in enumerate(stmt.dst.ranges) if not part.point]
    if len(own) == len(dims):  # kept as 1
        own = [k for position, k in enumerate(own) if position != stmt.dim]
    if src.scope == "fragment" and dst.scope == "fragment":
        for one, other in zip(rest, own, strict=False):
            classes.tie((src.name, one), (dst.name, other))


@dataclass(slots=True)
class _Members:
    fragments: list[Buffer]
    loops: list[tuple[str, Parallel]]


def _components(
    classes: _Classes, fragments: dict[str, Buffer], loops: list[tuple[str, Parallel]]
) -> list[_Members]:
    """Fragments and loops that share a class, directly or through others, in order of definition."""
    groups = _Classes()
    for name, buffer in fragments.items():
        for dim in range(len(buffer.shape)):
            groups.tie((name, -1), classes.find((name, dim)))
    for name, loop in loops:
        if any(buffer.scope == "fragment" for buffer, _ in _accessed(loop)):
            for dim in range(len(loop.loop_vars)):
                groups.tie((name, -1), classes.find((name, dim)))
    found: dict[Slot, _Members] = {}
    for name, buffer in fragments.items():
        found.setdefault(groups.find((name, -1)), _Members([], [])).fragments.append(buffer)
    for name, loop in loops:
        root = groups.find((name, -1))
        if root in found:
            found[root].loops.append((name, loop))
    return list(found.values())


def _distribute(
    ctx: Context,
    classes: _Classes,
    members: _Members,
    pinned: dict[str, Layout],
    reduced: set[Slot],
    frames: Frames,
) -> None:
    primary = _primary(members, pinned)
    basis = [classes.find((primary.name, dim)) for dim in range(len(primary.shape))]
    if primary.name in pinned:
        layout = pinned[primary.name]
    else:
        shape = tuple(b.known(extent) or 1 for extent in primary.shape)
        gone = frozenset(
            dim
            for dim, root in enumerate(basis)
            if any(classes.find(slot) == root for slot in reduced)
        )
        width = _width(ctx, classes, members, basis, shape[-1])
        layout = default_layout(shape, ctx.threads, ctx.target.lanes, width, gone)
    for buffer in members.fragments:
        if buffer.name in pinned:
            ctx.layouts[buffer.name] = pinned[buffer.name]
            continue
        keep = [
            _place(classes, basis, (buffer.name, dim), buffer) for dim in range(len(buffer.shape))
        ]
        shape = tuple(b.known(extent) or 1 for extent in buffer.shape)
        ctx.layouts[buffer.name] = layout if buffer is primary else project(layout, keep, shape)
    for name, loop in members.loops:
        places = [
            _loop_place(classes, basis, (name, dim), loop) for dim in range(len(loop.loop_vars))
        ]
        extents = tuple(b.known(extent) for extent in loop.extents)
        if any(extent is None for extent in extents):
            raise failure(
                "T2C504", "a loop over fragments needs extents known at build time", loop.span
            )
        shape = tuple(extent or 1 for extent in extents)
        frames.loops[id(loop)] = (
            _reshaped(layout, shape)
            if places == list(range(len(basis)))
            else project(layout, places, shape)
        )


def _reshaped(layout: Layout, shape: tuple[int, ...]) -> Layout:
    return Layout(shape, layout.dims, layout.threads, layout.axes, layout.element)


def _primary(members: _Members, pinned: dict[str, Layout]) -> Buffer:
    """The fragment that decides: an accumulator, else the one with most dimensions and elements."""
    held = [buffer for buffer in members.fragments if buffer.name in pinned]
    if held:
        return held[0]
    return max(
        members.fragments,
        key=lambda x: (len(x.shape), prod(b.known(extent) or 1 for extent in x.shape)),
    )


def _place(classes: _Classes, basis: list[Slot], slot: Slot, buffer: Buffer) -> int:
    root = classes.find(slot)
    if root not in basis:
        raise failure(
            "T2C503",
            f"{buffer.name} is used with loop variables of tiles that have different shapes",
            buffer.span,
            help="give the fragments of one loop dimensions that its loop variables share",
        )
    return basis.index(root)


def _loop_place(classes: _Classes, basis: list[Slot], slot: Slot, loop: Parallel) -> int:
    root = classes.find(slot)
    if root in basis:
        return basis.index(root)
    raise failure(
        "T2C503",
        f"`{loop.loop_vars[slot[1]].name}` indexes no dimension of the tile this loop works on",
        loop.span,
        help="index a fragment with every loop variable, or use T.serial for this one",
    )


def _width(
    ctx: Context, classes: _Classes, members: _Members, basis: list[Slot], extent: int
) -> int:
    """Elements in a thread's vector: what every memory access along the last dimension allows."""
    facts, width, found = ctx.facts, extent, False
    for name, loop in members.loops:
        last = len(loop.loop_vars) - 1
        if classes.find((name, last)) != basis[-1]:
            continue
        for var, size in zip(loop.loop_vars, loop.extents, strict=True):
            ctx.facts = ctx.facts.with_range(var, const(0), size)
        accesses = [x for x in _accessed(loop) if x[0].scope in ("global", "shared")]
        if accesses:
            found = True
            width = min(width, vector_width(ctx, accesses, loop.loop_vars[last].name, extent))
        ctx.facts = facts
    return width if found else 1


def gemms(body: Sequence[Stmt]) -> list[Gemm]:
    """Every gemm of the block, in order."""
    return [stmt for stmt in walk(body) if isinstance(stmt, Gemm)]
