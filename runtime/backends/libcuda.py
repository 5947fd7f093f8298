"""The CUDA driver library through ctypes: modules, launches in anybody's stream, tensor maps.

PyCUDA knows only streams that it made itself and hands out no function handles, so launches go
through here even where PyCUDA keeps the context and the memory (see pycuda_driver.py).
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from tile2c.runtime.backends.device import PreparedLaunch
from tile2c.runtime.errors import BackendUnavailable, DriverError
from tile2c.runtime.tensor_maps import ALIGN, BYTES, TensorMap

COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR = 75, 76
MULTIPROCESSOR_COUNT = 16
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
CLUSTER_DIMENSION = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
DEFAULT_SHARED_LIMIT = 48 * 1024  # bytes that need no attribute

Handle = ctypes.c_void_p


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: which one, and 64 bytes of value behind a gap."""

    _fields_ = (("id", ctypes.c_int), ("gap", ctypes.c_int), ("value", ctypes.c_uint * 16))


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig: grid, block and dynamic shared memory, the stream, attributes."""

    _fields_ = (
        ("numbers", ctypes.c_uint * 7),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("count", ctypes.c_uint),
    )


class CudaError(DriverError):
    """The driver refused something; the message has its name for the reason."""


def find_library() -> Any:
    """The driver's library; raises BackendUnavailable where there is no driver."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise BackendUnavailable(f"no NVIDIA driver: {error}") from error


class LibcudaDriver:
    """What the CUDA backend needs of the driver, in the primary context of each device."""

    free_shared = DEFAULT_SHARED_LIMIT

    def __init__(self, library: Any = None) -> None:
        self._library = find_library() if library is None else library
        self._contexts: dict[int, Handle] = {}
        try:
            self._call("cuInit", 0)
        except CudaError as error:
            raise BackendUnavailable(f"no NVIDIA device: {error}") from error
        if not self.count():
            raise BackendUnavailable("no NVIDIA device")

    def count(self) -> int:
        """How many devices there are."""
        found = ctypes.c_int()
        self._call("cuDeviceGetCount", ctypes.byref(found))
        return found.value

    def capability(self, device: int) -> tuple[int, int]:
        """The compute capability: (9, 0)."""
        major = self._attribute(COMPUTE_CAPABILITY_MAJOR, device)
        return major, self._attribute(COMPUTE_CAPABILITY_MINOR, device)

    def multiprocessors(self, device: int) -> int:
        """How many multiprocessors the device has."""
        return self._attribute(MULTIPROCESSOR_COUNT, device)

    def _attribute(self, attribute: int, device: int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), attribute, device)
        return value.value

    @contextmanager
    def current(self, device: int) -> Iterator[None]:
        """Makes the device's primary context current; the caller's comes back afterwards."""
        if device not in self._contexts:
            context = Handle()
            self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
            self._contexts[device] = context
        self._call("cuCtxPushCurrent_v2", self._contexts[device])
        try:
            yield
        finally:
            self._call("cuCtxPopCurrent_v2", ctypes.byref(Handle()))

    def allocate(self, nbytes: int) -> int:
        """Device memory; its address."""
        address = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(nbytes, 1)))
        return address.value

    def free(self, address: int) -> None:
        self._call("cuMemFree_v2", ctypes.c_uint64(address))

    def to_device(self, address: int, host: int, nbytes: int) -> None:
        """Copies host memory to the device; both are addresses."""
        self._call(
            "cuMemcpyHtoD_v2", ctypes.c_uint64(address), Handle(host), ctypes.c_size_t(nbytes)
        )

    def to_host(self, host: int, address: int, nbytes: int) -> None:
        """Copies device memory to the host and waits for the copy."""
        self._call(
            "cuMemcpyDtoH_v2", Handle(host), ctypes.c_uint64(address), ctypes.c_size_t(nbytes)
        )

    def load(self, image: bytes) -> Handle:
        """A module from a cubin, in the current context."""
        module = Handle()
        self._call("cuModuleLoadData", ctypes.byref(module), image)
        return module

    def function(self, module: Handle, name: str) -> Handle:
        """An entry point of a module."""
        function = Handle()
        self._call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def threads_of(self, function: Handle) -> int | None:
        """A launch with too many threads is refused; nobody has to ask before."""
        return None

    def allow_shared(self, function: Handle, nbytes: int) -> None:
        """Lets an entry point have this much dynamic shared memory."""
        self._call("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED, nbytes)

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
        """Launches with each argument's bytes by value; `cluster`: blocks that run together."""
        holders = [ctypes.create_string_buffer(data, len(data)) for data in arguments]
        pointers = (Handle * max(len(holders), 1))(*(ctypes.addressof(item) for item in holders))
        launch = self._launcher(function, (*grid, *block, shared_bytes), cluster)
        launch(Handle(stream), pointers, None)

    def prepared(
        self,
        function: Handle,
        grid: Sequence[int],
        block: Sequence[int],
        shared_bytes: int,
        sizes: Sequence[int],
        cluster: Sequence[int] | None = None,
    ) -> PreparedLaunch:
        """The same launch again and again."""
        numbers = (*grid, *block, shared_bytes)
        return PreparedLaunch(self._launcher(function, numbers, cluster), sizes)

    def _launcher(
        self, function: Handle, numbers: Sequence[int], cluster: Sequence[int] | None
    ) -> Callable[..., None]:
        """What takes the stream's handle, the pointers to the arguments, and None."""
        if cluster is None:
            extents = [ctypes.c_uint(number) for number in numbers]
            return partial(self._call, "cuLaunchKernel", function, *extents)
        config = LaunchConfig(numbers=(ctypes.c_uint * 7)(*numbers), count=1)
        attribute = LaunchAttribute(id=CLUSTER_DIMENSION, value=(ctypes.c_uint * 16)(*cluster))
        config.attributes = ctypes.pointer(attribute)

        def launch(stream: Handle, pointers: object, extra: object) -> None:
            config.stream = stream
            self._call("cuLaunchKernelEx", ctypes.byref(config), function, pointers, extra)

        return launch

    def synchronize(self, stream: int) -> None:
        """Waits for everything in a stream."""
        self._call("cuStreamSynchronize", Handle(stream))

    def elapsed(self, run: Callable[[], None], stream: int) -> float:
        """Milliseconds between before and after `run` on the device."""
        start, end = Handle(), Handle()
        for event in (start, end):
            self._call("cuEventCreate", ctypes.byref(event), 0)
        try:
            self._call("cuEventRecord", start, Handle(stream))
            run()
            self._call("cuEventRecord", end, Handle(stream))
            self._call("cuEventSynchronize", end)
            found = ctypes.c_float()
            self._call("cuEventElapsedTime", ctypes.byref(found), start, end)
            return found.value
        finally:
            for event in (start, end):
                self._call("cuEventDestroy_v2", event)

    def encode(self, tensor_map: TensorMap) -> bytes:
        """The driver's 128 bytes of a tensor map."""
        rank = len(tensor_map.dims)
        memory = ctypes.create_string_buffer(BYTES + ALIGN)
        start = -ctypes.addressof(memory) % ALIGN  # the driver wants the result aligned
        box: tuple[object, ...] = ((ctypes.c_uint32 * rank)(*tensor_map.box),)
        if tensor_map.corners is not None:
            corners = tuple((ctypes.c_int * (rank - 2))(*x) for x in tensor_map.corners)
            box = (*corners, *map(ctypes.c_uint32, tensor_map.box))
        try:
            self._call(
                f"cuTensorMapEncode{'Im2col' if tensor_map.corners else 'Tiled'}",
                Handle(ctypes.addressof(memory) + start),
                tensor_map.element_kind,
                rank,
                Handle(tensor_map.address),
                (ctypes.c_uint64 * rank)(*tensor_map.dims),
                (ctypes.c_uint64 * max(rank - 1, 1))(*tensor_map.strides),
                *box,
                (ctypes.c_uint32 * rank)(*tensor_map.element_strides),
                0,  # not interleaved
                tensor_map.swizzle,
                tensor_map.l2,
                tensor_map.fill,
            )
        except CudaError as error:
            raise CudaError(f"{tensor_map.name} of {tensor_map.tensor}: {error}") from error
        return memory.raw[start : start + BYTES]

    def _call(self, function: str, *arguments: object) -> None:
        status = getattr(self._library, function)(*arguments)
        if status:
            raise CudaError(f"{function}: {self._name_of(status)}")

    def _name_of(self, status: int) -> str:
        text = ctypes.c_char_p()
        self._library.cuGetErrorName(status, ctypes.byref(text))
        return text.value.decode() if text.value else f"error {status}"
