"""Statements of the cube core become steps: loads of tiles, products part by part, stores of sums.

reads   tile IR with `Begin`, `Product` and `StoreSums`     writes  steps without the queues of tiles
"""

from __future__ import annotations

from collections.abc import Iterable

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir import forms
from tile2c.transpile.ir.dtypes import BOOL, INT32, INT64, DType
from tile2c.transpile.ir.expr import (
    Binary,
    Compare,
    Const,
    Expr,
    Logical,
    Select,
    Unary,
    Var,
    const,
)
from tile2c.transpile.ir.forms import Region, Stmt
from tile2c.transpile.lower.cores.context import Context
from tile2c.transpile.lower.cores.copies import (
    check_starts,
    joined,
    point_guards,
    row_pitch,
)
from tile2c.transpile.lower.cores.cube.forms import Begin, Product, StoreSums
from tile2c.transpile.lower.cores.cube.roles import Roles, whole
from tile2c.transpile.lower.cores.cube.tiles import Matrix, lanes, matrix, split_depth
from tile2c.transpile.lower.cores.exchange import Exchange, Flag
from tile2c.transpile.lower.cores.extents import clip_of, long_dims
from tile2c.transpile.lower.cores.layouts import long_offset, times
from tile2c.transpile.lower.cores.plan import (
    Argument,
    Assign,
    Barrier,
    Branch,
    CubeCall,
    Leave,
    Local,
    Loop,
    QueueStep,
    Step,
    TensorRef,
    TileRef,
    WhileLoop,
    Word,
)
from tile2c.transpile.lower.cores.statements import cross_flag, named_stop
from tile2c.transpile.lower.plan import CCall
from tile2c.transpile.record import record
from tile2c.transpile.targets.cube import CubeUnit


@record
class PartTiles:
    """Names of the tiles in L0A and L0B, of the bias on its way, and of what is declared where."""

    left: str
    right: str
    dtype: DType | None = None  # of their elements; products of other types see their bits

    def seen(self, tile: str, dtype: DType) -> TileRef:
        """One of the two as elements of `dtype`."""
        return TileRef(tile=tile, view=None if dtype == self.dtype else dtype)


def whole_units(products: Iterable[Product], unit: CubeUnit) -> dict[str, tuple[int, int]]:
    """In which units rows and columns of sums are computed: pairs of fractals turn as one."""
    found: dict[str, tuple[int, int]] = {}
    for stmt in products:
        one = unit.fractal_rows
        pair = one
        if stmt.a.buffer.dtype.name in unit.squares:
            pair = max(one, lanes(stmt.a.buffer.dtype, unit))
        rows, columns = found.get(stmt.c.buffer.name, (one, one))
        rows = max(rows, pair if stmt.transpose_a else one)
        columns = max(columns, one if stmt.transpose_b else pair)
        found[stmt.c.buffer.name] = (rows, columns)
    return found


class CubeLowering:
    """Lowers statement lists of the cube core into a context."""

    def __init__(self, context: Context, roles: Roles, unit: CubeUnit, parts: PartTiles) -> None:
        self.context = context
        self.roles = roles
        self.unit = unit
        self.parts = parts
        self.biases: dict[
            str, tuple[str, str]
        ] = {}  # sums -> tiles of their bias in L1, in the table
        self.declared: list[set[str]] = [set()]
        self.whole_units: dict[str, tuple[int, int]] = {}  # sums -> units of their rows, columns

    def lower(self, body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            self.context.mark(stmt)
            self.statement(stmt)

    def statement(self, stmt: Stmt) -> None:
        if isinstance(stmt, Begin):
            self.begin(stmt)
        elif isinstance(stmt, Product):
            self.product(stmt)
        elif isinstance(stmt, StoreSums):
            self.store(stmt)
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

    def value(self, expr: Expr) -> Expr:
        return self.context.scalars.lower(expr, self.context.facts, self.context.emit)

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
        condition = self.value(stmt.condition)
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

    # ---- loads

    def load(self, stmt: forms.Copy) -> None:
        """Global memory to L1, as fractals, zeros in what is missing of them."""
        context, tile = self.context, matrix(stmt.dst.buffer, self.unit)
        if not whole(stmt.dst):
            raise _part(stmt.dst)
        check_starts(stmt.src, context)
        rows, columns, short = self.counts(stmt.dst, stmt.src, tile)
        name = tile.buffer.name
        guards = self.guards(stmt.src, context)
        guard = joined(guards, context)
        if guard is not None:
            short.append(Unary(dtype=BOOL, op="not", a=guard))
        self.clear(tile, short)
        pairs = ""
        if tile.buffer.dtype.name in self.unit.squares:  # whole pairs of fractals below each other
            pairs = f"<{lanes(tile.buffer.dtype, self.unit)}>"
        call: Step = CubeCall(
            unit="MTE2",
            function=f"copy_fractals{pairs}",
            dst=TileRef(tile=name),
            arguments=(
                self.region(stmt.src, name),
                rows,
                columns,
                self.pitch(stmt.src, stmt.dst),
                tile.tall_expr(),
            ),
            exchanged=isinstance(stmt.src.buffer, Exchange),
        )
        context.emit(call if guard is None else Branch(condition=guard, then=(call,)))

    def counts(self, tile: Region, tensor: Region, shape: Matrix) -> tuple[Expr, Expr, list[Expr]]:
        """Rows and columns inside the tensor, and conditions under which a tile needs zeros."""
        context = self.context
        pairs = dict(zip(long_dims(tile), long_dims(tensor), strict=True))
        found: list[Expr] = []
        short: list[Expr] = []
        for dim, word in ((shape.row_dim, "rows"), (shape.column_dim, "columns")):
            extent = tile.buffer.shape[dim]
            if dim not in pairs:
                found.append(extent)
                continue
            part, bound = tensor.ranges[pairs[dim]], tensor.buffer.shape[pairs[dim]]
            clip = clip_of(part.start, part.extent, bound, context.facts)
            if clip is None:
                found.append(self.value(part.extent))
                continue
            key = ("tile", tile.buffer.name, dim)
            live = context.edges.of(key)
            count = context.edge(clip, *self.edge_names(key, word))
            found.append(count)
            if live is None:
                short.append(Compare(dtype=BOOL, op="<", a=count, b=extent))
        return found[0], found[1], short

    def edge_names(self, key: tuple[str, str, int], word: str) -> tuple[str, ...]:
        """rows and columns of the sums, depth of the operands."""
        root = self.context.edges.root(key)
        for name, buffer in self.roles.sums.items():
            ndim = len(buffer.shape)
            for dim, mine in ((ndim - 2, "rows"), (ndim - 1, "columns")):
                if self.context.edges.root(("tile", name, dim)) == root:
                    return (mine, f"{name}_{mine}")
        return ("depth", f"{key[1]}_depth", f"{key[1]}_{word}")

    def clear(self, tile: Matrix, short: list[Expr]) -> None:
        """Zeros all over the tile where a copy leaves some of it out."""
        if not short:
            return
        condition = short[0]
        for other in short[1:]:
            condition = Logical(dtype=BOOL, op="or", a=condition, b=other)
        name = tile.buffer.name
        blocks = const(tile.bytes // self.unit.block_bytes)
        zeros = CubeCall(
            unit="MTE2", function="clear_tile", dst=TileRef(tile=name), arguments=(blocks,)
        )
        then = (zeros, Barrier(unit="MTE2", remark="the zeros are there before the copy"))
        self.context.emit(Branch(condition=condition, then=then, prefills=name))

    def guards(self, tensor: Region, context: Context) -> list[Expr]:
        return point_guards(tensor, long_dims(tensor), context)

    def region(self, tensor: Region, name: str) -> TensorRef:
        context = self.context
        index = tuple(self.value(part.start) for part in tensor.ranges)
        offset = context.scalars.global_offset(tensor.buffer.shape, tensor.buffer.strides, index)
        if long_offset(offset):
            local = context.names.local(f"{name}_at")
            context.emit(Local(name=local, dtype=INT64, value=offset))
            offset = Var(dtype=INT64, name=local, kind="temporary")
        return TensorRef(handle=context.scalars.handles[tensor.buffer.name], offset=offset)

    def pitch(self, tensor: Region, tile: Region) -> Expr:
        """Elements from row to row in the tensor, whose columns are neighbours."""
        outer, inner = long_dims(tensor), long_dims(tile)
        last = len(tensor.buffer.shape) - 1
        contiguous = tensor.buffer.strides is None or tensor.buffer.strides[last] == const(1)
        columns = inner and inner[-1] == len(tile.buffer.shape) - 1
        if not contiguous or (columns and outer[-1] != last):
            raise failure(
                "T2C545",
                f"the elements of this tile lie apart in {tensor.buffer.name}: "
                "rows are copied along its last dimension",
                tensor.span,
                help="let the last dimension of the region be the long one",
            )
        if not columns or len(outer) < 2:
            rows = [dim for dim in outer if not columns]
            return row_pitch(tensor, rows[0], self.context) if rows else const(1)
        return row_pitch(tensor, outer[0], self.context)

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
                raise _part(region)
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
        turned = {True: "_transposed", False: ""}
        left_call = f"load_left{turned[stmt.transpose_a]}{squares if stmt.transpose_a else ''}"
        right_call = f"load_right{turned[stmt.transpose_b]}{'' if stmt.transpose_b else squares}"
        if (stmt.transpose_a or not stmt.transpose_b) and (
            stmt.a.buffer.dtype.name not in self.unit.transposes
        ):
            which = stmt.a if stmt.transpose_a else stmt.b
            raise failure(
                "T2C572",
                f"{which.buffer.name} holds {which.buffer.dtype}, whose fractals do not turn on "
                "their way to the cube",
                which.span or stmt.span,
                help="store that operand the other way round and transpose it: transpose_B=True",
            )
        for tile, call, source, extent in (
            (left, left_call, a, m),
            (right, right_call, b, n),
        ):
            by_rows = (source is a) == stmt.transpose_a  # K runs down the tile
            offset = times(at, step) if by_rows else times(at, source.tall_expr())
            self.queue("allocate", tile)
            ref = TileRef(tile=source.buffer.name, offset=None if _zero(offset) else offset)
            arguments: tuple[Argument, ...] = (ref, extent, k, source.tall_expr())
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

    def size(self, sums: Region, side: int, word: str) -> Expr:
        """Rows (0) or columns (1) of the sums that are computed, in whole fractals."""
        buffer = sums.buffer
        dim = len(buffer.shape) - 2 + side
        live = self.context.live(("tile", buffer.name, dim), buffer.shape[dim])
        return self.rounded(live, self.whole_units[buffer.name][side], word)

    def rounded(self, count: Expr, unit: int, word: str) -> Expr:
        """`count` in whole fractals, at least one: a local where it is not known."""
        if isinstance(count, Const):
            known = max(1, -(-int(count.value) // unit)) * unit
            return count if known == count.value else const(known)
        name = self.context.names.local(word, f"{word}_whole")
        value = CCall(dtype=INT32, function="whole", args=(count, const(unit)))
        self.context.emit(Local(name=name, dtype=INT32, value=value))
        return Var(dtype=INT32, name=name, kind="temporary")

    # ---- stores

    def store(self, stmt: StoreSums) -> None:
        """L0C to global memory, nothing outside of the tensor."""
        context, name = self.context, stmt.src.buffer.name
        sums, tensor = stmt.src.buffer, stmt.dst.buffer
        mode = self.unit.stores[sums.dtype.name, tensor.dtype.name]
        check_starts(stmt.dst, context)
        shape = matrix(sums, self.unit)
        rows, columns, _ = self.counts(stmt.src, stmt.dst, shape)
        guard = joined(self.guards(stmt.dst, context), context)
        tall = self.size(stmt.src, 0, "m")
        arguments: tuple[Argument, ...] = (
            TileRef(tile=name),
            rows,
            columns,
            tall,
            self.pitch(stmt.dst, stmt.src),
            Word(text=f"QuantMode_t::{mode}"),
        )
        if stmt.relu:
            arguments = (*arguments, Word(text="true"))
        call: Step = CubeCall(
            unit="FIX",
            function="add_sums" if stmt.adds else "store_sums",
            dst=self.region(stmt.dst, name),
            arguments=arguments,
            remark="what is below 0 becomes 0" if stmt.relu else "",
        )
        context.emit(call if guard is None else Branch(condition=guard, then=(call,)))


def _part(region: Region) -> Exception:
    return failure(
        "T2C574",
        f"this is a part of {region.buffer.name}, but the cube core takes whole tiles",
        region.span,
        help="give each part a tile of its own",
    )


def _truth(expr: Expr) -> Expr | Word:
    if isinstance(expr, Const):
        return Word(text="true" if expr.value else "false")
    return expr


def _zero(expr: Expr) -> bool:
    return isinstance(expr, Const) and expr.value == 0
