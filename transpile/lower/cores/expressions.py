"""Turns the expression of a store in T.Parallel into vector calls over whole tiles.

reads   expressions of the tile IR        writes  steps, through `Calls`
Post-order: one call a node, its result in the destination where nothing there is still needed, in a
scratch tile otherwise. Conversions are where the tile IR has them.
"""

from __future__ import annotations

import math
from dataclasses import replace

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
)
from tile2c.transpile.lower.cores.calls import number_of
from tile2c.transpile.lower.cores.conversions import no_conversion
from tile2c.transpile.lower.cores.elements import Elements
from tile2c.transpile.lower.cores.functions import Functions
from tile2c.transpile.lower.cores.masks import Masks
from tile2c.transpile.lower.cores.narrowed import Narrowed
from tile2c.transpile.lower.cores.plan import ReadElement
from tile2c.transpile.lower.cores.shifts import is_shift, shifted
from tile2c.transpile.lower.cores.values import Kind, Value, join
from tile2c.transpile.record import record

_WHOLE = {"+": "Add", "-": "Sub", "*": "Mul", "/": "Div", "min": "Min", "max": "Max"}
_NUMBER = {
    "+": "Adds", "-": "Subs", "*": "Muls", "/": "Divs", "min": "Mins", "max": "Maxs",
    "<<": "ShiftLeft", ">>": "ShiftRight",
}  # fmt: skip
_GROWS = ("+", "-", "*", "<<")  # may leave the range of the operands' type


@record(frozen=False)
class Vectors(Elements):
    """Evaluates the expressions of one parallel loop."""

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
            wrapped = Narrowed(self).value(expr)
            value = self.evaluate(expr.a) if wrapped is None else wrapped
            return self.cast(value, expr.dtype, want, expr.span)
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
        if not _grows(inner):
            return self.evaluate(inner)
        spare = wide.bits - expr.dtype.bits
        shift = isinstance(inner, Binary) and inner.op == "<<"
        if shift and isinstance(inner, Binary) and isinstance(inner.b, Const):  # to the top at once
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

    # ---- operations

    def binary(self, expr: Binary, want: Value | None) -> Value:
        can = self.tiles.target.can
        if expr.op in ("<<", ">>"):
            return self.shift(expr, want)
        has = expr.op in _WHOLE and can(_WHOLE[expr.op], expr.dtype.name)
        if not has and not (expr.op == "/" and can("Recip", expr.dtype.name)):
            raise self.none(f"{expr.op} of {expr.dtype}", expr)
        if expr.op == "*" and expr.a == expr.b and not isinstance(expr.a, Load | Var):
            return self.square(expr, want)
        a, b = self.evaluate(expr.a), self.evaluate(expr.b)
        if a.kind == "scalar" and b.kind != "scalar" and expr.op in ("+", "*", "min", "max"):
            a, b = b, a
        if b.kind == "scalar":
            return self.with_number(expr, a, b.number, want)
        if a.kind == "scalar":
            return self.number_with(expr, a.number, b, want)
        return self.two(_WHOLE[expr.op], expr.dtype, a, b, want)

    def square(self, expr: Binary, want: Value | None) -> Value:
        """The same expression twice, computed once."""
        if self.dst is not None:  # what the other one would have read
            reads = walk.loads(expr.b)
            self.pending -= sum(load.buffer.name == self.dst.at.tile for load in reads)
        a = self.evaluate(expr.a)
        out = self.result(a.kind, expr.dtype, want, a)
        self.calls.elementwise("Mul", out, (a, a))
        self.free(a, kept=out)
        return out

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


def _grows(expr: Expr) -> bool:
    """Whether the result may leave the range of the operands' type: |-128| does."""
    if isinstance(expr, Binary):
        return expr.op in _GROWS
    return isinstance(expr, Call) and expr.function == "abs"


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
