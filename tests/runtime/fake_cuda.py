"""A CUDA driver and a PyCUDA made of host memory: what is launched is kept, or run in Python."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

INVALID_VALUE = 1


@dataclass
class Launch:
    """One cuLaunchKernel: the entry point, the numbers, the arguments' first bytes."""

    entry: str
    numbers: tuple[int, ...]  # grid, block, dynamic shared bytes
    stream: int
    arguments: list[bytes]  # copied at the launch, as a driver does
    cluster: tuple[int, ...] | None = None

    def bytes_of(self, index: int, count: int) -> bytes:
        return self.arguments[index][:count]


@dataclass
class FakeLibrary:
    """libcuda.so.1 with one device of the given capability; "device memory" is host memory."""

    capability: tuple[int, int] = (9, 0)
    devices: int = 1
    run: Callable[[Launch], None] | None = None
    launches: list[Launch] = field(default_factory=list)
    loaded: list[bytes] = field(default_factory=list)
    memory: dict[int, Any] = field(default_factory=dict)
    shared: dict[str, int] = field(default_factory=dict)
    contexts: int = 0  # pushed and not popped
    multiprocessors: int = 132
    maps: list[tuple[Any, ...]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    widths: dict[int, int] = field(default_factory=dict)  # bytes of arguments other than 8

    def cuInit(self, flags: int) -> int:
        return 0

    def cuGetErrorName(self, status: int, text: Any) -> int:
        text._obj.value = b"CUDA_ERROR_INVALID_VALUE"
        return 0

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = self.devices
        return 0

    def cuDeviceGetAttribute(self, value: Any, attribute: int, device: int) -> int:
        value._obj.value = (
            self.multiprocessors if attribute == 16 else self.capability[attribute - 75]
        )
        return 0

    def cuDevicePrimaryCtxRetain(self, context: Any, device: int) -> int:
        context._obj.value = 0xC0 + device
        return 0

    def cuCtxPushCurrent_v2(self, context: Any) -> int:
        self.contexts += 1
        return 0

    def cuCtxPopCurrent_v2(self, context: Any) -> int:
        self.contexts -= 1
        return 0

    def cuMemAlloc_v2(self, address: Any, size: Any) -> int:
        memory = ctypes.create_string_buffer(size.value)
        address._obj.value = ctypes.addressof(memory)
        self.memory[ctypes.addressof(memory)] = memory
        return 0

    def cuMemFree_v2(self, address: Any) -> int:
        del self.memory[address.value]
        return 0

    def cuMemcpyHtoD_v2(self, address: Any, host: Any, size: Any) -> int:
        ctypes.memmove(address.value, host.value, size.value)
        return 0

    def cuMemcpyDtoH_v2(self, host: Any, address: Any, size: Any) -> int:
        ctypes.memmove(host.value, address.value, size.value)
        return 0

    def cuModuleLoadData(self, module: Any, image: bytes) -> int:
        self.loaded.append(image)
        module._obj.value = len(self.loaded)
        return 0

    def cuModuleGetFunction(self, function: Any, module: Any, name: bytes) -> int:
        self.names.append(name.decode())
        function._obj.value = len(self.names)
        return 0

    def cuFuncSetAttribute(self, function: Any, attribute: int, value: int) -> int:
        assert attribute == 8
        self.shared[self.names[function.value - 1]] = value
        return 0

    def cuLaunchKernel(self, function: Any, *rest: Any) -> int:
        numbers = tuple(item.value for item in rest[:7])
        return self._launched(function, numbers, rest[7].value or 0, rest[8])

    def cuLaunchKernelEx(self, config: Any, function: Any, pointers: Any, extra: Any) -> int:
        """The structures as bytes, at the offsets that cuda.h gives their members."""
        raw = ctypes.string_at(ctypes.addressof(config._obj), 56)
        numbers, (stream, at), (count,) = (
            struct.unpack_from(form, raw, start)
            for form, start in (("<7I", 0), ("<2Q", 32), ("<I", 48))
        )
        assert count == 1
        kind, *cluster = struct.unpack("<I4x3I", ctypes.string_at(at, 20))
        assert kind == 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        return self._launched(function, numbers, stream, pointers, tuple(cluster))

    def _launched(
        self,
        function: Any,
        numbers: tuple[int, ...],
        stream: int,
        pointers: Any,
        cluster: tuple[int, ...] | None = None,
    ) -> int:
        arguments = [
            ctypes.string_at(pointer, self.widths.get(index, 8))
            for index, pointer in enumerate(pointers)
        ]
        entry = self.names[function.value - 1]
        launch = Launch(entry, numbers, stream, arguments, cluster)
        self.launches.append(launch)
        if self.run is not None:
            self.run(launch)
        return 0

    def cuStreamSynchronize(self, stream: Any) -> int:
        return 0

    def cuEventCreate(self, event: Any, flags: int) -> int:
        return 0

    def cuEventRecord(self, event: Any, stream: Any) -> int:
        return 0

    def cuEventSynchronize(self, event: Any) -> int:
        return 0

    def cuEventElapsedTime(self, milliseconds: Any, start: Any, end: Any) -> int:
        milliseconds._obj.value = 0.25
        return 0

    def cuEventDestroy_v2(self, event: Any) -> int:
        return 0

    def cuTensorMapEncodeIm2col(self, result: Any, *rest: Any) -> int:
        kind, rank, address, dims, strides, lower, upper, channels, pixels, steps, *enums = rest
        lists = (list(dims), list(strides), list(lower), list(upper))
        box = (channels.value, pixels.value)
        self.maps.append((kind, rank, address.value, *lists, *box, list(steps), *enums))
        ctypes.memset(result.value, 0xCD, 128)
        return 0

    def cuTensorMapEncodeTiled(self, result: Any, *rest: Any) -> int:
        if result.value % 64:
            return INVALID_VALUE
        kind, rank, address, dims, strides, box, steps, *enums = rest
        lists = (list(dims), list(strides), list(box), list(steps))
        self.maps.append((kind, rank, address.value, *lists, *enums))
        ctypes.memset(result.value, 0xAB, 128)
        return 0


class FakePyCuda:
    """`pycuda.driver` on the same memory."""

    def __init__(self, library: FakeLibrary) -> None:
        self._library = library
        self.calls: list[str] = []
        outer = self

        class Context:
            def push(self) -> None:
                outer.calls.append("push")

            @staticmethod
            def pop() -> None:
                outer.calls.append("pop")

        class Device:
            def __init__(self, index: int) -> None: ...

            @staticmethod
            def count() -> int:
                return library.devices

            def compute_capability(self) -> tuple[int, int]:
                return library.capability

            def retain_primary_context(self) -> Context:
                outer.calls.append("retain")
                return Context()

        self.Device = Device
        self.Context = Context

    def mem_alloc(self, size: int) -> Any:
        library = self._library
        memory = ctypes.create_string_buffer(size)
        library.memory[ctypes.addressof(memory)] = memory

        class Allocation:
            def __int__(self) -> int:
                return ctypes.addressof(memory)

            def free(self) -> None:
                del library.memory[ctypes.addressof(memory)]

        return Allocation()

    def memcpy_htod(self, address: int, host: Any) -> None:
        content = bytes(memoryview(host).cast("B"))
        ctypes.memmove(address, content, len(content))

    def memcpy_dtoh(self, host: Any, address: int) -> None:
        view = memoryview(host).cast("B")
        view[:] = ctypes.string_at(address, len(view))
