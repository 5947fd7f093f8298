"""The backend of families in the table of drivers: modules compiled once, launches, times."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tile2c.runtime.backends.device import DeviceSession, load_module
from tile2c.runtime.backends.drivers import DRIVERS, NamedDriver
from tile2c.runtime.backends.protocol import Module
from tile2c.runtime.errors import BackendUnavailable
from tile2c.runtime.records import CompiledModule, KernelRecord
from tile2c.runtime.streams import stream_handle
from tile2c.runtime.tensors import HOST, TensorView


class VendorBackend:
    """Runs kernels of one family on its devices."""

    def __init__(self, family: str, driver: NamedDriver | None = None) -> None:
        self.name = family
        self.driver = NamedDriver(DRIVERS[family]) if driver is None else driver
        self._arch = _arch_of_torch()

    def select(self, targets: Sequence[str]) -> str | None:
        """The first target of the family that may fit: drivers say nothing portable about their chip.

        Where PyTorch names the chip, that one is taken, and no other.
        """
        own = [target for target in targets if target.partition(":")[0] == self.name]
        if self._arch is not None and self._arch.startswith("gfx"):
            own = [target for target in own if target.partition(":")[2] == self._arch]
        return next(iter(own), None)

    def module(self, record: KernelRecord, folder: Path, *, may_compile: bool) -> Module:
        def made(text: str, file_name: str) -> bytes:
            from tile2c.runtime import compilers

            return compilers.compiled(self.text_of(record, text), file_name)

        return load_module(
            self.driver,
            record,
            folder,
            fits=lambda module: self.fits(module, record),
            compiled=made if may_compile else None,
        )

    def fits(self, module: CompiledModule, record: KernelRecord) -> bool:
        """Whether a module of the manifest can be loaded."""
        return module.arch == record.arch

    def text_of(self, record: KernelRecord, text: str) -> str:
        """What is compiled."""
        return text

    def session(self, tensors: Sequence[TensorView], stream: object | None) -> DeviceSession:
        here = {self.driver.names.torch, "hip" if self.name in ("hip", "dcu") else self.name}
        others = {item.device for item in tensors} - here - {HOST}
        if others:
            vendor = self.driver.names.vendor
            raise BackendUnavailable(f"a tensor lies on {others.pop()}, not on a {vendor} device")
        devices = {item.device_index for item in tensors if item.device in here}
        if len(devices) > 1:
            raise ValueError(f"the tensors lie on devices {sorted(devices)}, not on one")
        return DeviceSession(self.driver, next(iter(devices), 0), stream_handle(stream, tensors))


def _arch_of_torch() -> str | None:
    """What PyTorch calls the chip (gfx942), if it is there and says so."""
    torch: Any = sys.modules.get("torch")
    try:
        name = torch.cuda.get_device_properties(0).gcnArchName
    except Exception:  # no torch, no device, another vendor's build
        return None
    return str(name).partition(":")[0]
