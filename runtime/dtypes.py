"""Element types of tensors and scalars, and what NumPy calls them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

# Bits of one element in memory; 4-bit types lie packed in pairs.
BITS: dict[str, int] = {
    "bool": 8,
    **{f"{sign}int{bits}": bits for sign in ("", "u") for bits in (4, 8, 16, 32, 64)},
    "float16": 16,
    "bfloat16": 16,
    "float32": 32,
    "tfloat32": 32,
    "float64": 64,
    "float8_e4m3fn": 8,
    "float8_e4m3fnuz": 8,
    "float8_e5m2": 8,
    "float8_e5m2fnuz": 8,
    "float8_e8m0fnu": 8,
    "float8_e3m4": 8,
    "float4_e2m1fn": 4,
}

# What arrays of a type are called where NumPy has no such type of its own.
_ARRAYS = {"tfloat32": "float32", "int4": "int8", "uint4": "uint8", "float4_e2m1fn": "int8"}


def packed(dtype: str) -> bool:
    """Whether two elements share a byte, so that arrays have half the last dimension."""
    return BITS[dtype] < 8


@cache
def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """The dtype of NumPy arrays that hold this element type; ml_dtypes brings what NumPy lacks."""
    import numpy as np

    name = _ARRAYS.get(dtype, dtype)
    if dtype not in BITS:
        raise ValueError(f"unknown element type {dtype}")
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        special: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return special


def accepts(dtype: str, given: str) -> bool:
    """Whether an array of element type `given` may be passed for `dtype`.

    `rawN` is what an interface without a name for the type says: N bits of something.
    """
    if given == f"raw{BITS[dtype]}":
        return True
    if packed(dtype):
        return given in ("int8", "uint8", dtype)
    return given == _ARRAYS.get(dtype, dtype)


def scalar_bytes(dtype: str, value: object, name: str) -> bytes:
    """A scalar argument as the bytes that the kernel reads; raises with the argument's name."""
    import numpy as np

    kind = numpy_dtype(dtype)
    if dtype == "bool":
        return bytes([bool(value)])
    if dtype.startswith(("int", "uint")):
        if isinstance(value, float) and not value.is_integer():
            raise TypeError(f"{name} is {dtype}, so {value!r} cannot be passed")
        number = int(value)  # type: ignore[call-overload]
        limits = np.iinfo(kind)
        if not limits.min <= number <= limits.max:
            raise ValueError(f"{name} is {dtype}, so {number} is out of range")
        return np.array(number, dtype=kind).tobytes()
    return np.array(float(value)).astype(kind).tobytes()  # type: ignore[arg-type]
