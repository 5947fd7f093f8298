"""Language names that give values: mathematics, conversions, thread indices, sizes, types."""

from __future__ import annotations

import ast
from collections.abc import Callable

from tile2c.transpile.diagnostics import Span
from tile2c.transpile.stage import expressions as ex
from tile2c.transpile.stage import host_arithmetic
from tile2c.transpile.stage.buffers import Buffer, Region
from tile2c.transpile.stage.calls import Call
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.invoke import Argument
from tile2c.transpile.stage.linear import number
from tile2c.transpile.stage.operands import region_expr
from tile2c.transpile.stage.state import describe, is_variable
from tile2c.transpile.stage.trace_values import TensorType
from tile2c.transpile.stage.values import BoundMethod, DType, LanguageName, Unknown, Value
from tile2c.transpile.stage.vocabulary import (
    CONVERSIONS,
    MATH,
    OPERATORS,
    UNARY_OPERATORS,
    VALUES,
)

_ON_NUMBERS: dict[str, Callable[..., Value]] = {
    "ceildiv": lambda a, b: -(-a // b),
    "min": min,
    "max": max,
    "abs": abs,
    "truncdiv": lambda a, b: int(a / b),
    "truncmod": lambda a, b: a - b * int(a / b),
    "align_up": lambda a, b: -(-a // b) * b,
    "next_power_of_2": lambda a: 1 if a <= 1 else 1 << (int(a) - 1).bit_length(),
}


def _span(call: Call) -> Span | None:
    return call.ev.span(call.node)


def _function(call: Call) -> Value:
    """A function of values; of nothing but numbers some are known at build time."""
    values = [argument.value for argument in call.args]
    compute = _ON_NUMBERS.get(call.path)
    if unknown := next((v for v in values if isinstance(v, Unknown)), None):
        if not call.ev.exact or not call.ev.tracing:
            return unknown
    if compute is not None and values and all(isinstance(v, int | float) for v in values):
        try:
            return compute(*values)
        except (ArithmeticError, TypeError, OverflowError) as error:
            raise call.ev.fail("T2C112", f"this fails at build time: {error}", call.node) from None
    if call.path == "next_power_of_2":
        call.ev.whole_number(values[0] if values else None, call.node, "T.next_power_of_2")
    if call.path in ("if_then_else", "Select") and len(call.args) == 3:
        return _choice(call)
    return ex.call(call.path, call.exprs(), _span(call), keywords=call.keyword_exprs())


def _choice(call: Call) -> Value:
    test = call.args[0].value
    decided = not isinstance(test, Expr) or number(test) is not None
    if decided and not is_variable(test):
        truth = call.ev.truth(test, call.args[0].node or call.node)
        chosen = call.args[1 if truth else 2]
        return call.expr(chosen) if not isinstance(chosen.value, Expr) else chosen.value
    return ex.call(call.path, call.exprs(), _span(call))


def _device_function(call: Call) -> Value:
    """A function that only the running kernel can evaluate; buffers are passed as regions."""
    args = []
    for argument in call.args:
        if isinstance(argument.value, Buffer) and not is_variable(argument.value):
            args.append(argument.value.expr(call.ev.span(argument.node)))
        elif isinstance(argument.value, Region):
            args.append(region_expr(argument.value.access))
        elif argument.value is None:
            continue  # a default, written out
        else:
            args.append(call.expr(argument))
    keywords = call.keyword_exprs()
    return ex.call(call.path, tuple(args), _span(call), keywords=keywords, device=True)


def _operator(call: Call) -> Value:
    left, right = call.need(0, "a"), call.need(1, "b")
    op = OPERATORS[call.path]
    if op in ("and", "or"):
        values = (left.value, right.value)
        if not any(isinstance(v, Expr) or is_variable(v) for v in values):
            return values[0] and values[1] if op == "and" else values[0] or values[1]
        return ex.binary(op, call.expr(left), call.expr(right), _span(call))
    return call.ev.operate(op, left.value, right.value, call.node, left.node, right.node)


def _unary_operator(call: Call) -> Value:
    operand = call.need(0, "x")
    op = UNARY_OPERATORS[call.path]
    if isinstance(operand.value, Expr) or is_variable(operand.value):
        return ex.unary(op, call.expr(operand), _span(call))
    return host_arithmetic.apply_unary(op, operand.value)


def convert(call: Call, dtype: str) -> Value:
    """`T.float32(x)`, and `T.float16x2(a, b)`."""
    if len(call.args) == 1:
        return _cast(call, call.expr(call.args[0]), dtype)
    if not call.args:
        return DType(dtype)
    return ex.call(dtype, call.exprs(), _span(call), dtype=dtype)


def _cast(call: Call, value: Expr, dtype: str) -> Expr:
    keywords = tuple(
        (key, expr) for key, expr in call.keyword_exprs() if key in ("round", "sat", "rbits")
    )
    return ex.call("cast", (value, ex.language(dtype)), _span(call), keywords=keywords, dtype=dtype)


def _cast_call(call: Call) -> Value:
    """`T.cast(x, dtype)` and `T.Cast(dtype, x)`; either order for `T.reinterpret`."""
    first, second = call.need(0, "value"), call.take(1, "dtype")
    if second is None:
        raise call.ev.fail("T2C242", f"T.{call.path} is called without a dtype", call.node)
    if call.ev.as_dtype(second.value) is None and call.ev.as_dtype(first.value) is not None:
        first, second = second, first
    dtype = call.ev.dtype(second.value, second.node)
    if call.path == "reinterpret":
        args = (call.expr(first), ex.language(dtype))
        return ex.call("reinterpret", args, _span(call), dtype=dtype)
    return _cast(call, call.expr(first), dtype)


def _dtype(call: Call) -> Value:
    """`T.dtype("float16")`: the element type itself."""
    return DType(call.ev.dtype(call.need(0, "dtype").value, call.node))


def _fp8_type(call: Call) -> Value:
    """`determine_fp8_type("e4m3")`: the 8-bit float that the target's matrix units take."""
    kind = call.value(0, "fp8_format", "e4m3")
    found = call.ev.device.float8(kind) if isinstance(kind, str) else None
    return Unknown("it is no format of 8 bits", _span(call)) if found is None else DType(found)


def _limit(call: Call) -> Value:
    dtype = call.ev.dtype(call.need(0, "dtype").value, call.node)
    return ex.call(call.path, (ex.language(dtype),), _span(call), dtype=dtype)


def _index(call: Call) -> Value:
    dim = call.ev.whole_number(call.value(0, "dim", 0), call.node, f"T.{call.path}")
    args = (ex.literal(dim),)
    return ex.call(call.path, args, _span(call), dtype="int32", device=True)


def _indices(call: Call) -> Value:
    single = {
        "get_thread_bindings": "get_thread_binding",
        "get_thread_extents": "get_thread_extent",
    }
    name = single.get(call.path, "get_block_binding")
    return tuple(
        ex.call(name, (ex.literal(dim),), _span(call), dtype="int32", device=True)
        for dim in range(3)
    )


def _sizes(call: Call) -> Value:
    """`T.dynamic("m, n")`, `T.const("M, N")`: one size for each name."""
    spelled = call.ev.known(call.need(0, "name").value, call.node, f"T.{call.path}")
    dtype = call.ev.dtype(call.value(1, "dtype", "int32"), call.node)
    if not isinstance(spelled, str):
        raise call.ev.fail("T2C242", f"T.{call.path} takes the names as one string", call.node)
    names = spelled.replace(",", " ").split()
    for name in names:
        if not name.isidentifier():
            raise call.ev.fail("T2C242", f"{name!r} is no name for a size", call.node)
    found = tuple(
        call.ev.declare_size(name, dtype, call.node, dynamic=call.path == "dynamic")
        for name in names
    )
    return found[0] if len(found) == 1 else found


def _tensor_type(call: Call) -> Value:
    """`T.Tensor(shape, dtype)`, in brackets too; strides after the shape for StridedTensor."""
    strided = call.path == "StridedTensor"
    if any(isinstance(argument.value, Unknown) for argument in call.args):
        return Unknown("its shape is unknown", _span(call))
    args = list(call.args)
    if len(args) == 3 and isinstance(args[2].value, BoundMethod) and args[2].value.name == "data":
        # T.Tensor(shape, dtype, buffer.data): the buffer under another shape
        source = Argument(args[2].value.owner, None)
        return call.ev.call_values("view", [source, args[0], args[1]], call.node)
    if len(args) > 2 + strided:  # T.Tensor[M, N, dtype]
        raise call.ev.fail(
            "T2C242",
            f"T.{call.path} takes a shape and a dtype",
            call.node,
            help="T.Tensor((M, N), dtype)",
        )
    shape = dims(call, call.need(0, "shape"))
    strides_given = call.take(1, "strides") if strided else call.keywords.get("strides")
    strides = dims(call, strides_given) if strides_given is not None else None
    dtype = call.ev.dtype(call.value(1 + strided, "dtype", "float32"), call.node)
    return TensorType("StridedTensor" if strides else "Tensor", shape, dtype, strides)


def dims(call: Call, argument: Argument) -> tuple[Expr, ...]:
    """A shape as expressions: an int, a size, a list or a tuple of them."""
    node = argument.node
    value = call.ev.known(argument.value, node, "a shape")
    if not isinstance(value, tuple | list):
        return (_dim(call, value, node),)
    nodes = call.ev._element_nodes(node, len(value))
    return tuple(_dim(call, item, at) for item, at in zip(value, nodes, strict=True))


def _dim(call: Call, value: Value, node: ast.expr | None) -> Expr:
    value = call.ev.known(value, node, "a shape")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | Expr):
        raise call.ev.fail(
            "T2C242",
            f"an extent is a whole number or a size, not {describe(value)}",
            node or call.node,
        )
    expr = call.ev.expression(value, node)
    known = number(expr)
    if known is not None and known < 0:
        raise call.ev.fail("T2C242", f"an extent cannot be negative: {known}", node or call.node)
    return expr


def _typed(call: Call) -> Value:
    return TensorType(call.path, (), "handle")


def _nothing(call: Call) -> Value:
    return LanguageName(call.path)


HANDLERS: dict[str, Callable[[Call], Value]] = {
    **dict.fromkeys((*MATH, "ceildiv", "next_power_of_2"), _function),
    **dict.fromkeys(VALUES, _device_function),
    **dict.fromkeys(OPERATORS, _operator),
    **dict.fromkeys(UNARY_OPERATORS, _unary_operator),
    **dict.fromkeys(CONVERSIONS, _cast_call),
    **dict.fromkeys(("infinity", "max_value", "min_value"), _limit),
    **dict.fromkeys(("get_thread_binding", "get_block_binding"), _index),
    **dict.fromkeys(("get_thread_extent", "get_block_extent"), _index),
    **dict.fromkeys(("get_thread_bindings", "get_thread_extents", "get_block_bindings"), _indices),
    "dtype": _dtype,
    **dict.fromkeys(("fp8.determine_fp8_type", "fp8.determine_torch_fp8_type"), _fp8_type),
    **dict.fromkeys(("dynamic", "const"), _sizes),
    **dict.fromkeys(("Tensor", "Buffer", "StridedTensor"), _tensor_type),
    **dict.fromkeys(("SharedBuffer", "FragmentBuffer", "LocalBuffer"), _nothing),
    **dict.fromkeys(("ptr", "match_buffer"), _typed),
}
