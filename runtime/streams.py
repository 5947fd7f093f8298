"""Finds the stream to launch in: the one passed, or the framework's current one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from tile2c.runtime.tensors import TensorView


def stream_handle(stream: object | None, tensors: Iterable[TensorView]) -> int:
    """The driver's handle of a stream; 0 is the default stream.

    Takes an integer, anything with `__cuda_stream__`, and the streams of torch, CuPy and PyCUDA.
    """
    if stream is None:
        return stream_source(tensors)()
    if isinstance(stream, int):
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        pair = protocol() if callable(protocol) else protocol
        return int(pair[1])
    for name in ("cuda_stream", "musa_stream", "npu_stream", "mlu_stream", "ptr", "handle"):
        handle = getattr(stream, name, None)
        if isinstance(handle, int):
            return handle
    raise TypeError(f"stream must be a stream or its handle, not {type(stream).__qualname__}")


def stream_source(tensors: Iterable[TensorView]) -> Callable[[], int]:
    """What tells the current stream of the tensors' framework, each time that it is asked."""
    for tensor in tensors:
        if tensor.framework == "torch" and tensor.device in ("cuda", "musa", "npu", "mlu"):
            return _torch_source(tensor.device, tensor.device_index)
        if tensor.device == "cuda" and tensor.framework == "cupy":
            return lambda: int(sys.modules["cupy"].cuda.get_current_stream().ptr)
    return lambda: 0


def _torch_source(kind: str, index: int) -> Callable[[], int]:
    current = getattr(sys.modules["torch"], kind).current_stream
    handle = f"{kind}_stream"
    return lambda: int(getattr(current(index), handle))
