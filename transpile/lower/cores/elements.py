"""Values that a parallel loop reads and writes: elements of tiles over all iterations, and scratch tiles.

reads   indices of the tile IR        writes  `Value`s for vector calls
"""

from __future__ import annotations

from dataclasses import field, replace

from tile2c.transpile.diagnostics import InputError, Span
from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir import walk
from tile2c.transpile.ir.dtypes import DType
from tile2c.transpile.ir.expr import (
    Const,
    Expr,
    Load,
    Var,
    const,
)
from tile2c.transpile.lower.cores.calls import Calls
from tile2c.transpile.lower.cores.layouts import Layout
from tile2c.transpile.lower.cores.plan import TileRef
from tile2c.transpile.lower.cores.regions import without
from tile2c.transpile.lower.cores.scalars import Scalars
from tile2c.transpile.lower.cores.tiles import Tiles
from tile2c.transpile.lower.cores.values import Kind, Value
from tile2c.transpile.lower.facts import Facts, linear
from tile2c.transpile.record import record


@record(frozen=False)
class Elements:
    """What the expressions of one parallel loop are made of, and where their results go."""

    calls: Calls
    tiles: Tiles
    scalars: Scalars
    layouts: dict[str, Layout]
    facts: Facts
    row_var: Var | None
    column_var: Var | None
    bound: dict[str, Value] = field(default_factory=dict)  # temporaries of the loop body
    conditions: dict[str, Expr] = field(default_factory=dict)  # truth values that have a name
    dst: Value | None = None  # of the statement at hand
    pending: int = 0  # reads of its tile that no call has done yet
    dst_busy: bool = False

    # ---- results

    def consume(self, *values: Value) -> None:
        """Called when a call reads these operands: their reads of the destination are done."""
        for value in values:
            if self.dst is not None and value.ref is not None and not value.inside:
                self.pending -= value.at.tile == self.dst.at.tile

    def result(self, kind: Kind, dtype: DType, want: Value | None, *operands: Value) -> Value:
        """Where a result goes: where it is wanted, in place of an operand, or a scratch tile."""
        self.consume(*operands)
        if want is not None and (want.kind, want.dtype) == (kind, dtype):
            if self._clean(want, operands):
                self.dst_busy = True
                return replace(want, inside=True)
        for value in operands:
            if (value.scratch or value.inside) and (value.kind, value.dtype) == (kind, dtype):
                return value
        dst = self.dst
        if dst is not None and (dst.kind, dst.dtype) == (kind, dtype) and not self.dst_busy:
            if self._clean(dst, operands):
                self.dst_busy = True
                return replace(dst, inside=True)
        return self.scratch(kind, dtype)

    def _clean(self, dst: Value, operands: tuple[Value, ...]) -> bool:
        """Whether writing the destination destroys nothing: all its reads are done, or done here."""
        if self.pending > 0:
            return False
        for value in operands:
            if value.ref is not None and value.at.tile == dst.at.tile:
                if value.ref != dst.ref or value.kind != dst.kind:
                    return False
        if self.dst_busy:  # an intermediate result is in there: it has to be an operand here
            return any(value.inside for value in operands)
        return True

    def scratch(self, kind: Kind, dtype: DType) -> Value:
        word = kind if kind != "scalar" else "one"
        name = self.tiles.borrow(word, dtype, self.calls.shape.most(kind))
        pitch = self.calls.shape.pitch if kind == "tile" else 0
        return Value(kind=kind, dtype=dtype, ref=TileRef(tile=name), pitch=pitch, scratch=True)

    def free(self, *values: Value, kept: Value | None = None) -> None:
        """Ends the use of operands that are not the result."""
        for value in values:
            if kept is not None and value.ref == kept.ref:
                continue
            if value.scratch:
                self.tiles.give_back(value.at.tile)
            elif value.inside:
                self.dst_busy = False

    # ---- elements

    def varies(self, expr: Expr) -> bool:
        """Whether iterations may have different values of it."""
        for part in walk.parts(expr):
            if isinstance(part, Var) and self._is_own(part):
                return True
        return False

    def _is_own(self, var: Var) -> bool:
        """Whether iterations may have different values of a name."""
        return self.is_loop(var) or var.name in self.bound or var.name in self.conditions

    def is_loop(self, var: Var) -> bool:
        return var in (self.row_var, self.column_var)

    def load(self, expr: Load) -> Value:
        return self.element(expr.buffer.name, expr.index, expr.span)

    def variable(self, expr: Var) -> Value:
        if expr.name in self.bound:
            return replace(self.bound[expr.name], scratch=False)
        return self.index_values(expr, expr.dtype)

    def index_values(self, var: Var, dtype: DType) -> Value:
        """0, 1, 2, ... along the loop variable."""
        shape = self.calls.shape
        column = var == self.column_var
        kind: Kind = "row" if column else "column"
        name = self.tiles.index_tile(shape.most_columns if column else shape.most_rows, dtype)
        return Value(kind=kind, dtype=dtype, ref=TileRef(tile=name))

    def element(
        self, name: str, index: tuple[Expr, ...], span: Span | None, *, stored: bool = False
    ) -> Value:
        """What `name[index]` is over all iterations. Raises InputError for strided accesses.

        A tile whose columns the loop walks over is turned: when it is read here, when it is `stored`
        by the caller.
        """
        layout = self.layouts[name]
        found: dict[int, Var] = {}
        rest: list[Expr] = []
        for dim, part in enumerate(index):
            if isinstance(part, Var) and self.is_loop(part):
                if dim in layout.kept:
                    found[dim] = part
                rest.append(const(0))
                continue
            own = {var for var in walk.variables(part) if self.is_loop(var)}
            if own:
                (var, *others) = own
                if others or dict(linear(part).terms).get(var) != 1:
                    raise self._strided(name, part.span or span)
                part = without(part, var)
                if var in walk.variables(part):
                    raise self._strided(name, part.span or span)
                if dim in layout.kept:
                    found[dim] = var
            rest.append(self.scalars.lower(part, self.facts, self.calls.emit))
        fixed = {dim for dim, part in enumerate(index) if isinstance(part, Const)}
        ref = TileRef(tile=name, offset=layout.offset(tuple(rest)))
        ref = replace(ref, extent=layout.rest_of(ref.offset, fixed))
        self._aligned(layout, ref, span)
        dtype = layout.buffer.dtype
        last = layout.kept[-1] if layout.kept else -1
        whole = ref.offset is None and all(
            found.get(dim) is not None and self._extent(found[dim]) == extent
            for dim, extent in zip(layout.kept, layout.extents, strict=True)
        )
        match [found.get(dim) for dim in layout.kept if dim in found]:
            case []:
                return Value(kind="one", dtype=dtype, ref=ref, whole=whole)
            case [only] if last in found:
                kind: Kind = "row" if only == self.column_var else "column"
                return Value(kind=kind, dtype=dtype, ref=ref, whole=whole)
            case [first, second] if (first, second) == (self.row_var, self.column_var):
                outer = next(dim for dim in layout.kept if found.get(dim) == self.row_var)
                if last in found:
                    pitch = layout.weight(outer)
                return Value(kind="tile", dtype=dtype, ref=ref, pitch=pitch, whole=whole)
            case [first, second] if (first, second) == (self.column_var, self.row_var):
                outer = next(dim for dim in layout.kept if found.get(dim) == self.column_var)
                pitch = layout.weight(outer)
                value = Value(
                    kind="tile", dtype=dtype, ref=ref, pitch=pitch, whole=whole, turned=True
                )
                if last in found and self.calls.turns(value):
                    return value if stored else self.turned(value)
                if last in found:
                    raise _not_turned(name, dtype, span)
        raise self._strided(name, span)

    def turned(self, value: Value) -> Value:
        """A tile that is read along its columns, in a scratch tile along its rows."""
        if self.dst is not None and self.dst.at.tile == value.at.tile:
            self.pending -= 1
        return self.calls.turned(value)

    def _extent(self, var: Var) -> int:
        shape = self.calls.shape
        return shape.most_columns if var == self.column_var else shape.most_rows

    def _aligned(self, layout: Layout, ref: TileRef, span: Span | None) -> None:
        lanes = self.tiles.lanes(layout.buffer.dtype)
        if ref.offset is not None and not self.facts.divisible(ref.offset, lanes):
            if layout.kept and layout.size > 1:
                raise failure(
                    "T2C538",
                    f"this part of {layout.buffer.name} does not start at a multiple of "
                    f"{self.tiles.target.block_bytes} bytes, as vector calls need it to",
                    span,
                    help="give it a tile of its own, or read it from the global tensor by T.copy",
                )

    def _strided(self, name: str, span: Span | None) -> InputError:
        return failure(
            "T2C539",
            f"this index does not walk over {name} along its last dimension, "
            "and the vector unit reads nothing else",
            span,
            help="index each dimension by one T.Parallel variable, or by one plus a number",
        )


def _not_turned(name: str, dtype: DType, span: Span | None) -> InputError:
    small = dtype.bits == 8 and dtype.is_integer  # float16 holds each of its values
    return failure(
        "T2C539",
        f"this exchanges rows and columns of {name}, and the vector unit does not "
        f"transpose {dtype}",
        span,
        help="convert it to float16 by T.copy first, and transpose that" if small else None,
    )
