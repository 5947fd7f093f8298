"""Backends for kernels that only their vendor's `<<<>>>` or run-time library launches.

How such a device loads a bare module is not public. So the kernel's text is compiled with a C function
for each entry point behind it, into a shared object that is opened like any other; the functions take
grid, block, shared memory, stream and pointers to the arguments.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Sequence
from typing import Any

from tile2c.runtime.backends import drivers
from tile2c.runtime.backends.device import PreparedLaunch
from tile2c.runtime.backends.drivers import TO_DEVICE, TO_HOST, DriverNames, Handle, NamedDriver
from tile2c.runtime.backends.vendor import VendorBackend
from tile2c.runtime.errors import BackendUnavailable, CompileError, DriverError
from tile2c.runtime.records import CompiledModule, KernelRecord, Launch, LaunchArgument

_CUDART = DriverNames(
    vendor="Iluvatar",
    libraries=("libcudart.so",),
    set_device="cudaSetDevice",
    allocate="cudaMalloc",
    free="cudaFree",
    copy="cudaMemcpy",
    free_shared=0,
    event="cudaEventCreate",
    event_flags=False,
    record="cudaEventRecord",
    wait="cudaEventSynchronize",
    elapsed="cudaEventElapsedTime",
    drop_event="cudaEventDestroy",
    error_text="cudaGetErrorName",
    torch="cuda",
)
_ACL = DriverNames(
    vendor="Ascend",
    libraries=("libascendcl.so",),
    set_device="aclrtSetDevice",
    allocate="aclrtMalloc",
    free="aclrtFree",
    copy="aclrtMemcpy",
    free_shared=0,
    event="aclrtCreateEvent",
    event_flags=False,
    record="aclrtRecordEvent",
    synchronize="aclrtSynchronizeStream",
    elapsed="aclrtEventElapsedTime",
    drop_event="aclrtDestroyEvent",
    torch="npu",
)

_CNRT = DriverNames(
    vendor="Cambricon",
    libraries=("libcnrt.so",),
    set_device="cnrtSetDevice",
    allocate="cnrtMalloc",
    free="cnrtFree",
    copy="cnrtMemcpy",
    free_shared=0,
    event="cnrtNotifierCreate",
    event_flags=False,
    record="cnrtPlaceNotifier",
    wait="cnrtWaitNotifier",
    synchronize="cnrtQueueSync",
    elapsed="cnrtNotifierElapsedTime",
    elapsed_last=True,
    drop_event="cnrtNotifierDestroy",
    error_text="cnrtGetErrorName",
    torch="mlu",
)
_CNRT_TO_DEVICE, _CNRT_TO_HOST = 0, 2  # cnrtMemcpyHostToDev, cnrtMemcpyDevToHost

_PREFIX = "tile2c_launch_"
_HEAD = (
    f'extern "C" int {_PREFIX}%s(const unsigned* grid, const unsigned* block, unsigned shared, '
    "void* stream, void** args) {\n"
)
_CUDART_BODY = """\
    const void* kernel = reinterpret_cast<const void*>(&%(entry)s);
    if (shared > 48 * 1024) {
        const auto most = cudaFuncAttributeMaxDynamicSharedMemorySize;
        const cudaError_t status = cudaFuncSetAttribute(kernel, most, int(shared));
        if (status != cudaSuccess) return status;
    }
    return cudaLaunchKernel(kernel, dim3(grid[0], grid[1], grid[2]), dim3(block[0], block[1], block[2]),
                            args, shared, static_cast<cudaStream_t>(stream));
"""
_PLAIN = {
    "bool": "bool", "int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t", "uint16": "uint16_t",
    "int32": "int32_t", "uint32": "uint32_t", "int64": "int64_t", "uint64": "uint64_t",
    "float32": "float",
}  # fmt: skip


class LibraryDriver(NamedDriver):
    """Memory and times through the vendor's run-time library, launches through the kernel's own."""

    def __init__(self, names: DriverNames, library: Any = None) -> None:
        self._opened: dict[int, ctypes.CDLL] = {}
        super().__init__(names, library)

    def load(self, image: bytes) -> Handle:
        """Opens a shared object; it stays open as long as the process lives."""
        handle, path = tempfile.mkstemp(suffix=".so")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(image)
            library = ctypes.CDLL(path)
        except OSError as error:
            raise DriverError(f"the compiled kernel cannot be opened: {error}") from error
        finally:
            os.unlink(path)
        self._opened[library._handle] = library
        return Handle(library._handle)

    def function(self, module: Handle, name: str) -> Handle:
        try:
            found = getattr(self._opened[module.value or 0], _PREFIX + name)
        except AttributeError as error:
            raise DriverError(f"the compiled kernel has no {_PREFIX}{name}") from error
        return ctypes.cast(found, Handle)

    def prepared(
        self,
        function: Handle,
        grid: Sequence[int],
        block: Sequence[int],
        shared_bytes: int,
        sizes: Sequence[int],
        cluster: Sequence[int] | None = None,
    ) -> PreparedLaunch | None:
        """Such a launch takes its numbers in another form: it goes the long way each time."""
        return None

    def allow_shared(self, function: Handle, nbytes: int) -> None:
        """The launching function asks for leave itself."""

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
        holders = [ctypes.create_string_buffer(data, len(data)) for data in arguments]
        pointers = (Handle * max(len(holders), 1))(*(ctypes.addressof(item) for item in holders))
        triple = ctypes.c_uint * 3
        call = ctypes.CFUNCTYPE(
            ctypes.c_int, Handle, Handle, ctypes.c_uint, Handle, ctypes.POINTER(Handle)
        )(function.value or 0)
        status = call(triple(*grid), triple(*block), shared_bytes, Handle(stream), pointers)
        if status:
            raise DriverError(f"launch: {self._reason(status)}")


class AclDriver(LibraryDriver):
    """AscendCL, whose memory calls take a policy and the room at the target."""

    def __init__(self, names: DriverNames, library: Any = None) -> None:
        found = drivers.open_library(names) if library is None else library
        found.aclInit(None)  # a framework may have done it: then it is refused, and that is well
        super().__init__(names, found)

    def allocate(self, nbytes: int) -> int:
        address = ctypes.c_uint64()
        size = ctypes.c_size_t(max(nbytes, 1))
        self._call(self.names.allocate, ctypes.byref(address), size, 0)
        return address.value

    def to_device(self, address: int, host: int, nbytes: int) -> None:
        self._move(address, host, nbytes, TO_DEVICE)

    def to_host(self, host: int, address: int, nbytes: int) -> None:
        self._move(host, address, nbytes, TO_HOST)

    def _move(self, to: int, source: int, nbytes: int, kind: int) -> None:
        if nbytes:
            size = ctypes.c_size_t(nbytes)
            places = (ctypes.c_uint64(to), size, ctypes.c_uint64(source), size)
            self._call(self.names.copy, *places, kind)


class CnrtDriver(LibraryDriver):
    """Cambricon's run-time library: other numbers for the ways of a copy."""

    def to_device(self, address: int, host: int, nbytes: int) -> None:
        self._copy("", address, host, nbytes, _CNRT_TO_DEVICE)

    def to_host(self, host: int, address: int, nbytes: int) -> None:
        self._copy("", host, address, nbytes, _CNRT_TO_HOST)


class LibraryBackend(VendorBackend):
    """Devices whose kernels a function behind the text launches, one for each entry point."""

    header = ""  # of the vendor's run-time library

    def fits(self, module: CompiledModule, record: KernelRecord) -> bool:
        """None does: what the compile command makes has no function that launches."""
        return False

    def text_of(self, record: KernelRecord, text: str) -> str:
        launches = {launch.entry: launch for launch in record.launches}
        parts = [
            _HEAD % launch.entry + self.body(record, launch) + "}\n" for launch in launches.values()
        ]
        return "\n".join([text, f"#include <{self.header}>", *parts])

    def body(self, record: KernelRecord, launch: Launch) -> str:
        """The statements of an entry point's function."""
        raise NotImplementedError


class CorexBackend(LibraryBackend):
    """Iluvatar's devices, through their CUDA run-time library."""

    header = "cuda_runtime.h"

    def __init__(self, driver: LibraryDriver | None = None) -> None:
        name = device_name() if driver is None else ""
        if name.startswith("NVIDIA"):  # whose library has the same name and functions
            raise BackendUnavailable(f"no Iluvatar device: there is {name}")
        super().__init__("corex", LibraryDriver(_CUDART) if driver is None else driver)

    def body(self, record: KernelRecord, launch: Launch) -> str:
        return _CUDART_BODY % {"entry": launch.entry}


class AscendBackend(LibraryBackend):
    """Huawei's devices, through AscendCL."""

    header = "acl/acl.h"

    def __init__(self, driver: AclDriver | None = None) -> None:
        super().__init__("ascendc", AclDriver(_ACL) if driver is None else driver)

    def body(self, record: KernelRecord, launch: Launch) -> str:
        values = _values([_type_of(record, item) for item in launch.arguments])
        return (
            f"    {launch.entry}<<<grid[0], 0, stream>>>({values});\n"
            "    return aclrtGetLastError(ACL_RT_THREAD_LEVEL);\n"
        )


class BangBackend(LibraryBackend):
    """Cambricon's devices, through CNRT."""

    header = "cnrt.h"

    def __init__(self, driver: CnrtDriver | None = None) -> None:
        super().__init__("bang", CnrtDriver(_CNRT) if driver is None else driver)

    def body(self, record: KernelRecord, launch: Launch) -> str:
        """Block tasks: each takes any core that is free."""
        values = _values([_bang_type(record, item) for item in launch.arguments])
        return (
            "    const cnrtDim3_t tasks = {grid[0], grid[1], grid[2]};\n"
            "    const cnrtQueue_t queue = static_cast<cnrtQueue_t>(stream);\n"
            f"    {launch.entry}<<<tasks, cnrtFuncTypeBlock, queue>>>({values});\n"
            "    return cnrtGetLastError();\n"
        )


def device_name() -> str:
    """What the driver under CUDA's name calls its first device; empty where there is none."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
        text, device = ctypes.create_string_buffer(256), ctypes.c_int()
        library.cuInit(0)
        library.cuDeviceGet(ctypes.byref(device), 0)
        library.cuDeviceGetName(text, 256, device)
    except (OSError, AttributeError):
        return ""
    return text.value.decode(errors="replace")


def _values(types: Sequence[str]) -> str:
    """What the kernel is called with: each argument read from where its pointer leads."""
    return ", ".join(f"*static_cast<{kind}*>(args[{i}])" for i, kind in enumerate(types))


def _bang_type(record: KernelRecord, item: LaunchArgument) -> str:
    if item.kind != "tensor":
        return _type_of(record, item)
    dtype = record.argument(item.name).dtype
    return {"float16": "half", "bfloat16": "bfloat16_t", **_PLAIN}[dtype] + "*"


def _type_of(record: KernelRecord, item: LaunchArgument) -> str:
    if item.kind in ("tensor", "workspace"):
        return "uint8_t*"
    dtype = item.dtype or ("int32" if item.kind == "size" else record.argument(item.name).dtype)
    if dtype not in _PLAIN:
        raise CompileError(
            f"{record.name}: how a program hands {item.name}, a {dtype}, to a kernel of "
            f"{record.target} is not documented"
        )
    return _PLAIN[dtype]
