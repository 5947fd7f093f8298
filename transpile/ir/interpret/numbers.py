"""Types in NumPy: storage, conversion, and what memory holds before anything is written."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from tile2c.transpile.ir.build.literals import LARGEST
from tile2c.transpile.ir.dtypes import DType

# An array that broadcasts to the lanes of its statement, or one number for all of them.
Array = NDArray[Any]

STORAGE: dict[str, np.dtype[Any]] = {
    "bool": np.dtype(np.bool_),
    "handle": np.dtype(np.int64),
    "int4": np.dtype(np.int8),
    "uint4": np.dtype(np.uint8),
    "float16": np.dtype(np.float16),
    "float32": np.dtype(np.float32),
    "tfloat32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
    **{f"int{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{
        name: np.dtype(getattr(ml_dtypes, name))
        for name in (
            "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
            "float8_e8m0fnu", "float8_e3m4", "float4_e2m1fn",
        )
    },
}  # fmt: skip
POISON_BYTE = 0xCD


class Numbers:
    """Conversions in one of two attitudes: each type's rounding, or all floats in float64."""

    def __init__(self, float64: bool) -> None:
        self.float64 = float64

    def storage(self, dtype: DType) -> np.dtype[Any]:
        """The NumPy type that holds a type's elements."""
        if self.float64 and dtype.is_float:
            return np.dtype(np.float64)
        return STORAGE[dtype.name]

    def working(self, dtype: DType) -> np.dtype[Any]:
        """The NumPy type that one operation on a type is computed in before it is rounded.

        For 8- and 16-bit floats float32 gives the correctly rounded result of each operation.
        """
        if dtype.is_float and dtype.bits <= 16 and not self.float64:
            return np.dtype(np.float32)
        return self.storage(dtype)

    def widen(self, value: Array, dtype: DType) -> Array:
        return value.astype(self.working(dtype), copy=False)

    def rounded(self, value: Array, dtype: DType) -> Array:
        """A result of `working` type as an element of `dtype`."""
        if dtype.bits == 4 and dtype.is_integer:
            return _four_bits(value, dtype)
        if dtype.bits == 8 and dtype.is_float and not self.float64:
            return _to_float(np.asarray(value), dtype)
        return np.asarray(value).astype(self.storage(dtype), copy=False)

    def constant(self, value: float | int | bool, dtype: DType) -> Array:
        """A number as one element."""
        return np.asarray(value).astype(self.storage(dtype))[()]

    def cast(self, value: Array, source: DType, target: DType) -> Array:
        """An assignment's conversion (language.md 4.2); fp8 saturates to finite."""
        value = np.asarray(value)
        if source == target:
            return value
        if target.is_float:
            if self.float64:
                return value.astype(np.float64, copy=False)
            return _to_float(value, target)
        if source.is_float:
            wide = value.astype(np.float64 if source.bits == 64 or self.float64 else np.float32)
            return self._to_integer(np.trunc(wide), target)
        return self._to_integer(value, target)

    def _to_integer(self, value: Array, target: DType) -> Array:
        if target.kind == "bool":
            return np.asarray(value != 0)
        if target.bits == 4:
            return _four_bits(value, target)
        if value.dtype.kind == "f" and target.kind == "uint" and target.bits < 64:
            return value.astype(np.int64).astype(STORAGE[target.name])
        return value.astype(STORAGE[target.name])

    def poison(self, shape: tuple[int, ...], dtype: DType) -> Array:
        """Memory that nothing has written: NaN, or a pattern that stands out."""
        storage = self.storage(dtype)
        if dtype.is_float:
            if dtype.name == "float4_e2m1fn" and not self.float64:
                return np.full(shape, LARGEST[dtype.name]).astype(storage)
            return np.full(shape, np.nan).astype(storage)
        if dtype.kind == "bool":
            return np.ones(shape, storage)
        if dtype.bits == 4:
            return _four_bits(np.full(shape, POISON_BYTE, np.int16), dtype)
        count = int(np.prod(shape)) * storage.itemsize
        return np.full(count, POISON_BYTE, np.uint8).view(storage).reshape(shape)


def _to_float(value: Array, target: DType) -> Array:
    storage = STORAGE[target.name]
    if target.bits > 8:
        if storage.kind == "f" and value.dtype.kind != "V":
            return value.astype(storage)
        return value.astype(np.float32).astype(storage)
    wide = value.astype(np.float32)
    largest = np.float32(LARGEST[target.name])
    return np.clip(wide, -largest, largest).astype(storage)


def _four_bits(value: Array, dtype: DType) -> Array:
    low = value.astype(np.int64) & 15
    if dtype.kind == "uint":
        return low.astype(np.uint8)
    return ((low ^ 8) - 8).astype(np.int8)


def unpacked(packed: Array, dtype: DType) -> Array:
    """4-bit elements from bytes that hold two each, element 0 in the low nibble."""
    raw = packed.view(np.uint8)
    nibbles = np.stack([raw & 15, raw >> 4], axis=-1).reshape(*raw.shape[:-1], -1)
    if dtype.is_float:
        return nibbles.view(ml_dtypes.float4_e2m1fn)
    return _four_bits(nibbles, dtype)


def packed(elements: Array, dtype: DType) -> Array:
    """The inverse of `unpacked`, as int8."""
    raw = elements.view(np.uint8) & 15
    return (raw[..., 0::2] | (raw[..., 1::2] << 4)).view(np.int8)
