"""Finds which dimensions of the tiles may stop at the edge of the tensors.

reads   tile IR with staged globals        writes  `Edges`: clips by (start, bound), live dimensions
why     a hand-written kernel computes `rows` rows in the last tile, not block_M; right where
        nothing mixes the elements of the dimension: no reduction over it, no single element read.
        Everywhere else a load fills what lies outside with zeros, as the language says.
"""

from __future__ import annotations

from dataclasses import field

from tile2c.transpile.ir import forms, walk
from tile2c.transpile.ir.expr import Binary, Const, Expr, Load, Var
from tile2c.transpile.ir.forms import Region, Stmt
from tile2c.transpile.lower.cores.gather import Gather
from tile2c.transpile.lower.cores.layouts import Layout, plus
from tile2c.transpile.lower.cores.packed import Interleave
from tile2c.transpile.lower.facts import Facts
from tile2c.transpile.record import record

Key = tuple[str, str, int]  # ("tile", buffer, dimension) or ("loop", variable, 0)


@record
class Clip:
    """`extent` elements from `start` of a dimension of `bound` elements may pass its end."""

    start: Expr
    extent: Expr
    bound: Expr


@record(frozen=False)
class _Class:
    """Dimensions that statements tie together."""

    clips: list[Clip | None] = field(default_factory=list)  # None: a copy that always fits
    fixed: bool = False
    loops: list[tuple[str, ...]] = field(default_factory=list)  # loops around each statement
    before: bool = False  # some copy may start in front of its tensor
    inner: bool = False  # not the outermost dimension of some tile
    outer: bool = False  # rows of some tile


@record(frozen=False)
class Edges:
    """The clip at which a dimension stops, for the dimensions that stop."""

    parents: dict[Key, Key] = field(default_factory=dict)
    free: set[Key] = field(default_factory=set)  # roots of what no statement mixes or takes apart
    outer: set[Key] = field(default_factory=set)  # roots of what are rows of some tile
    live: dict[Key, Clip] = field(default_factory=dict)  # by root
    loose: set[Key] = field(default_factory=set)  # roots of what is stored only where it was loaded

    def of(self, key: Key) -> Clip | None:
        return self.live.get(self.root(key))

    def root(self, key: Key) -> Key:
        while (parent := self.parents.setdefault(key, key)) != key:
            key = parent
        return key


def clip_of(start: Expr, extent: Expr, bound: Expr, facts: Facts) -> Clip | None:
    """The clip of one dimension of a region of a global tensor, None where it always fits."""
    sides = (extent.a, extent.b) if is_min(extent) else (extent,)  # type: ignore[attr-defined]
    for side in sides:
        room = Binary(dtype=bound.dtype, op="-", a=bound, b=plus(start, side))
        if facts.non_negative(room):
            return None
    return Clip(start, extent, bound)


def is_min(expr: Expr) -> bool:
    """Whether an extent is itself cut: min(extent, room)."""
    return isinstance(expr, Binary) and expr.op == "min"


def positive(expr: Expr, facts: Facts) -> bool:
    """Whether an extent is at least 1."""
    if isinstance(expr, Binary) and expr.op == "min":
        return positive(expr.a, facts) and positive(expr.b, facts)
    return facts.at_least(expr, 1)


def find_edges(
    body: tuple[Stmt, ...],
    layouts: dict[str, Layout],
    facts: Facts,
    block_vars: frozenset[str],
    *,
    gaps: bool = True,
    whole_products: bool = False,
) -> Edges:
    """Ties dimensions together and keeps the classes whose every copy stops at the same place.

    `block_vars` are names that mean the same in the whole body: block indices, sizes, parameters.
    `gaps`: cut short, rows would have gaps between them; false where tiles are no rows.
    `whole_products`: products take whole tiles.
    """
    finder = _Finder(layouts, facts, block_vars, gaps, whole_products)
    finder.walk(body, ())
    return finder.edges()


class _Finder:
    def __init__(
        self,
        layouts: dict[str, Layout],
        facts: Facts,
        block_vars: frozenset[str],
        gaps: bool,
        whole_products: bool,
    ) -> None:
        self.layouts = layouts
        self.gaps = gaps
        self.whole_products = whole_products
        self.facts = facts
        self.here = facts  # with what loops, names and conditions around a statement say
        self.block_vars = block_vars
        self.found = Edges()
        self.classes: dict[Key, _Class] = {}
        self.parallel: set[str] = set()
        self.scope: tuple[str, ...] = ()

    # ---- union-find

    def get(self, key: Key) -> _Class:
        return self.classes.setdefault(self.found.root(key), _Class())

    def unite(self, a: Key, b: Key) -> None:
        first, second = self.found.root(a), self.found.root(b)
        if first == second:
            self.get(a)
            return
        kept, gone = self.get(a), self.get(b)
        kept.clips += gone.clips
        kept.fixed |= gone.fixed
        kept.before |= gone.before
        kept.inner |= gone.inner
        kept.outer |= gone.outer
        kept.loops += gone.loops
        self.found.parents[second] = first
        del self.classes[second]

    def fix(self, key: Key) -> None:
        self.get(key).fixed = True

    def tile(self, name: str, dim: int) -> Key:
        key = ("tile", name, dim)
        layout = self.layouts[name]
        if self.gaps and (not layout.kept or dim != layout.kept[0]):
            self.get(key).inner = True  # cut short, its rows would have gaps
        self.get(key).outer |= bool(layout.kept) and dim in layout.kept[:-1]
        self.get(key).loops.append(self.scope)
        return key

    # ---- statements

    def walk(self, body: tuple[Stmt, ...], scope: tuple[str, ...]) -> None:
        outer = self.here
        for stmt in body:
            self.scope = scope
            self.statement(stmt)
            if isinstance(stmt, forms.Let):
                self.here = self.here.with_meaning(stmt.var, stmt.value)
            if isinstance(stmt, forms.Parallel):
                continue
            inner = scope
            around = self.here
            if isinstance(stmt, forms.For | forms.Pipelined):
                inner = (*scope, stmt.var.name)
                if not isinstance(stmt, forms.For) or stmt.step > 0:
                    self.here = around.with_loop(stmt)
            for number, part in enumerate(walk.bodies(stmt)):
                if isinstance(stmt, forms.If) and not number:
                    self.here = around.with_condition(stmt.condition)
                self.walk(part, inner)
                self.here = around
        self.here = outer

    def statement(self, stmt: Stmt) -> None:
        if isinstance(stmt, Gather):
            self.element(stmt.tile.name, stmt.loop_vars)
        elif isinstance(stmt, Interleave):
            self.interleave(stmt)
        elif isinstance(stmt, forms.Copy | forms.AtomicTile):
            self.copy(stmt)
        elif isinstance(stmt, forms.Gemm):
            self.gemm(stmt)
        elif isinstance(stmt, forms.Reduce):
            self.reduce(stmt)
        elif isinstance(stmt, forms.Scan):
            self.scan(stmt)
        elif isinstance(stmt, forms.Fill):
            self.partial(stmt.dst)
        elif isinstance(stmt, forms.Parallel):
            self.loop(stmt)
            return
        for expr in walk.expressions(stmt):
            for load in walk.loads(expr):
                self.element(load.buffer.name, load.index)
        if isinstance(stmt, forms.Store):
            self.element(stmt.buffer.name, stmt.index)

    def element(self, name: str, index: tuple[Expr, ...]) -> None:
        """A single element: every dimension of its tile keeps its whole extent."""
        if name in self.layouts:
            for dim in range(len(index)):
                self.fix(self.tile(name, dim))

    def partial(self, region: Region) -> None:
        """A region that is not the whole dimension keeps it whole."""
        if region.buffer.name not in self.layouts:
            return
        for dim, (part, extent) in enumerate(zip(region.ranges, region.buffer.shape, strict=True)):
            key = self.tile(region.buffer.name, dim)
            cut = isinstance(part.extent, Binary) and is_min(part.extent)
            whole = part.extent.a if isinstance(part.extent, Binary) and cut else part.extent
            if whole != extent or not _zero(part.start):
                self.fix(key)
            elif cut:  # by a condition of the author's
                self.get(key).clips.append(None)

    def copy(self, stmt: forms.Copy | forms.AtomicTile) -> None:
        self.partial(stmt.src)
        self.partial(stmt.dst)
        for mine, other in zip(long_dims(stmt.src), long_dims(stmt.dst), strict=True):
            pair = ((stmt.src, mine), (stmt.dst, other))
            tiles = [
                self.tile(region.buffer.name, dim)
                for region, dim in pair
                if region.buffer.name in self.layouts
            ]
            if len(tiles) == 2:
                self.unite(*tiles)
                continue
            for region, dim in pair:
                if region.buffer.name in self.layouts:
                    continue
                part = region.ranges[dim]
                bound = region.buffer.shape[dim]
                found = self.get(tiles[0])
                clip = clip_of(part.start, part.extent, bound, self.facts)
                found.clips.append(None if is_min(part.extent) else clip)
                found.before |= not self.here.non_negative(part.start)

    def gemm(self, stmt: forms.Gemm) -> None:
        """M, N and K, each on both sides."""
        a, b, c = ([d for d, _ in enumerate(r.ranges)][-2:] for r in (stmt.a, stmt.b, stmt.c))
        (m, k), (n, other) = (
            (a[::-1] if stmt.transpose_a else a),
            b[:: -1 if not stmt.transpose_b else 1],
        )
        for one, dim, two, same in (
            (stmt.a, m, stmt.c, c[0]),
            (stmt.b, n, stmt.c, c[1]),
            (stmt.a, k, stmt.b, other),
        ):
            self.partial(one)
            self.partial(two)
            self.unite(self.tile(one.buffer.name, dim), self.tile(two.buffer.name, same))
            if self.whole_products:
                self.fix(self.tile(one.buffer.name, dim))

    def reduce(self, stmt: forms.Reduce) -> None:
        self.partial(stmt.src)
        self.partial(stmt.dst)
        src = [dim for dim, part in enumerate(stmt.src.ranges) if not part.point]
        dst = [dim for dim, part in enumerate(stmt.dst.ranges) if not part.point]
        self.fix(self.tile(stmt.src.buffer.name, src[stmt.dim]))
        kept = [dim for place, dim in enumerate(src) if place != stmt.dim]
        if len(dst) == len(src):
            dst = [dim for place, dim in enumerate(dst) if place != stmt.dim]
        for mine, other in zip(kept, dst, strict=False):
            self.unite(
                self.tile(stmt.src.buffer.name, mine), self.tile(stmt.dst.buffer.name, other)
            )

    def interleave(self, stmt: Interleave) -> None:
        """Planes and columns keep their extents; rows go together."""
        planes, tile = stmt.src.buffer, stmt.dst.buffer
        for dim in (0, len(planes.shape) - 1):
            self.fix(self.tile(planes.name, dim))
        self.fix(self.tile(tile.name, len(tile.shape) - 1))
        for dim in range(len(tile.shape) - 1):
            self.unite(self.tile(planes.name, dim + 1), self.tile(tile.name, dim))

    def scan(self, stmt: forms.Scan) -> None:
        """The dimension that it runs along keeps its whole extent; the others go together."""
        self.partial(stmt.src)
        self.partial(stmt.dst)
        src, dst = (
            [dim for dim, part in enumerate(region.ranges) if not part.point]
            for region in (stmt.src, stmt.dst)
        )
        for place, (mine, other) in enumerate(zip(src, dst, strict=True)):
            here = self.tile(stmt.src.buffer.name, mine)
            self.unite(here, self.tile(stmt.dst.buffer.name, other))
            if place == stmt.dim:
                self.fix(here)

    def loop(self, stmt: forms.Parallel) -> None:
        variables = {
            var.name: extent for var, extent in zip(stmt.loop_vars, stmt.extents, strict=True)
        }
        for name in variables:
            self.get(("loop", name, 0)).loops.append(self.scope)
        for inner in walk.statements(stmt.body):
            accesses = [
                (load.buffer.name, load.index)
                for expr in walk.expressions(inner)
                for load in walk.loads(expr)
            ]
            if isinstance(inner, forms.Store):
                accesses.append((inner.buffer.name, inner.index))
            for name, index in accesses:
                if name in self.layouts:
                    self.access(name, index, variables)

    def access(self, name: str, index: tuple[Expr, ...], variables: dict[str, Expr]) -> None:
        for dim, part in enumerate(index):
            key = self.tile(name, dim)
            if isinstance(part, Var) and part.name in variables:
                self.unite(("loop", part.name, 0), key)
                extent = self.layouts[name].buffer.shape[dim]
                if variables[part.name] != extent:
                    self.fix(key)
                continue
            if self.layouts[name].buffer.shape[dim] != Const(dtype=part.dtype, value=1):
                self.fix(key)
            for var in walk.variables(part):
                if var.name in variables:
                    self.fix(("loop", var.name, 0))

    # ---- the answer

    def edges(self) -> Edges:
        for root, found in self.classes.items():
            if not found.fixed:
                self.found.free.add(root)
            if found.outer:
                self.found.outer.add(root)
            if found.fixed or not found.clips:
                continue
            first = found.clips[0]
            if first is None or any(clip != first for clip in found.clips):
                continue
            names = {var.name for var in walk.variables(first.start)}
            if any(isinstance(part, Load) for part in walk.parts(first.start)):
                continue
            needed = names - self.block_vars
            if all(needed <= set(loops) for loops in found.loops):
                self.found.loose.add(root)
                if not found.inner and not found.before:
                    self.found.live[root] = first
        return self.found


def long_dims(region: Region) -> list[int]:
    """Dimensions of a region that are longer than 1, as two sides of a copy are matched."""
    return [
        dim
        for dim, part in enumerate(region.ranges)
        if not part.point and not (isinstance(part.extent, Const) and part.extent.value == 1)
    ]


def _zero(expr: Expr) -> bool:
    return isinstance(expr, Const) and expr.value == 0
