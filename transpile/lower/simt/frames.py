"""Frames: dimensions that parallel loops and reductions tie together get one distribution.

`acc[i, j]`, `m[i]` and a loop over (i, j) form a frame: it is distributed over the threads once, and
each fragment in it is a projection; dimensions a fragment lacks are replicas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from math import prod

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.expr import Buffer, Expr, const
from tile2c.transpile.ir.forms import (
    Parallel,
    Stmt,
)
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.simt.access import vector_width
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.layouts import (
    Digit,
    Layout,
    assemble,
    default_layout,
    spread,
)
from tile2c.transpile.lower.simt.ties import Apart, Classes, Groups, Slot, accessed, tie
from tile2c.transpile.record import record


@record(frozen=False)
class Frames:
    """Result: a layout for every fragment (in the context) and for every loop that needs one."""

    loops: dict[int, Layout] = field(default_factory=dict)  # id of the statement

    def of(self, loop: Parallel) -> Layout | None:
        return self.loops.get(id(loop))


def assign_layouts(ctx: Context, body: Sequence[Stmt], pinned: dict[str, Layout]) -> Frames:
    """Distributes every fragment. `pinned` holds accumulators' layouts, by name.

    reads   tile IR with copies as loops      writes  ctx.layouts, and the loops' layouts
    """
    classes, loops, reduced = tie(body, pinned)
    fragments = {x.name: x for x in ctx.launch.buffers if x.scope == "fragment"}
    frames = Frames()
    for members in _components(classes, fragments, loops):
        _distribute(ctx, classes, members, pinned, reduced, frames)
    return frames


@record(frozen=False)
class _Members:
    fragments: list[Buffer]
    loops: list[tuple[str, Parallel]]


def _components(
    classes: Classes, fragments: dict[str, Buffer], loops: list[tuple[str, Parallel]]
) -> list[_Members]:
    """Fragments and loops that share a class, directly or through others, in order of definition."""
    groups = Groups()
    for name, buffer in fragments.items():
        for dim in range(len(buffer.shape)):
            groups.tie((name, -1), classes.find((name, dim)))
    for name, loop in loops:
        if any(buffer.scope == "fragment" for buffer, _ in accessed(loop)):
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


class _Distribution:
    """Digits of every class of one frame, and the layouts that follow."""

    def __init__(
        self, ctx: Context, classes: Classes, members: _Members, pinned: dict[str, Layout]
    ) -> None:
        self.ctx, self.classes, self.members, self.pinned = ctx, classes, members, pinned
        self.digits: dict[Slot, tuple[Digit, ...]] = {}

    def root(self, name: str, dim: int) -> Slot:
        return self.classes.find((name, dim))

    def pin(self) -> None:
        """Accumulators decide first; two of them have to agree on what they share."""
        for buffer in self.members.fragments:
            layout = self.pinned.get(buffer.name)
            if layout is None:
                continue
            for dim, digits in enumerate(layout.dims):
                held = self.digits.setdefault(self.root(buffer.name, dim), digits)
                if [d.owner() for d in held] != [d.owner() for d in digits]:
                    raise failure(
                        "T2C503",
                        f"{buffer.name} is held by other threads than the fragments it is used with",
                        buffer.span,
                        help="pass one of them through a shared tile, or give the gemms the same "
                        "number of rows (or policy)",
                    )

    def keep(self) -> None:
        """Dimensions that every thread has all of."""
        for root, digits in self.classes.whole.items():
            self.digits.setdefault(self.classes.find(root), digits)

    def fill(self, reduced: set[Slot]) -> None:
        """The other fragments, the largest first; what no fragment has, loops spread themselves."""
        tiles = [(buffer.name, _extents(buffer.shape)) for buffer in self.members.fragments]
        loops = [(name, _extents(loop.extents)) for name, loop in self.members.loops]
        ranks = sorted({_rank(shape) for _, shape in (*tiles, *loops)}, reverse=True)
        for rank in ranks:
            same = [x for x in tiles if _rank(x[1]) == rank]
            same.sort(key=lambda x: (-len(x[1]), -prod(x[1])))
            for name, shape in (*same, *(x for x in loops if _rank(x[1]) == rank)):
                roots = [self.root(name, dim) for dim in range(len(shape))]
                self._assign(roots, shape, reduced)

    def _assign(self, roots: list[Slot], shape: tuple[int, ...], reduced: set[Slot]) -> None:
        open_dims = [dim for dim, root in enumerate(roots) if root not in self.digits]
        if not open_dims:
            return
        width = self._width(roots[-1], shape[-1]) if open_dims[-1] == len(shape) - 1 else 1
        if len(open_dims) == len(shape):
            gone = frozenset(
                dim
                for dim, root in enumerate(roots)
                if any(self.classes.find(slot) == root for slot in reduced)
            )
            layout = default_layout(shape, self.ctx.threads, self.ctx.target.lanes, width, gone)
            for dim, root in enumerate(roots):
                self.digits.setdefault(root, layout.dims[dim])
            return
        for dim in reversed(open_dims):
            dims = [self.digits.get(root, ()) for root in roots]
            free = assemble(dims, shape, self.ctx.threads).free()
            self.digits[roots[dim]] = spread(
                shape[dim], width if dim == len(shape) - 1 else 1, free
            )

    def _width(self, root: Slot, extent: int) -> int:
        """Elements in a thread's vector: what every memory access along this dimension allows."""
        ctx, facts = self.ctx, self.ctx.facts
        width, found = extent, False
        for name, loop in self.members.loops:
            last = len(loop.loop_vars) - 1
            if self.root(name, last) != root:
                continue
            for var, size in zip(loop.loop_vars, loop.extents, strict=True):
                ctx.facts = ctx.facts.with_range(var, const(0), size)
            along = loop.loop_vars[last].name
            accesses = [
                (buffer, index)
                for buffer, index in accessed(loop)
                if buffer.scope in ("global", "shared")
                and any(b.mentions(part, along) for part in index)
            ]
            if accesses:
                found = True
                width = min(width, vector_width(ctx, accesses, along, extent))
            ctx.facts = facts
        return width if found else 1

    def layout(self, name: str, shape: tuple[int, ...], place: Buffer | Parallel) -> Layout:
        """The layout of a fragment or loop from the digits of its dimensions."""
        roots = [self.root(name, dim) for dim in range(len(shape))]
        for held, layout in self.pinned.items():  # loops over accumulators follow their storage
            if roots == [self.root(held, dim) for dim in range(len(layout.dims))]:
                return replace(layout, shape=shape)
        found = assemble([self.digits[root] for root in roots], shape, self.ctx.threads)
        if _overlap(found):
            raise self._apart(place, roots)
        return found

    def _apart(self, place: Buffer | Parallel, roots: list[Slot]) -> Apart:
        """Which use of a fragment to serve through shared memory, so that the rest fits."""
        for _, loop in self.members.loops:
            if isinstance(place, Parallel) and loop is not place:
                continue
            for buffer, index in reversed(accessed(loop)):
                if buffer.scope != "fragment" or (isinstance(place, Buffer) and buffer != place):
                    continue
                own = {self.root(buffer.name, dim) for dim in range(len(buffer.shape))}
                if own & set(roots):
                    return Apart(loop, buffer, index)
        stmt = next(loop for _, loop in self.members.loops)
        buffer = place if isinstance(place, Buffer) else self.members.fragments[0]
        return Apart(stmt, buffer)


def _extents(shape: tuple[Expr, ...]) -> tuple[int, ...]:
    return tuple(b.known(extent) or 1 for extent in shape)


def _rank(shape: tuple[int, ...]) -> int:
    """Dimensions with more than one element."""
    return sum(extent > 1 for extent in shape)


def _overlap(layout: Layout) -> bool:
    """Whether two dimensions are spread over the same part of the thread index."""
    reach = 1
    for _, digit in layout.thread_digits():
        if digit.weight < reach:
            return True
        reach = digit.weight * digit.extent
    return False


def _of_known_type(ctx: Context, layout: Layout, buffer: Buffer) -> Layout:
    """Vector types are those that matrix instructions take: fragments beside them may hold others."""
    word = f"{buffer.dtype.name}x{layout.axes[-1].extent}"
    if layout.element == "vector" and word not in ctx.target.dialect.types:
        return replace(layout, element="array")
    return layout


def _distribute(
    ctx: Context,
    classes: Classes,
    members: _Members,
    pinned: dict[str, Layout],
    reduced: set[Slot],
    frames: Frames,
) -> None:
    distribution = _Distribution(ctx, classes, members, pinned)
    distribution.pin()
    distribution.keep()
    distribution.fill(reduced)
    for buffer in members.fragments:
        shape = tuple(b.known(extent) or 1 for extent in buffer.shape)
        layout = pinned.get(buffer.name) or distribution.layout(buffer.name, shape, buffer)
        ctx.layouts[buffer.name] = _of_known_type(ctx, layout, buffer)
    for name, loop in members.loops:
        shape = tuple(b.known(extent) or 1 for extent in loop.extents)
        frames.loops[id(loop)] = distribution.layout(name, shape, loop)
