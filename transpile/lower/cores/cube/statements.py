"""Statements of the cube core become steps: control flow, biases, products part by part.

reads   tile IR with `Begin`, `Product` and `StoreSums`     writes  steps without the queues of tiles
"""

from __future__ import annotations

from tile2c.transpile.ir import forms
from tile2c.transpile.ir.dtypes import BOOL, INT32, DType
from tile2c.transpile.ir.expr import (
    Binary,
    Compare,
    Const,
    Expr,
    Logical,
    Select,
    Var,
    const,
)
from tile2c.transpile.ir.forms import Region, Stmt
from tile2c.transpile.lower.cores.context import Context
from tile2c.transpile.lower.cores.copies import (
    check_starts,
)
from tile2c.transpile.lower.cores.cube.forms import Begin, Product, StoreSums
from tile2c.transpile.lower.cores.cube.gathers import CubeGathering
from tile2c.transpile.lower.cores.cube.roles import Roles, whole
from tile2c.transpile.lower.cores.cube.tiles import Matrix, lanes, matrix, split_depth
from tile2c.transpile.lower.cores.cube.transfers import Transfers, part_of_tile
from tile2c.transpile.lower.cores.exchange import Flag
from tile2c.transpile.lower.cores.extents import clip_of
from tile2c.transpile.lower.cores.gather import Gather
from tile2c.transpile.lower.cores.layouts import times
from tile2c.transpile.lower.cores.plan import (
    Argument,
    Assign,
    Branch,
    CubeCall,
    Leave,
    Local,
    Loop,
    QueueStep,
    TileRef,
    WhileLoop,
    Word,
)
from tile2c.transpile.lower.cores.statements import cross_flag, named_stop
from tile2c.transpile.record import record
from tile2c.transpile.targets.cube import CubeUnit


@record
class PartTiles:
    """Names of the tiles in L0A and L0B."""

    left: str
    right: str
    dtype: DType | None = None  # of their elements; products of other types see their bits

    def seen(self, tile: str, dtype: DType) -> TileRef:
        """One of the two as elements of `dtype`."""
        return TileRef(tile=tile, view=None if dtype == self.dtype else dtype)


class CubeLowering(Transfers):
    """Lowers statement lists of the cube core into a context."""

    def __init__(self, context: Context, roles: Roles, unit: CubeUnit, parts: PartTiles) -> None:
        super().__init__(context, roles, unit)
        self.parts = parts
        self.biases: dict[str, tuple[str, str]] = {}  # sums -> their bias in L1, in the table
        self.declared: list[set[str]] = [set()]  # parts by the list of statements that has them

    def lower(self, body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            self.context.mark(stmt)
            with self.context.scalars.stores_of(stmt):
                self.statement(stmt)

    def statement(self, stmt: Stmt) -> None:
        if isinstance(stmt, Begin):
            self.begin(stmt)
        elif isinstance(stmt, Product):
            self.product(stmt)
        elif isinstance(stmt, StoreSums):
            self.store(stmt)
        elif isinstance(stmt, Gather):
            CubeGathering(stmt, self, matrix(stmt.tile, self.unit)).lower()
        elif isinstance(stmt, forms.Copy):
            self.load(stmt)
        elif isinstance(stmt, forms.Let | forms.Declare | forms.Store):
            self.scalar(stmt)
        elif isinstance(stmt, forms.For | forms.Pipelined | forms.While | forms.If):
            self.control(stmt)
        elif isinstance(stmt, Flag):
            self.context.emit(cross_flag(stmt))
        elif isinstance(stmt, forms.Jump):
            self.context.emit(Leave(kind=stmt.kind))

    # ---- scalars and control flow

    def scalar(self, stmt: forms.Let | forms.Declare | forms.Store) -> None:
        if isinstance(stmt, forms.Let):
            self.context.facts = self.context.facts.with_meaning(stmt.var, stmt.value)
            self.context.emit(
                Local(name=stmt.var.name, dtype=stmt.var.dtype, value=self.value(stmt.value))
            )
        elif isinstance(stmt, forms.Declare):
            first = None if stmt.init is None else self.value(stmt.init)
            buffer = stmt.buffer
            self.context.emit(Local(name=buffer.name, dtype=buffer.dtype, value=first, const=False))
        else:
            self.context.emit(Assign(name=stmt.buffer.name, value=self.value(stmt.value)))

    def control(self, stmt: forms.For | forms.Pipelined | forms.While | forms.If) -> None:
        context = self.context
        if isinstance(stmt, forms.For | forms.Pipelined):
            start, stop = self.value(stmt.start), self.value(stmt.stop)
            stop = named_stop(stop, stmt, context)
            step = stmt.step if isinstance(stmt, forms.For) else 1
            facts = context.facts.with_loop(stmt) if step > 0 else context.facts
            with context.nested(stmt.var, facts=facts) as scope:
                self.inner(stmt.body)
            body = context.body(scope)
            context.emit(Loop(var=stmt.var, start=start, stop=stop, step=const(step), body=body))
            return
        context.scalars.anew = isinstance(stmt, forms.While)
        condition = self.value(stmt.condition)
        context.scalars.anew = False
        if isinstance(stmt, forms.While):
            with context.nested() as scope:
                self.inner(stmt.body)
            context.emit(WhileLoop(condition=condition, body=context.body(scope)))
            return
        sides = []
        for part, holds in ((stmt.then, True), (stmt.orelse, False)):
            facts = context.facts.with_condition(stmt.condition) if holds else context.facts
            with context.nested(facts=facts) as scope:
                self.inner(part)
            sides.append(context.body(scope))
        context.emit(Branch(condition=condition, then=sides[0], orelse=sides[1]))

    def inner(self, body: tuple[Stmt, ...]) -> None:
        self.declared.append(set())
        self.lower(body)
        self.declared.pop()

    # ---- products

    def begin(self, stmt: Begin) -> None:
        context, name = self.context, stmt.sums.name
        context.emit(CubeCall(unit="M", function="", dst=TileRef(tile=name), begins=True))
        if stmt.bias is not None:
            self.bias(stmt, stmt.bias)

    def bias(self, stmt: Begin, region: Region) -> None:
        """A row of a tensor to L1, and from there to the table that sums start from."""
        context, name = self.context, stmt.sums.name
        in_l1, in_table = self.biases[name]
        check_starts(region, context)
        dim = len(region.ranges) - 1
        part, bound = region.ranges[dim], region.buffer.shape[dim]
        clip = clip_of(part.start, part.extent, bound, context.facts)
        count = part.extent if clip is None else context.edge(clip, "columns", f"{name}_columns")
        copy = CubeCall(
            unit="MTE2",
            function="copy_fractals<1>",
            dst=TileRef(tile=in_l1),
            arguments=(self.region(region, name), const(1), count, count, const(1)),
            remark=f"{name} starts from {region.buffer.name}",
        )
        move = CubeCall(
            unit="MTE1",
            function="copy_bias",
            dst=TileRef(tile=in_table),
            arguments=(TileRef(tile=in_l1), self.value(part.extent)),
        )
        context.emit(copy)
        context.emit(move)

    def product(self, stmt: Product) -> None:
        """C = or += A B, K a part at a time: L1 to L0A and L0B, then the product."""
        context = self.context
        for region in (stmt.a, stmt.b, stmt.c):
            if not whole(region):
                raise part_of_tile(region)
        a, b = matrix(stmt.a.buffer, self.unit), matrix(stmt.b.buffer, self.unit)
        parts = split_depth(stmt, self.unit)
        depth_dim = a.row_dim if stmt.transpose_a else a.column_dim
        extent = stmt.a.buffer.shape[depth_dim]
        m, n = self.size(stmt.c, 0, "m"), self.size(stmt.c, 1, "n")
        live = context.live(("tile", stmt.a.buffer.name, depth_dim), extent)
        step = lanes(stmt.a.buffer.dtype, self.unit)
        k = self.rounded(live, step, "k")
        first = self.value(stmt.first)
        if isinstance(extent, Const) and int(extent.value) <= parts.depth:
            self.part(stmt, a, b, const(0), m, n, k, first)
            return
        at = Var(dtype=INT32, name=context.names.fresh("k_part"), kind="loop")
        size = const(parts.depth)
        with context.nested(at) as scope:
            rest = Binary(dtype=INT32, op="-", a=k, b=at)
            fits = Compare(dtype=BOOL, op="<", a=rest, b=size)
            count: Expr = size
            if not (isinstance(k, Const) and int(k.value) % parts.depth == 0):
                name = context.names.local("part", "part_depth")
                value = Select(dtype=INT32, condition=fits, a=rest, b=size)
                context.emit(Local(name=name, dtype=INT32, value=value))
                count = Var(dtype=INT32, name=name, kind="temporary")
            begins = Compare(dtype=BOOL, op="==", a=at, b=const(0))
            if not isinstance(first, Const):
                first = Logical(dtype=BOOL, op="and", a=first, b=begins)
            elif first.value:
                first = begins
            self.declared.append(set())
            self.part(stmt, a, b, at, m, n, count, first)
            self.declared.pop()
        remark = f"K in parts of {parts.depth}, two of which fit into L0A and L0B"
        loop = Loop(
            var=at, start=const(0), stop=k, step=size, body=context.body(scope), remark=remark
        )
        context.emit(loop)

    def part(
        self,
        stmt: Product,
        a: Matrix,
        b: Matrix,
        at: Expr,
        m: Expr,
        n: Expr,
        k: Expr,
        first: Expr,
    ) -> None:
        left, right = self.parts.left, self.parts.right
        step = lanes(stmt.a.buffer.dtype, self.unit)
        squares = "_squares" if stmt.a.buffer.dtype.name in self.unit.squares else ""
        blocks = stmt.a.buffer.dtype.name in self.unit.blocks
        turns = "_blocks" if blocks else f"_transposed{squares}"
        left_call = f"load_left{turns if stmt.transpose_a else ''}"
        right_call = f"load_right{'_blocks' if blocks else squares}"
        if stmt.transpose_b:
            right_call = "load_right_transposed"
        for tile, call, source, extent in (
            (left, left_call, a, m),
            (right, right_call, b, n),
        ):
            by_rows = stmt.transpose_a if tile == left else not stmt.transpose_b  # K runs down it
            pitch = source.wide_expr() if blocks and by_rows else source.tall_expr()
            offset = times(at, step) if by_rows and not blocks else times(at, pitch)
            self.queue("allocate", tile)
            ref = TileRef(tile=source.buffer.name, offset=None if _zero(offset) else offset)
            arguments: tuple[Argument, ...] = (ref, extent, k, pitch)
            self.context.emit(
                CubeCall(
                    unit="MTE1",
                    function=call,
                    dst=self.parts.seen(tile, source.buffer.dtype),
                    arguments=arguments,
                )
            )
            self.queue("enqueue", tile)
        self.queue("dequeue", left)
        self.queue("dequeue", right)
        sums = TileRef(tile=stmt.c.buffer.name)
        given: tuple[Argument, ...] = (
            self.parts.seen(left, a.buffer.dtype),
            self.parts.seen(right, b.buffer.dtype),
        )
        function = "multiply"
        if stmt.bias:
            function = "multiply_from"
            given = (*given, TileRef(tile=self.biases[stmt.bias][1]))
        if blocks and stmt.transpose_a:
            function += "_blocks"
        self.context.emit(
            CubeCall(
                unit="M", function=function, dst=sums, arguments=(*given, m, n, k, _truth(first))
            )
        )
        self.queue("free", left)
        self.queue("free", right)

    def queue(self, action: str, tile: str) -> None:
        declare = action == "allocate" and tile not in self.declared[-1]
        self.declared[-1].add(tile)
        self.context.emit(QueueStep(action=action, tile=tile, declare=declare))  # type: ignore[arg-type]


def _truth(expr: Expr) -> Expr | Word:
    if isinstance(expr, Const):
        return Word(text="true" if expr.value else "false")
    return expr


def _zero(expr: Expr) -> bool:
    return isinstance(expr, Const) and expr.value == 0
