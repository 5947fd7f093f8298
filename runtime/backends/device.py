"""What all devices share: modules from the manifest or compiled once, and calls in sessions.

A driver (protocol `Driver`) knows one vendor's functions; nothing here names a vendor.
"""

from __future__ import annotations

import ctypes
import hashlib
import struct
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Lock
from typing import Protocol, cast

from tile2c.runtime.backends.protocol import LaunchCall, Module, Pointer
from tile2c.runtime.backends.texts import read_kernel
from tile2c.runtime.errors import CompileError, DriverError
from tile2c.runtime.records import CompiledModule, KernelRecord
from tile2c.runtime.tensor_maps import TensorMap
from tile2c.runtime.tensors import HOST, TensorView

Handle = ctypes.c_void_p
POINTER = -8  # the size of an argument that is given as a number: an address


class Driver(Protocol):
    """One vendor's driver; addresses and streams are integers, arguments the bytes of values."""

    @property
    def free_shared(self) -> int:
        """Bytes of dynamic shared memory that an entry point may have without leave."""

    def current(self, device: int) -> AbstractContextManager[None]: ...

    def multiprocessors(self, device: int) -> int: ...

    def allocate(self, nbytes: int) -> int: ...

    def free(self, address: int) -> None: ...

    def to_device(self, address: int, host: int, nbytes: int) -> None: ...

    def to_host(self, host: int, address: int, nbytes: int) -> None: ...

    def load(self, image: bytes) -> Handle: ...

    def function(self, module: Handle, name: str) -> Handle: ...

    def threads_of(self, function: Handle) -> int | None:
        """The most threads of a block that an entry point takes, where the driver is to be asked."""

    def allow_shared(self, function: Handle, nbytes: int) -> None: ...

    def launch(
        self,
        function: Handle,
        grid: Sequence[int],
        block: Sequence[int],
        shared_bytes: int,
        stream: int,
        arguments: Sequence[bytes],
        cluster: Sequence[int] | None = None,
    ) -> None: ...

    def prepared(
        self,
        function: Handle,
        grid: Sequence[int],
        block: Sequence[int],
        shared_bytes: int,
        sizes: Sequence[int],
        cluster: Sequence[int] | None = None,
    ) -> PreparedLaunch | None:
        """The same launch again and again, with arguments of these sizes; None if it cannot be."""

    def synchronize(self, stream: int) -> None: ...

    def elapsed(self, run: Callable[[], None], stream: int) -> float: ...

    def encode(self, tensor_map: TensorMap) -> bytes: ...


class PreparedLaunch:
    """A launch whose numbers are ready. It keeps one place for its arguments and, in some drivers, for its
    stream: threads take turns."""

    __slots__ = ("_at", "_buffer", "_call", "_lock", "_pack", "_pointers")

    def __init__(self, call: Callable[..., None], sizes: Sequence[int]) -> None:
        """`call` takes the stream's handle, the pointers to the arguments, and None."""
        places, form, end = [], "<", 0
        for size in sizes:
            align = 64 if size >= 64 else 8
            form += f"{-end % align}x{'Q' if size == POINTER else f'{abs(size)}s'}"
            places.append(end + -end % align)
            end = places[-1] + abs(size)
        self._buffer = ctypes.create_string_buffer(end + 64)
        self._at = -ctypes.addressof(self._buffer) % 64
        start = ctypes.addressof(self._buffer) + self._at
        self._pointers = (Handle * max(len(places), 1))(*(start + place for place in places))
        self._pack = struct.Struct(form).pack_into
        self._call = call
        self._lock = Lock()

    def __call__(self, stream: int, values: Sequence[int | bytes]) -> None:
        """Launches; the driver has read the arguments when this returns."""
        with self._lock:
            self._pack(self._buffer, self._at, *values)
            self._call(Handle(stream), self._pointers, None)


class DeviceModule:
    """A compiled module, loaded on each device when it is first launched there."""

    def __init__(self, driver: Driver, image: bytes, file: str) -> None:
        self._driver = driver
        self._image = image
        self._file = file
        self._loaded: dict[int, Handle] = {}
        self._functions: dict[tuple[int, str], Handle] = {}
        self._shared: dict[tuple[int, str], int] = {}
        self._lock = Lock()

    def function(self, device: int, call: LaunchCall) -> Handle:
        """The entry point of a launch, with leave for its dynamic shared memory."""
        with self._lock:
            return self._function(device, call)

    def _function(self, device: int, call: LaunchCall) -> Handle:
        key = (device, call.entry)
        if key not in self._functions:
            if device not in self._loaded:
                self._loaded[device] = self._driver.load(self._image)
            function = self._driver.function(self._loaded[device], call.entry)
            self._check_threads(function, call)
            self._functions[key] = function
        if call.shared_bytes > max(self._shared.get(key, 0), self._driver.free_shared):
            self._driver.allow_shared(self._functions[key], call.shared_bytes)
            self._shared[key] = call.shared_bytes
        return self._functions[key]

    def _check_threads(self, function: Handle, call: LaunchCall) -> None:
        most = self._driver.threads_of(function)
        threads = call.block[0] * call.block[1] * call.block[2]
        if most is not None and threads > most:
            raise DriverError(
                f"{call.entry} of {self._file} is launched with {threads} threads a block, and "
                f"the driver says it takes {most}"
            )


def load_module(
    driver: Driver,
    record: KernelRecord,
    folder: Path,
    *,
    fits: Callable[[CompiledModule], bool],
    compiled: Callable[[str, str], bytes] | None,
) -> DeviceModule:
    """The kernel's module: one of the manifest that fits the device, else one that is made.

    compiled  (text, file name) → the module; None: compiling is not allowed
    Raises FileNotFoundError, CompileError.
    """
    path = folder / record.file
    text = read_kernel(path) if path.exists() else None
    for module in record.modules:
        image = _image_of(module, folder, text) if fits(module) else None
        if image is not None:
            return DeviceModule(driver, image, module.file)
    if text is None:
        raise FileNotFoundError(f"{path} is missing, and no module fits the device")
    if compiled is None:
        raise CompileError(
            f'{path}: no compiled module fits this device, and compile="never" forbids to '
            "compile one; `tile2c … --compile` writes them"
        )
    return DeviceModule(driver, compiled(text, path.name), path.name)


def _image_of(module: CompiledModule, folder: Path, text: str | None) -> bytes | None:
    """A module of the manifest, if it is what the text now says."""
    if text is not None and module.text_sha256 is not None:
        from tile2c.transpile.output.entries import text_digest

        if text_digest(text) != module.text_sha256:
            return None
    try:
        image = (folder / module.file).read_bytes()
    except OSError:
        return None
    return image if hashlib.sha256(image).hexdigest() == module.sha256 else None


class DeviceSession:
    """One call on one device. Tensors of the host are copied there and back."""

    def __init__(self, driver: Driver, device: int, stream: int) -> None:
        self.driver = self._driver = driver
        self.device = self._device = device
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
        """Device memory, aligned as the driver gives it: to 256 bytes or more."""
        return Pointer("workspace", self._allocate(nbytes), nbytes, True, None)

    def multiprocessors(self) -> int:
        return self._driver.multiprocessors(self._device)

    def encode(self, tensor_map: TensorMap) -> bytes:
        return self._driver.encode(tensor_map)

    def launch(self, module: Module, call: LaunchCall) -> None:
        function = cast(DeviceModule, module).function(self._device, call)
        arguments = [
            item.address.to_bytes(8, "little") if isinstance(item, Pointer) else item.data
            for item in call.arguments
        ]
        numbers = (call.grid, call.block, call.shared_bytes)
        self._driver.launch(function, *numbers, self._stream, arguments, call.cluster)

    def prepared(self, module: DeviceModule, call: LaunchCall) -> PreparedLaunch | None:
        """The launch in a form that costs little to repeat."""
        sizes = [POINTER if isinstance(x, Pointer) else len(x.data) for x in call.arguments]
        function = module.function(self._device, call)
        numbers = (call.grid, call.block, call.shared_bytes)
        return self._driver.prepared(function, *numbers, sizes, call.cluster)

    def time(self, run: Callable[[], None]) -> float:
        return self._driver.elapsed(run, self._stream)

    def finish(self) -> None:
        if self._back:
            self._driver.synchronize(self._stream)
        for tensor, address in self._back:
            self._driver.to_host(tensor.address, address, tensor.nbytes)

    def close(self) -> None:
        try:
            if self._allocated:
                self._driver.synchronize(self._stream)
        finally:
            for address in self._allocated:
                self._driver.free(address)
            self._allocated.clear()
            self._current.__exit__(None, None, None)

    def _allocate(self, nbytes: int) -> int:
        address = self._driver.allocate(nbytes)
        self._allocated.append(address)
        return address
