"""Tensor maps: their numbers for given sizes, the driver's rules, and the emulator's own encoding.

The rules are those of cuTensorMapEncodeTiled; checking them here names the argument, which the
driver does not, and makes the emulator as strict as a device.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from tile2c.runtime.dtypes import BITS
from tile2c.runtime.expressions import evaluate
from tile2c.runtime.records import MapRecord

BYTES = 128
ALIGN = 64
MAGIC = b"T2CTMAP\0"

SWIZZLES = {"none": 0, "32B": 1, "64B": 2, "128B": 3}
L2_PROMOTIONS = {"none": 0, "64B": 1, "128B": 2, "256B": 3}
FILLS = {"zeros": 0, "nan": 1}

# Element kinds as the driver numbers them (CUtensorMapDataType); 8-bit types all go as bytes.
KINDS = {
    "uint16": 1,
    "uint32": 2,
    "int32": 3,
    "uint64": 4,
    "int64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "bfloat16": 9,
    "tfloat32": 11,
}
_BYTE_KIND = 0

MOST_BOX = 256
MOST_PIXELS = 1024
MOST_DIM = 1 << 32
MOST_STRIDE = 1 << 40


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A tensor map with its numbers; every tuple has one item a dimension, innermost first."""

    name: str
    tensor: str
    address: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]  # bytes, of dimensions 1 and up
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    element_bytes: int
    element_kind: int
    swizzle: int
    l2: int
    fill: int
    corners: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    # of im2col: how far pixels start before and after the dimensions; the box is channels, pixels


def resolve(record: MapRecord, names: Mapping[str, int], address: int) -> TensorMap:
    """The map for these sizes and this tensor; raises ValueError where the driver would refuse."""
    bits = BITS[record.dtype]
    found = TensorMap(
        name=record.name,
        tensor=record.tensor,
        address=address + evaluate(record.offset, names),
        dims=tuple(evaluate(dim, names) for dim in record.dims),
        strides=tuple(evaluate(stride, names) for stride in record.strides),
        box=tuple(evaluate(extent, names) for extent in record.box),
        element_strides=tuple(evaluate(stride, names) for stride in record.element_strides),
        element_bytes=max(bits // 8, 1),
        element_kind=KINDS.get(record.dtype, _BYTE_KIND),
        swizzle=_choice(record, "swizzle", record.swizzle, SWIZZLES),
        l2=_choice(record, "l2", record.l2, L2_PROMOTIONS),
        fill=_choice(record, "fill", record.fill, FILLS),
        corners=record.corners,
    )
    problem = _problem(found)
    if problem is not None:
        raise ValueError(f"{record.tensor} cannot be read through {record.name}: {problem}")
    return found


def _choice(record: MapRecord, key: str, value: str, known: Mapping[str, int]) -> int:
    if value not in known:
        raise ValueError(f"{record.name}: {key} {value!r} is not one of {', '.join(known)}")
    return known[value]


def _problem(found: TensorMap) -> str | None:
    """The first of the driver's rules that the map breaks, in words."""
    rank, inner = len(found.dims), found.box[0] * found.element_bytes
    if found.corners is not None:
        return _im2col_problem(found) or _common_problem(found, inner)
    if not 1 <= rank <= 5:
        return f"it has {rank} dimensions, not 1 to 5"
    if (len(found.strides), len(found.box), len(found.element_strides)) != (rank - 1, rank, rank):
        return f"its strides, box and element strides do not fit {rank} dimensions"
    for extent in found.box:
        if not 1 <= extent <= MOST_BOX:
            return f"a box of {extent} is not within 1 to {MOST_BOX}"
    return _common_problem(found, inner)


def _im2col_problem(found: TensorMap) -> str | None:
    """The rules of im2col: dimensions, corners, channels and pixels."""
    assert found.corners is not None
    rank = len(found.dims)
    if not 3 <= rank <= 5:
        return f"it has {rank} dimensions, not the 3 to 5 of im2col"
    sizes = (
        len(found.strides),
        len(found.box),
        len(found.element_strides),
        *map(len, found.corners),
    )
    if sizes != (rank - 1, 2, rank, rank - 2, rank - 2):
        return f"its strides, box, corners and element strides do not fit {rank} dimensions"
    most = {3: 1 << 15, 4: 1 << 7, 5: 1 << 4}[rank]
    for corner in (*found.corners[0], *found.corners[1]):
        if not -most <= corner < most:
            return f"a corner of {corner} is not within {-most} to {most - 1}"
    channels, pixels = found.box
    if not 1 <= channels <= MOST_BOX or not 1 <= pixels <= MOST_PIXELS:
        return f"{channels} channels of {pixels} pixels are not within {MOST_BOX} and {MOST_PIXELS}"
    return None


def _common_problem(found: TensorMap, inner: int) -> str | None:
    span = {1: 32, 2: 64, 3: 128}.get(found.swizzle)
    if found.address % 16:
        return f"its address {found.address:#x} is not a multiple of 16 bytes"
    for dim in found.dims:
        if not 1 <= dim <= MOST_DIM:
            return f"a dimension of {dim} is not within 1 to 2**32"
    for stride in found.strides:
        if stride % 16 or not 0 <= stride < MOST_STRIDE:
            return f"a stride of {stride} bytes is not a multiple of 16 below 2**40"
    if inner % 16:
        return f"the inner side of the box has {inner} bytes, not a multiple of 16"
    if span is not None and inner > span:
        return f"the inner side of the box has {inner} bytes, more than the swizzle's {span}"
    for stride in found.element_strides:
        if not 1 <= stride <= 8:
            return f"an element stride of {stride} is not within 1 to 8"
    return None


def emulated(found: TensorMap) -> bytes:
    """The map as the emulator's 128 bytes: address, dims, byte strides, box, and the small fields.

    magic u64, address u64, dims u64[5], strides u64[4], box u32[5], then one byte each: rank,
    element size, swizzle, element kind, element strides[5], whether it is im2col, its corners[2][3];
    the rest is zero.
    """
    rank = len(found.dims)
    lower, upper = found.corners or ((), ())
    data = MAGIC + struct.pack(
        "<Q5Q4Q5I4B5BB3b3b",
        found.address,
        *_filled(found.dims, 5, 1),
        *_filled(found.strides, 4, 0),
        *_filled(found.box, 5, 1),
        rank,
        found.element_bytes,
        found.swizzle,
        found.element_kind,
        *_filled(found.element_strides, 5, 1),
        int(found.corners is not None),
        *_filled(lower, 3, 0),
        *_filled(upper, 3, 0),
    )
    return data.ljust(BYTES, b"\0")


def _filled(values: tuple[int, ...], length: int, filler: int) -> tuple[int, ...]:
    return (*values, *(filler,) * (length - len(values)))
