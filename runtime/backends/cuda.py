"""The CUDA backend: primary contexts, modules from the manifest or compiled once, launches.

The driver is reached through PyCUDA, or through its library alone where PyCUDA is not installed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from tile2c.runtime.backends.libcuda import DEFAULT_SHARED_LIMIT, Handle, LibcudaDriver
from tile2c.runtime.backends.protocol import LaunchCall, Module, Pointer
from tile2c.runtime.backends.texts import read_kernel
from tile2c.runtime.errors import BackendUnavailable, CompileError
from tile2c.runtime.records import CompiledModule, KernelRecord
from tile2c.runtime.streams import stream_handle
from tile2c.runtime.tensor_maps import TensorMap
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


class CudaModule:
    """A cubin, loaded into each device's context when it is first launched there."""

    def __init__(self, driver: LibcudaDriver, image: bytes, file: str) -> None:
        self._driver = driver
        self._image = image
        self._file = file
        self._loaded: dict[int, Handle] = {}
        self._functions: dict[tuple[int, str], Handle] = {}
        self._shared: dict[tuple[int, str], int] = {}

    def function(self, device: int, entry: str, shared_bytes: int) -> Handle:
        """An entry point that may have this much dynamic shared memory."""
        key = (device, entry)
        if key not in self._functions:
            if device not in self._loaded:
                self._loaded[device] = self._driver.load(self._image)
            self._functions[key] = self._driver.function(self._loaded[device], entry)
        if shared_bytes > max(self._shared.get(key, 0), DEFAULT_SHARED_LIMIT):
            self._driver.allow_shared(self._functions[key], shared_bytes)
            self._shared[key] = shared_bytes
        return self._functions[key]


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
        path = folder / record.file
        text = read_kernel(path) if path.exists() else None
        for module in record.modules:
            image = self._image_of(module, folder, text)
            if image is not None:
                return CudaModule(self.driver, image, module.file)
        if text is None:
            raise FileNotFoundError(f"{path} is missing, and no module fits the device")
        if not may_compile:
            raise CompileError(
                f'{path}: no compiled module fits this device, and compile="never" forbids to '
                "compile one; `tile2c … --compile` writes them"
            )
        from tile2c.runtime.compilers import compiled

        return CudaModule(
            self.driver, compiled(text, path.name, arch=self._arch(record)), path.name
        )

    def session(self, tensors: Sequence[TensorView], stream: object | None) -> CudaSession:
        devices = {item.device_index for item in tensors if item.device == "cuda"}
        others = {item.device for item in tensors} - {"cuda", HOST}
        if others:
            raise BackendUnavailable(f"a tensor lies on {others.pop()}, not on an NVIDIA device")
        if len(devices) > 1:
            raise ValueError(f"the tensors lie on devices {sorted(devices)}, not on one")
        device = next(iter(devices), 0)
        return CudaSession(self.driver, device, stream_handle(stream, tensors))

    def _arch(self, record: KernelRecord) -> str | None:
        """What to compile for: the device itself, unless the text is for one chip only."""
        if record.arch.endswith(("a", "f")):
            return None
        return f"sm_{self.capability[0]}{self.capability[1]}"

    def _image_of(self, module: CompiledModule, folder: Path, text: str | None) -> bytes | None:
        """A module of the manifest, if it runs here and is what the text now says."""
        if not module_fits(module.arch, self.capability):
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


def _rank(target: str) -> tuple[bool, int, int]:
    found = _ARCH.fullmatch(target.partition(":")[2])
    assert found is not None  # `select` let only such targets through
    return bool(found[3]), int(found[1]), int(found[2])


class CudaSession:
    """One call on one device. Tensors of the host are copied there and back."""

    def __init__(self, driver: LibcudaDriver, device: int, stream: int) -> None:
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
        """Device memory, aligned to 256 bytes or more as the driver gives it."""
        return Pointer("workspace", self._allocate(nbytes), nbytes, True, None)

    def encode(self, tensor_map: TensorMap) -> bytes:
        return self._driver.encode(tensor_map)

    def launch(self, module: Module, call: LaunchCall) -> None:
        function = cast(CudaModule, module).function(self._device, call.entry, call.shared_bytes)
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
