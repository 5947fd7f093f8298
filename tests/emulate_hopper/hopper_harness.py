"""Encodes tensor maps and runs sm_90a texts in the emulator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tile2c.runtime.emulate import Argument, TensorArgument, ValueArgument, load
from tile2c.runtime.tensor_maps import KINDS, SWIZZLES, TensorMap, emulated

BOTH = frozenset({"races", "memory"})
NONE: frozenset[str] = frozenset()


def tensor_map(
    name: str,
    array: np.ndarray[Any, Any],
    box: tuple[int, ...],
    *,
    swizzle: str = "128B",
    kind: str | None = None,
    writable: bool = False,
    element_strides: tuple[int, ...] | None = None,
) -> ValueArgument:
    """A map of a whole array; `box` is innermost first."""
    dims = tuple(reversed(array.shape))
    strides = tuple(reversed(array.strides))[1:]
    tensor = TensorArgument(name, array.ctypes.data, _extent(array), writable, array)
    encoded = emulated(
        TensorMap(
            name=name,
            tensor=name,
            address=array.ctypes.data,
            dims=dims,
            strides=strides,
            box=box,
            element_strides=element_strides or (1,) * len(dims),
            element_bytes=array.itemsize,
            element_kind=KINDS.get(kind or array.dtype.name, 0),
            swizzle=SWIZZLES[swizzle],
            l2=0,
            fill=0,
        )
    )
    return ValueArgument(encoded, tensor)


def _extent(array: np.ndarray[Any, Any]) -> int:
    gaps: int = sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True))
    return gaps + int(array.itemsize)


def pitched(array: np.ndarray[Any, Any], multiple: int = 16) -> np.ndarray[Any, Any]:
    """The same matrix with rows that start at multiples of 16 bytes; the gaps hold NaN."""
    rows, columns = array.shape
    per = multiple // array.itemsize
    wide = np.zeros((rows, -(-columns // per) * per), array.dtype)
    wide[...] = np.frombuffer(b"\xff" * array.itemsize, array.dtype)[0]
    view = wide[:, :columns]
    view[...] = array
    return view


def tensor(name: str, array: np.ndarray[Any, Any], writable: bool = True) -> TensorArgument:
    """An array as a pointer argument."""
    return TensorArgument(name, array.ctypes.data, _extent(array), writable, array)


def scalar(value: int) -> ValueArgument:
    """A 32-bit integer argument."""
    return ValueArgument(np.int32(value).tobytes())


def launch(
    path: Path,
    entry: str,
    arguments: Sequence[Argument],
    *,
    grid: tuple[int, int, int] = (1, 1, 1),
    block: tuple[int, int, int] = (128, 1, 1),
    shared: int = 0,
    checks: frozenset[str] = BOTH,
    cluster: tuple[int, int, int] | None = None,
    arch: str = "sm_90a",
) -> None:
    """Runs a kernel file."""
    module = load(path, family="cuda", arch=arch, checks=checks)
    module.launch(entry, grid, block, shared, arguments, cluster)
