"""Calling kernels: binding, sizes, roles, launch choice; on a backend that records launches."""

from __future__ import annotations

import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import manifests
import ml_dtypes
import numpy as np
import pytest
from tile2c.runtime import tensor_maps
from tile2c.runtime.backends.protocol import LaunchCall, Pointer, Value
from tile2c.runtime.kernel import Kernel
from tile2c.runtime.records import KernelRecord, read_records


class Recorder:
    """A backend and session in one; keeps what would be launched."""

    name = "recorder"

    def __init__(self) -> None:
        self.calls: list[LaunchCall] = []
        self.placed: dict[str, tuple[bool, bool]] = {}

    def select(self, targets: Sequence[str]) -> str | None:
        return targets[0]

    def module(self, record: KernelRecord, folder: Path, *, may_compile: bool) -> object:
        return self

    def session(self, tensors: Sequence[Any], stream: object | None) -> Recorder:
        return self

    def place(self, name: str, tensor: Any, *, reads: bool, writes: bool) -> int:
        self.placed[name] = (reads, writes)
        return tensor.address

    def scratch(self, nbytes: int, align: int) -> Pointer:
        return Pointer("workspace", 4096, nbytes, True, None)

    def encode(self, tensor_map: tensor_maps.TensorMap) -> bytes:
        return tensor_maps.emulated(tensor_map)

    def launch(self, module: object, call: LaunchCall) -> None:
        self.calls.append(call)

    def time(self, run: Callable[[], None]) -> float:
        run()
        return 1.5

    def finish(self) -> None: ...

    def close(self) -> None: ...


def kernel(folder: Path, entry: dict[str, Any]) -> tuple[Kernel, Recorder]:
    manifests.write(folder, entry)
    recorder = Recorder()
    return Kernel(read_records(folder)[0], folder, recorder), recorder  # type: ignore[arg-type]


def halves(*shape: int) -> np.ndarray[Any, Any]:
    """An array that starts at a multiple of 64 bytes."""
    count = int(np.prod(shape))
    raw = np.zeros(count + 32, dtype=np.float16)
    start = -(raw.ctypes.data // 2) % 32
    return raw[start : start + count].reshape(shape)


def test_outputs_are_allocated_and_returned(tmp_path: Path) -> None:
    add, recorder = kernel(tmp_path, manifests.add_entry())
    a, b = np.ones(300, np.float32), np.ones(300, np.float32)
    c = add(a, b, 2.0)
    assert isinstance(c, np.ndarray) and c.shape == (300,) and c.dtype == np.float32
    (call,) = recorder.calls
    assert call.entry == "add" and call.grid == (3, 1, 1) and call.block == (128, 1, 1)
    alpha, size = call.arguments[3:]
    assert isinstance(alpha, Value) and alpha.data == np.float32(2).tobytes()
    assert isinstance(size, Value) and size.data == (300).to_bytes(4, "little")
    assert recorder.placed == {"A": (True, False), "B": (True, False), "C": (False, True)}


def test_outputs_passed_are_written_in_place(tmp_path: Path) -> None:
    add, recorder = kernel(tmp_path, manifests.add_entry())
    a, b, c = (np.ones(5, np.float32) for _ in range(3))
    assert add(a, b, c, 2.0) is None
    assert add(alpha=1, B=b, A=a, C=c) is None
    assert add(a, b, 1.0, C=c) is None
    assert recorder.calls[-1].arguments[2].address == c.ctypes.data  # type: ignore[union-attr]


def test_buffers_are_tensors(tmp_path: Path) -> None:
    add, _ = kernel(tmp_path, manifests.add_entry())
    a = array.array("f", [1, 2, 3])
    assert add(a, a, 1.0).shape == (3,)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"B": np.ones(6, np.float32)}, ValueError, "N is 6 by B, but 5 by A"),
        ({"B": np.ones(5)}, TypeError, "B is float64, add takes float32"),
        ({"B": np.ones((5, 1), np.float32)}, ValueError, r"B has shape \[5, 1\], add takes B\[N\]"),
        ({"B": np.ones(10, np.float32)[::2]}, ValueError, "B has gaps"),
        ({"B": "text"}, TypeError, "B must be a tensor, not builtins.str"),
        ({"D": 1}, TypeError, "add has no argument D"),
        ({"N": 7}, ValueError, "N is 5 by A, but 7 by N=7"),
    ],
)
def test_wrong_arguments_are_named(
    tmp_path: Path, change: dict[str, Any], error: type[Exception], message: str
) -> None:
    add, _ = kernel(tmp_path, manifests.add_entry())
    good = {"A": np.ones(5, np.float32), "B": np.ones(5, np.float32), "alpha": 1.0}
    with pytest.raises(error, match=message):
        add(**{**good, **change})


def test_wrong_counts_and_read_only_outputs(tmp_path: Path) -> None:
    add, _ = kernel(tmp_path, manifests.add_entry())
    a = np.ones(5, np.float32)
    with pytest.raises(TypeError, match=r"takes 3 or 4 positional arguments here, 1 were passed"):
        add(a)
    frozen = np.ones(5, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="C is written by add, but it is read-only"):
        add(a, a, frozen, 1.0)
    assert add(frozen, a, 1.0).shape == (5,)


def test_the_first_launch_whose_condition_holds(tmp_path: Path) -> None:
    gemm, recorder = kernel(tmp_path, manifests.gemm_entry())
    gemm(halves(20, 16), halves(16, 24))
    gemm(halves(20, 16), halves(16, 23))
    gemm(halves(21, 16).reshape(-1)[1 : 1 + 320].reshape(20, 16), halves(16, 24))
    assert [call.entry for call in recorder.calls] == ["gemm_aligned", "gemm", "gemm"]
    assert [call.shared_bytes for call in recorder.calls] == [65536, 0, 0]


def test_groups_run_in_order_and_may_be_empty(tmp_path: Path) -> None:
    entry = manifests.add_entry()
    main = entry["launch"][0]
    entry["launch"] = [
        {**main, "entry": "repack", "when": "N % 4 != 0"},
        {**main, "group": 1},
    ]
    add, recorder = kernel(tmp_path, entry)
    for count in (4, 5, 0):
        add(np.ones(count, np.float32), np.ones(count, np.float32), 1.0)
    assert [call.entry for call in recorder.calls] == ["add", "repack", "add"]


def test_shapes_that_are_expressions(tmp_path: Path) -> None:
    entry = manifests.add_entry()
    entry["args"][1]["shape"] = ["N // 2"]
    entry["args"][2]["shape"] = ["N * 2 + 1"]
    add, _ = kernel(tmp_path, entry)
    assert add(np.ones(6, np.float32), np.ones(3, np.float32), 1.0).shape == (13,)
    with pytest.raises(ValueError, match=r"B: add takes B\[N // 2\] with N = 6 by A"):
        add(np.ones(6, np.float32), np.ones(4, np.float32), 1.0)
    entry["args"][0]["shape"] = ["N / 3"]
    unknown, _ = kernel(tmp_path, entry)
    with pytest.raises(ValueError, match="tells no N: pass N by keyword"):
        unknown(np.ones(2, np.float32), np.ones(3, np.float32), 1.0)
    assert unknown(np.ones(2, np.float32), np.ones(3, np.float32), 1.0, N=6).shape == (13,)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_types_of_ml_dtypes(tmp_path: Path, name: str) -> None:
    entry = manifests.add_entry()
    for argument in entry["args"][:3]:
        argument["dtype"] = name
    add, _ = kernel(tmp_path, entry)
    a = np.ones(5, getattr(ml_dtypes, name))
    assert add(a, a, 1.0).dtype == a.dtype


def test_packed_types_are_int8_with_half_the_last_dimension(tmp_path: Path) -> None:
    entry = manifests.add_entry()
    entry["args"][1]["dtype"] = "int4"
    add, _ = kernel(tmp_path, entry)
    assert add(np.ones(6, np.float32), np.ones(3, np.int8), 1.0).shape == (6,)
    with pytest.raises(ValueError, match="N is 12 by B, but 6 by A"):
        add(np.ones(6, np.float32), np.ones(6, np.int8), 1.0)


def test_workspaces(tmp_path: Path) -> None:
    entry = manifests.add_entry(workspace={"bytes": "4 * N", "align": 256})
    entry["launch"][0]["args"].append({"kind": "workspace", "name": "workspace"})
    add, recorder = kernel(tmp_path, entry)
    a = np.ones(5, np.float32)
    add(a, a, 1.0)
    found = recorder.calls[0].arguments[-1]
    assert isinstance(found, Pointer) and found.nbytes == 20
    with pytest.raises(ValueError, match="workspace has 4 bytes, add needs 20"):
        add(a, a, 1.0, workspace=np.zeros(4, np.uint8))


def test_time_gives_one_number_a_run(tmp_path: Path) -> None:
    add, recorder = kernel(tmp_path, manifests.add_entry())
    a = np.ones(5, np.float32)
    assert add.time(a, a, 1.0, repeat=4) == [1.5] * 4
    assert len(recorder.calls) == 7


def test_scalars_are_checked(tmp_path: Path) -> None:
    entry = manifests.add_entry()
    entry["args"][3]["dtype"] = "int8"
    add, _ = kernel(tmp_path, entry)
    a = np.ones(5, np.float32)
    with pytest.raises(ValueError, match="alpha is int8, so 300 is out of range"):
        add(a, a, 300)
    with pytest.raises(TypeError, match=r"alpha is int8, so 1\.5 cannot be passed"):
        add(a, a, 1.5)


class Interface:
    """Any object with __cuda_array_interface__."""

    def __init__(self, shape: tuple[int, ...], typestr: str = "<f4") -> None:
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": typestr,
            "data": (0x10000, False),
            "version": 3,
        }


class Capsule:
    """Any object with __dlpack__."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def test_other_frameworks(tmp_path: Path) -> None:
    add, recorder = kernel(tmp_path, manifests.add_entry())
    device = Interface((5,))
    add(device, device, device, 1.0)
    assert recorder.calls[0].arguments[0].address == 0x10000  # type: ignore[union-attr]
    with pytest.raises(TypeError, match="C must be passed"):
        add(device, device, 1.0)
    a = np.ones(5, np.float32)
    assert add(Capsule(a), Capsule(a), 1.0).shape == (5,)
    assert recorder.calls[-1].arguments[0].address == a.ctypes.data  # type: ignore[union-attr]


def test_what_every_call_needs_is_told(tmp_path: Path) -> None:
    entry = manifests.add_entry(requires=["A % 16 == 0", "N % 4 == 0"])
    add, _ = kernel(tmp_path, entry)
    raw = np.ones(32, np.float32)
    start = -(raw.ctypes.data // 4) % 4
    aligned, shifted = raw[start : start + 8], raw[start + 1 : start + 9]
    assert add(aligned, shifted, 1.0).shape == (8,)
    with pytest.raises(ValueError, match="A must start at a multiple of 16 bytes for add"):
        add(shifted, aligned, 1.0)
    with pytest.raises(ValueError, match="add needs N % 4 == 0, but N = 7"):
        add(aligned[:7], aligned[:7], 1.0)
