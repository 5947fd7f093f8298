"""Calls that take more than another name: what C says with operators, intrinsics or a helper.

reads   a call whose arguments are C forms          writes  C forms
"""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.ir.dtypes import DTYPES, FLOAT32, INT32, DType
from tile2c.transpile.ir.expr import Binary, Call, Cast, Const, Expr, Reinterpret
from tile2c.transpile.lower.plan import CCall
from tile2c.transpile.lower.simt.context import Context

CLASSES = frozenset("isnan isinf isfinite".split())
# float32 only: approximate ones, and those that are never contracted.
_INTRINSICS = {
    **{f"__{name}": f"__{name}f" for name in "exp exp10 log log2 log10 sin cos tan".split()},
    "ieee_add": "__fadd_rn",
    "ieee_sub": "__fsub_rn",
    "ieee_mul": "__fmul_rn",
    "ieee_fmaf": "__fmaf_rn",
    "ieee_fdiv": "__fdiv_rn",
    "ieee_frcp": "__frcp_rn",
    "ieee_fsqrt": "__fsqrt_rn",
    "ieee_frsqrt": "__frsqrt_rn",
}
_COUNTS = {"popcount": "__popc", "clz": "__clz", "ffs": "__ffs"}


def lower_function(ctx: Context, expr: Call) -> Expr | None:
    """The C of a call that no table of names has; None for all others."""
    name, args = expr.function, expr.args
    if name == "sigmoid":
        return _sigmoid(expr)
    if name.startswith("extern "):
        return CCall(dtype=expr.dtype, function=name.removeprefix("extern "), args=args)
    if name in ("joined", "part_of"):
        ctx.need(name)
        own = ctx.target.dialect.types[expr.dtype.name]
        return CCall(dtype=expr.dtype, function=f"{name}<{own}>", args=args)
    if name in CLASSES:
        return replace(expr, args=(_wide(args[0]),)) if args[0].dtype.bits < 32 else None
    if name in _COUNTS:
        return _count(name, args[0])
    if name == "fast_rcp":
        one = Const(dtype=FLOAT32, value=1.0)
        return _narrow(
            CCall(dtype=FLOAT32, function="__fdividef", args=(one, _wide(args[0]))), expr.dtype
        )
    if name in _INTRINSICS and expr.dtype.bits <= 32:
        wide = tuple(_wide(arg) for arg in args)
        call = CCall(dtype=FLOAT32, function=_INTRINSICS[name], args=wide)
        return _narrow(call, expr.dtype)
    return None


def bits_as(ctx: Context, expr: Reinterpret) -> Expr:
    """The same bits as another type, by a helper."""
    ctx.need("bits_as")
    own = ctx.target.dialect.types[expr.dtype.name]
    return CCall(dtype=expr.dtype, function=f"bits_as<{own}>", args=(expr.a,))


def _sigmoid(expr: Call) -> Expr:
    """1 / (1 + exp(-x)), each step in x's type."""
    dtype, x = expr.dtype, expr.args[0]
    one, minus = Const(dtype=dtype, value=1.0), Const(dtype=dtype, value=-1.0)
    turned = Binary(dtype=dtype, op="*", a=x, b=minus)
    power = Call(dtype=dtype, function="exp", args=(turned,), span=expr.span)
    below = Binary(dtype=dtype, op="+", a=one, b=power)
    return Binary(dtype=dtype, op="/", a=one, b=below)


def _count(name: str, x: Expr) -> Expr:
    """Bits of a number in its own width: narrow ones are counted among 32."""
    bits = x.dtype.bits
    if bits == 64:
        return CCall(dtype=INT32, function=f"{_COUNTS[name]}ll", args=(x,))
    if bits < 32:
        unsigned = DTYPES[f"uint{bits}"]
        x = Cast(dtype=DTYPES["uint32"], a=Cast(dtype=unsigned, a=x))
    counted = CCall(dtype=INT32, function=_COUNTS[name], args=(x,))
    if name == "clz" and bits < 32:
        return Binary(dtype=INT32, op="-", a=counted, b=Const(dtype=INT32, value=32 - bits))
    return counted


def _wide(expr: Expr) -> Expr:
    return Cast(dtype=FLOAT32, a=expr) if expr.dtype.bits < 32 else expr


def _narrow(expr: Expr, dtype: DType) -> Expr:
    return expr if dtype == FLOAT32 else Cast(dtype=dtype, a=expr)
