"""What the lowering of one kernel shares: tiles, names, facts, and the list that steps go to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field, replace

from tile2c.transpile.diagnostics import Span
from tile2c.transpile.ir import walk
from tile2c.transpile.ir.dtypes import BOOL, INT32
from tile2c.transpile.ir.expr import (
    Binary,
    Compare,
    Const,
    Expr,
    Load,
    Select,
    Unary,
    Var,
    const,
)
from tile2c.transpile.ir.forms import Stmt
from tile2c.transpile.lower.build import children
from tile2c.transpile.lower.cores.call_types import check_call
from tile2c.transpile.lower.cores.extents import Clip, Edges, Key
from tile2c.transpile.lower.cores.layouts import Layout, plus, times
from tile2c.transpile.lower.cores.names import Names
from tile2c.transpile.lower.cores.plan import Local, Step, TileRef
from tile2c.transpile.lower.cores.scalars import Scalars
from tile2c.transpile.lower.cores.tiles import Tiles
from tile2c.transpile.lower.facts import Facts
from tile2c.transpile.lower.plan import CCall, Element
from tile2c.transpile.record import record
from tile2c.transpile.targets.cores import CoresTarget


@record
class Inside:
    """The part of a clip inside its tensor: `count` elements, behind `before` that lie in front of it.

    `start` is where the clip starts, lowered.
    """

    start: Expr
    before: Expr
    count: Expr

    @property
    def first(self) -> Expr:
        """Where the part starts in the tensor."""
        return plus(self.start, self.before)


@record(frozen=False)
class Scope:
    """A step list under construction; `edge_locals` are declared at its start."""

    variables: frozenset[str]  # loop variables defined for it
    steps: list[Step] = field(default_factory=list)
    edge_locals: list[Step] = field(default_factory=list)
    edges: dict[Clip, Inside] = field(default_factory=dict)


@record(frozen=False)
class Context:
    """Shared state of the lowering of one kernel."""

    target: CoresTarget
    layouts: dict[str, Layout]
    edges: Edges
    tiles: Tiles
    names: Names
    scalars: Scalars
    facts: Facts
    element_bytes: tuple[int, ...]  # of the types in the kernel
    scopes: list[Scope] = field(default_factory=lambda: [Scope(frozenset())])
    span: Span | None = None  # of the statement at hand
    marks: tuple[str, ...] = ()  # comments for the next step
    remark: str = ""

    # ---- steps

    def emit(self, step: Step) -> None:
        """Adds a step to the current list, under the comments that wait for one."""
        if self.marks or self.remark:
            remark = step.remark or self.remark
            step = replace(step, comments=(*self.marks, *step.comments), remark=remark)
            self.marks, self.remark = (), ""
        if step.span is None:
            step = replace(step, span=self.span)
        check_call(step, self.target, self._elements, self.span)
        self.scopes[-1].steps.append(step)

    def _elements(self, ref: TileRef) -> str | None:
        dtype = ref.view or self.tiles.dtype(ref.tile)
        return dtype.name if dtype is not None else None

    def mark(self, stmt: Stmt) -> None:
        """The author's comments and statement stand above the next step."""
        self.marks = (*self.marks, *stmt.comments)
        self.span = stmt.span or self.span
        if stmt.quote:
            self.marks = (*self.marks, stmt.quote)
        if stmt.remark:
            self.remark = stmt.remark

    @contextmanager
    def nested(self, *variables: Var, facts: Facts | None = None) -> Iterator[Scope]:
        """A new step list; the caller makes a step of it."""
        names = frozenset(var.name for var in variables)
        scope = Scope(self.scopes[-1].variables | names)
        outer, marks, remark, span = self.facts, self.marks, self.remark, self.span
        self.marks, self.remark = (), ""
        self.facts = facts or outer
        self.scopes.append(scope)
        self.names.enter()
        try:
            yield scope
        finally:
            self.names.leave()
            self.scopes.pop()
            self.facts, self.marks, self.remark, self.span = outer, marks, remark, span

    def body(self, scope: Scope) -> tuple[Step, ...]:
        """The finished list of a scope."""
        return (*scope.edge_locals, *scope.steps)

    # ---- extents at the edge

    def edge(self, clip: Clip, *names: str) -> Expr:
        """How many elements of a clip lie inside its tensor, as a local."""
        return self.inside(clip, *names).count

    def inside(self, clip: Clip, *names: str) -> Inside:
        """What of a clip lies inside its tensor, under names."""
        parts = (clip.start, clip.extent, clip.bound)
        if not _constant(clip):
            asks = any(isinstance(part, Load) for expr in parts for part in walk.parts(expr))
            for scope in reversed(self.scopes):
                if clip in scope.edges and not asks:
                    return scope.edges[clip]
            name = self.names.local(*names)
            steps, found = self._inside(clip, name)
            for step in steps:
                self.emit(step)
            self.scopes[-1].edges[clip] = found
            return found
        needed = {var.name for part in parts for var in walk.variables(part)}
        known = set().union(*(scope.variables for scope in self.scopes))
        scope = next(scope for scope in self.scopes if (needed & known) <= scope.variables)
        if clip not in scope.edges:
            depth = self.scopes.index(scope)
            name = self.names.local(*names, depth=depth)
            steps, scope.edges[clip] = self._inside(clip, name, depth)
            scope.edge_locals += steps
        return scope.edges[clip]

    def _inside(self, clip: Clip, name: str, depth: int = -1) -> tuple[list[Step], Inside]:
        """name = min(extent, bound - start), and not below 0 where that cannot be excluded; without
        what lies in front of the tensor, where that cannot be excluded."""
        steps: list[Step] = []
        start, bound, extent = (
            self.scalars.lower(part, self.facts, self.emit)
            for part in (clip.start, clip.bound, clip.extent)
        )

        def named(word: str, value: Expr, remark: str = "") -> Var:
            local = self.names.local(f"{name}_{word}", depth=depth)
            steps.append(Local(name=local, dtype=INT32, value=value, remark=remark))
            return Var(dtype=INT32, name=local, kind="temporary")

        before: Expr = const(0)
        if not self.facts.non_negative(clip.start):
            if not isinstance(start, Const | Var):
                start = named("start", start)
            negative = Compare(dtype=BOOL, op="<", a=start, b=const(0))
            minus = Unary(dtype=INT32, op="-", a=start)
            value = Select(dtype=INT32, condition=negative, a=minus, b=const(0))
            before = named("before", value, "so many lie in front of the tensor")
        rest: Expr = Binary(dtype=INT32, op="-", a=bound, b=start)
        if isinstance(start, Const) and start.value == 0:
            rest = bound
        inside = self.facts.less(clip.start, clip.bound)
        if _parts(rest) > (5 if inside else 3):  # long enough to get a name
            rest = named("left", rest)
        full = Compare(dtype=BOOL, op="<", a=rest, b=extent)
        value = Select(dtype=INT32, condition=full, a=rest, b=extent)
        if before != const(0):
            end = named("end", value)
            some = Compare(dtype=BOOL, op=">", a=end, b=before)
            left = Binary(dtype=INT32, op="-", a=end, b=before)
            value = Select(dtype=INT32, condition=some, a=left, b=const(0))
        elif not inside:
            some = Compare(dtype=BOOL, op=">", a=rest, b=const(0))
            value = Select(dtype=INT32, condition=some, a=value, b=const(0))
        steps.append(Local(name=name, dtype=INT32, value=value))
        count = Var(dtype=INT32, name=name, kind="temporary")
        return steps, Inside(start, before, count)

    def live(self, key: Key, whole: Expr) -> Expr:
        """Elements of a dimension that have to be computed."""
        clip = self.edges.of(key)
        if clip is None:
            return whole
        return self.edge(clip, *self.edge_names(key))

    def edge_names(self, key: Key) -> tuple[str, ...]:
        kind, name, dim = key
        layout = self.layouts.get(name)
        across = layout is not None and len(layout.kept) > 1 and dim == layout.kept[-1]
        if self.edges.root(key) in self.edges.outer:
            return (f"{name}_columns",) if across else ("rows", f"{name}_rows")
        if kind == "loop":
            return ("count", f"{name}_count")
        flat = layout is not None and len(layout.kept) <= 1
        word = "count" if flat else "columns" if across else "rows"
        return (word, f"{name}_{word}")


def _constant(clip: Clip) -> bool:
    """Whether its start has one value in the scope of its loop variables: nothing bound later."""
    parts = [part for expr in (clip.start, clip.extent, clip.bound) for part in walk.parts(expr)]
    bound = any(isinstance(part, Var) and part.kind == "temporary" for part in parts)
    return not bound and not any(isinstance(part, Load) for part in parts)


def size_of(layout: Layout) -> Expr:
    """Elements of a tile, padding included."""
    total: Expr = width_of(layout)
    for dim in reversed(layout.kept[:-1]):
        total = times(layout.buffer.shape[dim], total)
    return total


def width_of(layout: Layout) -> Expr:
    """The pitch of a tile's rows, under the author's name where no padding changes it."""
    if layout.kept and layout.columns == layout.pitch:
        return layout.buffer.shape[layout.kept[-1]]
    return const(layout.pitch)


def _parts(expr: Expr) -> int:
    """How long a lowered expression reads; a call into the toolkit counts for several, and so does an
    element of a tensor: under a name it is read once."""
    if isinstance(expr, CCall | Element):
        return 6
    return 1 + sum(_parts(child) for child in children(expr))
