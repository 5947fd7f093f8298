"""Functions of the language inside expressions: `T.exp(x)`, `T.cast(x, T.float16)`, ..."""

from __future__ import annotations

import math
from collections.abc import Callable

import libcst as cst
from tile2c.transpile.ir.build import arithmetic, conversions
from tile2c.transpile.ir.build.arguments import Arguments, language_name, type_of
from tile2c.transpile.ir.build.context import Builder, Value
from tile2c.transpile.ir.build.literals import LARGEST, WITHOUT_INFINITY, integer_range
from tile2c.transpile.ir.build.threads import thread_value
from tile2c.transpile.ir.dtypes import BOOL, FLOAT32, INT32, DType
from tile2c.transpile.ir.expr import BinaryOp, Call, Const, Expr, Reinterpret

# One float argument, a result of its type. Integers are taken as float32.
FLOAT_FUNCTIONS = frozenset(
    "exp exp2 exp10 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh "
    "asinh acosh atanh erf sigmoid __exp __exp10 __log __log2 __log10 __sin __cos __tan "
    "fast_rcp ieee_frcp ieee_fsqrt ieee_frsqrt".split()
)
ROUNDINGS = frozenset("floor ceil trunc round nearbyint".split())  # identity on integers
CLASSES = frozenset("isnan isinf isfinite".split())
TWO_FLOATS = frozenset(
    "atan2 fmod hypot copysign nextafter ieee_add ieee_sub ieee_mul ieee_fdiv".split()
)
BIT_COUNTS = frozenset("popcount clz ffs".split())
OPERATORS: dict[str, BinaryOp] = {
    "min": "min",
    "max": "max",
    "ceildiv": "ceildiv",
    "floordiv": "//",
    "floormod": "%",
    "truncdiv": "truncdiv",
    "truncmod": "truncmod",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "shift_left": "<<",
    "shift_right": ">>",
}
HOST_ONLY = {
    "min": "T.min",
    "max": "T.max",
    "abs": "T.abs",
    "int": "T.cast(x, T.int32)",
    "float": "T.cast(x, T.float32)",
    "round": "T.round",
    "bool": "x != 0",
}


def call(b: Builder, node: cst.Call) -> Value:
    """A call inside an expression."""
    name = language_name(node.func)
    if name is None:
        return _host_call(b, node)
    args = Arguments(b, node, f"T.{name}")
    special = SPECIAL.get(name)
    if special is not None:
        return special(b, args, node)
    if name.startswith("atomic_"):
        from tile2c.transpile.ir.build.reductions import atomic_value

        return atomic_value(b, node, name)
    if name in OPERATORS:
        left, right = args.values("a", "b")
        return arithmetic.binary(b, OPERATORS[name], left, right, node)
    if name in FLOAT_FUNCTIONS:
        return _float_function(b, name, args, node)
    if name in ROUNDINGS:
        (value,) = args.values("x")
        if value.dtype.is_integer:
            return value
        return _same_type(b, name, (value,), node)
    if name in CLASSES:
        (value,) = args.values("x")
        expr = _as_float(b, value, node)
        return Value(Call(dtype=BOOL, function=name, args=(expr,), span=b.span(node)))
    if name in TWO_FLOATS:
        if name.startswith("ieee_"):
            _to_nearest(b, args)
        left, right = args.values("x", "y")
        return _same_type(b, name, (left, right), node)
    if name in BIT_COUNTS:
        (value,) = args.values("x")
        expr = arithmetic.whole(b, value, node, f"the argument of T.{name}")
        return Value(Call(dtype=INT32, function=name, args=(expr,), span=b.span(node)))
    from tile2c.transpile.ir.build.warp import warp_value

    told = warp_value(b, name, args, node)
    if told is not None:
        return told
    found = thread_value(b, name, args, node)
    if found is not None:
        return found
    dtype = type_of(node.func)
    if dtype is not None:
        (value,) = args.values("x")
        return Value(conversions.cast(b, value, dtype, node))
    from tile2c.transpile.ir.build.foreign import CALLS, build_call

    if name in CALLS:
        return build_call(b, node)
    b.fail("T2C231", f"T.{name} cannot stand in an expression", node.func)


def _host_call(b: Builder, node: cst.Call) -> Value:
    if not isinstance(node.func, cst.Name):
        b.fail("T2C231", "only functions of the tile language can be called here", node.func)
    name = node.func.value
    if name == "float" and len(node.args) == 1:
        text = node.args[0].value
        if isinstance(text, cst.SimpleString):
            return arithmetic.literal(b, float(str(text.evaluated_value)), node)
    instead = HOST_ONLY.get(name)
    if instead is not None:
        b.fail("T2C241", f"Python's `{name}` does not work on device values", node, help=instead)
    b.fail("T2C230", f"`{name}` is not a function of the tile language", node.func)


def _as_float(b: Builder, value: Value, node: cst.CSTNode) -> Expr:
    dtype = value.dtype if value.dtype.is_float else FLOAT32
    return conversions.convert(b, value, dtype, node)


def _to_nearest(b: Builder, args: Arguments) -> None:
    """The IEEE forms round to the nearest; another rounding gives other numbers, so it is no hint."""
    given = args.keywords.get("rounding_mode")
    mode = args.text("rounding_mode", None, "rn")
    args.ignore("rounding_mode")
    if mode != "rn":
        b.fail(
            "T2C242", f"rounding_mode is {mode!r}: only 'rn', to the nearest, is supported", given
        )


def _float_function(b: Builder, name: str, args: Arguments, node: cst.Call) -> Value:
    _to_nearest(b, args)
    (value,) = args.values("x")
    expr = _as_float(b, value, node)
    return Value(Call(dtype=expr.dtype, function=name, args=(expr,), span=b.span(node)))


def _same_type(b: Builder, name: str, values: tuple[Value, ...], node: cst.CSTNode) -> Value:
    dtype = values[0].dtype
    for value in values[1:]:
        dtype = conversions.unify(b, Value(Const(dtype=dtype, value=0)), value, node, f"T.{name}")
    if not dtype.is_float:
        dtype = FLOAT32
    found = tuple(conversions.convert(b, value, dtype, node) for value in values)
    return Value(Call(dtype=dtype, function=name, args=found, span=b.span(node)))


def _abs(b: Builder, args: Arguments, node: cst.Call) -> Value:
    (value,) = args.values("x")
    if not (value.dtype.is_float or value.dtype.is_integer):
        b.fail("T2C240", f"T.abs of {value.dtype}", node)
    expr = conversions.settle(b, value, node)
    return Value(Call(dtype=expr.dtype, function="abs", args=(expr,), span=b.span(node)))


def _fma(b: Builder, args: Arguments, node: cst.Call) -> Value:
    _to_nearest(b, args)
    return _same_type(b, "ieee_fmaf", tuple(args.values("x", "y", "z")), node)


def _ldexp(b: Builder, args: Arguments, node: cst.Call) -> Value:
    value, power = args.values("x", "n")
    expr = _as_float(b, value, node)
    exponent = conversions.convert(b, power, INT32, node)
    found = Call(dtype=expr.dtype, function="ldexp", args=(expr, exponent), span=b.span(node))
    return Value(found)


def _clamp(b: Builder, args: Arguments, node: cst.Call) -> Value:
    """min(max(x, low), high); a NaN stays one, as in NumPy and torch."""
    value, low, high = args.values("x", "min_val", "max_val")
    plain = arithmetic.binary(b, "max", value, low, node)
    if not plain.dtype.is_float:
        return arithmetic.binary(b, "min", plain, high, node)
    return _same_type(b, "clamp", (value, low, high), node)


def _align_up(b: Builder, args: Arguments, node: cst.Call) -> Value:
    value, step = args.values("a", "b")
    return arithmetic.binary(b, "*", arithmetic.binary(b, "ceildiv", value, step, node), step, node)


def _pow(b: Builder, args: Arguments, node: cst.Call) -> Value:
    base, exponent = args.values("x", "y")
    if base.host is not None and exponent.host is not None:
        return arithmetic.power(b, base, exponent, node)
    return arithmetic.binary(b, "pow", base, exponent, node)


def _choice(lazy: bool) -> Callable[[Builder, Arguments, cst.Call], Value]:
    def build(b: Builder, args: Arguments, node: cst.Call) -> Value:
        from tile2c.transpile.ir.build.expressions import always

        test = args.value("cond", 0)
        with always(b, node):
            left, right = args.value("true_value", 1), args.value("false_value", 2)
        args.finish()
        return arithmetic.select(b, test, left, right, node, lazy=lazy)

    return build


def _logical(op: str) -> Callable[[Builder, Arguments, cst.Call], Value]:
    def build(b: Builder, args: Arguments, node: cst.Call) -> Value:
        left, right = args.values("a", "b")
        return arithmetic.logical(b, op, left, right, node)

    return build


def _not(b: Builder, args: Arguments, node: cst.Call) -> Value:
    return arithmetic.negation(b, args.values("a")[0], node)


def _invert(b: Builder, args: Arguments, node: cst.Call) -> Value:
    return arithmetic.invert(b, args.values("a")[0], node)


def _likely(b: Builder, args: Arguments, node: cst.Call) -> Value:
    return args.values("cond")[0]


def _cast(b: Builder, args: Arguments, node: cst.Call) -> Value:
    value, dtype = args.value("value", 0), args.dtype("dtype", 1)
    args.finish()
    return Value(conversions.cast(b, value, dtype, node))


def _reinterpret(b: Builder, args: Arguments, node: cst.Call) -> Value:
    value, dtype = args.value("value", 0), args.dtype("dtype", 1)
    args.finish()
    expr = conversions.settle(b, value, node)
    if expr.dtype.bits != dtype.bits:
        b.fail(
            "T2C240",
            f"T.reinterpret from {expr.dtype} to {dtype}: {expr.dtype.bits} bits are not "
            f"{dtype.bits} bits",
            node,
        )
    if expr.dtype.is_integer and dtype.is_integer:  # what converting between them does
        return Value(conversions.cast(b, Value(expr), dtype, node))
    return Value(Reinterpret(dtype=dtype, a=expr, span=b.span(node)))


def _limit(pick: Callable[[DType], float | int]) -> Callable[[Builder, Arguments, cst.Call], Value]:
    def build(b: Builder, args: Arguments, node: cst.Call) -> Value:
        dtype = args.dtype("dtype", 0)
        args.finish()
        if dtype.name in WITHOUT_INFINITY and math.isinf(pick(dtype)):
            b.fail("T2C237", f"{dtype} has no infinity", node)
        if not (dtype.is_float or dtype.is_integer):
            b.fail("T2C240", f"{dtype} has no limits", node)
        return Value(Const(dtype=dtype, value=pick(dtype), span=b.span(node)))

    return build


def _largest(dtype: DType) -> float | int:
    return LARGEST[dtype.name] if dtype.is_float else integer_range(dtype)[1]


def _smallest(dtype: DType) -> float | int:
    return -LARGEST[dtype.name] if dtype.is_float else integer_range(dtype)[0]


SPECIAL: dict[str, Callable[[Builder, Arguments, cst.Call], Value]] = {
    "abs": _abs,
    "fabs": _abs,
    "ieee_fmaf": _fma,
    "ldexp": _ldexp,
    "clamp": _clamp,
    "pow": _pow,
    "align_up": _align_up,
    "if_then_else": _choice(lazy=True),
    "Select": _choice(lazy=False),
    "And": _logical("and"),
    "Or": _logical("or"),
    "Not": _not,
    "bitwise_not": _invert,
    "likely": _likely,
    "cast": _cast,
    "Cast": _cast,
    "reinterpret": _reinterpret,
    "infinity": _limit(lambda dtype: math.inf),
    "max_value": _limit(_largest),
    "min_value": _limit(_smallest),
}
