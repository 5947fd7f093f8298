"""Which numbers a type can hold, and what a literal becomes in it (language.md 4.2)."""

from __future__ import annotations

import math

from tile2c.transpile.ir.dtypes import BOOL, FLOAT32, INT32, INT64, DType

Host = int | float | bool

LARGEST: dict[str, float] = {
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
    "float32": 3.4028234663852886e38,
    "tfloat32": 3.4011621342146535e38,
    "float64": 1.7976931348623157e308,
    "float8_e4m3fn": 448.0,
    "float8_e4m3fnuz": 240.0,
    "float8_e5m2": 57344.0,
    "float8_e5m2fnuz": 57344.0,
    "float8_e8m0fnu": 2.0**127,
    "float8_e3m4": 15.5,
    "float4_e2m1fn": 6.0,
}
WITHOUT_INFINITY = frozenset(
    {"float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn"}
)


def natural_type(value: Host) -> DType:
    """The type a Python number has by itself: int32 (int64 if it must), float32, bool."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        low, high = integer_range(INT32)
        return INT32 if low <= value <= high else INT64
    return FLOAT32


def integer_range(dtype: DType) -> tuple[int, int]:
    """Smallest and largest value of an integer type or bool."""
    if dtype.kind == "bool":
        return 0, 1
    if dtype.kind == "uint":
        return 0, (1 << dtype.bits) - 1
    return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1


def fits(value: Host, dtype: DType) -> bool:
    """Whether a literal may be converted to the type without a cast."""
    if dtype.kind == "bool":
        return True
    if dtype.is_integer:
        if not math.isfinite(value):
            return False
        low, high = integer_range(dtype)
        return low <= int(value) <= high
    if dtype.is_float:
        if math.isnan(value):
            return True
        if math.isinf(value):
            return dtype.name not in WITHOUT_INFINITY
        return abs(value) <= LARGEST[dtype.name]
    return False


def converted(value: Host, dtype: DType) -> Host:
    """The literal in the type: truncated toward zero for integers, `!= 0` for bool."""
    if dtype.kind == "bool":
        return bool(value)
    if dtype.is_integer:
        return int(value)
    return float(value)


def wrapped(value: Host, dtype: DType) -> Host:
    """What an explicit cast makes of a number that does not fit: two's complement, or infinity."""
    if dtype.is_integer:
        low, high = integer_range(dtype)
        return (int(value) - low) % (high - low + 1) + low
    if dtype.is_float and not fits(value, dtype) and math.isfinite(value):
        if dtype.name.startswith(("float8", "float4")):
            return math.copysign(LARGEST[dtype.name], value)
        return math.copysign(math.inf, value)
    return converted(value, dtype)
