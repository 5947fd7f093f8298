"""Frames: dimensions that parallel loops and reductions tie together get one distribution.

`acc[i, j]`, `m[i]` and a loop over (i, j) form a frame: it is distributed over the threads once, and
each fragment in it is a projection; dimensions a fragment lacks are replicas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from math import prod

from tile2c.transpile.diagnostics import InputError
from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.expr import Buffer, Expr, Var, const
from tile2c.transpile.ir.forms import (
    For,
    Gemm,
    If,
    Parallel,
    Pipelined,
    Reduce,
    Scan,
    Stmt,
    Store,
    While,
)
from tile2c.transpile.ir.walk import expressions, loads
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.simt.access import all_loads, all_stores, vector_width
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.layouts import (
    Digit,
    Layout,
    assemble,
    default_layout,
    spread,
)
from tile2c.transpile.record import record

_MOST_KEPT = 64  # elements of a fragment that every thread keeps, for indices that are not spread

Slot = tuple[str, int]  # ("x", dimension) or ("loop 3", dimension)


@record(frozen=False)
class Frames:
    """Result: a layout for every fragment (in the context) and for every loop that needs one."""

    loops: dict[int, Layout] = field(default_factory=dict)  # id of the statement

    def of(self, loop: Parallel) -> Layout | None:
        return self.loops.get(id(loop))


class _Groups:
    """Union-find over slots."""

    def __init__(self) -> None:
        self.parent: dict[Slot, Slot] = {}

    def find(self, slot: Slot) -> Slot:
        self.parent.setdefault(slot, slot)
        while self.parent[slot] != slot:
            slot = self.parent[slot]
        return slot

    def tie(self, a: Slot, c: Slot) -> bool:
        self.parent[self.find(a)] = self.find(c)
        return True


class _Classes(_Groups):
    """Slots that are distributed alike. No two dimensions of one tile or loop can be; nor can slots
    that matrix instructions have given to different threads."""

    def __init__(self, pinned: Mapping[str, Layout] | None = None) -> None:
        super().__init__()
        self.members: dict[Slot, set[str]] = {}
        self.held: dict[Slot, list[tuple[str, int, int]]] = {}
        self.whole: dict[Slot, tuple[Digit, ...]] = {}  # classes of which each thread has all
        for name, layout in (pinned or {}).items():
            for dim, digits in enumerate(layout.dims):
                self.held[(name, dim)] = [digit.owner() for digit in digits]

    def tie(self, a: Slot, c: Slot) -> bool:
        """Joins two classes; False, and nothing done, where that cannot be."""
        first, second = self.find(a), self.find(c)
        if first == second:
            return True
        names = self.members.get(first, {first[0]}), self.members.get(second, {second[0]})
        if names[0] & names[1]:
            return False
        owners = self.held.get(first), self.held.get(second)
        if owners[0] is not None and owners[1] is not None and owners[0] != owners[1]:
            return False
        self.parent[first] = second
        self.members[second] = names[0] | names[1]
        if owners[0] is not None:
            self.held[second] = owners[0]
        if first in self.whole:
            self.whole[second] = self.whole[first]
        return True

    def keep(self, slot: Slot, extent: int) -> bool:
        """Every thread gets all elements along the slot; False where others have decided on it."""
        root = self.find(slot)
        whole = _kept(extent)
        owners = [digit.owner() for digit in whole]
        if self.held.setdefault(root, owners) != owners:
            return False
        self.whole[root] = whole
        return True


def _kept(extent: int) -> tuple[Digit, ...]:
    return (Digit("value", extent, 1, "k"),) if extent > 1 else ()


class Apart(InputError):
    """A statement asks for elements of a fragment that its threads do not hold.

    `index` is None where the whole fragment is meant.
    """

    def __init__(self, stmt: Stmt, buffer: Buffer, index: tuple[Expr, ...] | None = None) -> None:
        problem = failure(
            "T2C503",
            f"{buffer.name} is held by other threads than the ones that use its elements here",
            stmt.span,
            help="pass the values through a shared tile",
        )
        super().__init__(problem.diagnostic)
        self.stmt, self.buffer, self.index = stmt, buffer, index


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
    classes, loops, reduced = tie(body, pinned)
    fragments = {x.name: x for x in ctx.launch.buffers if x.scope == "fragment"}
    frames = Frames()
    for members in _components(classes, fragments, loops):
        _distribute(ctx, classes, members, pinned, reduced, frames)
    return frames


def tie(
    body: Sequence[Stmt], pinned: Mapping[str, Layout] | None = None
) -> tuple[_Classes, list[tuple[str, Parallel]], set[Slot]]:
    """Dimensions that have to be distributed alike; the loops by name; dimensions that are reduced."""
    classes = _Classes(pinned)
    loops: list[tuple[str, Parallel]] = []
    reduced: set[Slot] = set()
    _keep_indexed(classes, body)
    for number, stmt in enumerate(walk(body)):
        if isinstance(stmt, Parallel):
            loops.append((f"loop {number}", stmt))
            _tie_loop(classes, f"loop {number}", stmt)
        elif isinstance(stmt, Reduce):
            _tie_reduction(classes, stmt, reduced)
        elif isinstance(stmt, Scan) and stmt.dst.buffer.scope == "fragment":
            _tie_scan(classes, stmt, reduced)
    return classes, loops, reduced


def _accessed(loop: Parallel) -> list[tuple[Buffer, tuple[Expr, ...]]]:
    return [*((x.buffer, x.index) for x in all_loads(loop.body)), *all_stores(loop.body)]


def _tie_loop(classes: _Classes, name: str, loop: Parallel) -> None:
    """What the loop writes decides who runs it, accumulators before all; else what it reads."""
    positions = {var.name: place for place, var in enumerate(loop.loop_vars)}
    fixed = all(b.known(extent) is not None for extent in loop.extents)
    uses = [use for use in (*all_stores(loop.body), *_read(loop)) if use[0].scope == "fragment"]
    uses.sort(key=lambda use: (use[0].name, 0) not in classes.held)
    for buffer, index in uses:
        for dim, part in enumerate(index):
            if b.known(buffer.shape[dim]) == 1 and b.literal(part, 0):
                continue
            if not any(b.mentions(part, name) for name in positions) and (
                classes.find((buffer.name, dim)) in classes.whole
            ):
                continue
            plain = isinstance(part, Var) and part.name in positions and fixed
            if not plain or not classes.tie(
                (buffer.name, dim),
                (name, positions[part.name]),  # type: ignore[attr-defined]
            ):
                raise Apart(loop, buffer, index)


def _keep_indexed(classes: _Classes, body: Sequence[Stmt]) -> None:
    """Dimensions that serial code indexes: every thread keeps all their elements, if they are few.

    Raises Apart for the rest: they are read from a shared tile.
    """
    stored = {
        stmt.buffer.name
        for stmt in walk(body)
        if isinstance(stmt, Store) and stmt.buffer.scope == "fragment"
    }
    for stmt in walk(body):
        alone: set[str] = set()  # the variables of T.Parallel
        if isinstance(stmt, Parallel):
            alone = {var.name for var in stmt.loop_vars}
        for buffer, index in _serial_uses(stmt):
            for dim, part in enumerate(index):
                extent = b.known(buffer.shape[dim]) or 1
                if extent == 1 or any(b.mentions(part, name) for name in alone):
                    continue
                looked_up = not alone and b.known(part) is None and buffer.name not in stored
                kept = not looked_up and _few(buffer, index, alone)
                if not kept or not classes.keep((buffer.name, dim), extent):
                    raise Apart(stmt, buffer, index)


def _few(buffer: Buffer, index: tuple[Expr, ...], alone: set[str]) -> bool:
    """Whether a thread can keep all that these indices reach."""
    return _MOST_KEPT >= prod(
        b.known(extent) or 1
        for extent, part in zip(buffer.shape, index, strict=True)
        if not any(b.mentions(part, name) for name in alone)
    )


def _serial_uses(stmt: Stmt) -> list[tuple[Buffer, tuple[Expr, ...]]]:
    """Elements of fragments that the statement itself reads and writes."""
    if isinstance(stmt, Parallel):
        found = _accessed(stmt)
    else:
        found = [(load.buffer, load.index) for e in expressions(stmt) for load in loads(e)]
        if isinstance(stmt, Store):
            found.append((stmt.buffer, stmt.index))
    return [use for use in found if use[0].scope == "fragment"]


def _read(loop: Parallel) -> list[tuple[Buffer, tuple[Expr, ...]]]:
    return [(load.buffer, load.index) for load in all_loads(loop.body)]


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
            if not classes.tie((src.name, one), (dst.name, other)):
                raise Apart(stmt, dst)


def _tie_scan(classes: _Classes, stmt: Scan, reduced: set[Slot]) -> None:
    """A scan in registers: source and result are held alike, lines best within a warp."""
    src, dst = stmt.src.buffer, stmt.dst.buffer
    reduced.add((dst.name, stmt.dim))
    for dim in range(len(dst.shape)):
        if src != dst and not classes.tie((src.name, dim), (dst.name, dim)):
            raise Apart(stmt, dst)


@record(frozen=False)
class _Members:
    fragments: list[Buffer]
    loops: list[tuple[str, Parallel]]


def _components(
    classes: _Classes, fragments: dict[str, Buffer], loops: list[tuple[str, Parallel]]
) -> list[_Members]:
    """Fragments and loops that share a class, directly or through others, in order of definition."""
    groups = _Groups()
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


class _Distribution:
    """Digits of every class of one frame, and the layouts that follow."""

    def __init__(
        self, ctx: Context, classes: _Classes, members: _Members, pinned: dict[str, Layout]
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
                for buffer, index in _accessed(loop)
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
            for buffer, index in reversed(_accessed(loop)):
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


def _distribute(
    ctx: Context,
    classes: _Classes,
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
        ctx.layouts[buffer.name] = pinned.get(buffer.name) or distribution.layout(
            buffer.name, shape, buffer
        )
    for name, loop in members.loops:
        shape = tuple(b.known(extent) or 1 for extent in loop.extents)
        frames.loops[id(loop)] = distribution.layout(name, shape, loop)


def gemms(body: Sequence[Stmt]) -> list[Gemm]:
    """Every gemm of the block, in order."""
    return [stmt for stmt in walk(body) if isinstance(stmt, Gemm)]
