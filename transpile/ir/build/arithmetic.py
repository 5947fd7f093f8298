"""Operators: the type each is done in, and what the language refuses (language.md 4.2, 4.3).

Arithmetic between host numbers is Python's: literals fold; with a name in it the expression keeps
its shape, and its value is known beside it (`Value.host`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from tile2c.transpile.ir.build import conversions
from tile2c.transpile.ir.build.context import Builder, Value
from tile2c.transpile.ir.build.conversions import convert, settle, unify
from tile2c.transpile.ir.build.literals import Host, fits, natural_type
from tile2c.transpile.ir.dtypes import BOOL, FLOAT64, INT32, INT64, DType
from tile2c.transpile.ir.expr import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Const,
    Expr,
    Logical,
    Select,
    Unary,
)

if TYPE_CHECKING:
    import libcst as cst

BITWISE = frozenset({"&", "|", "^", "<<", ">>"})
DIVISIONS = frozenset({"/", "//", "%", "truncdiv", "truncmod", "ceildiv"})
WHOLE = frozenset({"//", "%", "truncdiv", "truncmod", "ceildiv"})
NAMES = {"truncdiv": "T.truncdiv", "truncmod": "T.truncmod", "ceildiv": "T.ceildiv",
         "min": "T.min", "max": "T.max", "pow": "T.pow"}  # fmt: skip


def _trunc_division(a: Host, b: Host) -> Host:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


HOST: dict[str, Callable[[Host, Host], Host]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "truncdiv": _trunc_division,
    "truncmod": lambda a, b: a - _trunc_division(a, b) * b,
    "ceildiv": lambda a, b: -(-a // b),
    "min": min,
    "max": max,
    "&": lambda a, b: cast(int, a) & cast(int, b),
    "|": lambda a, b: cast(int, a) | cast(int, b),
    "^": lambda a, b: cast(int, a) ^ cast(int, b),
    "<<": lambda a, b: cast(int, a) << cast(int, b),
    ">>": lambda a, b: cast(int, a) >> cast(int, b),
}
COMPARE: dict[str, Callable[[Host, Host], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def binary(b: Builder, op: BinaryOp, left: Value, right: Value, node: cst.CSTNode) -> Value:
    """`left op right` for every arithmetic and bit operator but `**`."""
    if op in DIVISIONS and right.host is not None and right.host == 0:
        b.fail("T2C238", f"division by zero: the right side of `{_spelled(op)}` is 0", node)
    if left.host is not None and right.host is not None:
        return _host(b, op, left, right, left.host, right.host, node)
    if op in BITWISE:
        return _bitwise(b, op, left, right, node)
    _refuse_division(b, op, left, right, node)
    dtype = unify(b, left, right, node, f"`{_spelled(op)}`")
    if op in ("+", "-", "*", "pow") or dtype.kind == "bool":
        wide = conversions.arithmetic_type(dtype)
        narrow = dtype if wide != dtype and dtype.is_integer else None
        return replace(_typed(b, op, wide, left, right, node), narrow=narrow)
    return _typed(b, op, dtype, left, right, node)


def _typed(
    b: Builder, op: BinaryOp, dtype: DType, left: Value, right: Value, node: cst.CSTNode
) -> Value:
    a, c = convert(b, left, dtype, node), convert(b, right, dtype, node)
    return Value(Binary(dtype=dtype, op=op, a=a, b=c, span=b.span(node)))


def _refuse_division(
    b: Builder, op: BinaryOp, left: Value, right: Value, node: cst.CSTNode
) -> None:
    sides = f"{left.dtype} and {right.dtype}"
    floats = left.dtype.is_float or right.dtype.is_float
    if op == "/" and not floats:
        b.fail(
            "T2C233",
            f"`/` between {sides} is ambiguous",
            node,
            help="`//` for the whole part, or T.cast(x, T.float32) / y for the exact quotient",
        )
    if op in WHOLE and floats:
        b.fail(
            "T2C234",
            f"`{_spelled(op)}` between {sides}: it is for integers only",
            node,
            help="T.floor(x / y) for the quotient, T.fmod(x, y) for the remainder",
        )


def _bitwise(b: Builder, op: BinaryOp, left: Value, right: Value, node: cst.CSTNode) -> Value:
    for side in (left, right):
        if side.dtype.is_float or side.dtype.kind == "handle":
            b.fail("T2C240", f"`{op}` is for integers and bools, not for {side.dtype}", node)
    left, right = (_in_own_width(b, side, node) for side in (left, right))
    if left.host is not None:
        dtype = right.dtype
    elif right.host is not None:
        dtype = left.dtype
    else:
        dtype = unify(b, left, right, node, f"`{op}`")
    if dtype.kind == "bool" and op in ("<<", ">>"):
        dtype = INT32
    if op in ("<<", ">>") and right.host is not None and not 0 <= right.host < dtype.bits:
        b.fail("T2C237", f"`{op}` by {right.host}: {dtype} has {dtype.bits} bits", node)
    return _typed(b, op, dtype, left, right, node)


def _in_own_width(b: Builder, value: Value, node: cst.CSTNode) -> Value:
    """Bits of a small integer that was computed in 32 bits are those of its own type."""
    return value if value.narrow is None else Value(convert(b, value, value.narrow, node))


def _host(
    b: Builder, op: BinaryOp, left: Value, right: Value, x: Host, y: Host, node: cst.CSTNode
) -> Value:
    floats = isinstance(x, float) or isinstance(y, float)
    if floats and op in BITWISE:
        b.fail("T2C240", f"`{op}` is for integers and bools, not for float", node)
    try:
        found = HOST[op](x, y)
    except (ArithmeticError, ValueError) as problem:
        b.fail("T2C237", f"{x!r} {op} {y!r}: {problem}", node)
    if not floats and op in BITWISE and isinstance(x, bool) and isinstance(y, bool):
        found = bool(found)
    if left.literal and right.literal:
        return literal(b, found, node)
    span = b.span(node)
    if floats or op == "/":
        a, c = conversions.double(b, left, node), conversions.double(b, right, node)
        return Value(Binary(dtype=FLOAT64, op=op, a=a, b=c, span=span), found)
    dtype = BOOL if isinstance(found, bool) else _whole_type(b, (x, y, found), node)
    a, c = convert(b, left, dtype, node), convert(b, right, dtype, node)
    return Value(Binary(dtype=dtype, op=op, a=a, b=c, span=span), found)


def _whole_type(b: Builder, numbers: tuple[Host, ...], node: cst.CSTNode) -> DType:
    for dtype in (INT32, INT64):
        if all(fits(number, dtype) for number in numbers):
            return dtype
    b.fail("T2C237", f"{max(numbers, key=abs)} does not fit int64", node)


def literal(b: Builder, value: Host, node: cst.CSTNode | None) -> Value:
    """A bare Python number."""
    dtype = natural_type(value)
    if not fits(value, dtype) and dtype.is_integer:
        b.fail("T2C237", f"{value} does not fit int64", node)
    return Value(Const(dtype=dtype, value=value, span=b.span(node)), value)


def power(b: Builder, left: Value, right: Value, node: cst.CSTNode) -> Value:
    """`**`: Python's between host numbers, refused on device values."""
    if left.host is None or right.host is None:
        b.fail("T2C235", "`**` on a device value", node, help="T.pow(x, y)")
    try:
        found = left.host**right.host
    except (ArithmeticError, ValueError) as problem:
        b.fail("T2C237", f"{left.host!r} ** {right.host!r}: {problem}", node)
    if not isinstance(found, (int, float)):
        b.fail("T2C237", f"{left.host!r} ** {right.host!r} is not a real number", node)
    if left.literal and right.literal:
        return literal(b, found, node)
    if isinstance(found, int):
        dtype = _whole_type(b, (left.host, right.host, found), node)
    else:
        dtype = FLOAT64
    a, c = convert(b, left, dtype, node), convert(b, right, dtype, node)
    return Value(Binary(dtype=dtype, op="pow", a=a, b=c, span=b.span(node)), found)


def negate(b: Builder, value: Value, node: cst.CSTNode) -> Value:
    """`-x`, which is `x * -1`: small integers widen to 32 bits."""
    if value.literal and value.host is not None:
        return literal(b, -value.host, node)
    if value.host is not None:
        a = settle(b, value, node) if not isinstance(value.host, float) else value.expr
        return Value(Unary(dtype=a.dtype, op="-", a=a, span=b.span(node)), -value.host)
    expr = value.expr
    if isinstance(expr, Const) and expr.name is None and expr.dtype.is_float:
        return Value(Const(dtype=expr.dtype, value=-expr.value, span=b.span(node)))
    dtype = conversions.arithmetic_type(value.dtype)
    a = convert(b, value, dtype, node)
    return Value(Unary(dtype=dtype, op="-", a=a, span=b.span(node)))


def invert(b: Builder, value: Value, node: cst.CSTNode) -> Value:
    """`~x`: bits of an integer, or logical on a bool."""
    dtype = value.dtype
    if dtype.kind == "bool":
        return negation(b, value, node)
    if not dtype.is_integer:
        b.fail("T2C240", f"`~` is for integers and bools, not for {dtype}", node)
    if value.literal and isinstance(value.host, int):
        return literal(b, ~value.host, node)
    host = ~value.host if isinstance(value.host, int) else None
    a = settle(b, value, node)
    return Value(Unary(dtype=dtype, op="~", a=a, span=b.span(node)), host)


def negation(b: Builder, value: Value, node: cst.CSTNode) -> Value:
    """`not x` of a bool."""
    require_bool(b, value, "not", node)
    a = settle(b, value, node)
    host = not value.host if value.host is not None else None
    return Value(Unary(dtype=BOOL, op="not", a=a, span=b.span(node)), host)


def compare(b: Builder, op: CompareOp, left: Value, right: Value, node: cst.CSTNode) -> Value:
    """One comparison; chains are joined by the caller."""
    host = None
    if left.host is not None and right.host is not None:
        host = COMPARE[op](left.host, right.host)
    dtype = unify(b, left, right, node, f"`{op}`")
    if dtype.kind == "bool" and op not in ("==", "!="):
        dtype = INT32
    a, c = convert(b, left, dtype, node), convert(b, right, dtype, node)
    return Value(Compare(dtype=BOOL, op=op, a=a, b=c, span=b.span(node)), host)


def logical(b: Builder, op: str, left: Value, right: Value, node: cst.CSTNode) -> Value:
    """`and` / `or` of bools, short-circuit."""
    for side in (left, right):
        require_bool(b, side, op, node)
    a, c = settle(b, left, node), settle(b, right, node)
    kind = "and" if op == "and" else "or"
    host = None
    if left.host is not None and right.host is not None:
        host = (left.host and right.host) if kind == "and" else (left.host or right.host)
    return Value(
        Logical(dtype=BOOL, op="and" if kind == "and" else "or", a=a, b=c, span=b.span(node)), host
    )


def require_bool(b: Builder, value: Value, op: str, node: cst.CSTNode) -> None:
    if value.dtype.kind != "bool":
        b.fail(
            "T2C236",
            f"`{op}` needs bools, but this side is {value.dtype}",
            node,
            help="compare it, as in `x != 0`, or use `&` and `|` for bits",
        )


def select(
    b: Builder, test: Value, left: Value, right: Value, node: cst.CSTNode, *, lazy: bool
) -> Value:
    """`left if test else right`, both sides in their common type."""
    picked = conversions.condition(b, test, node)
    dtype = unify(b, left, right, node, "a choice")
    a, c = convert(b, left, dtype, node), convert(b, right, dtype, node)
    return Value(Select(dtype=dtype, condition=picked, a=a, b=c, lazy=lazy, span=b.span(node)))


def whole(b: Builder, value: Value, node: cst.CSTNode, what: str) -> Expr:
    """An integer expression for an index, extent or bound."""
    if not value.dtype.is_integer:
        b.fail(
            "T2C240",
            f"{what} is {value.dtype}: it has to be an integer",
            node,
            help="T.cast(x, T.int32)",
        )
    return settle(b, value, node)


def _spelled(op: str) -> str:
    return NAMES.get(op, op)
