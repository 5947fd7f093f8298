"""Finds the stream to launch in: the one passed, or the framework's current one."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from tile2c.runtime.tensors import TensorView


def stream_handle(stream: object | None, tensors: Iterable[TensorView]) -> int:
    """The driver's handle of a stream; 0 is the default stream.

    Takes an integer, anything with `__cuda_stream__`, and the streams of torch, CuPy and PyCUDA.
    """
    if stream is None:
        return _current(tensors)
    if isinstance(stream, int):
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        pair = protocol() if callable(protocol) else protocol
        return int(pair[1])
    for name in ("cuda_stream", "musa_stream", "ptr", "handle"):
        handle = getattr(stream, name, None)
        if isinstance(handle, int):
            return handle
    raise TypeError(f"stream must be a stream or its handle, not {type(stream).__qualname__}")


def _current(tensors: Iterable[TensorView]) -> int:
    for tensor in tensors:
        if tensor.framework == "torch" and tensor.device in ("cuda", "musa"):
            kind = getattr(sys.modules["torch"], tensor.device)
            stream = kind.current_stream(tensor.device_index)
            return int(getattr(stream, f"{tensor.device}_stream"))
        if tensor.device != "cuda":
            continue
        if tensor.framework == "cupy":
            return int(sys.modules["cupy"].cuda.get_current_stream().ptr)
    return 0
