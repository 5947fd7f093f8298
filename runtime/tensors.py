"""Sees every kind of tensor alike: where it lies, its shape, element type and framework.

NumPy, torch, CuPy, anything with `__cuda_array_interface__`, `__dlpack__` or a buffer. No framework
is imported for this: a torch tensor can only be passed by somebody who has torch already.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from tile2c.runtime.dtypes import numpy_dtype

Framework = Literal["numpy", "torch", "cupy", "interface", "dlpack"]

HOST = "cpu"


@dataclass(frozen=True, slots=True)
class TensorView:
    """One tensor argument. Strides are in elements; None means rows without gaps."""

    owner: object  # keeps the memory alive
    framework: Framework
    device: str  # "cpu", "cuda"
    device_index: int
    address: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    item_bytes: int
    read_only: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes from the first element to the end of the last one."""
        if 0 in self.shape:
            return 0
        if self.strides is None:
            count = 1
            for extent in self.shape:
                count *= extent
            return count * self.item_bytes
        reach = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        return (reach + 1) * self.item_bytes


def view(value: object, name: str) -> TensorView:
    """The view of a tensor argument; raises TypeError with the argument's name."""
    module = type(value).__module__.partition(".")[0]
    if module == "torch" and hasattr(value, "data_ptr"):
        return _torch(value)
    if module == "numpy" and type(value).__name__ in ("ndarray", "memmap"):
        return _numpy(value)
    if hasattr(value, "__cuda_array_interface__"):
        return _interface(value, "cupy" if module == "cupy" else "interface")
    if hasattr(value, "__dlpack__"):
        from tile2c.runtime.dlpack import view_of

        return view_of(value, name)
    try:
        import numpy as np

        return _numpy(np.asarray(memoryview(value)))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise TypeError(f"{name} must be a tensor, not {kind}") from None


OTHER_ORDER = " with its bytes in the other order"  # part of a type's name that no kernel takes


def _gapless(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether rows lie one behind the other; dimensions of extent 1 may have any stride."""
    if 0 in shape:
        return True
    expected = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True


def _numpy(array: Any) -> TensorView:
    item = array.dtype.itemsize
    if any(stride % item for stride in array.strides):
        raise ValueError("an array whose strides are no multiples of its element size")
    strides = tuple(stride // item for stride in array.strides)
    return TensorView(
        owner=array,
        framework="numpy",
        device=HOST,
        device_index=0,
        address=array.ctypes.data,
        dtype=_name_of(array.dtype),
        shape=tuple(array.shape),
        strides=None if _gapless(array.shape, strides) else strides,
        item_bytes=item,
        read_only=not array.flags.writeable,
    )


@cache
def _name_of(kind: Any) -> str:
    """A NumPy type's name, which takes NumPy longer than all else of a view."""
    name: str = kind.name
    return name if kind.isnative else name + OTHER_ORDER


@cache
def _kind_of(typestr: str) -> Any:
    import numpy as np

    return np.dtype(typestr)


def _torch(tensor: Any) -> TensorView:
    shape, strides = tuple(tensor.shape), tuple(tensor.stride())
    return TensorView(
        owner=tensor,
        framework="torch",
        device=tensor.device.type,
        device_index=tensor.device.index or 0,
        address=tensor.data_ptr(),
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=shape,
        strides=None if _gapless(shape, strides) else strides,
        item_bytes=tensor.element_size(),
    )


def _interface(value: Any, framework: Framework) -> TensorView:
    about = value.__cuda_array_interface__
    kind = _kind_of(about["typestr"])
    own = getattr(getattr(value, "dtype", None), "name", None)
    if isinstance(own, str) and own:
        dtype = own if kind.isnative else own + OTHER_ORDER
    else:
        dtype = _name_of(kind)
    if kind.kind == "V" and dtype.startswith("void"):
        dtype = f"raw{kind.itemsize * 8}"
    shape = tuple(about["shape"])
    given = about.get("strides")
    strides = None
    if given is not None:
        counted = tuple(stride // kind.itemsize for stride in given)
        strides = None if _gapless(shape, counted) else counted
    address, read_only = about["data"]
    index = getattr(getattr(value, "device", None), "id", 0)
    return TensorView(
        owner=value,
        framework=framework,
        device="cuda",
        device_index=index if isinstance(index, int) else 0,
        address=int(address or 0),
        dtype=dtype,
        shape=shape,
        strides=strides,
        item_bytes=kind.itemsize,
        read_only=bool(read_only),
    )


def allocate_like(like: TensorView | None, shape: tuple[int, ...], dtype: str) -> object | None:
    """An empty tensor of the framework and on the device of `like`, NumPy without one.

    None where only the backend can allocate: the framework behind a plain interface is not known.
    """
    make = allocator_like(like, shape, dtype)
    return None if make is None else make()


def allocator_like(
    like: TensorView | None, shape: tuple[int, ...], dtype: str
) -> Callable[[], object] | None:
    """What makes such tensors; it does not keep `like` alive."""
    if like is None or like.framework == "numpy" or like.device == HOST != like.framework:
        if like is not None and like.framework == "torch":
            return _torch_allocator(like, shape, dtype)
        return lambda: _numpy_empty(shape, dtype)
    if like.framework == "torch":
        return _torch_allocator(like, shape, dtype)
    if like.framework == "cupy":
        index = like.device_index
        return lambda: _cupy_empty(index, shape, dtype)
    return None


def _numpy_empty(shape: tuple[int, ...], dtype: str) -> object:
    import numpy as np

    return np.empty(shape, dtype=numpy_dtype(dtype))


def _cupy_empty(index: int, shape: tuple[int, ...], dtype: str) -> object:
    cupy = sys.modules["cupy"]
    with cupy.cuda.Device(index):
        empty: object = cupy.empty(shape, dtype=numpy_dtype(dtype))
        return empty


def _torch_allocator(like: TensorView, shape: tuple[int, ...], dtype: str) -> Callable[[], object]:
    torch = sys.modules["torch"]
    device = getattr(like.owner, "device")  # noqa: B009 - the owner's type is torch's own
    kind = getattr(torch, numpy_dtype(dtype).name)
    return lambda: torch.empty(shape, dtype=kind, device=device)
