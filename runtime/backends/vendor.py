"""The backend of families in the table of drivers: modules compiled once, launches, times."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from tile2c.runtime.backends.drivers import DRIVERS, DriverError, Handle, NamedDriver
from tile2c.runtime.backends.protocol import LaunchCall, Module, Pointer
from tile2c.runtime.backends.texts import read_kernel
from tile2c.runtime.errors import BackendUnavailable, CompileError
from tile2c.runtime.records import CompiledModule, KernelRecord
from tile2c.runtime.streams import stream_handle
from tile2c.runtime.tensor_maps import TensorMap
from tile2c.runtime.tensors import HOST, TensorView


class VendorModule:
    """A compiled module, loaded on each device when it is first launched there."""

    def __init__(self, driver: NamedDriver, image: bytes, file: str) -> None:
        self._driver = driver
        self._image = image
        self._file = file
        self._loaded: dict[int, Handle] = {}
        self._functions: dict[tuple[int, str], Handle] = {}
        self._shared: dict[tuple[int, str], int] = {}

    def function(self, device: int, call: LaunchCall) -> Handle:
        """The entry point of a launch, with leave for its dynamic shared memory."""
        key = (device, call.entry)
        if key not in self._functions:
            if device not in self._loaded:
                self._loaded[device] = self._driver.load(self._image)
            function = self._driver.function(self._loaded[device], call.entry)
            most, threads = (
                self._driver.threads_of(function),
                call.block[0] * call.block[1] * call.block[2],
            )
            if most is not None and threads > most:
                raise DriverError(
                    f"{call.entry} of {self._file} is launched with {threads} threads a block, and "
                    f"the driver says it takes {most}"
                )
            self._functions[key] = function
        if call.shared_bytes > max(self._shared.get(key, 0), self._driver.names.free_shared):
            self._driver.allow_shared(self._functions[key], call.shared_bytes)
            self._shared[key] = call.shared_bytes
        return self._functions[key]


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
        path = folder / record.file
        text = read_kernel(path) if path.exists() else None
        for module in record.modules:
            image = _image_of(module, record, folder, text)
            if image is not None:
                return VendorModule(self.driver, image, module.file)
        if text is None:
            raise FileNotFoundError(f"{path} is missing, and no module fits the device")
        if not may_compile:
            raise CompileError(
                f'{path}: there is no compiled module, and compile="never" forbids to compile one; '
                "`tile2c … --compile` writes them"
            )
        from tile2c.runtime.compilers import compiled

        return VendorModule(self.driver, compiled(text, path.name), path.name)

    def session(self, tensors: Sequence[TensorView], stream: object | None) -> VendorSession:
        here = {self.driver.names.torch, "hip" if self.name in ("hip", "dcu") else self.name}
        others = {item.device for item in tensors} - here - {HOST}
        if others:
            vendor = self.driver.names.vendor
            raise BackendUnavailable(f"a tensor lies on {others.pop()}, not on a {vendor} device")
        devices = {item.device_index for item in tensors if item.device in here}
        if len(devices) > 1:
            raise ValueError(f"the tensors lie on devices {sorted(devices)}, not on one")
        return VendorSession(self.driver, next(iter(devices), 0), stream_handle(stream, tensors))


class VendorSession:
    """One call on one device. Tensors of the host are copied there and back."""

    def __init__(self, driver: NamedDriver, device: int, stream: int) -> None:
        self._driver = driver
        self._device = device
        self._stream = stream
        self._allocated: list[int] = []
        self._back: list[tuple[TensorView, int]] = []
        self._current = driver.current(device)
        self._current.__enter__()

    def place(self, name: str, tensor: TensorView, *, reads: bool, writes: bool) -> int:
        if tensor.device != HOST:
            return tensor.address
        address = self._allocate(tensor.nbytes)
        if reads:
            self._driver.to_device(address, tensor.address, tensor.nbytes)
        if writes:
            self._back.append((tensor, address))
        return address

    def scratch(self, nbytes: int, align: int) -> Pointer:
        """Device memory, aligned as the driver gives it."""
        return Pointer("workspace", self._allocate(nbytes), nbytes, True, None)

    def encode(self, tensor_map: TensorMap) -> bytes:
        return self._driver.encode(tensor_map)

    def launch(self, module: Module, call: LaunchCall) -> None:
        function = cast(VendorModule, module).function(self._device, call)
        arguments = [
            item.address.to_bytes(8, "little") if isinstance(item, Pointer) else item.data
            for item in call.arguments
        ]
        self._driver.launch(
            function, call.grid, call.block, call.shared_bytes, self._stream, arguments
        )

    def time(self, run: Callable[[], None]) -> float:
        return self._driver.elapsed(run, self._stream)

    def finish(self) -> None:
        if self._back:
            self._driver.synchronize(self._stream)
        for tensor, address in self._back:
            self._driver.to_host(tensor.address, address, tensor.nbytes)

    def close(self) -> None:
        if self._allocated:
            self._driver.synchronize(self._stream)
        for address in self._allocated:
            self._driver.free(address)
        self._allocated.clear()
        self._current.__exit__(None, None, None)

    def _allocate(self, nbytes: int) -> int:
        address = self._driver.allocate(nbytes)
        self._allocated.append(address)
        return address


def _arch_of_torch() -> str | None:
    """What PyTorch calls the chip (gfx942), if it is there and says so."""
    torch: Any = sys.modules.get("torch")
    try:
        name = torch.cuda.get_device_properties(0).gcnArchName
    except Exception:  # no torch, no device, another vendor's build
        return None
    return str(name).partition(":")[0]


def _image_of(
    module: CompiledModule, record: KernelRecord, folder: Path, text: str | None
) -> bytes | None:
    """A module of the manifest, if it is for this target and is what the text now says."""
    if module.arch != record.arch:
        return None
    if text is not None and module.text_sha256 is not None:
        from tile2c.transpile.output.entries import text_digest

        if text_digest(text) != module.text_sha256:
            return None
    try:
        image = (folder / module.file).read_bytes()
    except OSError:
        return None
    return image if hashlib.sha256(image).hexdigest() == module.sha256 else None
