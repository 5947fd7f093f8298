"""The CUDA backend on a driver made of host memory, with and without PyCUDA."""

from __future__ import annotations

import ctypes
import hashlib
import sys
from pathlib import Path
from typing import Any

import manifests
import numpy as np
import pytest
import tile2c
from fake_cuda import FakeLibrary, FakePyCuda, Launch
from tile2c.runtime import compilers
from tile2c.runtime.backends import libcuda
from tile2c.runtime.backends.cuda import CudaBackend, module_fits, runs_on
from tile2c.runtime.backends.libcuda import LibcudaDriver
from tile2c.runtime.backends.pycuda_driver import PyCudaDriver
from tile2c.runtime.errors import BackendUnavailable, CompileError
from tile2c.runtime.kernel import Kernel
from tile2c.runtime.records import read_records
from tile2c.runtime.tensor_maps import TensorMap


def run_add(launch: Launch) -> None:
    """What add.cu does, on the addresses of the launch."""
    pointers = [int.from_bytes(launch.bytes_of(index, 8), "little") for index in range(3)]
    alpha = np.frombuffer(launch.bytes_of(3, 4), np.float32)[0]
    count = int.from_bytes(launch.bytes_of(4, 4), "little")
    a, b, c = (np.ctypeslib.as_array((ctypes.c_float * count).from_address(p)) for p in pointers)
    c[:] = alpha * a + b


@pytest.fixture(autouse=True)
def compiler(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """Compiles nothing; keeps the architectures that were asked for."""
    asked: list[str | None] = []

    def compiled(text: str, file_name: str, *, arch: str | None = None) -> bytes:
        asked.append(arch)
        return b"cubin of " + file_name.encode()

    monkeypatch.setattr(compilers, "compiled", compiled)
    return asked


def driver(kind: str, library: FakeLibrary) -> LibcudaDriver:
    return (
        PyCudaDriver(FakePyCuda(library), library) if kind == "pycuda" else LibcudaDriver(library)
    )


@pytest.mark.parametrize("kind", ["pycuda", "library"])
def test_a_call_with_arrays_of_the_host(
    tmp_path: Path, kind: str, compiler: list[str | None]
) -> None:
    manifests.write(tmp_path, manifests.add_entry())
    library = FakeLibrary(run=run_add)
    backend = CudaBackend(driver(kind, library))
    add = Kernel(read_records(tmp_path)[0], tmp_path, backend)
    a, b = np.arange(300, dtype=np.float32), np.ones(300, np.float32)
    c = np.zeros(300, np.float32)
    np.testing.assert_array_equal(add(a, b, 2.0), 2 * a + b)
    add(a, b, c, 3.0, stream=77)
    np.testing.assert_array_equal(c, 3 * a + b)
    assert [launch.numbers for launch in library.launches] == [(3, 1, 1, 128, 1, 1, 0)] * 2
    assert [launch.stream for launch in library.launches] == [0, 77]
    assert library.loaded == [b"cubin of add.cu"] and compiler == ["sm_90"]
    assert not library.memory and library.contexts == 0
    assert add.time(a, b, c, 1.0, repeat=3) == [0.25] * 3
    assert not library.memory


def test_the_caller_s_context_comes_back(tmp_path: Path) -> None:
    library = FakeLibrary(run=run_add)
    fake = FakePyCuda(library)
    device = PyCudaDriver(fake, library)
    with device.current(0):
        pass
    with device.current(0):
        pass
    assert fake.calls == ["retain", "push", "pop", "push", "pop"]


def test_device_tensors_are_passed_as_they_are(tmp_path: Path) -> None:
    class Tensor:
        class Stream:
            cuda_stream = 5

        def __init__(self, address: int) -> None:
            self.__cuda_array_interface__: dict[str, Any] = {
                "shape": (8,), "typestr": "<f4", "data": (address, False), "version": 3,
            }  # fmt: skip

    manifests.write(tmp_path, manifests.add_entry())
    library = FakeLibrary()
    add = Kernel(read_records(tmp_path)[0], tmp_path, CudaBackend(LibcudaDriver(library)))
    add(Tensor(256), Tensor(512), Tensor(1024), 1.0, stream=Tensor.Stream())
    (launch,) = library.launches
    assert [int.from_bytes(launch.bytes_of(i, 8), "little") for i in range(3)] == [256, 512, 1024]
    assert launch.stream == 5 and not library.memory


def test_shared_memory_is_allowed_once(tmp_path: Path) -> None:
    manifests.write(tmp_path, manifests.gemm_entry())
    library = FakeLibrary()
    gemm = Kernel(read_records(tmp_path)[0], tmp_path, CudaBackend(LibcudaDriver(library)))
    a, b = np.zeros((16, 8), np.float16), np.zeros((8, 16), np.float16)
    gemm(a, b)
    gemm(a, b)
    assert {launch.numbers[-1] for launch in library.launches} <= {0, 65536}
    assert library.shared in ({"gemm_aligned": 65536}, {})


def test_a_grid_may_ask_for_the_multiprocessors(tmp_path: Path) -> None:
    entry = manifests.gemm_entry()
    tiles = "(N + 7) / 8 * ((M + 7) / 8)"
    few = {**entry["launch"][1], "when": "sms < 4", "grid": ["1", "1", "1"]}
    entry["launch"] = [few, {**entry["launch"][1], "when": None, "grid": [f"min(sms, {tiles})"]}]
    manifests.write(tmp_path, entry)
    found = []
    for count in (132, 5, 2):
        library = FakeLibrary(multiprocessors=count)
        gemm = Kernel(read_records(tmp_path)[0], tmp_path, CudaBackend(LibcudaDriver(library)))
        gemm(np.zeros((64, 8), np.float16), np.zeros((8, 16), np.float16))
        found.append(library.launches[-1].numbers[0])
    assert found == [16, 5, 1]


def test_tensor_maps_go_by_value(tmp_path: Path) -> None:
    entry = manifests.gemm_entry()
    tensor_map = {
        "kind": "tensor_map", "name": "A_map", "tensor": "A", "dtype": "float16",
        "dims": ["K", "M"], "strides": ["2 * K"], "box": [64, 128], "swizzle": "128B",
        "l2": "128B", "fill": "zeros",
    }  # fmt: skip
    entry["launch"] = [{**entry["launch"][1], "args": [tensor_map]}]
    manifests.write(tmp_path, entry)
    library = FakeLibrary(widths={0: 128})
    gemm = Kernel(read_records(tmp_path)[0], tmp_path, CudaBackend(LibcudaDriver(library)))
    a, b = np.zeros((16, 8), np.float16), np.zeros((8, 16), np.float16)
    try:
        gemm(a, b)
    except ValueError as error:  # host memory need not be aligned as a device's is
        assert "multiple of 16" in str(error)
        return
    (launch,) = library.launches
    assert launch.bytes_of(0, 128) == b"\xab" * 128
    (kind, rank, _, dims, strides, box, steps, *enums) = library.maps[0]
    assert (kind, rank, dims, strides, box, steps) == (6, 2, [8, 16], [16], [64, 128], [1, 1])
    assert enums == [0, 3, 2, 0]


def test_maps_of_images_have_their_own_encoder() -> None:
    library = FakeLibrary()
    found = TensorMap(
        name="data_map", tensor="data", address=4096, dims=(64, 5, 7, 2), strides=(128, 640, 4480),
        box=(64, 256), element_strides=(1, 2, 2, 1), element_bytes=2, element_kind=6, swizzle=3, l2=2,
        fill=0, corners=((-1, -1), (-1, 0)),
    )  # fmt: skip
    assert LibcudaDriver(library).encode(found) == b"\xcd" * 128
    (kind, rank, address, dims, strides, lower, upper, *rest) = library.maps[0]
    assert (kind, rank, address, dims) == (6, 4, 4096, [64, 5, 7, 2])
    assert (strides, lower, upper) == ([128, 640, 4480], [-1, -1], [-1, 0])
    assert rest == [64, 256, [1, 2, 2, 1], 0, 3, 2, 0]


@pytest.mark.parametrize(
    ("arch", "capability", "text", "module"),
    [
        ("sm_80", (8, 0), True, True),
        ("sm_80", (8, 6), True, True),
        ("sm_80", (9, 0), True, False),
        ("sm_86", (8, 0), False, False),
        ("sm_90a", (9, 0), True, True),
        ("sm_90a", (10, 0), False, False),
        ("sm_120", (12, 0), True, True),
        ("gfx942", (9, 0), False, False),
    ],
)
def test_what_runs_where(arch: str, capability: tuple[int, int], text: bool, module: bool) -> None:
    assert runs_on(arch, capability) is text
    assert module_fits(arch, capability) is module


def test_the_best_target_is_taken() -> None:
    targets = ("cuda:sm_80", "cuda:sm_90a", "hip:gfx942", "cuda:sm_120")
    for capability, expected in (((9, 0), "cuda:sm_90a"), ((8, 9), "cuda:sm_80"), ((7, 0), None)):
        backend = CudaBackend(LibcudaDriver(FakeLibrary(capability=capability)))
        assert backend.select(targets) == expected


def with_module(folder: Path, arch: str) -> Path:
    image = b"compiled before"
    module = {"arch": arch, "file": f"add.{arch}.cubin", "compiler": "nvcc"}
    module["sha256"] = hashlib.sha256(image).hexdigest()
    module["text_sha256"] = hashlib.sha256(manifests.ADD.encode()).hexdigest()
    manifests.write(folder, manifests.add_entry(modules=[module]))
    (folder / module["file"]).write_bytes(image)
    return folder


def test_a_module_that_fits_is_loaded_as_it_is(tmp_path: Path, compiler: list[str | None]) -> None:
    with_module(tmp_path, "sm_80")
    record = read_records(tmp_path)[0]
    backend = CudaBackend(LibcudaDriver(FakeLibrary(capability=(8, 6))))
    backend.module(record, tmp_path, may_compile=False)
    assert compiler == []
    other = CudaBackend(LibcudaDriver(FakeLibrary(capability=(9, 0))))
    with pytest.raises(CompileError, match='compile="never"'):
        other.module(record, tmp_path, may_compile=False)
    (tmp_path / "add.cu").write_text(manifests.ADD + "// edited\n")
    with pytest.raises(CompileError, match='compile="never"'):
        backend.module(record, tmp_path, may_compile=False)
    backend.module(record, tmp_path, may_compile=True)
    assert compiler == ["sm_86"]


def test_no_driver_is_told_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*arguments: object) -> None:
        raise OSError("libcuda.so.1: cannot open shared object file")

    monkeypatch.setattr(libcuda.ctypes, "CDLL", absent)
    monkeypatch.setitem(sys.modules, "pycuda", None)
    monkeypatch.delenv("TILE2C_BACKEND", raising=False)
    manifests.write(tmp_path, manifests.add_entry())
    for backend in (None, "cuda"):
        with pytest.raises(BackendUnavailable, match=r"libcuda\.so\.1"):
            tile2c.load(tmp_path, backend=backend)
    with pytest.raises(BackendUnavailable, match="no backend 'topscc' here"):
        tile2c.load(tmp_path, backend="topscc")
