"""The driver with PyCUDA for devices, contexts, memory and copies; imported only when needed."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from tile2c.runtime.backends.libcuda import LibcudaDriver
from tile2c.runtime.errors import BackendUnavailable


def pycuda_module() -> ModuleType:
    """PyCUDA's driver module, initialised, or BackendUnavailable with the reason."""
    try:
        cuda = import_module("pycuda.driver")
    except ModuleNotFoundError as error:
        raise BackendUnavailable(
            f"{error.name} is not installed: pip install 'tile2c[cuda]'"
        ) from error
    except ImportError as error:  # the extension is there, the driver's library is not
        raise BackendUnavailable(f"no NVIDIA driver: {error}") from error
    try:
        cuda.init()
    except Exception as error:
        raise BackendUnavailable(f"no NVIDIA device: {error}") from error
    return cuda


class PyCudaDriver(LibcudaDriver):
    """PyCUDA where it has it, the library itself for launches and tensor maps."""

    def __init__(self, cuda: Any, library: Any = None) -> None:
        self._cuda = cuda
        self._primary: dict[int, Any] = {}
        self._memory: dict[int, Any] = {}
        super().__init__(library)

    def count(self) -> int:
        return int(self._cuda.Device.count())

    def capability(self, device: int) -> tuple[int, int]:
        major, minor = self._cuda.Device(device).compute_capability()
        return int(major), int(minor)

    @contextmanager
    def current(self, device: int) -> Iterator[None]:
        if device not in self._primary:
            self._primary[device] = self._cuda.Device(device).retain_primary_context()
        self._primary[device].push()
        try:
            yield
        finally:
            self._cuda.Context.pop()

    def allocate(self, nbytes: int) -> int:
        memory = self._cuda.mem_alloc(max(nbytes, 1))
        self._memory[int(memory)] = memory
        return int(memory)

    def free(self, address: int) -> None:
        self._memory.pop(address).free()

    def to_device(self, address: int, host: int, nbytes: int) -> None:
        if nbytes:
            self._cuda.memcpy_htod(address, (ctypes.c_char * nbytes).from_address(host))

    def to_host(self, host: int, address: int, nbytes: int) -> None:
        if nbytes:
            self._cuda.memcpy_dtoh((ctypes.c_char * nbytes).from_address(host), address)
