"""Cuts tiles that do not fit into strips: the block's work runs once for each strip.

reads   tile IR with staged globals      writes  the same with smaller tiles in a loop over strips
why     tiles are chosen for the memory of other chips; rows, or columns, that never meet can be
        taken a few at a time. On-chip tiles start undefined, so running the body again is running it
        afresh.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from tile2c.transpile.ir import forms, walk
from tile2c.transpile.ir.dtypes import BOOL, INT32
from tile2c.transpile.ir.expr import Binary, Buffer, Compare, Expr, Load, Logical, Var, const
from tile2c.transpile.ir.forms import Range, Region, Stmt
from tile2c.transpile.lower.cores.extents import Edges, Key, is_min, long_dims
from tile2c.transpile.lower.cores.gather import Gather
from tile2c.transpile.lower.cores.layouts import Layout, plus, times
from tile2c.transpile.lower.cores.names import Names
from tile2c.transpile.lower.cores.packed import Interleave
from tile2c.transpile.lower.rewrite import rewrite
from tile2c.transpile.record import record

Moved = TypeVar("Moved", forms.Copy, forms.AtomicTile)


@record
class Cut:
    """A class of dimensions of `extent` elements that can be taken `size` at a time."""

    root: Key
    extent: int
    size: int
    rows: bool  # an outer dimension: cut these first


def cuts(launch: forms.Launch, layouts: dict[str, Layout], edges: Edges) -> Iterator[Cut]:
    """Ways to cut, the gentlest first: rows before columns, large strips before small ones."""
    found: dict[Key, tuple[int, bool]] = {}
    for name, layout in layouts.items():
        for dim in layout.kept:
            root = edges.root(("tile", name, dim))
            if root not in edges.free:
                continue
            extent = layout.extents[layout.kept.index(dim)]
            outer = dim != layout.kept[-1]
            known = found.get(root, (extent, False))
            if known[0] != extent:
                edges.free.discard(root)
                continue
            found[root] = (extent, outer or known[1])
    ways = [
        Cut(root, extent, size, rows)
        for root, (extent, rows) in found.items()
        if root in edges.free and _stores_follow(launch, edges, root)
        for size in range(1, extent)
        if extent % size == 0 and (rows or size % 8 == 0)
    ]
    yield from sorted(ways, key=lambda way: (way.extent // way.size, not way.rows))


def _stores_follow(launch: forms.Launch, edges: Edges, root: Key) -> bool:
    """Whether running the body once a strip stores nothing that a later strip reads."""
    read: set[str] = set()
    written: set[str] = set()
    apart: set[str] = set()
    for stmt in walk.statements(launch.body):
        for expr in walk.expressions(stmt):
            read |= {load.buffer.name for load in walk.loads(expr) if load.buffer.scope == "global"}
        if isinstance(stmt, forms.AtomicTile) and not _cut_with(stmt.src, edges, root):
            return False  # each strip would add the whole tile once more
        if not isinstance(stmt, forms.Copy):
            continue
        for tensor, tile in ((stmt.src, stmt.dst), (stmt.dst, stmt.src)):
            if tensor.buffer.scope != "global":
                continue
            (read if tensor is stmt.src else written).add(tensor.buffer.name)
            if not _cut_with(tile, edges, root):
                apart.add(tensor.buffer.name)
    return not (read & written & apart)


def _cut_with(tile: Region, edges: Edges, root: Key) -> bool:
    """Whether a dimension of the tile is of the class."""
    return root in {edges.root(("tile", tile.buffer.name, dim)) for dim in long_dims(tile)}


def split(
    launch: forms.Launch, cut: Cut, layouts: dict[str, Layout], edges: Edges, names: Names
) -> forms.Launch:
    """The launch with the tiles of the class cut down."""
    return _Splitter(cut, layouts, edges, names).launch(launch)


def stores_all(launch: forms.Launch, edges: Edges, root: Key) -> bool:
    """Whether each store is cut with the class: a strip outside the tensors has nothing to do."""
    for stmt in walk.statements(launch.body):
        if isinstance(stmt, forms.Copy) and stmt.dst.buffer.scope == "global":
            if not _cut_with(stmt.src, edges, root):
                return False
    return True


class _Splitter:
    def __init__(self, cut: Cut, layouts: dict[str, Layout], edges: Edges, names: Names) -> None:
        self.cut = cut
        self.layouts = layouts
        self.edges = edges
        name = names.fresh("strip_rows" if cut.rows else "strip_columns", "strip_size")
        self.size = const(cut.size, name)
        self.strip = Var(dtype=INT32, name=names.fresh("strip"), kind="loop")
        self.start = times(self.strip, self.size)
        self.buffers: dict[str, Buffer] = {}

    def launch(self, launch: forms.Launch) -> forms.Launch:
        for buffer in launch.buffers:
            if buffer.name in self.layouts:
                shape = tuple(
                    self.size if self.of_tile(buffer.name, dim) else extent
                    for dim, extent in enumerate(buffer.shape)
                )
                self.buffers[buffer.name] = replace(buffer, shape=shape)
        body = tuple(self.statement(stmt) for stmt in launch.body)
        clip = self.edges.live.get(self.cut.root)
        if clip is not None:
            first = plus(clip.start, self.start)
            inside: Expr = Compare(dtype=BOOL, op="<", a=first, b=clip.bound)
            if not stores_all(launch, self.edges, self.cut.root):
                # what is stored whole is stored by the first strip; the others would store it again
                leads = Compare(dtype=BOOL, op="==", a=self.strip, b=const(0))
                inside = Logical(dtype=BOOL, op="or", a=leads, b=inside)
            body = (forms.If(condition=inside, then=body),)
        loop = forms.For(
            kind="serial",
            var=self.strip,
            start=const(0),
            stop=const(self.cut.extent // self.cut.size),
            body=body,
            comments=(f"{self.cut.size} of {self.cut.extent} at a time: all do not fit",),
        )
        buffers = tuple(self.buffers.get(buffer.name, buffer) for buffer in launch.buffers)
        return replace(launch, body=(loop,), buffers=buffers)

    def of_tile(self, name: str, dim: int) -> bool:
        return name in self.layouts and self.edges.root(("tile", name, dim)) == self.cut.root

    def of_loop(self, var: Var) -> bool:
        return self.edges.root(("loop", var.name, 0)) == self.cut.root

    def statement(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, Gather):
            return stmt
        if isinstance(stmt, Interleave):
            return replace(stmt, src=self.region(stmt.src), dst=self.region(stmt.dst))
        if isinstance(stmt, forms.Copy):
            return self.copy(stmt)
        if isinstance(stmt, forms.AtomicTile):
            return self.copy(stmt)
        if isinstance(stmt, forms.Gemm):
            a, b, c = (self.region(region) for region in (stmt.a, stmt.b, stmt.c))
            return replace(stmt, a=a, b=b, c=c, clear=self.expr(stmt.clear))
        if isinstance(stmt, forms.Fill):
            return replace(stmt, dst=self.region(stmt.dst), value=self.expr(stmt.value))
        if isinstance(stmt, forms.Reduce | forms.Scan):
            return replace(stmt, src=self.region(stmt.src), dst=self.region(stmt.dst))
        if isinstance(stmt, forms.Parallel):
            pairs = zip(stmt.loop_vars, stmt.extents, strict=True)
            extents = tuple(self.size if self.of_loop(var) else extent for var, extent in pairs)
            body = tuple(self.statement(inner) for inner in stmt.body)
            return replace(stmt, extents=extents, body=body)
        if isinstance(stmt, forms.Store):
            buffer = self.buffers.get(stmt.buffer.name, stmt.buffer)
            index = tuple(self.index(part) for part in stmt.index)
            return replace(stmt, buffer=buffer, index=index, value=self.expr(stmt.value))
        if isinstance(stmt, forms.Let):
            return replace(stmt, value=self.expr(stmt.value))
        if isinstance(stmt, forms.Declare):
            return replace(stmt, init=None if stmt.init is None else self.expr(stmt.init))
        if isinstance(stmt, forms.For | forms.Pipelined):
            body = tuple(self.statement(inner) for inner in stmt.body)
            return replace(stmt, start=self.expr(stmt.start), stop=self.expr(stmt.stop), body=body)
        if isinstance(stmt, forms.While):
            body = tuple(self.statement(inner) for inner in stmt.body)
            return replace(stmt, condition=self.expr(stmt.condition), body=body)
        if isinstance(stmt, forms.If):
            then = tuple(self.statement(inner) for inner in stmt.then)
            orelse = tuple(self.statement(inner) for inner in stmt.orelse)
            return replace(stmt, condition=self.expr(stmt.condition), then=then, orelse=orelse)
        return stmt

    def copy(self, stmt: Moved) -> Moved:
        """The tile's side shrinks; the tensor's side shrinks and moves with the strip."""
        sides = [stmt.src, stmt.dst]
        pairs = list(zip(long_dims(stmt.src), long_dims(stmt.dst), strict=True))
        new = [self.region(stmt.src), self.region(stmt.dst)]
        for one, other in ((0, 1), (1, 0)):
            if sides[one].buffer.name in self.layouts:
                continue
            ranges = list(new[one].ranges)
            for pair in pairs:
                if self.of_tile(sides[other].buffer.name, pair[other]):
                    part = ranges[pair[one]]
                    start = plus(part.start, self.start)
                    extent = self.extent(part.extent)
                    ranges[pair[one]] = replace(part, start=start, extent=extent)
            new[one] = replace(new[one], ranges=tuple(ranges))
        return replace(stmt, src=new[0], dst=new[1])

    def region(self, region: Region) -> Region:
        ranges = tuple(
            Range(start=self.expr(part.start), extent=self.extent(part.extent))
            if self.of_tile(region.buffer.name, dim)
            else replace(part, start=self.expr(part.start))
            for dim, part in enumerate(region.ranges)
        )
        buffer = self.buffers.get(region.buffer.name, region.buffer)
        return replace(region, buffer=buffer, ranges=ranges)

    def extent(self, extent: Expr) -> Expr:
        """What a strip has of a dimension: all of its own, or what a condition leaves of that."""
        if not isinstance(extent, Binary) or not is_min(extent):
            return self.size
        room = Binary(dtype=extent.dtype, op="-", a=extent.b, b=self.start)
        return replace(extent, a=self.size, b=room)

    def index(self, part: Expr) -> Expr:
        """A loop variable that indexes a tile counts from the strip's start."""
        if isinstance(part, Var):
            return part
        return self.expr(part)

    def expr(self, expr: Expr) -> Expr:
        """As a number, a loop variable still counts from the start of the whole tile."""
        return rewrite(expr, self._part)

    def _part(self, part: Expr) -> Expr | None:
        if isinstance(part, Load) and part.buffer.name in self.layouts:
            index = tuple(self.index(inner) for inner in part.index)
            return replace(part, buffer=self.buffers[part.buffer.name], index=index)
        if isinstance(part, Var) and self.of_loop(part):
            return Binary(dtype=part.dtype, op="+", a=part, b=self.start)
        return None
