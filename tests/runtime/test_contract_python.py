"""What the interface promises Python callers, promise by promise, where no other test has it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import manifests
import numpy as np
import pytest
import tile2c
from fake_cuda import FakeLibrary
from tile2c.runtime.backends.cuda import CudaBackend
from tile2c.runtime.backends.libcuda import LibcudaDriver
from tile2c.runtime.grid import GridError
from tile2c.runtime.kernel import Kernel
from tile2c.runtime.records import read_records


class CountingLibrary(FakeLibrary):
    """Also counts what a capture of a graph forbids."""

    forbidden: list[str]

    def __init__(self) -> None:
        super().__init__()
        self.forbidden = []

    def cuMemAlloc_v2(self, address: Any, size: Any) -> int:
        self.forbidden.append("allocate")
        return super().cuMemAlloc_v2(address, size)

    def cuMemFree_v2(self, address: Any) -> int:
        self.forbidden.append("free")
        return super().cuMemFree_v2(address)

    def cuStreamSynchronize(self, stream: Any) -> int:
        self.forbidden.append("synchronize")
        return super().cuStreamSynchronize(stream)


class DeviceArray:
    """Memory of a device behind the plain interface."""

    def __init__(self, address: int, shape: tuple[int, ...], typestr: str = "<f4") -> None:
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": typestr,
            "data": (address, False),
            "version": 3,
        }


def emulated(folder: Path) -> Any:
    return tile2c.load(manifests.write(folder, manifests.add_entry()), backend="emulate")["add"]


def with_workspace() -> dict[str, Any]:
    entry = manifests.add_entry(workspace={"bytes": "4 * N", "align": 256})
    entry["launch"][0]["args"].append({"kind": "workspace", "name": "workspace"})
    return entry


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    from tile2c.runtime import compilers

    monkeypatch.setattr(compilers, "compiled", lambda *_, **__: b"cubin")


def test_outputs_left_out_passed_or_by_keyword(tmp_path: Path) -> None:
    add = emulated(tmp_path)
    a, b = np.arange(5, dtype=np.float32), np.ones(5, np.float32)
    want = 2 * a + b
    np.testing.assert_array_equal(add(a, b, 2.0), want)
    np.testing.assert_array_equal(add(alpha=2.0, B=b, A=a), want)
    c = np.zeros(5, np.float32)
    assert add(a, b, c, 2.0) is None
    np.testing.assert_array_equal(c, want)


@pytest.mark.usefixtures("compiled")
def test_nothing_is_allocated_or_waited_for_when_all_is_passed(tmp_path: Path) -> None:
    """So a call can be captured in a graph: the second one at the latest is launches only."""
    manifests.write(tmp_path, with_workspace())
    library = CountingLibrary()
    add = Kernel(read_records(tmp_path)[0], tmp_path, CudaBackend(LibcudaDriver(library)))
    tensors = [DeviceArray(4096 * (i + 1), (8,)) for i in range(3)]
    workspace = DeviceArray(4096 * 9, (64,), "|u1")
    for _ in range(2):
        add(*tensors, 1.0, workspace=workspace, stream=3)
    assert library.forbidden == []
    assert [launch.stream for launch in library.launches] == [3, 3]
    assert library.launches[0].bytes_of(5, 8) == (4096 * 9).to_bytes(8, "little")


@pytest.mark.usefixtures("compiled")
def test_a_call_with_device_tensors_never_synchronizes(tmp_path: Path) -> None:
    manifests.write(tmp_path, manifests.add_entry())
    library = CountingLibrary()
    add = Kernel(read_records(tmp_path)[0], tmp_path, CudaBackend(LibcudaDriver(library)))
    add(*(DeviceArray(4096 * (i + 1), (8,)) for i in range(3)), 1.0)
    assert library.forbidden == []


@pytest.mark.parametrize("repeat", [0, -1])
def test_timing_needs_a_run(tmp_path: Path, repeat: int) -> None:
    a = np.ones(5, np.float32)
    with pytest.raises(
        ValueError, match=f"repeat is {repeat}: a kernel is timed over at least one"
    ):
        emulated(tmp_path).time(a, a, 1.0, repeat=repeat)


def test_one_number_a_run(tmp_path: Path) -> None:
    a = np.ones(5, np.float32)
    times = emulated(tmp_path).time(a, a, 1.0, repeat=3)
    assert len(times) == 3 and all(isinstance(ms, float) and ms > 0 for ms in times)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        (
            ["1", "N * 20000", "1"],
            r"add: the grid has 80000 blocks along y \(N \* 20000 with N = 4\)",
        ),
        (["1", "1", "N * 20000"], "80000 blocks along z .* takes at most 65535 there"),
        (["N * 1000000000", "1", "1"], "4000000000 blocks along x .* at most 2147483647 there"),
        (["N - 6", "1", "1"], r"add: the grid has -2 blocks along x \(N - 6 with N = 4\)"),
    ],
)
def test_grids_that_no_device_takes_are_named(
    tmp_path: Path, grid: list[str], message: str
) -> None:
    entry = manifests.add_entry()
    entry["launch"][0]["grid"] = grid
    add = tile2c.load(manifests.write(tmp_path, entry), backend="emulate")["add"]
    a = np.ones(4, np.float32)
    with pytest.raises(GridError, match=message):
        add(a, a, 1.0)


@pytest.mark.parametrize(
    ("tiles", "message"),
    [
        (["N - 6", "N - 7"], r"add: the grid has -2 blocks along x \(N - 6 with N = 4\)"),
        (["0", "N - 6"], r"add: the grid has -2 blocks along y \(N - 6 with N = 4\)"),
        (
            ["N * 65536", "N", "N * 512"],
            "add: the grid has 262144 x 4 x 2048 tiles with N = 4, and .* in turn count to 2147418112",
        ),
    ],
)
def test_tiles_taken_in_turn_are_checked_as_a_grid_of_blocks_is(
    tmp_path: Path, tiles: list[str], message: str
) -> None:
    entry = manifests.add_entry()
    entry["launch"][0]["grid"] = [f"min(sms, {' * '.join(f'({x})' for x in tiles)})"]
    entry["launch"][0]["tiles"] = tiles
    add = tile2c.load(manifests.write(tmp_path, entry), backend="emulate")["add"]
    a = np.ones(4, np.float32)
    with pytest.raises(GridError, match=message):
        add(a, a, 1.0)


def test_never_compiling_takes_the_manifest_s_module(tmp_path: Path) -> None:
    image = b"a cubin"
    module = {"arch": "sm_90", "file": "add.sm_90.cubin", "compiler": "nvcc 12.9",
              "sha256": hashlib.sha256(image).hexdigest()}  # fmt: skip
    manifests.write(tmp_path, manifests.add_entry(modules=[module]))
    (tmp_path / "add.sm_90.cubin").write_bytes(image)
    library = FakeLibrary()
    backend = CudaBackend(LibcudaDriver(library))
    add = Kernel(read_records(tmp_path)[0], tmp_path, backend, may_compile=False)
    add(*(DeviceArray(4096 * (i + 1), (8,)) for i in range(3)), 1.0)
    assert library.loaded == [image]
    (tmp_path / "add.sm_90.cubin").write_bytes(b"something else")
    stale = Kernel(read_records(tmp_path)[0], tmp_path, backend, may_compile=False)
    with pytest.raises(tile2c.CompileError, match='compile="never" forbids'):
        stale.prepare()


def test_emulation_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tile2c.runtime.backends import choose

    def nothing() -> Any:
        raise tile2c.BackendUnavailable("no driver")

    monkeypatch.setitem(choose.DEVICES, "cuda", nothing)
    monkeypatch.delenv("TILE2C_BACKEND", raising=False)
    folder = manifests.write(tmp_path, manifests.add_entry())
    with pytest.raises(tile2c.BackendUnavailable, match='backend="emulate"'):
        tile2c.load(folder)
    monkeypatch.setenv("TILE2C_BACKEND", "emulate")
    assert tile2c.load(folder)["add"].backend.name == "emulate"


def test_errors_of_kernels_have_one_base() -> None:
    assert issubclass(tile2c.RaceError, tile2c.KernelError)
    assert issubclass(tile2c.AccessError, tile2c.KernelError)
    assert issubclass(tile2c.TranspileError, ValueError)


def test_the_type_of_what_comes_back(tmp_path: Path) -> None:
    """NumPy in, NumPy out; torch in, torch out."""
    add = emulated(tmp_path)
    a = np.ones(5, np.float32)
    assert isinstance(add(a, a, 1.0), np.ndarray)
    torch = pytest.importorskip("torch", reason="torch is not installed")
    t = torch.ones(5)
    assert isinstance(add(t, t, 1.0), torch.Tensor)
