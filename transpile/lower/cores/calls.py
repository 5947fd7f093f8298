"""Writes vector calls over whole tiles: flat where the operands lie alike, row by row where not.

The forms of a call are those of the vector unit: a count of elements, or repeats with strides in
blocks, in which a stride of 0 reads the same block again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tile2c.transpile.ir.dtypes import BOOL, DTYPES, INT32, DType
from tile2c.transpile.ir.expr import Binary, Compare, Const, Expr, Select, Var, const
from tile2c.transpile.lower.cores import choices, squares
from tile2c.transpile.lower.cores.layouts import is_zero, plus, times
from tile2c.transpile.lower.cores.plan import (
    Argument,
    Loop,
    Step,
    Strides,
    TileRef,
    VectorCall,
    Word,
)
from tile2c.transpile.lower.cores.tiles import Tiles
from tile2c.transpile.lower.cores.values import Kind, Value
from tile2c.transpile.record import record

Emit = Callable[[Step], None]


@record(kw_only=True)
class Shape:
    """The iterations of a loop as rows and columns: how many run, and how many there may be."""

    rows: Expr  # that run: `rows` in the last tile, else all
    columns: Expr
    most_rows: int
    most_columns: int
    pitch: int  # of a tile without gaps but padding
    width: Expr  # the pitch under the author's name where it has one
    row_var: Var
    column_var: Var

    def step(self, pitch: int) -> Expr:
        """A pitch, under the author's name where it is the one of this shape."""
        return self.width if pitch == self.pitch else const(pitch)

    def count(self, kind: Kind) -> Expr:
        """Elements of a value of this shape that lie one after the other."""
        if kind == "tile":
            return times(self.rows, self.width)
        return {"row": self.columns, "column": self.rows}.get(kind, const(1))

    def most(self, kind: Kind) -> int:
        """Elements that a tile for such a value has to hold."""
        if kind == "tile":
            return self.most_rows * self.pitch
        return {"row": self.pitch, "column": self.most_rows}.get(kind, 1)


class Calls:
    """Emits calls for the iterations of one shape."""

    def __init__(self, tiles: Tiles, shape: Shape, emit: Emit) -> None:
        self.tiles = tiles
        self.shape = shape
        self.emit = emit

    # ---- forms

    def elementwise(
        self, function: str, dst: Value, operands: tuple[Value, ...], *extra: Argument
    ) -> None:
        """function(dst, operands, extra, count) for operands of dst's shape, rows or numbers."""
        kinds = {value.kind for value in operands if value.kind not in ("scalar", dst.kind)}
        if dst.kind != "tile" or (not kinds and self._flat(dst, *operands)):
            assert not kinds, f"{function} of {kinds} into {dst.kind}"
            self._counted(function, dst, operands, extra, None)
            return
        assert kinds <= {"row"}, f"{function} takes no {kinds}"
        self._counted(function, dst, operands, extra, self.shape.row_var)

    def _flat(self, *values: Value) -> bool:
        """Whether the rows of all these tiles are as far apart as rows without gaps."""
        return all(v.pitch == self.shape.pitch for v in values if v.kind == "tile")

    def _counted(
        self,
        function: str,
        dst: Value,
        operands: tuple[Value, ...],
        extra: tuple[Argument, ...],
        row: Var | None,
    ) -> None:
        def place(value: Value) -> Argument:
            if value.kind == "scalar":
                return value.number
            if row is None or value.kind != "tile":
                return value.at
            return moved(value.at, times(row, self.shape.step(value.pitch)))

        count = self.shape.columns if row is not None else self.shape.count(dst.kind)
        if function == "DataCopy" and dst.whole:  # it moves whole blocks; tiles end with one
            block = self.tiles.target.block_bytes // dst.dtype.bytes
            count = times(_divided(plus(count, const(block - 1)), block), block)
        call = VectorCall(
            function=function,
            dst=_ref(place(dst)),
            arguments=(*(place(value) for value in operands), *extra, count),
            covers=dst.whole,
            remark="integers by their bits" if function == "Select" and dst.at.view else "",
        )
        if row is None:
            self.emit(call)
        else:
            self.emit(self._over_rows(row, (call,)))

    def _over_rows(self, row: Var, body: tuple[Step, ...]) -> Loop:
        return Loop(
            var=row,
            start=const(0),
            stop=self.shape.rows,
            step=const(1),
            body=body,
            independent=True,
            own=True,
        )

    def cast(self, dst: Value, src: Value, how: str) -> None:
        """dst = src in its own element type, rounded as `how` says."""
        self.elementwise("Cast", dst, (src,), mode(how))

    # ---- choices

    def compared(self, op: str, left: Value, right: Value, kind: Kind, chosen: DType) -> Value:
        """A mask of that shape: where `left op right`. `chosen`: what it will choose between."""
        return choices.compared(self, op, left, right, kind)

    def sided(self, op: str, dtype: DType) -> tuple[str, bool]:
        """The comparison to do, and whether it holds where `op` does not."""
        return choices.sided(op, dtype)

    def choose(self, out: Value, mask: Value, a: Value, b: Value) -> None:
        """out = a where the mask says so, else b, which may be a number."""
        choices.choose(self, out, mask, a, b)

    def takes_number(self, place: int, dtype: DType) -> bool:
        """Whether a choice takes a number as its operand of that place (0: where it holds)."""
        return place == 1 and dtype.is_float

    # ---- broadcasts

    def spreads(self, kind: Kind) -> bool:
        """Whether `broadcast` makes results of this shape."""
        return kind != "column" and (kind != "row" or isinstance(self.shape.columns, Const))

    def broadcast(self, function: str, dst: Value, a: Value, b: Value) -> None:
        """dst (a tile, or a row) = function(a, b) where an operand repeats over rows or columns."""
        if dst.kind == "tile" and {a.kind, b.kind} <= {"tile", "row"}:
            self.elementwise(function, dst, (a, b))
            return
        spread = [self._spread(value) for value in (a, b)]
        width = self.shape.pitch if dst.kind != "tile" or self._flat(dst) else None
        columns = width if width is not None else self.shape.most_columns
        lanes = self.tiles.repeat(dst.dtype)
        chunks = -(-columns // lanes)
        rows = self.shape.most_rows if dst.kind == "tile" else 1
        if self._by_columns(dst, spread, rows, chunks):
            self._column_calls(function, dst, spread, columns, lanes)
        else:
            self._row_calls(function, dst, spread, columns, lanes)
        for value, original in zip(spread, (a, b), strict=True):
            if value is not original:
                self.tiles.give_back(value.at.tile)

    def _by_columns(self, dst: Value, values: list[Value], rows: int, chunks: int) -> bool:
        """Whether one call for each stretch of columns covers all rows, and is the shorter way."""
        target = self.tiles.target
        far = any(
            value.pitch // self.tiles.lanes(dst.dtype) > target.max_stride
            for value in (dst, *values)
            if value.kind == "tile"
        )
        return not far and chunks <= rows and dst.kind == "tile"

    def _spread(self, value: Value) -> Value:
        """A value for each row as one block for each row; a single one as one block."""
        if value.kind not in ("column", "one"):
            return value
        rows = self.shape.most_rows if value.kind == "column" else 1
        groups = -(-rows // 8)
        lanes = self.tiles.lanes(value.dtype)
        name = self.tiles.borrow("blocks", value.dtype, groups * 8 * lanes)
        blocks = TileRef(tile=name)
        most = self.tiles.target.max_repeats
        for first in range(0, groups, most):
            repeats: Expr = const(min(most, groups - first))
            if value.kind == "column" and groups <= most:
                repeats = _divided(plus(self.shape.rows, const(7)), 8)
            self.emit(
                VectorCall(
                    function="Brcb",
                    dst=moved(blocks, const(first * 8 * lanes)),
                    arguments=(
                        moved(value.at, const(first * 8)),
                        repeats,
                        Strides(values=(1, 8)),
                    ),
                    remark=f"each element of {value.at.tile} fills a block",
                )
            )
        return replace(value, ref=blocks, scratch=False, inside=False)

    def _column_calls(
        self, function: str, dst: Value, values: list[Value], columns: int, lanes: int
    ) -> None:
        block = self.tiles.lanes(dst.dtype)

        def strides() -> Strides:
            inner = [0 if value.kind in ("column", "one") else 1 for value in (dst, *values)]
            outer = []
            for value in (dst, *values):
                far = {"tile": value.pitch // block, "column": 1}
                outer.append(far.get(value.kind, 0))
            return Strides(values=(*inner, *outer))

        def one(at: Expr, mask: int, row: Expr, rows: Expr) -> VectorCall:
            def place(value: Value) -> TileRef:
                if value.kind == "column":
                    return moved(value.at, times(row, block))
                if value.kind == "tile":
                    return moved(moved(value.at, times(row, self.shape.step(value.pitch))), at)
                return moved(value.at, at) if value.kind == "row" else value.at

            return VectorCall(
                function=function,
                dst=place(dst),
                arguments=(
                    *(place(value) for value in values),
                    const(mask),
                    rows,
                    strides(),
                ),
                covers=dst.whole,
            )

        def call(at: Expr, mask: int) -> Step:
            return self.in_groups(lambda row, rows: one(at, mask, row, rows))

        full = columns // lanes
        column = self.shape.column_var
        if full == 1:
            self.emit(call(const(0), lanes))
        elif full:
            self.emit(
                Loop(
                    var=column,
                    start=const(0),
                    stop=const(full * lanes),
                    step=const(lanes),
                    body=(call(column, lanes),),
                    independent=True,
                    own=True,
                )
            )
        if columns % lanes:
            tail = call(const(full * lanes), columns % lanes)
            if isinstance(tail, VectorCall):
                tail = replace(tail, goes_on=full > 0)
            self.emit(tail)

    def over_rows(self, call: Callable[[Expr], VectorCall]) -> Step:
        """One call for each row; a single one for a single row."""
        if self._one_row():
            return call(const(0))
        return self._over_rows(self.shape.row_var, (call(self.shape.row_var),))

    def in_groups(self, call: Callable[[Expr, Expr], VectorCall]) -> Step:
        """One call over all rows, or a loop over as many rows as one call can repeat over."""
        most = self.tiles.target.max_repeats // 8 * 8
        if self.shape.most_rows <= self.tiles.target.max_repeats:
            return call(const(0), self.shape.rows)
        row = self.shape.row_var
        left = Binary(dtype=INT32, op="-", a=self.shape.rows, b=row)
        few = Compare(dtype=BOOL, op="<", a=left, b=const(most))
        rows = Select(dtype=INT32, condition=few, a=left, b=const(most))
        return Loop(
            var=row,
            start=const(0),
            stop=self.shape.rows,
            step=const(most),
            body=(call(row, rows),),
            independent=True,
            own=True,
        )

    def _row_calls(
        self, function: str, dst: Value, values: list[Value], columns: int, lanes: int
    ) -> None:
        row = self.shape.row_var
        block = self.tiles.lanes(dst.dtype)
        looped = dst.kind == "tile" and not self._one_row()

        def place(value: Value, at: int) -> TileRef:
            ref = value.at
            if looped and value.kind == "tile":
                ref = moved(ref, times(row, self.shape.step(value.pitch)))
            if looped and value.kind == "column":
                return moved(ref, times(row, block))
            return moved(ref, const(at)) if value.kind in ("tile", "row") else ref

        inner = [0 if value.kind in ("column", "one") else 1 for value in (dst, *values)]
        outer = [0 if value.kind in ("column", "one") else 8 for value in (dst, *values)]
        body = tuple(
            VectorCall(
                function=function,
                dst=place(dst, at),
                arguments=(
                    *(place(value, at) for value in values),
                    const(mask),
                    const(repeats),
                    Strides(values=(*inner, *outer)),
                ),
                goes_on=at > 0,
                covers=dst.whole,
            )
            for at, mask, repeats in stretches(columns, lanes, self.tiles.target.max_repeats)
        )
        if looped:
            self.emit(self._over_rows(row, body))
        else:
            for call in body:
                self.emit(call)

    def _one_row(self) -> bool:
        return isinstance(self.shape.rows, Const) and self.shape.rows.value == 1

    # ---- moves

    def turns(self, value: Value) -> bool:
        """Whether a call exchanges rows and columns of a tile like this, or of a part of one."""
        return squares.turns(self.tiles, value.dtype)

    def turned(self, value: Value) -> Value:
        """A tile whose rows are this shape's columns, in a scratch tile of this shape."""
        return squares.turned(self, value)

    def turn_into(self, dst: Value, src: Value) -> None:
        """dst, whose rows are this shape's columns, = src, a scratch tile of this shape."""
        squares.turn_into(self, dst, src)

    def flipped(self, pitch: int) -> Calls:
        """Calls for the shape with rows and columns exchanged, its rows `pitch` elements apart."""
        old = self.shape
        shape = replace(
            old,
            rows=old.columns,
            columns=old.rows,
            most_rows=old.most_columns,
            most_columns=old.most_rows,
            pitch=pitch,
            width=const(pitch),
            row_var=old.column_var,
            column_var=old.row_var,
        )
        return type(self)(self.tiles, shape, self.emit)

    def fill(self, dst: Value, number: Expr) -> None:
        """Every element of dst = number; types that V does not compute in, by their bits."""
        wide = self.tiles.target.widen.get(dst.dtype.name)
        if wide is not None and isinstance(number, Const):
            bits = bits_of(float(number.value), dst.dtype)
            number = Const(dtype=DTYPES["int16"], value=bits)
            seen = replace(dst, ref=replace(dst.at, view=DTYPES["int16"]), dtype=DTYPES["int16"])
            self.fill(seen, number)
            return
        self.elementwise("Duplicate", dst, (Value(kind="scalar", dtype=dst.dtype, expr=number),))

    def copy(self, dst: Value, src: Value) -> None:
        """dst = src, of one element type and shape, or a row for every row."""
        if dst.ref == src.ref and dst.kind == src.kind:
            return
        if not dst.whole and self.tiles.target.widen.get(dst.dtype.name) is not None:
            bits = DTYPES["int16"]  # DataCopy moves whole blocks; their bits can be multiplied by 1
            dst, src = (
                replace(value, ref=replace(value.at, view=bits), dtype=bits) for value in (dst, src)
            )
        one = Const(dtype=dst.dtype, value=1)
        if self.tiles.target.can("Muls", dst.dtype.name):
            self.elementwise("Muls", dst, (src, Value(kind="scalar", dtype=dst.dtype, expr=one)))
        else:
            self.elementwise("DataCopy", dst, (src,))

    def spread_over(self, dst: Value, src: Value) -> None:
        """dst (a tile or a row) = src, one number for each row or for all."""
        if self.tiles.target.widen.get(dst.dtype.name) is not None:  # their bits can be added to 0
            bits = DTYPES["int16"]
            dst, src = (
                replace(value, ref=replace(value.at, view=bits), dtype=bits) for value in (dst, src)
            )
        self.fill(dst, Const(dtype=dst.dtype, value=0))
        self.broadcast("Add", dst, dst, src)


def stretches(columns: int, lanes: int, most: int) -> Iterator[tuple[int, int, int]]:
    """(start, mask, repeats) of the calls that cover `columns` elements in a row."""
    full = columns // lanes
    for first in range(0, full, most):
        yield first * lanes, lanes, min(most, full - first)
    if columns % lanes:
        yield full * lanes, columns % lanes, 1


def moved(ref: TileRef, by: Expr) -> TileRef:
    """The reference `by` elements further."""
    if is_zero(by):
        return ref
    return replace(ref, offset=by if ref.offset is None else plus(ref.offset, by))


def bits_of(value: float, dtype: DType) -> int:
    """The bits of a bfloat16 number as an int16."""
    import numpy as np
    from ml_dtypes import bfloat16

    assert dtype.name == "bfloat16"
    return int(np.asarray(value, bfloat16).view(np.int16))


def number_of(value: int | float, dtype: DType) -> Const:
    return Const(dtype=dtype, value=value)


def mode(name: str) -> Word:
    """A rounding mode."""
    return Word(text=f"RoundMode::{name}")


def _ref(argument: Argument) -> TileRef:
    assert isinstance(argument, TileRef)
    return argument


def _divided(expr: Expr, by: int) -> Expr:
    if isinstance(expr, Const):
        return const(int(expr.value) // by)
    if isinstance(expr, Binary) and isinstance(expr.a, Const) and isinstance(expr.b, Const):
        return const((int(expr.a.value) + int(expr.b.value)) // by)
    return Binary(dtype=INT32, op="truncdiv", a=expr, b=const(by))
