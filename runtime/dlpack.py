"""Reads a DLPack capsule: the way to tensors of frameworks that tile2c has never heard of."""

from __future__ import annotations

import ctypes
from typing import Any

from tile2c.runtime.tensors import HOST, TensorView, _gapless

_DEVICES = {1: HOST, 2: "cuda", 3: HOST, 10: "hip", 13: "cuda"}  # 3: pinned, 13: managed memory
_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}
_SMALL = {
    10: "float8_e4m3fn",
    11: "float8_e4m3fnuz",
    12: "float8_e5m2",
    13: "float8_e5m2fnuz",
    14: "float8_e8m0fnu",
}


class _Device(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("index", ctypes.c_int32))


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


def view_of(value: Any, name: str) -> TensorView:
    """The view of an object with `__dlpack__`; the capsule lives as long as the view."""
    capsule = value.__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
    tensor = _Tensor.from_address(pointer(capsule, b"dltensor"))
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = None
    if tensor.strides:
        given = tuple(tensor.strides[i] for i in range(tensor.ndim))
        strides = None if _gapless(shape, given) else given
    device = _DEVICES.get(tensor.device.type)
    if device is None:
        raise TypeError(f"{name} lies on a device of DLPack kind {tensor.device.type}")
    return TensorView(
        owner=(value, capsule),
        framework="dlpack",
        device=device,
        device_index=tensor.device.index,
        address=(tensor.data or 0) + tensor.byte_offset,
        dtype=_dtype(tensor.dtype, name),
        shape=shape,
        strides=strides,
        item_bytes=max(tensor.dtype.bits // 8, 1),
    )


def _dtype(found: _DataType, name: str) -> str:
    kind = _KINDS.get(found.code)
    if found.lanes != 1 or (kind is None and found.code not in _SMALL):
        raise TypeError(
            f"{name} has DLPack type {found.code} of {found.bits} bits, not a known one"
        )
    if kind is None:
        return _SMALL[found.code]
    return "bool" if kind == "bool" else f"{kind}{found.bits}"
