"""What the generator knows of numbers: types, ranges, and how two types join in an operation.

Ranges are tracked so that every program that is made has a meaning: nothing overflows, no conversion to
integers is out of range, nothing divides by zero. `exact` values are the same however they are
computed; only they are compared, floored or made integers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

FLOATS = ("float16", "bfloat16", "float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32")
INTEGERS = SIGNED + UNSIGNED
STORED_FLOATS = ("float8_e4m3", "float8_e5m2")  # moved and converted, not computed with
_FLOAT_LIMITS = {"float16": 30000.0, "float8_e4m3": 200.0, "float8_e5m2": 20000.0}
WIDE = 1e15  # of float32 and wider: far below overflow, and squares stay there


@dataclass(frozen=True, slots=True)
class Number:
    """An expression of the kernel: its text and what is known of its value."""

    text: str
    dtype: str
    low: float
    high: float
    exact: bool = True

    @property
    def is_float(self) -> bool:
        return self.dtype.startswith(("float", "bfloat"))

    @property
    def magnitude(self) -> float:
        return max(abs(self.low), abs(self.high))

    def spelled(self, text: str) -> Number:
        return replace(self, text=text)


def limits(dtype: str) -> tuple[float, float]:
    """The values that a number of this type may be known to have."""
    if dtype.startswith("uint"):
        return 0.0, 2.0 ** int(dtype[4:]) - 1
    if dtype.startswith("int"):
        half = 2.0 ** (int(dtype[3:]) - 1)
        return -half, half - 1
    limit = _FLOAT_LIMITS.get(dtype, WIDE)
    return -limit, limit


def fits(dtype: str, low: float, high: float) -> bool:
    least, most = limits(dtype)
    return least <= low and high <= most


def bits(dtype: str) -> int:
    return int("".join(c for c in dtype.partition("_")[0] if c.isdigit()))


def joined(a: str, b: str) -> str:
    """The type of `a OP b` for arithmetic (language.md 4.2), narrow integers widened to 32 bits."""
    float_a, float_b = a.startswith(("float", "bf")), b.startswith(("float", "bf"))
    if float_a and float_b:
        if bits(a) != bits(b):
            return a if bits(a) > bits(b) else b
        return a if a == b else "float16"
    if float_a or float_b:
        return a if float_a else b
    if bits(a) != bits(b):
        wide = a if bits(a) > bits(b) else b
    else:
        wide = a if a.startswith("uint") else b
    return wide
