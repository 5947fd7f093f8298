"""Functions of one value: those of the vector unit, and those made of them.

reads   `ir.expr.Call`        writes  vector calls, through `Vectors`
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tile2c.transpile.ir.dtypes import BOOL, FLOAT32
from tile2c.transpile.ir.expr import Binary, Call, Compare, Const, Expr, Select, Unary
from tile2c.transpile.lower.cores.calls import mode, number_of
from tile2c.transpile.lower.cores.values import Value

if TYPE_CHECKING:
    from tile2c.transpile.lower.cores.expressions import Vectors

LN2 = math.log(2)
_FUNCTIONS = {  # function -> calls of that meaning, each with factors before and after it
    "exp": ((None, "Exp", None), (1 / LN2, "Exp2", None)),
    "exp2": ((None, "Exp2", None), (LN2, "Exp", None)),
    "exp10": ((math.log2(10), "Exp2", None), (math.log(10), "Exp", None)),
    "log": ((None, "Ln", None), (None, "Log2", LN2)),
    "log2": ((None, "Log2", None), (None, "Ln", 1 / LN2)),
    "log10": ((None, "Ln", 1 / math.log(10)), (None, "Log2", math.log10(2))),
    "sqrt": ((None, "Sqrt", None),),
    "rsqrt": ((None, "Rsqrt", None),),
    "abs": ((None, "Abs", None),),
}
_COMPOSED = ("sigmoid", "tanh")
_WHOLE = {"floor": "Floor", "ceil": "Floor", "round": "Nearby", "nearbyint": "Nearby"}
_ROUND = {
    "floor": "CAST_FLOOR",
    "ceil": "CAST_CEIL",
    "trunc": "CAST_TRUNC",
    "round": "CAST_RINT",
    "nearbyint": "CAST_RINT",
}


class Functions:
    """Lowers calls for the expressions of one parallel loop."""

    def __init__(self, vectors: Vectors) -> None:
        self.v = vectors

    def call(self, expr: Call, want: Value | None) -> Value:
        name, dtype = expr.function, expr.dtype
        if name in ("min", "max") and len(expr.args) == 2:
            left, right = expr.args
            return self.v.binary(Binary(dtype=dtype, op=name, a=left, b=right), want)  # type: ignore[arg-type]
        if name == "clamp":
            value, low, high = expr.args
            above = Binary(dtype=dtype, op="max", a=value, b=low)
            return self.v.binary(Binary(dtype=dtype, op="min", a=above, b=high), want)
        if name == "abs" and dtype.is_integer and not self.v.tiles.target.can("Abs", dtype.name):
            return self.largest_of_both_signs(expr, want)
        if name not in (*_FUNCTIONS, *_ROUND, *_COMPOSED):
            raise self.v.none(name, expr)
        if not any(self.v.tiles.target.can(call, dtype.name) for call in self.calls(name)):
            raise self.v.none(f"{name} of {dtype}", expr)
        if name in _COMPOSED:
            return self.v.evaluate(_composed(expr), want)
        if name == "trunc" and not self.v.tiles.target.can("Cast", "float32"):
            return self.v.evaluate(_truncated(expr), want)
        if name in _ROUND:
            return self.rounded(self.v.evaluate(expr.args[0]), name, want, expr)
        for before, natural, after in _FUNCTIONS[name]:
            if self.v.tiles.target.can(natural, dtype.name):
                x, factor = _factored(expr.args[0]) if dtype.is_float else (expr.args[0], 1.0)
                scale = factor * (1.0 if before is None else before)
                a = self.v.evaluate(x)
                return self.natural(a, None if scale == 1 else scale, natural, after, want)
        a = self.v.evaluate(expr.args[0])
        root = self.v.unary("Sqrt", a, None)  # rsqrt without a call that has enough digits
        top = self.v.scratch(root.kind, dtype)
        self.v.calls.fill(top, number_of(1, dtype))
        return self.v.two("Div", dtype, top, root, want)

    def largest_of_both_signs(self, expr: Call, want: Value | None) -> Value:
        """|x| of integers: the larger of x and -x."""
        a = self.v.evaluate(expr.args[0])
        minus = self.v.scratch(a.kind, a.dtype)
        factor = Value(kind="scalar", dtype=a.dtype, expr=number_of(-1, a.dtype))
        self.v.calls.elementwise("Muls", minus, (a, factor))
        return self.v.two("Max", a.dtype, a, minus, want)

    @staticmethod
    def calls(name: str) -> tuple[str, ...]:
        """Calls of which one suffices for a function; without any it is not there."""
        if name in _COMPOSED:
            name = "exp"
        found = tuple(call for _, call, _ in _FUNCTIONS.get(name, ()))
        if name == "rsqrt":
            return (*found, "Sqrt")
        if name in _ROUND:
            return (_WHOLE.get(name, "Floor"), "Cast")
        return found

    def natural(
        self, a: Value, before: float | None, call: str, after: float | None, want: Value | None
    ) -> Value:
        if before is not None:
            a = self.v.scaled(a, before, want)
        a = self.v.unary(call, a, want)
        return a if after is None else self.v.scaled(a, after, want)

    def rounded(self, a: Value, name: str, want: Value | None, expr: Call) -> Value:
        """To a whole number of the same type; the unit has it for float32."""
        if a.dtype != FLOAT32:
            wide = self.v.cast(a, FLOAT32, None, None)
            return self.v.cast(self.rounded(wide, name, None, expr), a.dtype, want, None)
        if self.v.tiles.target.can("Cast", a.dtype.name):
            return self.v.unary("Cast", a, want, mode(_ROUND[name]))
        call = _WHOLE.get(name)
        if call is None:
            raise self.v.none(name, expr)
        if name != "ceil":
            return self.v.unary(call, a, want)
        below = self.v.unary(call, self.v.scaled(a, -1, None), None)  # -floor(-x)
        return self.v.scaled(below, -1, want)


def _factored(x: Expr) -> tuple[Expr, float]:
    """`x` without factors that change its sign and exponent only, and the product of these."""
    inner, factor = x, 1.0
    while True:
        if isinstance(inner, Unary) and inner.op == "-":
            inner, factor = inner.a, -factor
        elif isinstance(inner, Binary) and inner.op == "*" and isinstance(inner.b, Const):
            factor *= float(inner.b.value)
            if math.frexp(abs(factor))[0] != 0.5 or not 1 / 256 <= abs(factor) <= 256:
                return x, 1.0  # another number, or one that half precision may not hold
            inner = inner.a
        else:
            return inner, factor


def _composed(expr: Call) -> Expr:
    """sigmoid(x) = 1 / (1 + exp(-x)); tanh(x) = 2 sigmoid(2x) - 1."""
    dtype, x = expr.dtype, expr.args[0]

    def number(value: float) -> Const:
        return Const(dtype=dtype, value=value)

    def binary(op: str, a: Expr, b: Expr) -> Binary:
        return Binary(dtype=dtype, op=op, a=a, b=b, span=expr.span)  # type: ignore[arg-type]

    if expr.function == "tanh":
        inner = Call(dtype=dtype, function="sigmoid", args=(binary("*", x, number(2)),))
        return binary("-", binary("*", inner, number(2)), number(1))
    power = Call(dtype=dtype, function="exp", args=(binary("*", x, number(-1)),))
    return binary("/", number(1), binary("+", power, number(1)))


def _truncated(expr: Call) -> Expr:
    """trunc(x) = floor(|x|), with x's sign."""
    dtype, x = expr.dtype, expr.args[0]
    size = Call(dtype=dtype, function="abs", args=(x,))
    whole = Call(dtype=dtype, function="floor", args=(size,))
    negative = Binary(dtype=dtype, op="*", a=whole, b=Const(dtype=dtype, value=-1), span=expr.span)
    above = Compare(dtype=BOOL, op=">=", a=x, b=Const(dtype=dtype, value=0))
    return Select(dtype=dtype, condition=above, a=whole, b=negative, span=expr.span)
