"""Turns the expression of a store in T.Parallel into vector calls over whole tiles.

reads   expressions of the tile IR        writes  steps, through `Calls`
Post-order: one call a node, its result in the destination where nothing there is still needed, in a
scratch tile otherwise. Conversions are where the tile IR has them.
"""

from __future__ import annotations

import math
from dataclasses import field, replace

from tile2c.transpile.diagnostics import InputError, Span
from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir import walk
from tile2c.transpile.ir.dtypes import DTYPES, FLOAT32, DType
from tile2c.transpile.ir.expr import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Logical,
    Select,
    Unary,
    Var,
    const,
)
from tile2c.transpile.lower.cores.calls import Calls, number_of
from tile2c.transpile.lower.cores.conversions import no_conversion
from tile2c.transpile.lower.cores.functions import Functions
from tile2c.transpile.lower.cores.layouts import Layout
from tile2c.transpile.lower.cores.masks import Masks
from tile2c.transpile.lower.cores.plan import ReadElement, TileRef
from tile2c.transpile.lower.cores.scalars import Scalars
from tile2c.transpile.lower.cores.shifts import is_shift, shifted
from tile2c.transpile.lower.cores.stage_globals import without
from tile2c.transpile.lower.cores.tiles import Tiles
from tile2c.transpile.lower.cores.values import Kind, Value, join
from tile2c.transpile.lower.facts import Facts, linear
from tile2c.transpile.record import record

_WHOLE = {"+": "Add", "-": "Sub", "*": "Mul", "/": "Div", "min": "Min", "max": "Max"}
_NUMBER = {
    "+": "Adds", "-": "Subs", "*": "Muls", "/": "Divs", "min": "Mins", "max": "Maxs",
    "<<": "ShiftLeft", ">>": "ShiftRight",
}  # fmt: skip
_GROWS = ("+", "-", "*", "<<")  # may leave the range of the operands' type


@record(frozen=False)
class Vectors:
    """Evaluates the expressions of one parallel loop."""

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

    # ---- statements

    def assign(self, dst: Value, expr: Expr) -> None:
        """dst = expr for every iteration."""
        if dst.turned:
            kept = self.scratch("tile", dst.dtype)
            self.assign(replace(kept, scratch=False), expr)
            self.calls.turn_into(dst, kept)
            self.free(kept)
            return
        self.dst, self.dst_busy = dst, False
        self.pending = sum(load.buffer.name == dst.at.tile for load in walk.loads(expr))
        value = self.evaluate(expr, dst)
        if value.kind != "scalar" and value.dtype != dst.dtype:  # bytes, which are held wider
            value = self.cast(value, dst.dtype, dst if value.kind == dst.kind else None, expr.span)
        self.settle(value, dst, expr.span)
        self.dst = None

    def settle(self, value: Value, dst: Value, span: Span | None) -> None:
        """Brings a value into its destination, repeated where the destination is larger."""
        if value.ref == dst.ref and value.kind == dst.kind:
            return
        if value.kind == "scalar":
            self.calls.fill(dst, value.number)
        elif value.kind == dst.kind or (value.kind, dst.kind) == ("row", "tile"):
            self.calls.copy(dst, value)
        elif (value.kind, dst.kind) in (("column", "tile"), ("one", "tile"), ("one", "row")):
            self.calls.spread_over(dst, value)
        elif value.kind == "one":
            raise failure("T2C535", "one element cannot be spread over a column here", span)
        else:
            raise failure(
                "T2C536",
                f"this value has one element for each iteration, but {dst.at.tile} fewer: "
                "iterations would overwrite each other",
                span,
                help="use T.reduce_sum, T.reduce_max or T.reduce_min to combine them",
            )
        self.free(value)

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

    # ---- expressions

    def evaluate(self, expr: Expr, want: Value | None = None) -> Value:
        """The expression's value; `want` is where its last call may write."""
        if self._is_scalar(expr):
            lowered = self.scalars.lower(expr, self.facts, self.calls.emit)
            return Value(kind="scalar", dtype=expr.dtype, expr=lowered)
        if isinstance(expr, Load):
            return self.load(expr)
        if isinstance(expr, Var):
            return self.variable(expr)
        if isinstance(expr, Cast):
            return self.cast(self.evaluate(expr.a), expr.dtype, want, expr.span)
        if self.is_held(expr.dtype) and isinstance(expr, Binary | Unary | Call | Select):
            return self.held(expr)
        if isinstance(expr, Select):
            return self.select(expr, want)
        if is_shift(expr) and self.tiles.target.can("Floor", "float32"):
            assert isinstance(expr, Binary)
            return self.cast(shifted(expr, self), expr.dtype, want, expr.span)
        wide = self._wide(expr)
        if wide is not None and isinstance(expr, Binary | Unary | Call):
            inner = self.evaluate(_widened(expr, DTYPES[wide]))
            return self.cast(inner, expr.dtype, want, expr.span)
        if isinstance(expr, Binary):
            return self.binary(expr, want)
        if isinstance(expr, Unary) and expr.op == "-":
            minus = Const(dtype=expr.dtype, value=-1)
            return self.binary(Binary(dtype=expr.dtype, op="*", a=expr.a, b=minus), want)
        if isinstance(expr, Call):
            return self.call(expr, want)
        if isinstance(expr, Compare | Logical):
            raise failure(
                "T2C537",
                "a tile of truth values has no element type on this target",
                expr.span,
                help="use the condition in T.if_then_else, which gives numbers",
            )
        raise self.none(type(expr).__name__.lower(), expr)

    def is_held(self, dtype: DType) -> bool:
        """Whether values of a type are computed in a wider integer, which holds the same numbers."""
        return dtype.name in self.tiles.target.held

    def held(self, expr: Binary | Unary | Call | Select) -> Value:
        """An operation on bytes in the type that holds them, back in their range where it left it."""
        wide = DTYPES[self.tiles.target.held[expr.dtype.name]]
        if isinstance(expr, Select):
            return self.select(_widened_select(expr, wide), None)
        inner = _widened(expr, wide)
        if not isinstance(inner, Binary) or inner.op not in _GROWS:
            return self.evaluate(inner)
        spare = wide.bits - expr.dtype.bits
        if inner.op == "<<" and isinstance(inner.b, Const):  # to the top at once
            up = replace(inner, b=number_of(int(inner.b.value) + spare, wide))
        else:
            up = Binary(dtype=wide, op="<<", a=inner, b=number_of(spare, wide), span=expr.span)
        value = self.evaluate(up)
        if value.kind == "scalar":
            return value
        down = wide if expr.dtype.kind == "int" else DTYPES[f"u{wide.name}"]
        seen = replace(value, ref=replace(value.at, view=None if down == wide else down))
        number = Value(kind="scalar", dtype=down, expr=number_of(spare, down))
        self.calls.elementwise("ShiftRight", seen, (seen, number))
        return value

    def _wide(self, expr: Expr) -> str | None:
        """The type in which to compute what the unit has not in the expression's own."""
        target, name = self.tiles.target, expr.dtype.name
        if name in target.widen:
            return target.widen[name]
        if isinstance(expr, Call):
            needed = Functions.calls(expr.function)
        else:
            needed = ("Div", "Recip") if isinstance(expr, Binary) and expr.op == "/" else ()
        if not needed or not expr.dtype.is_float or expr.dtype.bits > 16:
            return None
        own = any(target.can(call, name) for call in needed)
        return "float32" if not own and any(target.can(c, "float32") for c in needed) else None

    def _number_call(self, op: str, dtype: DType) -> str | None:
        """The call for `tile op number`."""
        call = _NUMBER.get(op)
        return call if call is not None and self.tiles.target.can(call, dtype.name) else None

    def _is_scalar(self, expr: Expr) -> bool:
        """Whether the scalar unit can have it: no loop variable in it, no element of a tile."""
        for part in walk.parts(expr):
            if isinstance(part, Var) and self._is_own(part):
                return False
            if isinstance(part, Load) and part.buffer.name in self.layouts:
                return False
        return True

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

    # ---- operations

    def binary(self, expr: Binary, want: Value | None) -> Value:
        can = self.tiles.target.can
        if expr.op in ("<<", ">>"):
            return self.shift(expr, want)
        has = expr.op in _WHOLE and can(_WHOLE[expr.op], expr.dtype.name)
        if not has and not (expr.op == "/" and can("Recip", expr.dtype.name)):
            raise self.none(f"{expr.op} of {expr.dtype}", expr)
        a, b = self.evaluate(expr.a), self.evaluate(expr.b)
        if a.kind == "scalar" and b.kind != "scalar" and expr.op in ("+", "*", "min", "max"):
            a, b = b, a
        if b.kind == "scalar":
            return self.with_number(expr, a, b.number, want)
        if a.kind == "scalar":
            return self.number_with(expr, a.number, b, want)
        return self.two(_WHOLE[expr.op], expr.dtype, a, b, want)

    def shift(self, expr: Binary, want: Value | None) -> Value:
        """a << number, a >> number."""
        if not self.tiles.target.can(_NUMBER[expr.op], expr.dtype.name):
            raise self.none(f"{expr.op} of {expr.dtype}", expr)
        a, b = self.evaluate(expr.a), self.evaluate(expr.b)
        if a.kind == "scalar" or b.kind != "scalar":
            raise self.none(f"{expr.op} by numbers of a tile", expr)
        return self.with_number(expr, a, b.number, want)

    def two(self, function: str, dtype: DType, a: Value, b: Value, want: Value | None) -> Value:
        if function == "Div" and not self.tiles.target.can("Div", dtype.name):
            function, b = "Mul", self.unary("Recip", b, None)
        kind = join(a.kind, b.kind)
        out = self.result(kind, dtype, want, a, b)
        if kind == a.kind == b.kind:
            self.calls.elementwise(function, out, (a, b))
        elif not self.calls.spreads(kind):
            a, b = (self.repeated(value, kind) for value in (a, b))
            self.calls.elementwise(function, out, (a, b))
        else:
            self.calls.broadcast(function, out, a, b)
        self.free(a, b, kept=out)
        return out

    def repeated(self, value: Value, kind: Kind) -> Value:
        """A single element as a value of this kind: S reads it, V fills a scratch tile with it."""
        if value.kind != "one":
            return value
        name = self.scalars.names.local(f"{value.at.tile}_value")
        self.calls.emit(ReadElement(name=name, dtype=value.dtype, src=value.at))
        out = self.scratch(kind, value.dtype)
        self.calls.fill(out, Var(dtype=value.dtype, name=name, kind="temporary"))
        return out

    def with_number(self, expr: Binary, a: Value, number: Expr, want: Value | None) -> Value:
        """a op number, a in local memory."""
        op = expr.op
        call = self._number_call(op, expr.dtype)
        if op == "-" and call is None:
            op, number = "+", negated(number)
        if op == "/" and (_power_of_two(number) or (call is None and self._inverts(expr.dtype))):
            op, number = "*", _inverse(number, expr.dtype)
        call = self._number_call(op, expr.dtype)
        if call is not None:
            out = self.result(a.kind, expr.dtype, want, a)
            scalar = Value(kind="scalar", dtype=expr.dtype, expr=number)
            self.calls.elementwise(call, out, (a, scalar))
            self.free(a, kept=out)
            return out
        divisor = self.scratch(a.kind, expr.dtype)
        self.calls.fill(divisor, number)
        return self.two("Div", expr.dtype, a, divisor, want)

    def number_with(self, expr: Binary, number: Expr, b: Value, want: Value | None) -> Value:
        """number op b for the operations whose sides cannot be exchanged."""
        if expr.op == "-":
            out = self.result(b.kind, expr.dtype, want, b)
            minus = Value(kind="scalar", dtype=expr.dtype, expr=number_of(-1, expr.dtype))
            self.calls.elementwise("Muls", out, (b, minus))
            scalar = Value(kind="scalar", dtype=expr.dtype, expr=number)
            self.calls.elementwise("Adds", out, (out, scalar))
            self.free(b, kept=out)
            return out
        if self._inverts(expr.dtype):
            b = self.unary("Recip", b, want)
            if isinstance(number, Const) and number.value == 1:
                return b
            return self.with_number(replace(expr, op="*"), b, number, want)
        dividend = self.scratch(b.kind, expr.dtype)
        self.calls.fill(dividend, number)
        return self.two("Div", expr.dtype, dividend, b, want)

    def _inverts(self, dtype: DType) -> bool:
        """Whether 1 over a number is a call of its own."""
        return self.tiles.target.can("Recip", dtype.name)

    def unary(self, function: str, a: Value, want: Value | None, *extra: object) -> Value:
        if function in self.tiles.target.apart:  # the result needs a place of its own
            out = self.scratch(a.kind, a.dtype)
            self.consume(a)
        else:
            out = self.result(a.kind, a.dtype, want, a)
        self.calls.elementwise(function, out, (a,), *extra)  # type: ignore[arg-type]
        self.free(a, kept=out)
        return out

    def scaled(self, a: Value, factor: float, want: Value | None) -> Value:
        number = Value(kind="scalar", dtype=a.dtype, expr=number_of(factor, a.dtype))
        out = self.result(a.kind, a.dtype, want, a)
        self.calls.elementwise("Muls", out, (a, number))
        self.free(a, kept=out)
        return out

    def call(self, expr: Call, want: Value | None) -> Value:
        return Functions(self).call(expr, want)

    def cast(self, a: Value, dtype: DType, want: Value | None, span: Span | None) -> Value:
        """The value as another type, through the types between where there is no direct call."""
        if a.dtype == dtype:
            return a
        if a.kind == "scalar":
            return replace(a, dtype=dtype, expr=Cast(dtype=dtype, a=a.number))
        found = self.tiles.target.conversions.get((a.dtype.name, dtype.name))
        if found is None:
            raise no_conversion(a.dtype, dtype, self.tiles.target, span)
        steps = (*(DTYPES[name] for name in found.through), dtype)
        for number, (step, how) in enumerate(zip(steps, found.modes, strict=True)):
            out = self.result(a.kind, step, want if number == len(steps) - 1 else None, a)
            self.calls.cast(out, a, how)
            self.free(a, kept=out)
            a = out
        return a

    def select(self, expr: Select, want: Value | None) -> Value:
        wide = self.tiles.target.widen.get(expr.dtype.name)
        if wide is not None:
            inner = self.select(_widened_select(expr, DTYPES[wide]), None)
            return self.cast(inner, expr.dtype, want, expr.span)
        if not self.tiles.target.can("Select", expr.dtype.name):
            raise self.none(f"choice between {expr.dtype} values", expr)
        return Masks(self).select(expr, want)

    def none(self, what: str, expr: Expr) -> InputError:
        return failure(
            "T2C541",
            f"the vector unit of {self.tiles.target.name} has no {what}",
            expr.span,
            help="float16 and float32 tiles have + - * /, min, max, abs, exp, exp2, log, sqrt, rsqrt, "
            "comparisons and conversions; int16 and int32 tiles + - * min max abs and comparisons",
        )


def negated(number: Expr) -> Expr:
    if isinstance(number, Const) and number.name is None:
        return replace(number, value=-number.value)
    if number.dtype.name in ("float16", "bfloat16"):
        inner = Unary(dtype=FLOAT32, op="-", a=Cast(dtype=FLOAT32, a=number))
        return Cast(dtype=number.dtype, a=inner)
    return Unary(dtype=number.dtype, op="-", a=number)


def _inverse(number: Expr, dtype: DType) -> Expr:
    if isinstance(number, Const) and number.name is None:
        return number_of(1 / float(number.value), dtype)
    return Binary(dtype=dtype, op="/", a=number_of(1, dtype), b=number)


def _power_of_two(number: Expr) -> bool:
    if not isinstance(number, Const) or number.name or not number.value:
        return False
    return math.frexp(abs(float(number.value)))[0] == 0.5


def _widened(expr: Binary | Unary | Call, wide: DType) -> Expr:
    """The operation in a wider type, its operands converted."""
    if isinstance(expr, Binary):
        return replace(expr, dtype=wide, a=_cast(expr.a, wide), b=_cast(expr.b, wide))
    if isinstance(expr, Unary):
        return replace(expr, dtype=wide, a=Cast(dtype=wide, a=expr.a))
    return replace(expr, dtype=wide, args=tuple(Cast(dtype=wide, a=part) for part in expr.args))


def _cast(expr: Expr, dtype: DType) -> Expr:
    if isinstance(expr, Const) and dtype.is_integer:
        return replace(expr, dtype=dtype)
    return Cast(dtype=dtype, a=expr)


def _widened_select(expr: Select, wide: DType) -> Select:
    a, b = Cast(dtype=wide, a=expr.a), Cast(dtype=wide, a=expr.b)
    return replace(expr, dtype=wide, a=a, b=b)


def _not_turned(name: str, dtype: DType, span: Span | None) -> InputError:
    small = dtype.bits == 8 and dtype.is_integer  # float16 holds each of its values
    return failure(
        "T2C539",
        f"this exchanges rows and columns of {name}, and the vector unit does not "
        f"transpose {dtype}",
        span,
        help="convert it to float16 by T.copy first, and transpose that" if small else None,
    )
