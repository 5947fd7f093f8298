"""T.gemm on a core that multiplies by weights: the right operand goes to a memory of its own.

reads   `forms.Gemm`        writes  vector calls
The unit takes that operand as rows along the sum, in an order that only a call of the chip knows;
the left one and the sums stay where they are.
"""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir import forms
from tile2c.transpile.ir.dtypes import DTYPES, INT32, DType
from tile2c.transpile.ir.expr import Binary, Const, Expr, const
from tile2c.transpile.ir.forms import Region
from tile2c.transpile.lower.cores.context import Context
from tile2c.transpile.lower.cores.layouts import times
from tile2c.transpile.lower.cores.local_copies import whole_shape
from tile2c.transpile.lower.cores.plan import Branch, Order, TileRef, Unit, VectorCall
from tile2c.transpile.lower.cores.units import calls_of, zeros
from tile2c.transpile.lower.cores.values import Value
from tile2c.transpile.targets.cores import WeightUnit


def lower_gemm(stmt: forms.Gemm, context: Context) -> None:
    """One product of whole tiles, added to the sums. Raises InputError for what the unit lacks."""
    unit = context.target.weights
    assert unit is not None
    _Product(stmt, context, unit).lower()


class _Product:
    def __init__(self, stmt: forms.Gemm, context: Context, unit: WeightUnit) -> None:
        self.stmt = stmt
        self.context = context
        self.unit = unit
        self.borrowed: list[str] = []
        self.rows, self.inner = _extents(stmt.a)[:: -1 if stmt.transpose_a else 1]
        self.columns = _extents(stmt.b)[0 if stmt.transpose_b else 1]

    def lower(self) -> None:
        left, right = self._operand(self.stmt.a), self._operand(self.stmt.b)
        sums = self._operand(self.stmt.c)
        self._check(left.dtype, right.dtype, sums.dtype)
        m, n, k = (_number(extent) for extent in (self.rows, self.columns, self.inner))
        at = left.at
        if self.stmt.transpose_a:
            at = self._borrow("tile", left.dtype, m * k)
            self._turn(at, left, self.inner, self.rows, "the left operand by rows")
        step = self.unit.inner_bytes // left.dtype.bytes
        wide = -(-k // step) * step
        inner = self.inner if wide == k else const(wide)
        if wide != k:
            at = self._widened(at, left.dtype, m, k, wide, m)  # done when the right operand is
        weights = self._weights(right, n, k, wide)
        clear = self.stmt.clear
        whole = sums.whole
        if isinstance(clear, Const) and clear.value:
            extents = (self.rows, inner, self.columns)
            self._emit("Product", sums.at, (at, weights, *extents), covers=whole)
        else:
            if not isinstance(clear, Const):
                self._clear_if(clear, sums)
            extents = (self.rows, inner, self.columns)
            self._emit("AddProduct", sums.at, (at, weights, sums.at, *extents))
        for name in self.borrowed:
            self.context.tiles.give_back(name)

    # ---- operands

    def _operand(self, region: Region) -> Value:
        """A tile without gaps between its rows."""
        layout = self.context.layouts.get(region.buffer.name)
        if layout is None:
            raise failure(
                "T2C546",
                f"{region.buffer.name} lies in global memory, which products cannot reach",
                region.span or self.stmt.span,
                help="copy it to a tile first: T.copy",
            )
        shape, value = whole_shape(region, layout, self.context)
        if value.kind == "tile" and value.pitch != shape.most_columns:
            kept = self._borrow("tile", value.dtype, shape.most_rows * shape.most_columns)
            dense = replace(value, ref=kept, pitch=shape.pitch)
            calls_of(self.context.tiles, shape, self.context.emit).copy(dense, value)
            return dense
        return value

    def _borrow(self, kind: str, dtype: DType, elements: int) -> TileRef:
        name = self.context.tiles.borrow(kind, dtype, elements)
        self.borrowed.append(name)
        return TileRef(tile=name)

    def _turn(self, turned: TileRef, value: Value, height: Expr, width: Expr, why: str) -> None:
        arguments = (self._seen(value.at, value.dtype), height, width)
        self._emit("Transpose", self._seen(turned, value.dtype), arguments, remark=why)

    def _widened(
        self, rows: TileRef, dtype: DType, count: int, k: int, wide: int, most: int
    ) -> TileRef:
        """Rows of `k` elements made up to `wide` by zeros, which add nothing; `most` rows in all.

        The copy is not waited for.
        """
        made = self._borrow("tile", dtype, most * wide)
        bits = DTYPES["int16"] if dtype.name in self.context.target.widen else dtype
        view = bits if bits != dtype else None
        call = zeros(self.context.target, replace(made, view=view), bits, const(most * wide))
        why = f"the unit sums over multiples of {self.unit.inner_bytes} bytes"
        self.context.emit(replace(call, remark=why))
        arguments = (rows, const(wide), const(count - 1), const(k))
        self._wait("V", "MTE1", "the zeros are there before the copy")
        self._emit("CopyRows", made, arguments)
        return made

    def _weights(self, right: Value, n: int, k: int, wide: int) -> TileRef:
        """The right operand in the unit's memory, its rows made up to what the unit takes."""
        padded = -(-n // self.unit.columns) * self.unit.columns
        columns = self.columns if padded == n else const(padded)
        inner = self.inner if wide == k else const(wide)
        if wide == k:
            by_rows = self._by_rows(right, n, k, padded)
        else:
            by_rows = self._by_rows(right, n, k, n)
            by_rows = self._widened(by_rows, right.dtype, n, k, wide, padded)
            self._wait("MTE1", "V", "the rows are there before they are put in order")
        ordered = self._borrow("tile", right.dtype, padded * wide)
        one = const(1)
        self._emit(
            "Reorder",
            self._seen(ordered, right.dtype),
            (self._seen(by_rows, right.dtype), columns, one, one, inner),
            remark="in the order of the unit's lanes",
        )
        weights = self._borrow("weights", right.dtype, padded * wide)
        arguments = (ordered, times(columns, inner))
        self._wait("V", "MTE1", "the operand is complete before the copy")
        self._emit("ToWeights", weights, arguments)
        self._wait("MTE1", "V", "the copy is done before the product")
        return weights

    def _by_rows(self, right: Value, n: int, k: int, padded: int) -> TileRef:
        """Each column of the right operand in a row, as the unit takes them."""
        if padded == n and self.stmt.transpose_b:
            return right.at
        rows = self._borrow("tile", right.dtype, padded * k)
        if padded != n:
            self._pad(rows, right.dtype, n, k, padded)
        if self.stmt.transpose_b:
            self._emit("Copy", rows, (right.at, times(self.columns, self.inner)))
        else:
            why = "each column in a row, as the unit takes them"
            self._turn(rows, right, self.inner, self.columns, why)
        return rows

    def _pad(self, rows: TileRef, dtype: DType, n: int, k: int, padded: int) -> None:
        bits = DTYPES["int16"] if dtype.name in self.context.target.widen else dtype
        tail = TileRef(
            tile=rows.tile,
            offset=times(self.columns, self.inner),
            view=bits if bits != dtype else None,
        )
        left: Expr = const(padded - n)
        if not (isinstance(self.columns, Const) and self.columns.name is None):
            left = Binary(dtype=INT32, op="-", a=const(padded), b=self.columns)
        inner = self.inner if _number(self.inner) == k else const(k)
        call = zeros(self.context.target, tail, bits, times(left, inner))
        why = f"the unit takes multiples of {self.unit.columns} columns"
        self.context.emit(replace(call, remark=why))

    def _seen(self, ref: TileRef, dtype: DType) -> TileRef:
        known = self.unit.ordered_as.get(dtype.name)
        return ref if known is None else replace(ref, view=DTYPES[known])

    def _clear_if(self, clear: Expr, sums: Value) -> None:
        """A choice that the core makes while it runs."""
        condition = self.context.scalars.lower(clear, self.context.facts, self.context.emit)
        count = times(self.rows, self.columns)
        call = zeros(self.context.target, sums.at, sums.dtype, count)
        self.context.emit(Branch(condition=condition, then=(call,)))

    def _wait(self, before: Unit, after: Unit, why: str) -> None:
        """Copies on the chip run beside the calls before and behind them."""
        self.context.emit(Order(before=before, after=after, remark=why))

    def _emit(
        self,
        function: str,
        dst: TileRef,
        arguments: tuple[TileRef | Expr, ...],
        *,
        remark: str = "",
        covers: bool = False,
    ) -> None:
        call = VectorCall(
            function=function, dst=dst, arguments=arguments, remark=remark, covers=covers
        )
        self.context.emit(call)

    # ---- what the unit takes

    def _check(self, left: DType, right: DType, sums: DType) -> None:
        name, unit, span = self.context.target.name, self.unit, self.stmt.span
        if left != right or unit.products.get(left.name) != sums.name:
            pairs = ", ".join(f"{a} into {c}" for a, c in unit.products.items())
            raise failure(
                "T2C523",
                f"the matrix unit of {name} has no product of {left} and {right} into {sums}",
                span,
                help=f"it multiplies {pairs}",
            )
        n, k = _number(self.columns), _number(self.inner)
        wide = -(-k * left.bytes // unit.inner_bytes) * unit.inner_bytes
        size = -(-n // unit.columns) * unit.columns * wide
        if size > unit.bytes:
            raise failure(
                "T2C556",
                f"the right operand takes {size} bytes, but {unit.memory} has {unit.bytes}",
                self.stmt.b.span or span,
                help="make the tile smaller",
            )


def _extents(region: Region) -> tuple[Expr, Expr]:
    """The last two extents, as the author wrote them."""
    first, second = [part.extent for part in region.ranges][-2:]
    return first, second


def _number(extent: Expr) -> int:
    assert isinstance(extent, Const)
    return int(extent.value)
