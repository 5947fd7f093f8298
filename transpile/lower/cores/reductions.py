"""Reductions by repeats: rows to single elements, or rows on top of each other.

reads   values in local memory        writes  vector calls
Over the last dimension: one call for rows that fit a repeat; for many short rows the repeats of
each row are first combined lane by lane; for few long rows one call a row.
"""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir import forms
from tile2c.transpile.ir.dtypes import DTYPES, DType
from tile2c.transpile.ir.expr import Const, Expr, const
from tile2c.transpile.lower.cores import squares
from tile2c.transpile.lower.cores.calls import Calls, moved
from tile2c.transpile.lower.cores.context import Context
from tile2c.transpile.lower.cores.layouts import times
from tile2c.transpile.lower.cores.local_copies import convert
from tile2c.transpile.lower.cores.plan import (
    Argument,
    Loop,
    Step,
    Strides,
    TileRef,
    VectorCall,
    Word,
)
from tile2c.transpile.lower.cores.values import Value

COMBINE = {"Sum": "Add", "Max": "Max", "Min": "Min"}


class Reduction:
    """One reduction, written for a unit with repeats and strides."""

    def __init__(
        self, stmt: forms.Reduce, context: Context, calls: Calls, word: str, dst: Value
    ) -> None:
        self.stmt = stmt
        self.dst = dst
        self.context = context
        self.calls = calls
        self.word = word  # Sum, Max, Min
        self.borrowed: list[str] = []

    # ---- what all have in common

    def borrow(self, kind: str, dtype: DType, elements: int) -> TileRef:
        name = self.context.tiles.borrow(kind, dtype, elements)
        self.borrowed.append(name)
        return TileRef(tile=name)

    def operand(self, dst: Value, src: Value) -> tuple[Value, DType]:
        """The source in the type to combine in, made positive for the abs kinds."""
        dtype = dst.dtype
        wide = self.wide(dtype)
        dtype = DTYPES[wide] if wide else dtype
        if src.dtype != dtype:
            given = src
            src = self._like(src, dtype)
            convert(src, given, self.calls, self.context, self.stmt)
        if self.stmt.op in ("abssum", "absmax"):
            given = src
            if src.at.tile not in self.borrowed:
                src = self._like(src, dtype)
            self.calls.elementwise("Abs", src, (given,))
        return src, dtype

    def wide(self, dtype: DType) -> str | None:
        """The type to combine in, if it is not the destination's."""
        return self.context.target.widen.get(dtype.name)

    def _like(self, value: Value, dtype: DType) -> Value:
        kind = value.kind
        ref = self.borrow(kind, dtype, self.calls.shape.most(kind))
        return Value(kind=kind, dtype=dtype, ref=ref, pitch=self.calls.shape.pitch)

    def into(self, dst: Value, result: Value, count: Expr) -> None:
        """dst = result, or dst combined with it; both are `count` elements in a row."""
        function = COMBINE[self.word]
        if result.dtype != dst.dtype:
            self._wide_into(dst, result, count)
        elif not self.stmt.clear:
            arguments: tuple[Argument, ...] = (dst.at, result.at, count)
            self.context.emit(VectorCall(function=function, dst=dst.at, arguments=arguments))
        elif result.ref != dst.ref:
            self.move(dst.at, result.at, dst.dtype, count)

    def move(self, dst: TileRef, src: TileRef, dtype: DType, count: Expr) -> None:
        """dst = src, `count` elements."""
        one = Const(dtype=dtype, value=1)
        call = VectorCall(
            function="Muls", dst=dst, arguments=(src, one, count), covers=self.covers(dst)
        )
        self.context.emit(call)

    def _wide_into(self, dst: Value, result: Value, count: Expr) -> None:
        """Through the wider type for a destination without arithmetic."""
        modes = self.context.target.conversions  # widening is one step, and so is the way back
        if not self.stmt.clear:
            old = self.borrow("row", result.dtype, self._most(dst))
            up = modes[dst.dtype.name, result.dtype.name].modes[0]
            self.cast(old, dst.at, up, count)
            arguments: tuple[Argument, ...] = (result.at, old, count)
            self.context.emit(
                VectorCall(function=COMBINE[self.word], dst=result.at, arguments=arguments)
            )
        self.cast(dst.at, result.at, modes[result.dtype.name, dst.dtype.name].modes[0], count)

    def cast(self, dst: TileRef, src: TileRef, how: str, count: Expr) -> None:
        word = Word(text=f"RoundMode::{how}")
        call = VectorCall(
            function="Cast", dst=dst, arguments=(src, word, count), covers=self.covers(dst)
        )
        self.context.emit(call)

    def covers(self, ref: TileRef) -> bool:
        """Whether a call into `ref` writes all of the destination."""
        return self.dst.whole and ref.tile == self.dst.at.tile

    def _most(self, dst: Value) -> int:
        return self.context.layouts[dst.at.tile].size

    def done(self) -> None:
        for name in self.borrowed:
            self.context.tiles.give_back(name)

    def identity(self, dtype: DType) -> Const:
        if dtype.is_integer:
            most = 2 ** (dtype.bits - 1)
            return Const(dtype=dtype, value={"Sum": 0, "Max": -most, "Min": most - 1}[self.word])
        infinity = float("inf")
        value = {"Sum": 0.0, "Max": -infinity, "Min": infinity}[self.word]
        return Const(dtype=dtype, value=value)

    # ---- nothing to combine

    def single(self, dst: Value, src: Value) -> None:
        src, _ = self.operand(dst, src)
        self.into(dst, src, self.calls.shape.count(src.kind))
        self.done()

    # ---- over the last dimension

    def rows(self, dst: Value, src: Value) -> None:
        src, dtype = self.operand(dst, src)
        folds = self.context.target.can(f"Reduce{self.word}", dtype.name)
        combines = self.context.target.can(COMBINE[self.word], dtype.name)
        if not folds and not (combines and squares.turns(self.context.tiles, dtype)):
            raise failure(
                "T2C550",
                f"the vector unit does not reduce rows of {dtype}",
                self.stmt.span,
                help="reduce in float32, or over the first dimension",
            )
        shape = self.calls.shape
        direct = self.stmt.clear and dst.dtype == dtype
        ref = dst.at if direct else self.borrow("column", dtype, max(shape.most_rows, 1))
        result = Value(kind="row", dtype=dtype, ref=ref)
        repeat = self.context.tiles.repeat(dtype)
        lanes = self.context.tiles.lanes(dtype)
        many = shape.most_rows > 1
        if not folds:
            self._by_squares(result.at, src, dtype, repeat)
        elif many and shape.most_columns <= repeat:
            self._fold(result.at, src.at, shape.most_columns, src.pitch // lanes, dtype)
        elif many and self._wide_enough(src.pitch // lanes, repeat):
            self._lane_by_lane(result.at, src, dtype, repeat)
        else:
            self._row_by_row(result.at, src, dtype, repeat)
        self.into(dst, result, shape.rows)
        self.done()

    def _wide_enough(self, pitch: int, repeat: int) -> bool:
        """Whether combining repeats takes fewer calls than one call a row."""
        chunks = -(-self.calls.shape.most_columns // repeat)
        return pitch <= self.context.target.max_stride and chunks < self.calls.shape.most_rows

    def _fold(self, dst: TileRef, src: TileRef, mask: int, pitch: int, dtype: DType) -> None:
        """One element from each repeat."""
        order = () if self.word == "Sum" else (Word(text="ReduceOrder::ORDER_ONLY_VALUE"),)
        lanes = self.context.tiles.lanes(dtype)

        def call(row: Expr, rows: Expr) -> VectorCall:
            at = moved(src, times(row, pitch * lanes))
            return VectorCall(
                function=f"WholeReduce{self.word}",
                dst=moved(dst, row),
                covers=self.covers(dst),
                arguments=(at, const(mask), rows, const(1), const(1), const(pitch), *order),
            )

        self.context.emit(self.calls.in_groups(call))

    def _lane_by_lane(self, dst: TileRef, src: Value, dtype: DType, repeat: int) -> None:
        self._fold(dst, self._partial(src, dtype, repeat), repeat, 8, dtype)

    def _by_squares(self, dst: TileRef, src: Value, dtype: DType, repeat: int) -> None:
        """For elements that no call combines with their neighbours: one block a row is left, whose
        lanes become rows."""
        shape = self.calls.shape
        tiles, lanes = self.context.tiles, self.context.tiles.lanes(dtype)
        function = COMBINE[self.word]
        partial = self._partial(src, dtype, repeat)
        inside = Strides(values=(1, 1, 1, 8, 8, 8))
        half = repeat // 2
        while half >= lanes:

            def one(row: Expr, rows: Expr, half: int = half) -> VectorCall:
                at = moved(partial, times(row, repeat))
                arguments = (at, moved(at, const(half)), const(half), rows, inside)
                return VectorCall(function=function, dst=at, arguments=arguments)

            self.context.emit(self.calls.in_groups(one))
            half //= 2
        pitch = -(-shape.most_rows // squares.ROWS) * squares.ROWS
        turned = self.borrow("tile", dtype, lanes * pitch)
        where = (turned, const(pitch)), (partial, const(repeat))
        for call in squares.turn(tiles, *where, dtype, const(shape.most_rows), const(lanes)):
            self.context.emit(
                replace(call, remark="the lanes of a row's block, one under the other")
            )
        half = lanes // 2
        while half:
            last = half == 1
            other, into = moved(turned, const(half * pitch)), dst if last else turned
            count = shape.rows if last else const(half * pitch)
            arguments = (turned, other, count)
            self.context.emit(
                VectorCall(
                    function=function, dst=into, arguments=arguments, covers=self.covers(into)
                )
            )
            half //= 2

    def _partial(self, src: Value, dtype: DType, repeat: int) -> TileRef:
        """A repeat for each row: the lanes of its repeats combined."""
        shape = self.calls.shape
        partial = self.borrow("tile", dtype, shape.most_rows * repeat)
        count = times(shape.rows, repeat)
        self.context.emit(
            VectorCall(function="Duplicate", dst=partial, arguments=(self.identity(dtype), count))
        )
        pitch = src.pitch // self.context.tiles.lanes(dtype)
        step = pitch if pitch <= self.context.target.max_stride else 8  # of a single repeat
        far = Strides(values=(1, 1, 1, 8, 8, step))
        full, rest = divmod(shape.most_columns, repeat)

        def one(at: Expr, mask: int, row: Expr, rows: Expr) -> VectorCall:
            into = moved(partial, times(row, repeat))
            source = moved(moved(src.at, times(row, shape.step(src.pitch))), at)
            return VectorCall(
                function=COMBINE[self.word],
                dst=into,
                arguments=(into, source, const(mask), rows, far),
            )

        def call(at: Expr, mask: int) -> Step:
            if pitch <= self.context.target.max_stride:
                return self.calls.in_groups(lambda row, rows: one(at, mask, row, rows))
            return self.calls.over_rows(lambda row: one(at, mask, row, const(1)))

        column = shape.column_var
        if full == 1:
            self.context.emit(call(const(0), repeat))
        elif full:
            self.context.emit(
                Loop(
                    var=column,
                    start=const(0),
                    stop=const(full * repeat),
                    step=const(repeat),
                    body=(call(column, repeat),),
                )
            )
        if rest:
            self.context.emit(call(const(full * repeat), rest))
        return partial

    def _row_by_row(self, dst: TileRef, src: Value, dtype: DType, repeat: int) -> None:
        shape = self.calls.shape
        pairs = 2 * -(-shape.most_columns // repeat)  # a value and its place from each repeat
        work = self.borrow("row", dtype, pairs)
        row = shape.row_var
        one = shape.most_rows == 1
        self_dst = dst if one else moved(dst, row)
        at = src.at if one else moved(src.at, times(row, shape.step(src.pitch)))
        call = VectorCall(
            function=f"Reduce{self.word}",
            dst=self_dst,
            covers=self.covers(dst),
            arguments=(at, work, shape.columns),
            works_in=None if self.word == "Sum" else 1,
            # the unit adds up in a register, and any element can take the sum
            remark=f"{work.tile} stays untouched here" if self.word == "Sum" else "",
        )
        if one:
            self.context.emit(call)
        else:
            self.context.emit(
                Loop(
                    var=row,
                    start=const(0),
                    stop=shape.rows,
                    step=const(1),
                    body=(call,),
                    independent=self.word == "Sum",  # the others use the scratch tile
                    own=True,
                )
            )

    # ---- over the first dimension

    def columns(self, dst: Value, src: Value, step: int, rows: int) -> None:
        """Row upon row; `step` elements lie between two of them."""
        function = COMBINE[self.word]
        src, dtype = self.operand(dst, src)
        if not self.context.target.can(function, dtype.name):
            raise failure(
                "T2C550",
                f"the vector unit does not combine rows of {dtype}",
                self.stmt.span,
                help="reduce in float32",
            )
        width = step
        direct = dst.dtype == dtype
        result = dst.at if direct else self.borrow("row", dtype, width)
        first = 0 if direct and not self.stmt.clear else 1
        if first:
            self.move(result, src.at, dtype, const(width))
        row = self.calls.shape.row_var
        call = VectorCall(
            function=function,
            dst=result,
            arguments=(result, moved(src.at, times(row, step)), const(width)),
        )
        self.context.emit(
            Loop(var=row, start=const(first), stop=const(rows), step=const(1), body=(call,))
        )
        if not direct:
            self._wide_into(dst, Value(kind="row", dtype=dtype, ref=result), const(width))
        self.done()
