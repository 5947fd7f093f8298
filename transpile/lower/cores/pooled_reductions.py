"""Reductions by pooling: one call combines all rows of a tile, element by element.

reads   values in local memory        writes  vector calls
Over the last dimension the tile is transposed first, so that what meets lies in one column.
"""

from __future__ import annotations

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.dtypes import INT32, DType
from tile2c.transpile.ir.expr import Expr, Var, const
from tile2c.transpile.lower.cores.calls import moved
from tile2c.transpile.lower.cores.layouts import times
from tile2c.transpile.lower.cores.plan import Loop, TileRef, VectorCall
from tile2c.transpile.lower.cores.reductions import COMBINE, Reduction
from tile2c.transpile.lower.cores.values import Value

_WINDOW = 1 << 16  # elements that one window may hold


class PooledReduction(Reduction):
    """One reduction, written for a unit that counts elements."""

    def wide(self, dtype: DType) -> str | None:
        if self.context.target.can(f"{self.word}Pool", dtype.name):
            return None
        return "float32" if dtype.is_float else None

    def cast(self, dst: TileRef, src: TileRef, how: str, count: Expr) -> None:
        extra = tuple(const(n) for n in self.context.target.trailing.get(how, ()))
        call = VectorCall(
            function=how, dst=dst, arguments=(src, count, *extra), covers=self.covers(dst)
        )
        self.context.emit(call)

    def move(self, dst: TileRef, src: TileRef, dtype: DType, count: Expr) -> None:
        call = VectorCall(function="Copy", dst=dst, arguments=(src, count), covers=self.covers(dst))
        self.context.emit(call)

    def rows(self, dst: Value, src: Value) -> None:
        shape = self.calls.shape
        src, dtype = self.operand(dst, src)
        rows: Expr = const(1)
        at = src.at
        if shape.most_rows > 1:
            rows = shape.rows
            at = self._transposed(self._dense(src), dtype)
        result = self._place(dst, dtype, "column", shape.most_rows)
        self._pool(result, at, dtype, rows, shape.columns, shape.most_columns)
        self.into(dst, Value(kind="row", dtype=dtype, ref=result), rows)
        self.done()

    def columns(self, dst: Value, src: Value, step: int, rows: int) -> None:
        src, dtype = self.operand(dst, src)
        result = self._place(dst, dtype, "row", step)
        whole = [part.extent for part in self.stmt.src.ranges if not part.point]
        width = self.calls.shape.width if self.calls.shape.pitch == step else const(step)
        self._pool(result, src.at, dtype, width, whole[self.stmt.dim], rows)
        self.into(dst, Value(kind="row", dtype=dtype, ref=result), const(step))
        self.done()

    def _place(self, dst: Value, dtype: DType, kind: str, elements: int) -> TileRef:
        """Where the results go: the destination, unless it has to be converted or combined."""
        if self.stmt.clear and dst.dtype == dtype:
            return dst.at
        return self.borrow(kind, dtype, elements)

    def _dense(self, src: Value) -> TileRef:
        """The source without gaps between its rows."""
        if src.pitch == self.calls.shape.most_columns:
            return src.at
        whole = self._like(src, src.dtype)
        self.calls.copy(whole, src)
        return whole.at

    def _transposed(self, src: TileRef, dtype: DType) -> TileRef:
        shape = self.calls.shape
        turned = self.borrow("tile", dtype, shape.most_rows * shape.most_columns)
        call = VectorCall(
            function="Transpose", dst=turned, arguments=(src, shape.rows, shape.width)
        )
        self.context.emit(call)
        return turned

    def _pool(
        self, dst: TileRef, src: TileRef, dtype: DType, channels: Expr, height: Expr, most: int
    ) -> None:
        """dst[c] = all of src[0 .. height][c] combined."""
        function = f"{self.word}Pool"
        if not self.context.target.can(function, dtype.name):
            if self.context.target.can(COMBINE[self.word], dtype.name):
                self._combine(dst, src, dtype, channels, height)
                return
            raise failure(
                "T2C550",
                f"the vector unit of {self.context.target.name} does not reduce {dtype}",
                self.stmt.span,
                help="reduce in float32",
            )
        if most > _WINDOW:
            raise failure(
                "T2C550",
                f"one call reduces {_WINDOW} elements, but this dimension has {most}",
                self.stmt.span,
                help="reduce smaller tiles and combine their results",
            )
        call = VectorCall(
            function=function,
            dst=dst,
            arguments=(src, channels, height),
            covers=self.covers(dst),
        )
        self.context.emit(call)

    def _combine(
        self, dst: TileRef, src: TileRef, dtype: DType, channels: Expr, height: Expr
    ) -> None:
        """The same row by row, for types that no call pools."""
        self.move(dst, src, dtype, channels)
        row = Var(dtype=INT32, name=self.context.names.local("row"), kind="loop")
        call = VectorCall(
            function=COMBINE[self.word],
            dst=dst,
            arguments=(dst, moved(src, times(row, channels)), channels),
        )
        loop = Loop(var=row, start=const(1), stop=height, step=const(1), body=(call,), own=True)
        self.context.emit(loop)
