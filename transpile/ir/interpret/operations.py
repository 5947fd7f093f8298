"""Operators and functions on arrays of one type."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import assert_never

import numpy as np
from tile2c.transpile.ir.dtypes import DType
from tile2c.transpile.ir.expr import BinaryOp, CompareOp
from tile2c.transpile.ir.interpret.numbers import Array, Numbers

COMPARE: dict[CompareOp, Callable[[Array, Array], Array]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def binary(numbers: Numbers, op: BinaryOp, dtype: DType, a: Array, b: Array) -> Array:
    """`a op b`, both of `dtype`, rounded to it."""
    a, b = numbers.widen(a, dtype), numbers.widen(b, dtype)
    found = _float_binary(op, a, b) if dtype.is_float else _integer_binary(op, a, b)
    return numbers.rounded(found, dtype)


def compare(numbers: Numbers, op: CompareOp, dtype: DType, a: Array, b: Array) -> Array:
    return COMPARE[op](numbers.widen(a, dtype), numbers.widen(b, dtype))


def _float_binary(op: BinaryOp, a: Array, b: Array) -> Array:
    match op:
        case "+":
            return np.add(a, b)
        case "-":
            return np.subtract(a, b)
        case "*":
            return np.multiply(a, b)
        case "/":
            return np.divide(a, b)
        case "min":
            return np.fmin(a, b)
        case "max":
            return np.fmax(a, b)
        case "pow":
            return np.power(a, b)
        case "//":
            return np.floor(np.divide(a, b))
        case "%":
            return np.mod(a, b)
        case "ceildiv":
            return np.ceil(np.divide(a, b))
        case "truncdiv":
            return np.trunc(np.divide(a, b))
        case "truncmod":
            return np.fmod(a, b)
        case "&" | "|" | "^" | "<<" | ">>":
            raise TypeError(f"`{op}` on floats")
        case _:
            assert_never(op)


def _integer_binary(op: BinaryOp, a: Array, b: Array) -> Array:
    match op:
        case "+":
            return np.add(a, b)
        case "-":
            return np.subtract(a, b)
        case "*":
            return np.multiply(a, b)
        case "//":
            return np.floor_divide(a, b)
        case "%":
            return np.remainder(a, b)
        case "truncdiv":
            quotient, rest = np.floor_divide(a, b), np.remainder(a, b)
            up = (rest != 0) & ((a < 0) != (b < 0))
            return np.asarray(np.add(quotient, up, dtype=quotient.dtype))
        case "truncmod":
            return np.fmod(a, b)
        case "ceildiv":
            quotient = np.floor_divide(a, b)
            up = np.remainder(a, b) != 0
            return np.asarray(np.add(quotient, up, dtype=quotient.dtype))
        case "min":
            return np.minimum(a, b)
        case "max":
            return np.maximum(a, b)
        case "pow":
            return np.where(b < 0, np.zeros_like(a), np.power(a, np.maximum(b, 0)))
        case "&":
            return np.bitwise_and(a, b)
        case "|":
            return np.bitwise_or(a, b)
        case "^":
            return np.bitwise_xor(a, b)
        case "<<":
            return np.left_shift(a, b)
        case ">>":
            return np.right_shift(a, b)
        case "/":
            raise TypeError("`/` on integers")
        case _:
            assert_never(op)


def negative(numbers: Numbers, dtype: DType, a: Array) -> Array:
    return numbers.rounded(np.negative(numbers.widen(a, dtype)), dtype)


def invert(numbers: Numbers, dtype: DType, a: Array) -> Array:
    return numbers.rounded(np.invert(a), dtype)


# ---- functions

_erf = np.frompyfunc(math.erf, 1, 1)
UNARY: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "exp10": lambda x: np.power(x.dtype.type(10), x),
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: x.dtype.type(1) / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": lambda x: np.asarray(_erf(x)).astype(x.dtype),
    "sigmoid": lambda x: x.dtype.type(1) / (x.dtype.type(1) + np.exp(-x)),
    "fast_rcp": lambda x: x.dtype.type(1) / x,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "nearbyint": np.rint,
    "abs": np.abs,
}
SAME_AS = {
    "__exp": "exp", "__exp10": "exp10", "__log": "log", "__log2": "log2", "__log10": "log10",
    "__sin": "sin", "__cos": "cos", "__tan": "tan", "ieee_frcp": "fast_rcp",
    "ieee_fsqrt": "sqrt", "ieee_frsqrt": "rsqrt",
}  # fmt: skip
BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "atan2": np.arctan2,
    "fmod": np.fmod,
    "hypot": np.hypot,
    "copysign": np.copysign,
    "ieee_add": np.add,
    "ieee_sub": np.subtract,
    "ieee_mul": np.multiply,
    "ieee_fdiv": np.divide,
}
CLASSES: dict[str, Callable[[Array], Array]] = {
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
}


def call(
    numbers: Numbers, function: str, dtype: DType, types: list[DType], args: list[Array]
) -> Array:
    """A function of the language. `types` are those of the arguments."""
    function = SAME_AS.get(function, function)
    wide = [numbers.widen(arg, kind) for arg, kind in zip(args, types, strict=True)]
    if function in UNARY:
        return numbers.rounded(UNARY[function](wide[0]), dtype)
    if function in BINARY:
        return numbers.rounded(BINARY[function](wide[0], wide[1]), dtype)
    if function in CLASSES:
        return CLASSES[function](wide[0])
    match function:
        case "clamp":
            value, low, high = wide
            kept = np.where(value < low, low, np.where(value > high, high, value))
            return numbers.rounded(kept, dtype)
        case "ldexp":
            return numbers.rounded(np.ldexp(wide[0], wide[1]), dtype)
        case "nextafter":
            return np.asarray(np.nextafter(args[0], args[1]))
        case "ieee_fmaf":
            exact = wide[0].astype(np.float64) * wide[1].astype(np.float64) + wide[2]
            return numbers.rounded(exact, dtype)
        case "popcount" | "clz" | "ffs":
            return _bits(function, args[0])
    raise NotImplementedError(f"the interpreter does not know {function}")


def _bits(function: str, value: Array) -> Array:
    value = np.asarray(value)
    bits = value.dtype.itemsize * 8
    raw = value.view(np.dtype(f"uint{bits}")).astype(np.uint64)
    if function == "popcount":
        return np.bitwise_count(raw).astype(np.int32)
    if function == "ffs":
        lowest = raw & (~raw + np.uint64(1))
        return np.where(raw == 0, 0, np.bitwise_count(lowest - np.uint64(1)) + 1).astype(np.int32)
    for shift in (1, 2, 4, 8, 16, 32):
        raw = raw | (raw >> np.uint64(shift))
    return (bits - np.bitwise_count(raw)).astype(np.int32)
