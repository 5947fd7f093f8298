"""Expressions over elements, drawn so that their values stay in the range of their types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from number_rules import FLOATS, INTEGERS, STORED_FLOATS, WIDE, Number, bits, fits, joined

SMALL = ("int8", "int16", "uint8", "uint16")


def literal(random: Random, beside: Number) -> Number:
    """A number that the other operand's type can hold."""
    if beside.is_float and random.random() < 0.5:
        value = random.choice((0.5, 0.25, 1.5, 2.0, 3.0, -0.5, -1.25))
        return Number(str(value), "float32", value, value)
    least = 0 if beside.dtype.startswith("uint") else -3
    value = random.randint(least, 5)
    text = str(value) if value >= 0 else f"({value})"
    return Number(text, "int32", value, value)


def drawn(random: Random, leaves: Sequence[Number], depth: int) -> Number:
    """An expression over `leaves`."""
    if depth <= 0 or random.random() < 0.15:
        return computable(random, random.choice(leaves))
    if random.random() < 0.3:
        return unary(random, drawn(random, leaves, depth - 1))
    a = drawn(random, leaves, depth - 1)
    b = literal(random, a) if random.random() < 0.3 else drawn(random, leaves, depth - 1)
    if random.random() < 0.12 and a.exact and b.exact:
        c = drawn(random, leaves, depth - 1)
        return chosen(random, compared(random, a, b), a, c)
    return binary(random, a, b)


def computable(random: Random, number: Number) -> Number:
    """8-bit floats are widened before anything is computed."""
    if number.dtype in STORED_FLOATS:
        dtype = random.choice(("float16", "float32"))
        return replace(number, text=f'T.cast({number.text}, "{dtype}")', dtype=dtype)
    return number


def cast(number: Number, dtype: str) -> Number | None:
    """The conversion, or None where it has no certain value."""
    if not fits(dtype, number.low, number.high):
        return None
    if number.is_float and dtype in INTEGERS and not number.exact:
        return None
    return replace(number, text=f'T.cast({number.text}, "{dtype}")', dtype=dtype)


def clamped(number: Number, low: int, high: int) -> Number:
    """Between two whole numbers, by the functions of the language."""
    if low <= number.low and number.high <= high:
        return number
    if number.dtype.startswith("uint"):
        low = max(low, 0)  # a literal has to fit
    text = f"T.min(T.max({number.text}, {low}), {high})"
    return replace(
        number,
        text=text,
        low=max(low, min(number.low, high)),
        high=min(high, max(number.high, low)),
    )


def unary(random: Random, x: Number) -> Number:
    kind = random.choice(("neg", "abs", "cast", "math", "floor", "sqrt", "bits", "square"))
    if kind == "neg" and not x.dtype.startswith("uint"):
        return widened(Number(f"(-{x.text})", x.dtype, -x.high, -x.low, x.exact))
    if kind == "cast":
        return cast(x, random.choice((*FLOATS, *INTEGERS))) or x
    if kind == "math" and x.is_float:
        name = random.choice(("exp", "exp2", "tanh", "sigmoid", "sin", "cos"))
        small = clamped(x, -3, 3)
        high = 21.0 if name.startswith("exp") else 1.01
        return Number(f"T.{name}({small.text})", x.dtype, -high, high, False)
    if kind == "floor" and x.is_float and x.exact:
        name = random.choice(("floor", "ceil", "trunc", "round"))
        return Number(f"T.{name}({x.text})", x.dtype, x.low - 1, x.high + 1)
    if kind == "sqrt" and x.is_float:
        return Number(f"T.sqrt(T.abs({x.text}))", x.dtype, 0, x.magnitude + 1, x.exact)
    if kind == "bits" and not x.is_float and x.low >= 0:
        shift = random.randint(0, 3)
        return Number(f"({x.text} >> {shift})", x.dtype, 0, x.high)
    if kind == "square":
        return binary_of("*", x, x)
    if x.dtype.startswith("uint"):
        return x
    return widened(Number(f"T.abs({x.text})", x.dtype, 0, x.magnitude, x.exact))


def widened(x: Number) -> Number:
    """Ranges only; a value of a narrow type that cannot be held is kept in 32 bits."""
    dtype = "int32" if x.dtype in SMALL and not fits(x.dtype, x.low, x.high) else x.dtype
    return replace(x, dtype=dtype)


def binary(random: Random, a: Number, b: Number) -> Number:
    kinds = ["+", "-", "*", "max", "min", "+", "*"]
    if a.is_float and b.is_float:
        kinds += ["/"]
    if not a.is_float:
        kinds += ["//", "%"]
    if not a.is_float and not b.is_float and a.low >= 0 and b.low >= 0:
        kinds += ["&", "|", "^"]
    kind = random.choice(kinds)
    if kind in ("//", "%"):
        by = random.randint(1, 7)
        text = f"({a.text} {kind} {by})"
        low, high = (a.low / by - 1, a.high / by) if kind == "//" else (0, by - 1)
        return Number(text, joined(a.dtype, "int32"), low, high)
    return binary_of(kind, a, b)


def binary_of(kind: str, a: Number, b: Number) -> Number:
    """`a kind b`; the larger of them instead where the result could leave its type's range."""
    dtype = joined(a.dtype, b.dtype)
    exact = a.exact and b.exact
    if not (fits(dtype, a.low, a.high) and fits(dtype, b.low, b.high)):
        return a if a.magnitude >= b.magnitude else b
    if kind in ("max", "min"):
        pick = max if kind == "max" else min
        return Number(
            f"T.{kind}({a.text}, {b.text})", dtype, pick(a.low, b.low), pick(a.high, b.high), exact
        )
    if kind in ("&", "|", "^"):
        top = 2 * max(a.high, b.high) + 1
        return Number(f"({a.text} {kind} {b.text})", dtype, 0, top)
    if kind == "/":
        text = f"({a.text} / (T.abs({b.text}) + 1))"
        return Number(text, dtype, -a.magnitude, a.magnitude, exact)
    corners = {
        "+": (a.low + b.low, a.high + b.high),
        "-": (a.low - b.high, a.high - b.low),
        "*": (
            min(a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high),
            max(a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high),
        ),
    }
    low, high = corners[kind]
    wide = "int32" if dtype in SMALL else dtype
    if not fits(wide, low, high) or (dtype.startswith("uint") and low < 0):
        return binary_of("max", a, b)
    if bits(dtype) == 64 and not a.is_float and max(abs(low), abs(high)) > WIDE:
        return binary_of("max", a, b)
    return Number(f"({a.text} {kind} {b.text})", wide, low, high, exact)


def compared(random: Random, a: Number, b: Number) -> str:
    if not a.is_float and not b.is_float and joined(a.dtype, b.dtype).startswith("uint"):
        return f"{a.text} > 2"  # a negative number beside an unsigned one is another question
    return f"{a.text} {random.choice(('<', '<=', '>', '>=', '==', '!='))} {b.text}"


def chosen(random: Random, condition: str, a: Number, b: Number) -> Number:
    dtype = joined(a.dtype, b.dtype)
    if not (fits(dtype, a.low, a.high) and fits(dtype, b.low, b.high)):
        return a
    if random.random() < 0.5:
        text = f"T.if_then_else({condition}, {a.text}, {b.text})"
    else:
        text = f"({a.text} if {condition} else {b.text})"
    return Number(text, dtype, min(a.low, b.low), max(a.high, b.high), a.exact and b.exact)


def stored(random: Random, number: Number, dtype: str) -> Number | None:
    """What an element of `dtype` may take: the value itself, or cut to its range."""
    if number.is_float and dtype in INTEGERS:
        if not number.exact:
            return None
        number = replace(number, text=f'T.cast({number.text}, "{dtype}")')
    if fits(dtype, number.low, number.high):
        return number
    low = 0 if dtype.startswith("uint") else -100
    if number.is_float and dtype in INTEGERS:
        return None
    return clamped(number, low, 100)
