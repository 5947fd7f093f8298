"""Shifts of small integers on units that have none: by powers of two in float32, which is exact.

reads   `a << c` and `a >> c` of up to 16 bits, `c` a number        writes  vector calls through `Vectors`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile2c.transpile.ir.dtypes import FLOAT32, DType
from tile2c.transpile.ir.expr import Binary, Expr
from tile2c.transpile.lower.cores.calls import number_of
from tile2c.transpile.lower.cores.layouts import constant_of
from tile2c.transpile.lower.cores.values import Value

if TYPE_CHECKING:
    from tile2c.transpile.lower.cores.expressions import Vectors


def is_shift(expr: Expr) -> bool:
    """Whether an expression shifts small integers by a number."""
    if not isinstance(expr, Binary) or expr.op not in ("<<", ">>"):
        return False
    amount = _amount(expr)
    small = expr.dtype.is_integer and expr.dtype.bits <= 16
    return small and amount is not None and 0 <= amount < expr.dtype.bits


def shifted(expr: Binary, vectors: Vectors) -> Value:
    """The result as whole numbers in float32."""
    amount = _amount(expr)
    assert amount is not None
    inside = expr.a
    if is_shift(inside) and inside.dtype == expr.dtype:
        assert isinstance(inside, Binary)
        a = shifted(inside, vectors)
    else:
        a = vectors.cast(vectors.evaluate(inside), FLOAT32, None, expr.span)
    if expr.op == ">>":  # towards minus infinity, as the sign's copies fill up
        return vectors.unary("Floor", vectors.scaled(a, 2.0**-amount, None), None)
    return wrapped(vectors.scaled(a, 2.0**amount, None), expr.dtype, vectors)


def wrapped(value: Value, dtype: DType, vectors: Vectors) -> Value:
    """value - 2**bits * floor((value + half) / 2**bits), what is left of it in `dtype`."""
    whole = float(2**dtype.bits)
    half = 2.0 ** (dtype.bits - 1) if dtype.kind == "int" else 0.0
    over = vectors.scratch(value.kind, FLOAT32)
    vectors.calls.elementwise("Muls", over, (value, _number(1 / whole)))
    if half:
        vectors.calls.elementwise("Adds", over, (over, _number(half / whole)))
    over = vectors.scaled(vectors.unary("Floor", over, None), whole, None)
    return vectors.two("Sub", FLOAT32, value, over, None)


def _number(value: float) -> Value:
    return Value(kind="scalar", dtype=FLOAT32, expr=number_of(value, FLOAT32))


def _amount(expr: Expr) -> int | None:
    if not isinstance(expr, Binary):
        return None
    amount = expr.b
    while not isinstance(amount, Binary) and hasattr(amount, "a"):  # converted to the type of a
        amount = amount.a
    return constant_of(amount)
