"""Statements of the tile IR become steps: tile statements as whole-tile calls, the rest as C.

reads   tile IR with staged globals       writes  steps without queues and flags
"""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir import forms, walk
from tile2c.transpile.ir.dtypes import BOOL, INT32
from tile2c.transpile.ir.expr import Call, Const, Expr, Logical, Select, Unary, Var, const
from tile2c.transpile.ir.expr import Load as LoadExpr
from tile2c.transpile.ir.forms import Stmt
from tile2c.transpile.lower.cores.calls import Shape
from tile2c.transpile.lower.cores.context import Context
from tile2c.transpile.lower.cores.copies import lower_copy, lower_fill, lower_interleave
from tile2c.transpile.lower.cores.exchange import Flag
from tile2c.transpile.lower.cores.expressions import Vectors
from tile2c.transpile.lower.cores.gather import Gather
from tile2c.transpile.lower.cores.gathers import lower_gather
from tile2c.transpile.lower.cores.loop_order import arranged
from tile2c.transpile.lower.cores.packed import Interleave
from tile2c.transpile.lower.cores.plan import (
    Assign,
    Branch,
    CrossFlag,
    Leave,
    Local,
    Loop,
    Step,
    TileRef,
    WhileLoop,
    WriteElement,
)
from tile2c.transpile.lower.cores.reduction_statements import lower_reduce
from tile2c.transpile.lower.cores.scans import lower_scan
from tile2c.transpile.lower.cores.units import calls_of
from tile2c.transpile.lower.cores.values import Value
from tile2c.transpile.lower.cores.weights import lower_gemm
from tile2c.transpile.lower.rewrite import rewrite_statement


def lower_statements(body: tuple[Stmt, ...], context: Context) -> None:
    """Adds the steps of each statement to the context's current list."""
    for stmt in body:
        context.mark(stmt)
        with context.scalars.stores_of(stmt):
            _statement(stmt, context)


def _statement(stmt: Stmt, context: Context) -> None:
    if isinstance(stmt, Gather):
        lower_gather(stmt, context)
    elif isinstance(stmt, Interleave):
        lower_interleave(stmt, context)
    elif isinstance(stmt, forms.Copy | forms.AtomicTile):
        lower_copy(stmt, context)
    elif isinstance(stmt, forms.Fill):
        lower_fill(stmt, context)
    elif isinstance(stmt, forms.Reduce):
        lower_reduce(stmt, context)
    elif isinstance(stmt, forms.Scan):
        lower_scan(stmt, context)
    elif isinstance(stmt, forms.Gemm):
        lower_gemm(stmt, context)
    elif isinstance(stmt, forms.Parallel):
        _Parallel(stmt, context).lower()
    elif isinstance(stmt, forms.Let | forms.Declare | forms.Store):
        _scalar(stmt, context)
    elif isinstance(stmt, forms.For | forms.Pipelined):
        _loop(stmt, context)
    elif isinstance(stmt, forms.While | forms.If):
        _control(stmt, context)
    elif isinstance(stmt, forms.Jump):
        if stmt.kind == "return":
            raise failure(
                "T2C551",
                "T.thread_return() ends one thread, but a core has none",
                stmt.span,
                help="put the rest of the block under an if",
            )
        context.emit(Leave(kind=stmt.kind))
    elif isinstance(stmt, Flag):
        context.emit(cross_flag(stmt))
    # barriers between threads and assertions have nothing to do here


def cross_flag(stmt: Flag) -> CrossFlag:
    return CrossFlag(
        action=stmt.action, flag=stmt.flag, unit=stmt.unit or "S", remark=stmt.why, span=stmt.span
    )


def _scalar(stmt: forms.Let | forms.Declare | forms.Store, context: Context) -> None:
    if isinstance(stmt, forms.Let):
        value = context.scalars.lower(stmt.value, context.facts, context.emit)
        context.emit(Local(name=stmt.var.name, dtype=stmt.var.dtype, value=value))
        context.facts = context.facts.with_meaning(stmt.var, stmt.value)
    elif isinstance(stmt, forms.Declare):
        first = None
        if stmt.init is not None:
            first = context.scalars.lower(stmt.init, context.facts, context.emit)
        buffer = stmt.buffer
        context.emit(Local(name=buffer.name, dtype=buffer.dtype, value=first, const=False))
    elif stmt.buffer.scope in ("variable", "local"):
        value = context.scalars.lower(stmt.value, context.facts, context.emit)
        context.emit(Assign(name=stmt.buffer.name, value=value))
    else:
        _element(stmt, context)


def _element(stmt: forms.Store, context: Context) -> None:
    """One element of a tile: by V if the tile has only one, so that nobody waits for S."""
    layout = context.layouts[stmt.buffer.name]
    reads_tiles = any(load.buffer.name in context.layouts for load in walk.loads(stmt.value))
    calls = any(isinstance(part, Call) for part in walk.parts(stmt.value))
    if layout.size <= layout.pitch and layout.columns == 1 and (reads_tiles or calls):
        shape = _shape((), (), context)
        vectors = _vectors(shape, None, None, context)
        at = TileRef(tile=stmt.buffer.name)
        vectors.assign(Value(kind="one", dtype=stmt.buffer.dtype, ref=at), stmt.value)
        return
    index = tuple(context.scalars.lower(part, context.facts, context.emit) for part in stmt.index)
    value = context.scalars.lower(stmt.value, context.facts, context.emit)
    dst = TileRef(tile=stmt.buffer.name, offset=layout.offset(index))
    context.emit(WriteElement(dst=dst, value=value))


def named_stop(stop: Expr, stmt: forms.For | forms.Pipelined, context: Context) -> Expr:
    """The end of a loop under a name, where it is a choice between two numbers."""
    if not isinstance(stop, Select):
        return stop
    name = context.names.local("rounds", f"{stmt.var.name}_rounds")
    context.emit(Local(name=name, dtype=INT32, value=stop))
    return Var(dtype=INT32, name=name, kind="temporary")


def _loop(stmt: forms.For | forms.Pipelined, context: Context) -> None:
    start = context.scalars.lower(stmt.start, context.facts, context.emit)
    stop = named_stop(context.scalars.lower(stmt.stop, context.facts, context.emit), stmt, context)
    step = stmt.step if isinstance(stmt, forms.For) else 1
    facts = context.facts
    if step > 0:
        facts = facts.with_loop(stmt)
    with context.nested(stmt.var, facts=facts) as scope:
        lower_statements(stmt.body, context)
    body = context.body(scope)
    stages = int(stmt.num_stages.value) if isinstance(stmt, forms.Pipelined) else 1
    context.emit(
        Loop(var=stmt.var, start=start, stop=stop, step=const(step), body=body, stages=stages)
    )


def _control(stmt: forms.While | forms.If, context: Context) -> None:
    before = len(context.scopes[-1].steps)
    context.scalars.anew = isinstance(stmt, forms.While)
    condition = context.scalars.lower(stmt.condition, context.facts, context.emit)
    context.scalars.anew = False
    if isinstance(stmt, forms.While):
        if len(context.scopes[-1].steps) != before:
            raise failure(
                "T2C552",
                "this while condition reads a tile, which V writes while S tests",
                stmt.condition.span or stmt.span,
                help="keep the condition in a T.alloc_var, set at the end of the body",
            )
        with context.nested() as scope:
            lower_statements(stmt.body, context)
        context.emit(WhileLoop(condition=condition, body=context.body(scope)))
        return
    sides = []
    for body, holds in ((stmt.then, True), (stmt.orelse, False)):
        facts = context.facts.with_condition(stmt.condition) if holds else context.facts
        with context.nested(facts=facts) as scope:
            lower_statements(body, context)
        sides.append(context.body(scope))
    context.emit(Branch(condition=condition, then=sides[0], orelse=sides[1]))


# ---- parallel loops


class _Parallel:
    """One T.Parallel: its last two variables are columns and rows of tiles, others serial loops."""

    def __init__(self, stmt: forms.Parallel, context: Context) -> None:
        self.stmt = stmt
        self.context = context
        self.body = stmt.body

    def lower(self) -> None:
        pairs = list(zip(self.stmt.loop_vars, self.stmt.extents, strict=True))
        for var, extent in pairs:
            if not isinstance(extent, Const):
                raise failure(
                    "T2C532",
                    f"{var.name} runs over a size known only at run time, "
                    "but local memory holds tiles of constant size",
                    extent.span or self.stmt.span,
                    help="walk over it in a serial loop of tiles, with T.Parallel inside",
                )
        ones = {var for var, extent in pairs if _is_one(extent)}
        self.body = tuple(
            rewrite_statement(stmt, lambda part: const(0) if part in ones else None)
            for stmt in _spelled(self.stmt.body)
        )
        long = [(var, extent) for var, extent in pairs if var not in ones]
        long = arranged(long, self.body, self.context.layouts)
        self.serial(long[:-2], long[-2:])

    def serial(self, outer: list[tuple[Var, Expr]], inner: list[tuple[Var, Expr]]) -> None:
        if not outer:
            self.vector(inner)
            return
        (var, extent), rest = outer[0], outer[1:]
        facts = self.context.facts.with_range(var, const(0), extent)
        with self.context.nested(var, facts=facts) as scope:
            self.serial(rest, inner)
        body = self.context.body(scope)
        stop = self.context.live(("loop", var.name, 0), extent)
        loop = Loop(var=var, start=const(0), stop=stop, step=const(1), body=body)
        self.context.emit(loop)

    def vector(self, inner: list[tuple[Var, Expr]]) -> None:
        variables = tuple(var for var, _ in inner)
        shape = _shape(variables, tuple(extent for _, extent in inner), self.context)
        row = variables[-2] if len(variables) > 1 else None
        column = variables[-1] if variables else None
        vectors = _vectors(shape, row, column, self.context)
        for stmt in self.body:
            self.statement(stmt, vectors, None)
        vectors.free(*vectors.bound.values())

    def statement(self, stmt: Stmt, vectors: Vectors, guard: Expr | None) -> None:
        self.context.mark(stmt)
        if isinstance(stmt, forms.Store):
            self.store(stmt, vectors, guard)
        elif isinstance(stmt, forms.Let):
            self.let(stmt, vectors)
        elif isinstance(stmt, forms.If):
            self.condition(stmt, vectors, guard)
        elif isinstance(stmt, forms.For):
            self.loop(stmt, vectors, guard)
        elif isinstance(stmt, forms.AuthorSync):
            return
        else:
            raise failure(
                "T2C553",
                "this statement inside T.Parallel has no whole-tile form",
                stmt.span or self.stmt.span,
                help="T.Parallel may assign to tiles, choose with if and loop with T.serial here",
            )

    def store(self, stmt: forms.Store, vectors: Vectors, guard: Expr | None) -> None:
        if stmt.buffer.name not in self.context.layouts:
            raise failure(
                "T2C554",
                f"{stmt.buffer.name} is one number, and each iteration would write it",
                stmt.span,
                help="write a fragment, and reduce it with T.reduce_*",
            )
        dst = vectors.element(stmt.buffer.name, stmt.index, stmt.span, stored=True)
        value = stmt.value
        if guard is not None:
            old = LoadExpr(dtype=stmt.buffer.dtype, buffer=stmt.buffer, index=stmt.index)
            value = Select(dtype=value.dtype, condition=guard, a=value, b=old, span=stmt.span)
        vectors.assign(dst, value)

    def let(self, stmt: forms.Let, vectors: Vectors) -> None:
        """A temporary of each iteration: a tile of its own, a number, or a condition kept as it is."""
        if stmt.var.dtype == BOOL and vectors.varies(stmt.value) and self.lasts(stmt.value):
            vectors.conditions[stmt.var.name] = stmt.value
            return
        value = vectors.evaluate(stmt.value)
        if value.kind == "scalar":
            step = Local(name=stmt.var.name, dtype=stmt.var.dtype, value=value.number)
            self.context.emit(step)
            return
        # An element of a tile: what it is now, whatever is written later.
        if not value.scratch and not self.lasts(stmt.value):
            kept = vectors.scratch(value.kind, value.dtype)
            vectors.calls.copy(kept, value)
            value = kept
        vectors.bound[stmt.var.name] = value

    def lasts(self, condition: Expr) -> bool:
        """Whether it means the same wherever the loop asks for it."""
        read = {load.buffer.name for load in walk.loads(condition)}
        return not any(
            isinstance(stmt, forms.Store) and stmt.buffer.name in read
            for stmt in walk.statements(self.body)
        )

    def condition(self, stmt: forms.If, vectors: Vectors, guard: Expr | None) -> None:
        """Uniform conditions branch; others choose between the new and the old element."""
        if not vectors.varies(stmt.condition):
            lowered = self.context.scalars.lower(
                stmt.condition, self.context.facts, self.context.emit
            )
            sides = []
            for body in (stmt.then, stmt.orelse):
                with self.context.nested() as scope:
                    for inner in body:
                        self.statement(inner, vectors, guard)
                sides.append(self.context.body(scope))
            self.context.emit(Branch(condition=lowered, then=sides[0], orelse=sides[1]))
            return
        merged = _merged(stmt)
        if merged is not None:
            self.statement(merged, vectors, guard)
            return
        for body, condition in (
            (stmt.then, stmt.condition),
            (stmt.orelse, Unary(dtype=BOOL, op="not", a=stmt.condition)),
        ):
            both: Expr = condition
            if guard is not None:
                both = Logical(dtype=BOOL, op="and", a=guard, b=condition)
            for inner in body:
                self.statement(inner, vectors, both)

    def loop(self, stmt: forms.For, vectors: Vectors, guard: Expr | None) -> None:
        """The iterations are independent, so the loop can run outside of them."""
        start = self.context.scalars.lower(stmt.start, self.context.facts, self.context.emit)
        stop = self.context.scalars.lower(stmt.stop, self.context.facts, self.context.emit)
        facts = self.context.facts.with_loop(stmt)
        with self.context.nested(stmt.var, facts=facts) as scope:
            for inner in stmt.body:
                self.statement(inner, replace(vectors, facts=facts), guard)
        body: tuple[Step, ...] = self.context.body(scope)
        step = Loop(var=stmt.var, start=start, stop=stop, step=const(stmt.step), body=body)
        self.context.emit(step)


def _shape(variables: tuple[Var, ...], extents: tuple[Expr, ...], context: Context) -> Shape:
    """Rows and columns of up to two loop variables."""
    most = [int(extent.value) for extent in extents if isinstance(extent, Const)]
    live = [
        context.live(("loop", var.name, 0), extent)
        for var, extent in zip(variables, extents, strict=True)
    ]
    columns = most[-1] if most else 1
    lanes = context.target.lanes(min(context.element_bytes))
    pitch = -(-columns // lanes) * lanes
    row = Var(dtype=INT32, name=variables[-2].name if len(variables) > 1 else "row", kind="loop")
    column = Var(dtype=INT32, name=variables[-1].name if variables else "column", kind="loop")
    return Shape(
        rows=live[-2] if len(live) > 1 else const(1),
        columns=live[-1] if live else const(1),
        most_rows=most[-2] if len(most) > 1 else 1,
        most_columns=columns,
        pitch=pitch,
        width=extents[-1] if extents and columns == pitch else const(pitch),
        row_var=row,
        column_var=column,
    )


def _vectors(shape: Shape, row: Var | None, column: Var | None, context: Context) -> Vectors:
    return Vectors(
        calls=calls_of(context.tiles, shape, context.emit),
        tiles=context.tiles,
        scalars=context.scalars,
        layouts=context.layouts,
        facts=context.facts,
        row_var=row,
        column_var=column,
    )


def _spelled(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Conditions under a name stand where the name stood: no tile holds truth values."""
    new: list[Stmt] = []
    named: dict[str, Expr] = {}

    def said(part: Expr) -> Expr | None:
        return named.get(part.name) if isinstance(part, Var) else None

    for stmt in body:
        stmt = rewrite_statement(stmt, said)
        if isinstance(stmt, forms.Let) and stmt.var.dtype == BOOL:
            if not any(True for _ in walk.loads(stmt.value)):
                named[stmt.var.name] = stmt.value
                continue
        new.append(stmt)
    return tuple(new)


def _merged(stmt: forms.If) -> forms.Store | None:
    """Both sides as one store, where each is one store to the same element.

    Raises InputError where one side would change what the other side's condition reads.
    """
    if len(stmt.then) == len(stmt.orelse) == 1:
        a, b = stmt.then[0], stmt.orelse[0]
        if isinstance(a, forms.Store) and isinstance(b, forms.Store):
            if (a.buffer, a.index) == (b.buffer, b.index):
                value = Select(
                    dtype=a.value.dtype,
                    condition=stmt.condition,
                    a=a.value,
                    b=b.value,
                    span=stmt.span,
                )
                return replace(a, value=value)
    read = {load.buffer.name for load in walk.loads(stmt.condition)}
    written = {
        inner.buffer.name
        for body in (stmt.then, stmt.orelse)
        for inner in walk.statements(body)
        if isinstance(inner, forms.Store)
    }
    if read & written and (stmt.orelse or len(stmt.then) > 1):
        raise failure(
            "T2C555",
            f"this condition reads {', '.join(sorted(read & written))}, which its branches write",
            stmt.condition.span or stmt.span,
            help="assign once: x[i, j] = T.if_then_else(condition, new, other)",
        )
    return None


def _is_one(extent: Expr) -> bool:
    return isinstance(extent, Const) and extent.value == 1
