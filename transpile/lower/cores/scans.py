"""T.cumsum, T.cummax: running sums, or largest so far, along one dimension of a tile.

reads   `forms.Scan`        writes  vector calls
Over any dimension but the last, row is added to row. Over the last one columns become rows first: the
rows are cut into stretches that lie side by side then, so that few calls do much each; what stands in
front of a stretch is added to all of it at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir import forms
from tile2c.transpile.ir.dtypes import DTYPES, INT32, DType
from tile2c.transpile.ir.expr import Binary, Const, Expr, Var, const
from tile2c.transpile.lower.cores import squares
from tile2c.transpile.lower.cores.calls import Calls, Shape, moved
from tile2c.transpile.lower.cores.context import Context
from tile2c.transpile.lower.cores.layouts import Layout, times
from tile2c.transpile.lower.cores.local_copies import convert, whole_shape
from tile2c.transpile.lower.cores.plan import Loop, Step, TileRef, VectorCall
from tile2c.transpile.lower.cores.units import calls_of
from tile2c.transpile.lower.cores.values import Value

_BACK = "rows become columns again"
_COMBINE = {"sum": "Add", "max": "Max"}


def lower_scan(stmt: forms.Scan, context: Context) -> None:
    """One scan, in the destination's element type; sums of 16-bit floats in float32."""
    source = context.layouts[stmt.src.buffer.name]
    target = context.layouts[stmt.dst.buffer.name]
    shape, src = whole_shape(stmt.src, source, context)
    _, dst = whole_shape(stmt.dst, target, context)
    scan = Scanned(stmt, context, shape)
    dtype = scan.combined_in(dst.dtype)
    given = src
    if src.dtype != dtype:
        src = scan.like(src, dtype)
        convert(src, given, scan.calls, context, stmt)
    out = dst if dst.dtype == dtype else scan.like(dst, dtype)
    dims = [dim for dim, part in enumerate(stmt.src.ranges) if not part.point]
    over = dims[stmt.dim]
    kept = [dim for dim in source.kept if dim in dims]
    if over not in kept:  # a dimension of extent 1: each element is its own sum
        scan.calls.copy(out, src)
    elif over != kept[-1]:
        scan.down(out, src, source, over)
    elif scan.dense(src, out):
        scan.along_dense(out, src)
    else:
        scan.along(out, src)
    if out is not dst:
        convert(dst, out, scan.calls, context, stmt)
    scan.done()


class Scanned:
    """One scan: its steps in order."""

    def __init__(self, stmt: forms.Scan, context: Context, shape: Shape) -> None:
        self.stmt = stmt
        self.context = context
        self.shape = shape
        self.calls: Calls = calls_of(context.tiles, shape, context.emit)
        self.function = _COMBINE[stmt.op]
        self.counts = context.target.vectors == "counts"
        self.borrowed: list[str] = []

    # ---- types and tiles

    def combined_in(self, dtype: DType) -> DType:
        """The element type to combine in. Raises InputError where the unit has none."""
        target = self.context.target
        wide = target.widen.get(dtype.name)
        if self.function == "Add" and dtype.is_float and dtype.bits == 16:
            wide = "float32"
        found = DTYPES[wide] if wide is not None else dtype
        like = Value(kind="tile", dtype=found, whole=True)
        if not target.can(self.function, found.name) or not self.calls.turns(like):
            raise failure(
                "T2C524",
                f"{target.name} has no scan over {dtype} elements",
                self.stmt.span,
                help="scan a tile of float32 or int32",
            )
        return found

    def like(self, value: Value, dtype: DType) -> Value:
        """A scratch tile of the same shape."""
        ref = self._borrow(value.kind, dtype, self.shape.most(value.kind))
        return Value(kind=value.kind, dtype=dtype, ref=ref, pitch=self.shape.pitch, whole=True)

    def _borrow(self, kind: str, dtype: DType, elements: int) -> TileRef:
        name = self.context.tiles.borrow(kind, dtype, elements)
        self.borrowed.append(name)
        return TileRef(tile=name)

    def done(self) -> None:
        for name in self.borrowed:
            self.context.tiles.give_back(name)

    # ---- rows on rows

    def down(self, dst: Value, src: Value, layout: Layout, over: int) -> None:
        """Over a dimension that is not the last: all behind it lies in a row."""
        place = layout.kept.index(over)
        part = any(layout.extents[layout.kept.index(d)] != e for d, e in self._extents())
        step = src.pitch if part or place == len(layout.kept) - 2 else layout.weight(over)
        out = dst.pitch if step == src.pitch else step
        rows = dict(self._extents())[over]
        outer = 1
        for extent in layout.extents[:place] if not part else ():
            outer *= extent
        count: Expr = self.shape.columns
        if step != src.pitch:
            count = const(step)

        def lines(at: Expr) -> None:
            to, here = moved(dst.at, times(at, out * rows)), moved(src.at, times(at, step * rows))
            self._running(to, here, out, step, rows, count, dst.ref != src.ref)

        if outer == 1:
            lines(const(0))
            return
        var = self._var("plane", "slice")
        with self.context.nested(var) as scope:
            lines(var)
        self._loop(var, const(0), outer, self.context.body(scope))

    def _extents(self) -> list[tuple[int, int]]:
        """The scanned region's dimensions and their extents."""
        found = []
        for dim, part in enumerate(self.stmt.src.ranges):
            if isinstance(part.extent, Const) and part.extent.value != 1:
                found.append((dim, int(part.extent.value)))
        return found

    def _running(
        self,
        dst: TileRef,
        src: TileRef,
        out: int,
        step: int,
        rows: int,
        count: Expr,
        moves: bool,
    ) -> None:
        """dst[r] = dst[r - 1] combined with src[r]; `out` and `step` elements from row to row."""
        first, one = (rows - 1, -1) if self.stmt.reverse else (0, 1)
        if moves:
            self._copy(moved(dst, const(first * out)), moved(src, const(first * step)), count)
        row = self.shape.row_var
        before = Binary(dtype=INT32, op="-", a=row, b=const(one))
        if one < 0:
            before = Binary(dtype=INT32, op="+", a=row, b=const(1))
        call = VectorCall(
            function=self.function,
            dst=moved(dst, times(row, out)),
            arguments=(moved(src, times(row, step)), moved(dst, times(before, out)), count),
        )
        if rows > 1:
            self._loop(row, const(first + one), rows if one > 0 else -1, (call,), step=one)

    def _copy(self, dst: TileRef, src: TileRef, count: Expr) -> None:
        if self.counts:
            self.context.emit(VectorCall(function="Copy", dst=dst, arguments=(src, count)))
            return
        dtype = self.context.tiles.dtype(dst.tile)
        assert dtype is not None
        one = Const(dtype=dtype, value=1)
        self.context.emit(VectorCall(function="Muls", dst=dst, arguments=(src, one, count)))

    # ---- along rows, by blocks

    def along(self, dst: Value, src: Value) -> None:
        """Rows in stretches of whole blocks, which lie side by side with their columns as rows."""
        rows = self.shape.most_rows
        columns = -(-self.shape.most_columns // squares.ROWS) * squares.ROWS
        length = stretch(columns, squares.ROWS)
        parts, tall = columns // length, -(-rows // squares.ROWS) * squares.ROWS
        wide = parts * tall
        work = self._borrow("tile", src.dtype, length * wide)
        what = f"columns of {parts} stretches" if parts > 1 else "columns"
        self._each(
            parts,
            lambda part: self._turn_in(work, src, part, rows, length, tall, wide),
            f"{what} become rows",
        )
        if self.stmt.reverse:
            self._fill_padding(work, src.dtype, columns, length, tall, wide)
        self._running(work, work, wide, wide, length, const(wide), False)
        if parts > 1:
            self._carry(work, src.dtype, length, parts, tall, wide)
        self._back(dst, work, parts, rows, length, tall, wide)

    def _turn_in(
        self, work: TileRef, src: Value, part: Expr, rows: int, length: int, tall: int, wide: int
    ) -> tuple[VectorCall, ...]:
        into = (moved(work, times(part, tall)), const(wide))
        here = (moved(src.at, times(part, length)), const(src.pitch))
        return tuple(
            squares.turn(self.context.tiles, into, here, src.dtype, const(rows), const(length))
        )

    def _back(
        self, dst: Value, work: TileRef, parts: int, rows: int, length: int, tall: int, wide: int
    ) -> None:
        """The stretches to where they came from; a part of a tile by way of a scratch tile."""
        tiles = self.context.tiles
        out = dst
        if not dst.whole:
            size = squares.turned_size(tiles, dst.dtype, rows, self.shape.pitch)
            out = replace(dst, ref=self._borrow("tile", dst.dtype, size), pitch=self.shape.pitch)
        name, pitch = out.at.tile, out.pitch or self.shape.pitch
        size = squares.turned_size(tiles, dst.dtype, rows, pitch)
        if dst.whole:
            tiles.written[name] = max(size, tiles.written.get(name, 0))

        def call(part: Expr) -> tuple[VectorCall, ...]:
            into = (moved(out.at, times(part, length)), const(pitch))
            here = (moved(work, times(part, tall)), const(wide))
            size = const(length), const(rows)
            return tuple(squares.turn(tiles, into, here, dst.dtype, *size, covers=dst.whole))

        self._each(parts, call, _BACK)
        if out is not dst:
            self.calls.copy(dst, out)

    def _fill_padding(
        self, work: TileRef, dtype: DType, columns: int, length: int, tall: int, wide: int
    ) -> None:
        """What lies behind the last column must not count where the scan starts there."""
        for column in range(self.shape.most_columns, columns):
            at = column % length * wide + column // length * tall
            arguments = (self._identity(dtype), const(tall))
            dst = moved(work, const(at))
            self.context.emit(VectorCall(function="Duplicate", dst=dst, arguments=arguments))

    def _carry(
        self, work: TileRef, dtype: DType, length: int, parts: int, tall: int, wide: int
    ) -> None:
        """Adds to each stretch what all those before it come to."""
        before = self._borrow("row", dtype, wide)
        last = moved(work, const(0 if self.stmt.reverse else (length - 1) * wide))
        self._sum_before(before, last, dtype, parts, tall)
        self._add_to_rows(work, before, length, wide)

    def _identity(self, dtype: DType) -> Const:
        if self.function == "Add":
            return Const(dtype=dtype, value=0.0 if dtype.is_float else 0)
        least: int | float = float("-inf")
        if dtype.is_integer:
            least = -(2 ** (dtype.bits - 1))
        return Const(dtype=dtype, value=least)

    # ---- along rows that have no gaps

    def dense(self, src: Value, dst: Value) -> bool:
        """Whether the tile is a matrix of stretches, one after the other, of whole blocks: better for
        few rows, of which each would take a block of columns."""
        if self.counts:
            return True
        columns = self.shape.most_columns
        alike = all(value.kind != "tile" or value.pitch == columns for value in (src, dst))
        few = self.shape.most_rows % squares.ROWS != 0
        return alike and few and columns % squares.ROWS**2 == 0

    def along_dense(self, dst: Value, src: Value) -> None:
        """The whole tile as a matrix of stretches, turned over as one."""
        rows, columns = self.shape.most_rows, self.shape.most_columns
        dtype = src.dtype
        if src.kind == "tile" and src.pitch != columns:
            src = self._without_gaps(src)
        unit = 1 if self.counts else squares.ROWS
        length = stretch(columns, unit, unit)
        parts = columns // length
        wide = rows * parts
        work = self._borrow("tile", dtype, rows * columns)
        what = f"columns of {parts} stretches a row" if parts > 1 else "columns"
        self._transpose((work, wide), (src.at, length), wide, length, f"{what} become rows")
        self._running(work, work, wide, wide, length, const(wide), False)
        if parts > 1:
            self._carry_dense(work, dtype, length, parts, rows)
        out = dst
        if (dst.kind == "tile" and dst.pitch != columns) or not (self.counts or dst.whole):
            out = replace(dst, ref=self._borrow("tile", dtype, rows * columns), pitch=columns)
        covers = out is dst and dst.whole
        self._transpose((out.at, length), (work, wide), length, wide, _BACK, covers=covers)
        if out is not dst:
            self.calls.copy(dst, out)

    def _without_gaps(self, src: Value) -> Value:
        whole = replace(self.like(src, src.dtype), pitch=self.shape.most_columns)
        self.calls.copy(whole, src)
        return whole

    def _transpose(
        self,
        dst: tuple[TileRef, int],
        src: tuple[TileRef, int],
        height: int,
        width: int,
        remark: str,
        *,
        covers: bool = False,
    ) -> None:
        """dst = src, `height` x `width`, turned; both with their pitch, which calls of counts have
        not."""
        (to, to_pitch), (at, pitch) = dst, src
        if self.counts:
            arguments = (at, const(height), const(width))
            call = VectorCall(
                function="Transpose", dst=to, arguments=arguments, covers=covers, remark=remark
            )
            self.context.emit(call)
            return
        dtype = self.context.tiles.dtype(to.tile)
        assert dtype is not None
        into, here = (to, const(to_pitch)), (at, const(pitch))
        sizes = const(height), const(width)
        for call in squares.turn(self.context.tiles, into, here, dtype, *sizes, covers=covers):
            self.context.emit(replace(call, remark="" if call.goes_on else remark))

    def _carry_dense(self, work: TileRef, dtype: DType, length: int, parts: int, rows: int) -> None:
        """Adds to each stretch what all those before it come to: the last row, scanned itself."""
        wide = rows * parts
        tall = rows if self.counts else -(-rows // squares.ROWS) * squares.ROWS
        reverse = self.stmt.reverse
        ends = self._borrow("row", dtype, tall * parts)
        before = self._borrow("row", dtype, tall * parts)
        last = moved(work, const(0 if reverse else (length - 1) * wide))
        self._transpose((ends, tall), (last, parts), rows, parts, "what each stretch comes to")
        self._sum_before(before, ends, dtype, parts, tall)
        self._transpose((ends, parts), (before, tall), parts, rows, "a row for each row again")
        if self.counts:
            arguments = (work, ends, const(length * wide), const(wide))
            self.context.emit(
                VectorCall(function=f"Cycle{self.function}", dst=work, arguments=arguments)
            )
        else:
            self._add_to_rows(work, ends, length, wide)

    def _sum_before(
        self, before: TileRef, ends: TileRef, dtype: DType, parts: int, tall: int
    ) -> None:
        """before[s] = what the stretches in front of s come to, by ends[s], `tall` elements each."""
        reverse = self.stmt.reverse
        first, one, stop = (parts - 1, -1, -1) if reverse else (0, 1, parts)
        identity = (self._identity(dtype), const(tall))
        self.context.emit(
            VectorCall(
                function="Duplicate",
                dst=moved(before, const(first * tall)),
                arguments=identity[::-1] if self.counts else identity,
                remark=f"what the stretches {'behind' if reverse else 'before'} come to",
            )
        )
        part = self._var("stretch", "part")
        other = Binary(dtype=INT32, op="+" if reverse else "-", a=part, b=const(1))
        at = times(other, tall)
        call = VectorCall(
            function=self.function,
            dst=moved(before, times(part, tall)),
            arguments=(moved(before, at), moved(ends, at), const(tall)),
        )
        self._loop(part, const(first + one), stop, (call,), step=one)

    def _add_to_rows(self, work: TileRef, before: TileRef, length: int, wide: int) -> None:
        row = self.shape.row_var
        here = moved(work, times(row, wide))
        add = VectorCall(function=self.function, dst=here, arguments=(here, before, const(wide)))
        self._loop(row, const(0), length, (add,), own=True, independent=True)

    # ---- loops

    def _var(self, *wanted: str) -> Var:
        return Var(dtype=INT32, name=self.context.names.unused(*wanted), kind="loop")

    def _each(
        self, parts: int, call: Callable[[Expr], tuple[VectorCall, ...]], remark: str
    ) -> None:
        """The calls for each stretch, which touch nothing in common."""
        if parts == 1:
            for one in call(const(0)):
                self.context.emit(replace(one, remark="" if one.goes_on else remark))
            return
        part = self._var("stretch", "part")
        self._loop(part, const(0), parts, call(part), own=True, independent=True, remark=remark)

    def _loop(
        self,
        var: Var,
        start: Expr,
        stop: int,
        body: tuple[Step, ...],
        *,
        step: int = 1,
        own: bool = False,
        independent: bool = False,
        remark: str = "",
    ) -> None:
        self.context.emit(
            Loop(
                var=var,
                start=start,
                stop=const(stop),
                step=const(step),
                body=body,
                own=own,
                independent=independent,
                remark=remark,
            )
        )


def stretch(columns: int, unit: int, parts: int = 1) -> int:
    """The length of a stretch, a multiple of `unit` that divides the columns, for the fewest calls:
    two for each column of a stretch and one for each stretch, of which there are a multiple of
    `parts`."""
    if columns <= 4 * squares.ROWS:
        return columns
    ways = [
        size
        for size in range(unit, columns + 1, unit)
        if columns % size == 0 and columns // size % parts == 0
    ]
    return min(ways, key=lambda size: size if size == columns else 2 * size + columns // size)
