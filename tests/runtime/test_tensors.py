"""How tensors of frameworks look to the runtime; torch and CuPy are stand-ins here."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tile2c.runtime import tensors
from tile2c.runtime.streams import stream_handle


class FakeTensor:
    """What the runtime asks of a torch tensor."""

    def __init__(self, shape: tuple[int, ...], device: str = "cuda", strides: Any = None) -> None:
        self.shape = shape
        self.dtype = "torch.bfloat16"
        self.device = SimpleNamespace(type=device, index=1 if device == "cuda" else None)
        self._strides = strides or tensors_strides(shape)

    def data_ptr(self) -> int:
        return 0x2000

    def stride(self) -> tuple[int, ...]:
        return self._strides

    def element_size(self) -> int:
        return 2


FakeTensor.__module__ = "torch"


def tensors_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.insert(0, step)
        step *= extent
    return tuple(strides)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    made: list[tuple[Any, ...]] = []

    def empty(shape: tuple[int, ...], *, dtype: str, device: Any) -> FakeTensor:
        made.append((shape, dtype, device.type))
        return FakeTensor(shape, device.type)

    def current_stream(index: int) -> SimpleNamespace:
        return SimpleNamespace(cuda_stream=100 + index)

    module = SimpleNamespace(
        empty=empty,
        made=made,
        bfloat16="bf16",
        float32="f32",
        cuda=SimpleNamespace(current_stream=current_stream),
    )
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def test_a_torch_tensor(torch: SimpleNamespace) -> None:
    view = tensors.view(FakeTensor((4, 6)), "A")
    assert (view.framework, view.device, view.device_index) == ("torch", "cuda", 1)
    assert (view.address, view.dtype, view.shape, view.strides) == (
        0x2000,
        "bfloat16",
        (4, 6),
        None,
    )
    assert view.nbytes == 48
    assert tensors.view(FakeTensor((4, 6), strides=(1, 4)), "A").strides == (1, 4)
    assert tensors.view(FakeTensor((1, 6), strides=(99, 1)), "A").strides is None


def test_outputs_are_tensors_of_the_same_framework(torch: SimpleNamespace) -> None:
    for device in ("cuda", "cpu"):
        like = tensors.view(FakeTensor((4,), device), "A")
        made = tensors.allocate_like(like, (3,), "float32")
        assert isinstance(made, FakeTensor)
    assert torch.made == [((3,), "f32", "cuda"), ((3,), "f32", "cpu")]
    assert isinstance(tensors.allocate_like(None, (3,), "bfloat16"), np.ndarray)


def test_streams(torch: SimpleNamespace) -> None:
    cuda = tensors.view(FakeTensor((4,)), "A")
    assert stream_handle(None, [tensors.view(np.zeros(3), "B"), cuda]) == 101
    assert stream_handle(None, [tensors.view(np.zeros(3), "B")]) == 0
    assert stream_handle(7, [cuda]) == 7
    for stream in (
        SimpleNamespace(cuda_stream=5),
        SimpleNamespace(ptr=5),
        SimpleNamespace(handle=5),
        SimpleNamespace(__cuda_stream__=lambda: (0, 5)),
    ):
        assert stream_handle(stream, []) == 5
    with pytest.raises(TypeError, match="stream must be a stream"):
        stream_handle("main", [])


def test_views_of_arrays() -> None:
    array = np.zeros((3, 4), np.float32)
    assert tensors.view(array, "A").strides is None
    assert tensors.view(array.T, "A").strides == (1, 4)
    assert tensors.view(array[:, ::2], "A").nbytes == 4 * (2 * 4 + 1 * 2 + 1)
    assert tensors.view(np.zeros((0, 4)), "A").nbytes == 0
