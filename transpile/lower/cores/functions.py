"""Functions of one value: those of the vector unit, and those made of them.

reads   `ir.expr.Call`        writes  vector calls, through `Vectors`
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tile2c.transpile.ir.dtypes import FLOAT32
from tile2c.transpile.ir.expr import Binary, Call, Const, Expr
from tile2c.transpile.lower.cores.calls import mode, number_of
from tile2c.transpile.lower.cores.values import Value

if TYPE_CHECKING:
    from tile2c.transpile.lower.cores.expressions import Vectors

LN2 = math.log(2)
_FUNCTIONS = {"exp": "Exp", "log": "Ln", "sqrt": "Sqrt", "abs": "Abs"}
_ROUND = {
    "floor": "CAST_FLOOR",
    "ceil": "CAST_CEIL",
    "trunc": "CAST_TRUNC",
    "round": "CAST_RINT",
    "nearbyint": "CAST_RINT",
}
_SCALED = {  # function -> (before, natural function, after)
    "exp2": (LN2, "Exp", None),
    "exp10": (math.log(10), "Exp", None),
    "log2": (None, "Ln", 1 / LN2),
    "log10": (None, "Ln", 1 / math.log(10)),
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
        if name not in (*_FUNCTIONS, *_SCALED, *_ROUND, "rsqrt", "sigmoid", "tanh"):
            raise self.v.none(name, expr)
        if not self.v.tiles.target.can("Exp", dtype.name):
            raise self.v.none(f"{name} of {dtype}", expr)
        if name in ("sigmoid", "tanh"):
            return self.v.evaluate(_composed(expr), want)
        a = self.v.evaluate(expr.args[0])
        if name in _FUNCTIONS:
            return self.v.unary(_FUNCTIONS[name], a, want)
        if name in _SCALED:
            before, natural, after = _SCALED[name]
            if before is not None:
                a = self.v.scaled(a, before, want)
            a = self.v.unary(natural, a, want)
            return a if after is None else self.v.scaled(a, after, want)
        if name in _ROUND:
            return self.rounded(a, _ROUND[name], want)
        root = self.v.unary("Sqrt", a, None)  # the unit's own Rsqrt has too few digits
        top = self.v.scratch(root.kind, dtype)
        self.v.calls.fill(top, number_of(1, dtype))
        return self.v.two("Div", dtype, top, root, want)

    def rounded(self, a: Value, how: str, want: Value | None) -> Value:
        """To a whole number of the same type; the unit has it for float32."""
        if a.dtype != FLOAT32:
            wide = self.v.cast(a, FLOAT32, None, None)
            return self.v.cast(self.rounded(wide, how, None), a.dtype, want, None)
        return self.v.unary("Cast", a, want, mode(how))


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
