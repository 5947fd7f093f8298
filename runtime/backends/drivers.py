"""Drivers whose functions are CUDA's or HIP's under other names: one table, one class for all.

Only functions that the vendors' public sources call are used. None of them has been called on a device
here; the tests call a library that exports these names and checks the calls.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from tile2c.runtime.backends.device import PreparedLaunch
from tile2c.runtime.errors import BackendUnavailable, DriverError
from tile2c.runtime.tensor_maps import TensorMap

Handle = ctypes.c_void_p
MAX_DYNAMIC_SHARED, MAX_THREADS = 8, 0  # attributes of a function, numbered as CUDA's
TO_DEVICE, TO_HOST = 1, 2  # kinds of a copy, numbered as CUDA's


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverNames:
    """How one vendor spells its driver. A name that is empty is not there."""

    vendor: str
    libraries: tuple[str, ...]  # tried in order
    init: str = ""  # (0)
    device: str = ""  # (number*, index), driver style; or
    set_device: str = ""  # (index), runtime style
    retain: str = ""  # (context*, device): the primary context
    set_context: str = ""  # (context)
    allocate: str  # (address*, bytes)
    free: str
    copy: str = ""  # (to, from, bytes, kind), runtime style; or
    to_device: str = ""  # (address, host, bytes), driver style
    to_host: str = ""
    load: str = ""  # (module*, image)
    function: str = ""  # (function*, module, name)
    launch: str = ""  # (function, grid, block, shared, stream, arguments, extra)
    set_attribute: str = ""  # (function, attribute, value)
    threads_of: str = ""  # (value*, attribute, function)
    free_shared: int  # bytes of dynamic shared memory that need no attribute
    event: str  # (event*) or (event*, flags)
    event_flags: bool
    record: str
    wait: str = ""  # (event); or
    synchronize: str = ""  # (stream)
    elapsed: str  # (milliseconds*, start, end)
    elapsed_last: bool = False  # (start, end, milliseconds*)
    drop_event: str
    error_name: str = ""  # (status, text*)
    error_text: str = ""  # (status) -> text
    torch: str  # where PyTorch says its tensors lie


_HIP = DriverNames(
    vendor="AMD",
    libraries=("libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"),
    init="hipInit",
    set_device="hipSetDevice",
    allocate="hipMalloc",
    free="hipFree",
    copy="hipMemcpy",
    load="hipModuleLoadData",
    function="hipModuleGetFunction",
    launch="hipModuleLaunchKernel",
    set_attribute="hipFuncSetAttribute",
    free_shared=64 * 1024,
    event="hipEventCreate",
    event_flags=False,
    record="hipEventRecord",
    wait="hipEventSynchronize",
    elapsed="hipEventElapsedTime",
    drop_event="hipEventDestroy",
    error_text="hipGetErrorName",
    torch="cuda",
)


def _renamed(prefix: str, vendor: str, libraries: tuple[str, ...], **other: Any) -> DriverNames:
    """CUDA's driver functions with another prefix."""
    names = {
        "init": "Init", "device": "DeviceGet", "retain": "DevicePrimaryCtxRetain",
        "set_context": "CtxSetCurrent", "allocate": "MemAlloc_v2", "free": "MemFree_v2",
        "to_device": "MemcpyHtoD_v2", "to_host": "MemcpyDtoH_v2", "load": "ModuleLoadData",
        "function": "ModuleGetFunction", "launch": "LaunchKernel", "set_attribute": "FuncSetAttribute",
        "event": "EventCreate", "record": "EventRecord", "wait": "EventSynchronize",
        "elapsed": "EventElapsedTime", "drop_event": "EventDestroy_v2", "error_name": "GetErrorName",
    }  # fmt: skip
    spelled: dict[str, Any] = {key: f"{prefix}{name}" for key, name in names.items()}
    return DriverNames(vendor=vendor, libraries=libraries, event_flags=True, **{**spelled, **other})


DRIVERS: dict[str, DriverNames] = {
    "hip": _HIP,
    "dcu": DriverNames(
        **{
            **{name: getattr(_HIP, name) for name in DriverNames.__dataclass_fields__},
            "vendor": "Hygon",
        }
    ),
    # A launch above the function's own limit of threads can bring mp_22's driver down: it is asked first.
    "musa": _renamed(
        "mu",
        "Moore Threads",
        ("libmusa.so.1", "libmusa.so"),
        threads_of="muFuncGetAttribute",
        free_shared=0,
        torch="musa",
    ),
    "maca": DriverNames(
        vendor="MetaX",
        libraries=("libmcruntime.so",),
        set_device="mcSetDevice",
        allocate="mcMalloc",
        free="mcFree",
        copy="mcMemcpy",
        load="mcModuleLoadData",
        function="mcModuleGetFunction",
        launch="mcModuleLaunchKernel",
        set_attribute="mcFuncSetAttribute",
        free_shared=48 * 1024,
        event="mcEventCreate",
        event_flags=False,
        record="mcEventRecord",
        wait="mcEventSynchronize",
        elapsed="mcEventElapsedTime",
        drop_event="mcEventDestroy",
        error_text="mcGetErrorName",
        torch="cuda",
    ),
    "ppu": _renamed("hg", "T-Head", ("libhggc.so",), free_shared=48 * 1024, torch="cuda"),
}


def open_library(names: DriverNames) -> Any:
    """The vendor's library; raises BackendUnavailable where it is not installed."""
    problem: OSError | None = None
    for name in names.libraries:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            problem = problem or error
    raise BackendUnavailable(f"no {names.vendor} driver: {problem}")


class NamedDriver:
    """Modules, memory, launches and times through one vendor's library."""

    def __init__(self, names: DriverNames, library: Any = None) -> None:
        self.names = names
        self.free_shared = names.free_shared
        self._library = open_library(names) if library is None else library
        self._contexts: dict[int, Handle] = {}
        try:
            if names.init:
                self._call(names.init, 0)
            with self.current(0):
                pass
        except (DriverError, AttributeError) as error:
            raise BackendUnavailable(f"no {names.vendor} device: {error}") from error

    @contextmanager
    def current(self, device: int) -> Iterator[None]:
        """Makes a device current for this thread. What was current before is not known, and not put back."""
        if self.names.set_device:
            self._call(self.names.set_device, device)
        else:
            if device not in self._contexts:
                number, context = ctypes.c_int(), Handle()
                self._call(self.names.device, ctypes.byref(number), device)
                self._call(self.names.retain, ctypes.byref(context), number)
                self._contexts[device] = context
            self._call(self.names.set_context, self._contexts[device])
        yield

    def multiprocessors(self, device: int) -> int:
        """No text for these devices asks."""
        raise DriverError(f"how many multiprocessors {self.names.vendor} devices have is not asked")

    def allocate(self, nbytes: int) -> int:
        """Device memory; its address."""
        address = ctypes.c_uint64()
        self._call(self.names.allocate, ctypes.byref(address), ctypes.c_size_t(max(nbytes, 1)))
        return address.value

    def free(self, address: int) -> None:
        self._call(self.names.free, ctypes.c_uint64(address))

    def to_device(self, address: int, host: int, nbytes: int) -> None:
        """Copies host memory to the device; both are addresses."""
        self._copy(self.names.to_device, address, host, nbytes, TO_DEVICE)

    def to_host(self, host: int, address: int, nbytes: int) -> None:
        """Copies device memory to the host and waits for the copy."""
        self._copy(self.names.to_host, host, address, nbytes, TO_HOST)

    def _copy(self, function: str, to: int, source: int, nbytes: int, kind: int) -> None:
        if not nbytes:
            return
        places = (ctypes.c_uint64(to), ctypes.c_uint64(source), ctypes.c_size_t(nbytes))
        if self.names.copy:
            self._call(self.names.copy, *places, kind)
        else:
            self._call(function, *places)

    def load(self, image: bytes) -> Handle:
        """A compiled module, on the current device."""
        module = Handle()
        self._call(self.names.load, ctypes.byref(module), image)
        return module

    def function(self, module: Handle, name: str) -> Handle:
        """An entry point of a module."""
        function = Handle()
        self._call(self.names.function, ctypes.byref(function), module, name.encode())
        return function

    def allow_shared(self, function: Handle, nbytes: int) -> None:
        """Lets an entry point have this much dynamic shared memory."""
        self._call(self.names.set_attribute, function, MAX_DYNAMIC_SHARED, nbytes)

    def threads_of(self, function: Handle) -> int | None:
        """The most threads of a block that this entry point takes, where the driver is to be asked."""
        if not self.names.threads_of:
            return None
        found = ctypes.c_int()
        self._call(self.names.threads_of, ctypes.byref(found), MAX_THREADS, function)
        return found.value

    def launch(
        self,
        function: Handle,
        grid: Sequence[int],
        block: Sequence[int],
        shared_bytes: int,
        stream: int,
        arguments: Sequence[bytes],
        cluster: Sequence[int] | None = None,
    ) -> None:
        """Launches with each argument's bytes by value."""
        self._without(cluster)
        holders = [ctypes.create_string_buffer(data, len(data)) for data in arguments]
        pointers = (Handle * max(len(holders), 1))(*(ctypes.addressof(item) for item in holders))
        numbers = (ctypes.c_uint(extent) for extent in (*grid, *block, shared_bytes))
        self._call(self.names.launch, function, *numbers, Handle(stream), pointers, None)

    def prepared(
        self,
        function: Handle,
        grid: Sequence[int],
        block: Sequence[int],
        shared_bytes: int,
        sizes: Sequence[int],
        cluster: Sequence[int] | None = None,
    ) -> PreparedLaunch | None:
        """The same launch again and again."""
        self._without(cluster)
        numbers = [ctypes.c_uint(extent) for extent in (*grid, *block, shared_bytes)]
        return PreparedLaunch(partial(self._call, self.names.launch, function, *numbers), sizes)

    def _without(self, cluster: Sequence[int] | None) -> None:
        if cluster is not None:
            raise DriverError(f"{self.names.vendor}'s driver has no clusters of blocks")

    def synchronize(self, stream: int) -> None:
        """Waits for everything in a stream."""
        if self.names.synchronize:
            self._call(self.names.synchronize, Handle(stream))
            return
        with self._events(1) as (event,):
            self._call(self.names.record, event, Handle(stream))
            self._call(self.names.wait, event)

    def elapsed(self, run: Callable[[], None], stream: int) -> float:
        """Milliseconds between before and after `run` on the device."""
        with self._events(2) as (start, end):
            self._call(self.names.record, start, Handle(stream))
            run()
            self._call(self.names.record, end, Handle(stream))
            if self.names.wait:
                self._call(self.names.wait, end)
            else:
                self.synchronize(stream)
            found = ctypes.c_float()
            order: list[object] = [start, end]
            order.insert(2 if self.names.elapsed_last else 0, ctypes.byref(found))
            self._call(self.names.elapsed, *order)
            return found.value

    def encode(self, tensor_map: TensorMap) -> bytes:
        raise DriverError(f"{self.names.vendor}'s kernels take no tensor maps ({tensor_map.name})")

    @contextmanager
    def _events(self, count: int) -> Iterator[list[Handle]]:
        events: list[Handle] = []
        try:
            for _ in range(count):
                event = Handle()
                flags = (0,) if self.names.event_flags else ()
                self._call(self.names.event, ctypes.byref(event), *flags)
                events.append(event)
            yield events
        finally:
            for event in events:
                self._call(self.names.drop_event, event)

    def _call(self, function: str, *arguments: object) -> None:
        status = getattr(self._library, function)(*arguments)
        if status:
            raise DriverError(f"{function}: {self._reason(status)}")

    def _reason(self, status: int) -> str:
        """The vendor's name for a status, where it gives one."""
        if self.names.error_name and hasattr(self._library, self.names.error_name):
            text = ctypes.c_char_p()
            getattr(self._library, self.names.error_name)(status, ctypes.byref(text))
            if text.value:
                return text.value.decode()
        if self.names.error_text and hasattr(self._library, self.names.error_text):
            function = getattr(self._library, self.names.error_text)
            function.restype = ctypes.c_char_p
            found = function(status)
            if found:
                return str(found.decode())
        return f"error {status}"
