"""Tensor maps: the driver's rules with names in the errors, the emulator's bytes."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from tile2c.runtime.records import MapRecord
from tile2c.runtime.tensor_maps import BYTES, MAGIC, emulated, resolve

MAP = MapRecord(
    name="A_map",
    tensor="A",
    dtype="float16",
    dims=("K", "M"),
    strides=("2 * K",),
    box=(64, 128),
    element_strides=(1, 1),
    swizzle="128B",
    l2="128B",
)
SIZES = {"M": 200, "K": 136}


def test_the_emulated_bytes() -> None:
    data = emulated(resolve(MAP, SIZES, 0x1000))
    assert len(data) == BYTES and data[:8] == MAGIC == b"T2CTMAP\0"
    assert struct.unpack_from("<Q5Q4Q", data, 8) == (0x1000, 136, 200, 1, 1, 1, 272, 0, 0, 0)
    assert struct.unpack_from("<5I", data, 88) == (64, 128, 1, 1, 1)
    assert tuple(data[108:117]) == (2, 2, 3, 6, 1, 1, 1, 1, 1)
    assert data[117:] == bytes(BYTES - 117)


@pytest.mark.parametrize(
    ("change", "sizes", "address", "message"),
    [
        ({}, {"K": 137}, 0x1000, "a stride of 274 bytes is not a multiple of 16"),
        ({}, {}, 0x1008, "its address 0x1008 is not a multiple of 16"),
        ({"box": (64, 257)}, {}, 0x1000, "a box of 257 is not within 1 to 256"),
        ({"box": (128, 64)}, {}, 0x1000, "256 bytes, more than the swizzle's 128"),
        ({"box": (4, 64)}, {}, 0x1000, "8 bytes, not a multiple of 16"),
        ({}, {"M": 0}, 0x1000, "a dimension of 0 is not within"),
        ({"element_strides": (1, 9)}, {}, 0x1000, "an element stride of 9"),
        ({"strides": ()}, {}, 0x1000, "do not fit 2 dimensions"),
        ({"swizzle": "256B"}, {}, 0x1000, "swizzle '256B' is not one of"),
    ],
)
def test_the_drivers_rules(
    change: dict[str, object], sizes: dict[str, int], address: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message) as error:
        resolve(replace(MAP, **change), {**SIZES, **sizes}, address)  # type: ignore[arg-type]
    assert "A" in str(error.value)


def test_what_the_driver_accepts() -> None:
    resolve(MAP, {"M": 1, "K": 8}, 0x1000)  # the box may exceed the tensor
    resolve(replace(MAP, swizzle="none", box=(256, 1)), SIZES, 0x1000)
    resolve(replace(MAP, strides=("0",)), SIZES, 0x1000)
    resolve(replace(MAP, dtype="float8_e4m3fn", strides=("16",)), {"M": 1, "K": 4097}, 16)


IMAGES = MapRecord(
    name="data_map",
    tensor="data",
    dtype="float16",
    dims=(64, "W", 7, 2),
    strides=(128, "128 * W", "896 * W"),
    box=(64, 256),
    element_strides=(1, 2, 2, 1),
    swizzle="128B",
    corners=((-1, -1), (-1, -1)),
)


def test_maps_of_im2col_have_corners() -> None:
    data = emulated(resolve(IMAGES, {"W": 5}, 0x1000))
    assert struct.unpack_from("<5I", data, 88) == (64, 256, 1, 1, 1)
    assert struct.unpack_from("<B3b3b", data, 117) == (1, -1, -1, 0, -1, -1, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"corners": ((-129, 0), (0, 0))}, "a corner of -129 is not within -128 to 127"),
        ({"corners": ((-1,), (-1,))}, "do not fit 4 dimensions"),
        ({"box": (64, 1025)}, "64 channels of 1025 pixels are not within 256 and 1024"),
        ({"box": (128, 64)}, "256 bytes, more than the swizzle's 128"),
        ({"element_strides": (1, 9, 1, 1)}, "an element stride of 9"),
    ],
)
def test_the_drivers_rules_for_im2col(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        resolve(replace(IMAGES, **change), {"W": 5}, 0x1000)  # type: ignore[arg-type]
