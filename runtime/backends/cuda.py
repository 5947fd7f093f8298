"""The CUDA backend: primary contexts, modules from the manifest or compiled once, launches.

The driver is reached through PyCUDA, or through its library alone where PyCUDA is not installed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tile2c.runtime.backends.device import DeviceSession, load_module
from tile2c.runtime.backends.libcuda import LibcudaDriver
from tile2c.runtime.backends.protocol import Module
from tile2c.runtime.errors import BackendUnavailable
from tile2c.runtime.records import KernelRecord
from tile2c.runtime.streams import stream_handle
from tile2c.runtime.tensors import HOST, TensorView

_ARCH = re.compile(r"sm_(\d+)(\d)([af]?)")


def _driver() -> LibcudaDriver:
    from tile2c.runtime.backends.pycuda_driver import PyCudaDriver, pycuda_module

    try:
        return PyCudaDriver(pycuda_module())
    except BackendUnavailable as without_pycuda:
        try:
            return LibcudaDriver()
        except BackendUnavailable as error:
            raise BackendUnavailable(f"{without_pycuda}; {error}") from error


def runs_on(arch: str, capability: tuple[int, int]) -> bool:
    """Whether text for `sm_80`, `sm_90a`, … can be compiled for a device of this capability."""
    found = _ARCH.fullmatch(arch)
    if found is None:
        return False
    wanted = (int(found[1]), int(found[2]))
    if found[3] == "a":  # features of one chip only
        return wanted == capability
    return wanted[0] == capability[0] and wanted <= capability if found[3] else wanted <= capability


def module_fits(arch: str, capability: tuple[int, int]) -> bool:
    """Whether a compiled module runs: the same generation, not a newer member of it."""
    found = _ARCH.fullmatch(arch)
    return found is not None and runs_on(arch, capability) and int(found[1]) == capability[0]


class CudaBackend:
    """Runs kernels on NVIDIA devices."""

    name = "cuda"

    def __init__(self, driver: LibcudaDriver | None = None) -> None:
        self.driver = _driver() if driver is None else driver
        self.capability = self.driver.capability(0)

    def select(self, targets: Sequence[str]) -> str | None:
        """The newest architecture that the device runs; text for one chip only comes first."""
        fitting = [
            target
            for target in targets
            if target.startswith("cuda:") and runs_on(target.partition(":")[2], self.capability)
        ]
        return max(fitting, key=_rank, default=None)

    def module(self, record: KernelRecord, folder: Path, *, may_compile: bool) -> Module:
        def made(text: str, file_name: str) -> bytes:
            from tile2c.runtime import compilers

            return compilers.compiled(text, file_name, arch=self._arch(record))

        return load_module(
            self.driver,
            record,
            folder,
            fits=lambda module: module_fits(module.arch, self.capability),
            compiled=made if may_compile else None,
        )

    def session(self, tensors: Sequence[TensorView], stream: object | None) -> DeviceSession:
        devices = {item.device_index for item in tensors if item.device == "cuda"}
        others = {item.device for item in tensors} - {"cuda", HOST}
        if others:
            raise BackendUnavailable(f"a tensor lies on {others.pop()}, not on an NVIDIA device")
        if len(devices) > 1:
            raise ValueError(f"the tensors lie on devices {sorted(devices)}, not on one")
        device = next(iter(devices), 0)
        return DeviceSession(self.driver, device, stream_handle(stream, tensors))

    def _arch(self, record: KernelRecord) -> str | None:
        """What to compile for: the device itself, unless the text is for one chip only."""
        if record.arch.endswith(("a", "f")):
            return None
        return f"sm_{self.capability[0]}{self.capability[1]}"


def _rank(target: str) -> tuple[bool, int, int]:
    found = _ARCH.fullmatch(target.partition(":")[2])
    assert found is not None  # `select` let only such targets through
    return bool(found[3]), int(found[1]), int(found[2])
