"""Implicit and explicit conversion, and the common type of two operands (language.md 4.2)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tile2c.transpile.ir.build import literals
from tile2c.transpile.ir.build.context import Builder, Value
from tile2c.transpile.ir.dtypes import BOOL, FLOAT16, FLOAT64, INT32, DType
from tile2c.transpile.ir.expr import Cast, Compare, Const, Expr, const

if TYPE_CHECKING:
    import libcst as cst


def common_type(a: DType, b: DType) -> DType | None:
    """The type in which `a OP b` is done; None where there is none."""
    if a == b:
        return a
    if "handle" in (a.kind, b.kind):
        return None
    if a.kind == "bool":
        return b
    if b.kind == "bool":
        return a
    if a.is_float and b.is_float:
        return _common_float(a, b)
    if a.is_float or b.is_float:
        return a if a.is_float else b
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    return a if a.kind == "uint" else b


def _common_float(a: DType, b: DType) -> DType | None:
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    names = {a.name, b.name}
    if names == {"float16", "bfloat16"}:
        return FLOAT16
    if names == {"float32", "tfloat32"}:
        return a if a.name == "float32" else b
    return None


def arithmetic_type(dtype: DType) -> DType:
    """`+ - *` on small integers and on bools are done in 32 bits."""
    if dtype.kind == "bool" or (dtype.is_integer and dtype.bits < 32):
        return INT32
    return dtype


def unify(b: Builder, left: Value, right: Value, node: cst.CSTNode, what: str) -> DType:
    """The common type of two operands, or an error that names both types."""
    found = common_type(left.dtype, right.dtype)
    if found is None:
        b.fail(
            "T2C240",
            f"{what} of {left.dtype} and {right.dtype}: these types have no common type",
            node,
            help="convert one side, as in T.cast(x, T.float32)",
        )
    if left.host is None and right.host is None:
        _tell_cost(b, left.dtype, right.dtype, node, what)
    return found


def _tell_cost(b: Builder, a: DType, c: DType, node: cst.CSTNode, what: str) -> None:
    """A warning where the types of two floats cost range or speed that nobody asked for."""
    if {a.name, c.name} == {"float16", "bfloat16"}:
        b.warning(
            "T2C248",
            f"{what} of {a} and {c} is done in float16: what bfloat16 holds beyond 65504 is infinite",
            node,
            help="convert both sides, as in T.cast(x, T.float32)",
        )
    narrow = [x for x in (a, c) if x.is_float and x.bits < 64]
    if FLOAT64 in (a, c) and narrow and what not in ("`+`", "`-`"):  # sums are meant to be wide
        b.warning(
            "T2C248",
            f"{what} of {a} and {c} is done in float64, for which most chips have few units",
            node,
            help=f"convert the wide side, as in T.cast(x, T.{narrow[0]})",
        )


def convert(b: Builder, value: Value, dtype: DType, node: cst.CSTNode | None) -> Expr:
    """`value` in another type, as an assignment or operator converts it. Literals must fit."""
    if value.host is not None:
        return _convert_host(b, value, value.host, dtype, node)
    expr = value.expr
    if expr.dtype == dtype:
        return expr
    if "handle" in (expr.dtype.kind, dtype.kind):
        b.fail("T2C240", f"{expr.dtype} does not convert to {dtype}", node)
    if dtype.kind == "bool":
        zero = Const(dtype=expr.dtype, value=0.0 if expr.dtype.is_float else 0)
        return Compare(dtype=BOOL, op="!=", a=expr, b=zero, span=expr.span)
    if isinstance(expr, Const) and expr.name is None and _exact(expr.value, dtype):
        return Const(dtype=dtype, value=literals.converted(expr.value, dtype), span=expr.span)
    return Cast(dtype=dtype, a=expr, span=expr.span)


def cast(b: Builder, value: Value, dtype: DType, node: cst.CSTNode | None) -> Expr:
    """An explicit conversion: numbers that do not fit wrap, or become infinite."""
    if value.literal and value.host is not None:
        host = value.host
        if dtype.is_integer and not math.isfinite(host):
            b.fail("T2C237", f"{host} has no value in {dtype}", node)
        return Const(dtype=dtype, value=literals.wrapped(host, dtype), span=value.expr.span)
    if value.host is not None and not literals.fits(value.host, dtype):
        wide = convert(b, value, value.dtype, node)
        return Cast(dtype=dtype, a=wide, span=wide.span)
    return convert(b, value, dtype, node)


def settle(b: Builder, value: Value, node: cst.CSTNode | None) -> Expr:
    """The expression in the type it has by itself."""
    return convert(b, value, value.dtype, node)


def condition(b: Builder, value: Value, node: cst.CSTNode | None) -> Expr:
    """What `if x:` tests: bool, or `x != 0` for numbers."""
    return convert(b, value, BOOL, node)


def _convert_host(
    b: Builder, value: Value, host: literals.Host, dtype: DType, node: cst.CSTNode | None
) -> Expr:
    if not literals.fits(host, dtype):
        b.fail(
            "T2C237",
            f"{_shown(host)} does not fit {dtype}, which holds {_holds(dtype)}",
            node,
            help=f"T.cast({_shown(host)}, T.{dtype}) if it is meant to wrap or saturate"
            if dtype.is_integer
            else None,
        )
    expr = value.expr
    if isinstance(expr, Const):
        same_kind = expr.dtype.is_float == dtype.is_float and dtype.kind != "bool"
        if expr.name is None or (same_kind and dtype.bits >= 32 and not isinstance(host, bool)):
            number = literals.converted(host, dtype)
            return Const(dtype=dtype, value=number, name=expr.name, span=expr.span)
    if expr.dtype == dtype:
        return expr
    if dtype.kind == "bool":
        return Compare(dtype=BOOL, op="!=", a=expr, b=const(0, dtype=expr.dtype), span=expr.span)
    return Cast(dtype=dtype, a=expr, span=expr.span)


def double(b: Builder, value: Value, node: cst.CSTNode | None) -> Expr:
    """A host number as Python computes with it: float64."""
    return convert(b, value, FLOAT64, node)


def _exact(number: literals.Host, dtype: DType) -> bool:
    """Whether a typed constant keeps its value in another type, for sure."""
    if not literals.fits(number, dtype):
        return False
    if not math.isfinite(number):
        return dtype.is_float
    return dtype.bits >= 16 and number == int(number) and abs(number) <= 256


def _shown(host: literals.Host) -> str:
    return repr(host)


def _holds(dtype: DType) -> str:
    if dtype.is_float:
        return f"numbers up to {literals.LARGEST[dtype.name]:g}"
    low, high = literals.integer_range(dtype)
    return f"{low} to {high}"
