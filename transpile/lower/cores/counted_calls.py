"""Vector calls that take a number of elements and nothing else: no strides, no masks, no repeats.

A row repeats over the rows of a tile by a call of its own (`cycle`); a number for each row is an
argument of a call for that row, which the core reads from the tile itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tile2c.transpile.ir.dtypes import DTYPES, INT32, DType
from tile2c.transpile.ir.expr import Cast, Const, Expr, Var, const
from tile2c.transpile.lower.cores.calls import Calls, bits_of, moved, number_of
from tile2c.transpile.lower.cores.layouts import times
from tile2c.transpile.lower.cores.plan import (
    Argument,
    ElementOf,
    Step,
    TileRef,
    VectorCall,
)
from tile2c.transpile.lower.cores.values import Kind, Value
from tile2c.transpile.lower.plan import CCall

_COMMUTATIVE = ("Add", "Mul", "Max", "Min")
_OF_ITSELF_NOTHING = ("Max", "Min")
_BY_NUMBER = {"Add": "Adds", "Sub": "Subs", "Mul": "Muls", "Max": "Maxs", "Min": "Mins"}
_COMPARISONS = {"<": "Lt", "<=": "Le", ">": "Gt", ">=": "Ge", "==": "Eq", "!=": "Ne"}
_MIRRORED = {"Gt": "Lt", "Le": "Ge"}
_WORDS = {"tile": "tile", "row": "row", "column": "column", "one": "one", "scalar": "one"}
_BITS = {2: ("float16", "int16"), 4: ("float32", "int32")}


class CountedCalls(Calls):
    """Emits calls for the iterations of one shape."""

    def elementwise(
        self, function: str, dst: Value, operands: tuple[Value, ...], *extra: Argument
    ) -> None:
        """function(dst, operands, count, extra) for operands of dst's shape, rows or numbers."""
        if len(operands) == 2 and function in _COMMUTATIVE and self._swaps(dst, *operands):
            operands = (operands[1], operands[0])
        if function in _OF_ITSELF_NOTHING and _same(*operands):
            self.copy(dst, operands[0])
            return
        cycle = f"Cycle{function}"
        if (
            [value.kind for value in operands] == ["tile", "row"]
            and self._flat(dst, operands[0])
            and self._can(cycle, operands[0].dtype)
        ):
            a, row = operands
            arguments = (a.at, row.at, self.shape.count("tile"), self.shape.width)
            self.emit(VectorCall(function=cycle, dst=dst.at, arguments=arguments, covers=dst.whole))
            return
        super().elementwise(function, dst, operands, *extra)

    def _can(self, function: str, dtype: DType) -> bool:
        return self.tiles.target.can(function, dtype.name)

    @staticmethod
    def _swaps(dst: Value, a: Value, b: Value) -> bool:
        """Results may lie on the first operand only, and a row has to be the second."""
        if (a.kind, b.kind) == ("row", "tile"):
            return True
        return b.ref is not None and b.ref == dst.ref and a.ref != dst.ref and a.kind == b.kind

    def _counted(
        self,
        function: str,
        dst: Value,
        operands: tuple[Value, ...],
        extra: tuple[Argument, ...],
        row: Var | None,
    ) -> None:
        count = self.shape.columns if row is not None else self.shape.count(dst.kind)
        places = tuple(self._place(value, row) for value in operands)
        self._emit(function, dst, (*places, count, *extra), row)

    def _place(self, value: Value, row: Var | None) -> Argument:
        """Where a value lies, in the row at hand; numbers are arguments."""
        if value.kind == "scalar":
            return value.number
        if row is None or value.kind != "tile":
            return value.at
        return moved(value.at, times(row, self.shape.step(value.pitch)))

    def _emit(
        self, function: str, dst: Value, arguments: tuple[Argument, ...], row: Var | None
    ) -> None:
        place = self._ref(dst, row)
        extra = tuple(const(n) for n in self.tiles.target.trailing.get(function, ()))
        call = VectorCall(
            function=function, dst=place, arguments=(*arguments, *extra), covers=dst.whole
        )
        self.emit(call if row is None else self._over_rows(row, (call,)))

    def cast(self, dst: Value, src: Value, how: str) -> None:
        """`how` is the call itself."""
        self.elementwise(how, dst, (src,))

    # ---- broadcasts

    def spreads(self, kind: Kind) -> bool:
        return True

    def broadcast(self, function: str, dst: Value, a: Value, b: Value) -> None:
        """dst = function(a, b) where an operand repeats over rows or columns."""
        if {a.kind, b.kind} <= {"tile", "row"}:
            self.elementwise(function, dst, (a, b))
            return
        vector, number = (b, a) if _is_number(a, b, dst) else (a, b)
        left = number is a
        if number.kind == "one" or dst.kind != "tile":
            row = None if dst.kind != "tile" or self._flat(dst, vector) else self.shape.row_var
        else:
            row = self.shape.row_var
        if vector.kind == "row" and dst.kind == "tile":
            row = self.shape.row_var
        at = number.at if number.kind == "one" or row is None else moved(number.at, row)
        count = self.shape.columns if row is not None else self.shape.count(dst.kind)
        body = tuple(self._with_number(function, dst, vector, at, left, row, count))
        if row is not None:
            self.emit(self._over_rows(row, body))
            return
        for call in body:
            self.emit(call)

    def _with_number(
        self,
        function: str,
        dst: Value,
        vector: Value,
        at: TileRef,
        left: bool,
        row: Var | None,
        count: Expr,
    ) -> Iterator[VectorCall]:
        """The calls for `vector function number`, or the other way round where it stands left."""
        there, source = self._ref(dst, row), self._ref(vector, row)
        element, whole = ElementOf(ref=at), dst.whole

        def call(function: str, dst: TileRef, *arguments: Argument) -> VectorCall:
            covers = whole and dst.tile == there.tile
            return VectorCall(function=function, dst=dst, arguments=arguments, covers=covers)

        if function in _COMMUTATIVE or (function == "Sub" and not left):
            yield call(_BY_NUMBER[function], there, source, element, count)
        elif function == "Sub":  # number - x = -(x - number)
            yield call("Subs", there, source, element, count)
            yield call("Muls", there, there, number_of(-1, dst.dtype), count)
        elif left and self._can("Recip", dst.dtype):
            yield call("Recip", there, source, count)
            yield call("Muls", there, there, element, count)
        elif left:
            name = self.tiles.borrow("row", dst.dtype, self.shape.most("row"))
            self.tiles.give_back(name)
            filled = TileRef(tile=name)
            yield call("Duplicate", filled, count, element)
            yield call("Div", there, filled, source, count)
        elif self._can("Divs", dst.dtype):
            yield call("Divs", there, source, element, count)
        else:
            yield call("Muls", there, source, ElementOf(ref=at, inverse=True), count)

    def _ref(self, value: Value, row: Var | None) -> TileRef:
        place = self._place(value, row)
        assert isinstance(place, TileRef)
        return place

    # ---- choices

    def sided(self, op: str, dtype: DType) -> tuple[str, bool]:
        return op, False

    def compared(self, op: str, left: Value, right: Value, kind: Kind, chosen: DType) -> Value:
        """A mask of whole elements as wide as what is chosen: all ones where it holds, else 0."""
        name, bits = _BITS[chosen.bytes]
        mask = self._scratch(kind, left.dtype)
        call = _COMPARISONS[op]
        operands = (left, right)
        if right.kind == "scalar" and self._can(f"{call}s", left.dtype):
            call = f"{call}s"
        elif right.kind == "scalar":
            self.fill(mask, right.number)
            operands = (left, mask)
        if len(call) == 2 and not self._can(call, left.dtype):
            call, operands = _MIRRORED[call], (operands[1], operands[0])
        self.elementwise(call, mask, operands)
        if left.dtype.name == bits:
            minus = Value(kind="scalar", dtype=left.dtype, expr=number_of(-1, left.dtype))
            self.elementwise("Muls", mask, (mask, minus))
            return mask
        if left.dtype.name != name:
            found = self.tiles.target.conversions[left.dtype.name, name]
            for step, how in zip((*found.through, name), found.modes, strict=True):
                other = self._scratch(kind, DTYPES[step])
                self.cast(other, mask, how)
                self.tiles.give_back(mask.at.tile)
                mask = other
        self.elementwise("AllOnes" if mask.dtype.bytes == 4 else "AllOnesHalf", mask, ())
        return replace(mask, dtype=DTYPES[bits])

    def _scratch(self, kind: Kind, dtype: DType) -> Value:
        name = self.tiles.borrow("mask", dtype, self.shape.most(kind))
        return Value(kind=kind, dtype=dtype, ref=TileRef(tile=name), pitch=self.shape.pitch)

    def choose(self, out: Value, mask: Value, a: Value, b: Value) -> None:
        if b.ref == out.ref and a.scratch and a.kind == out.kind:
            self.elementwise("ChooseInto", out, (mask, a))
            return
        if b.ref == out.ref:  # which is written before the last look at b
            kept = self._scratch(b.kind, b.dtype)
            self.copy(kept, b)
            self.tiles.give_back(kept.at.tile)
            b = kept
        self.elementwise("Choose", out, (mask, a, b))

    def takes_number(self, place: int, dtype: DType) -> bool:
        return False

    # ---- moves

    def turns(self, value: Value) -> bool:
        return self._can("Transpose", value.dtype) or value.dtype.name in self.tiles.target.widen

    def turned(self, value: Value) -> Value:
        height, width = self.shape.most_columns, self.shape.most_rows
        given = value
        if not value.whole:  # rows without gaps
            given = self._part(value)
            self.flipped(width).copy(given, replace(value, turned=False))
        out = self._part(value)
        self._turn(out.at, given.at, value.dtype, height, width)
        if given is not value:
            self.tiles.give_back(given.at.tile)
        return replace(out, pitch=self.shape.pitch, scratch=True)

    def turn_into(self, dst: Value, src: Value) -> None:
        height, width = self.shape.most_rows, self.shape.most_columns
        part = dst if dst.whole else self._part(dst)
        self._turn(part.at, src.at, dst.dtype, height, width)
        if not dst.whole:
            self.flipped(height).copy(replace(dst, turned=False), part)
            self.tiles.give_back(part.at.tile)

    def _part(self, value: Value) -> Value:
        """A scratch tile without gaps for all elements of this shape, rows as its columns."""
        rows = self.shape.most_rows
        name = self.tiles.borrow("tile", value.dtype, rows * self.shape.most_columns)
        return Value(kind="tile", dtype=value.dtype, ref=TileRef(tile=name), pitch=rows)

    def _turn(self, dst: TileRef, src: TileRef, dtype: DType, height: int, width: int) -> None:
        if not self._can("Transpose", dtype):  # by its bits
            bits = DTYPES["int16"]
            dst, src = replace(dst, view=bits), replace(src, view=bits)
        size = const(height), const(width)
        self.emit(VectorCall(function="Transpose", dst=dst, arguments=(src, *size), covers=True))

    def fill(self, dst: Value, number: Expr) -> None:
        wide = self.tiles.target.widen.get(dst.dtype.name)
        if isinstance(number, Const) and number.value == 0:
            if wide is not None:  # its bits are 0 as well
                dst = replace(dst, ref=replace(dst.at, view=DTYPES["int16"]))
            self.elementwise("Zeros", dst, ())
            return
        if wide is not None and isinstance(number, Const):
            number = Const(dtype=DTYPES["int16"], value=bits_of(float(number.value), dst.dtype))
            dst = replace(dst, ref=replace(dst.at, view=DTYPES["int16"]), dtype=DTYPES["int16"])
        if wide is not None:
            self._fill_wide(dst, number, DTYPES[wide])
            return
        if dst.dtype.bytes == 1:  # fills of bytes are fills of char, and int8_t is none
            number = CCall(dtype=INT32, function="char", args=(number,))
        self.elementwise("Duplicate", dst, (), number)

    def _fill_wide(self, dst: Value, number: Expr, wide: DType) -> None:
        """A number that is known only when the kernel runs, for a type that no fill takes."""
        name = self.tiles.borrow(_WORDS[dst.kind], wide, self.shape.most(dst.kind))
        pitch = self.shape.pitch if dst.kind == "tile" else 0
        filled = replace(dst, dtype=wide, ref=TileRef(tile=name), pitch=pitch)
        self.elementwise("Duplicate", filled, (), Cast(dtype=wide, a=number))
        (how,) = self.tiles.target.conversions[wide.name, dst.dtype.name].modes
        self.cast(dst, filled, how)
        self.tiles.give_back(name)

    def copy(self, dst: Value, src: Value) -> None:
        if dst.ref != src.ref or dst.kind != src.kind:
            self.elementwise("Copy", dst, (src,))

    def spread_over(self, dst: Value, src: Value) -> None:
        row = self.shape.row_var if dst.kind == "tile" else None
        if src.kind == "one" and dst.kind == "tile" and self._flat(dst):
            row = None
        count = self.shape.columns if row is not None else self.shape.count(dst.kind)
        at = src.at if src.kind == "one" or row is None else moved(src.at, row)
        if dst.dtype.name in self.tiles.target.widen:  # by its bits
            bits = DTYPES["int16"]
            dst, at = replace(dst, ref=replace(dst.at, view=bits)), replace(at, view=bits)
        self._emit("Duplicate", dst, (count, ElementOf(ref=at)), row)

    def in_groups(self, call: object) -> Step:
        raise AssertionError("calls here have no repeats")


def _same(a: Value, b: Value) -> bool:
    return a.ref is not None and a.ref == b.ref and a.kind == b.kind


def _is_number(a: Value, b: Value, dst: Value) -> bool:
    """Whether the left operand is the one that a call takes as a number."""
    if a.kind == "one" or b.kind == "one":
        return a.kind == "one" and b.kind != "one"
    return a.kind == "column" and dst.kind == "tile"
