"""The emulator as a backend: the file that would go to a device, run on the CPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tile2c.runtime import tensor_maps
from tile2c.runtime.backends.apart import ZONE, Apart
from tile2c.runtime.backends.protocol import LaunchCall, Module, Pointer
from tile2c.runtime.backends.texts import read_kernel
from tile2c.runtime.errors import BackendUnavailable, CompileError
from tile2c.runtime.records import KernelRecord
from tile2c.runtime.tensors import HOST, TensorView

if TYPE_CHECKING:
    from tile2c.runtime.emulate import EmulatedModule, TensorArgument, ValueArgument


MEMORY = "memory"
MULTIPROCESSORS = 3  # few, so that blocks which stay for several tiles do so at small sizes too


class EmulateBackend:
    """Runs kernels of one target; `checks` are "races" and "memory"."""

    name = "emulate"

    def __init__(
        self, checks: tuple[str, ...] = (), multiprocessors: int = MULTIPROCESSORS
    ) -> None:
        self.checks = checks
        self.multiprocessors = multiprocessors

    def select(self, targets: Sequence[str]) -> str | None:
        return next(iter(targets), None)

    def module(self, record: KernelRecord, folder: Path, *, may_compile: bool) -> Module:
        from tile2c.runtime import emulate

        path = folder / record.file
        read_kernel(path)
        if not may_compile:
            raise CompileError(f'{path}: the emulator compiles, which compile="never" forbids')
        return emulate.load(
            path, family=record.family, arch=record.arch, checks=frozenset(self.checks)
        )

    def session(self, tensors: Sequence[TensorView], stream: object | None) -> EmulateSession:
        for tensor in tensors:
            if tensor.device != HOST:
                raise BackendUnavailable(
                    f"a tensor lies on {tensor.device}; the emulator takes those of the CPU"
                )
        apart = Apart(tensors) if MEMORY in self.checks else None
        return EmulateSession(apart, self.multiprocessors)


class EmulateSession:
    """One call on the CPU: tensors stay where they are, or are copied apart."""

    def __init__(self, apart: Apart | None = None, multiprocessors: int = MULTIPROCESSORS) -> None:
        self._apart = apart
        self._multiprocessors = multiprocessors
        self._back: list[TensorView] = []

    def place(self, name: str, tensor: TensorView, *, reads: bool, writes: bool) -> int:
        if self._apart is None:
            return tensor.address
        if writes:
            self._back.append(tensor)
        return self._apart.address_of(tensor)

    def scratch(self, nbytes: int, align: int) -> Pointer:
        import numpy as np

        zone = 0 if self._apart is None else ZONE
        memory = np.empty(nbytes + align + 2 * zone, dtype=np.uint8)
        address = -(-(memory.ctypes.data + zone) // align) * align
        return Pointer("workspace", address, nbytes, True, memory)

    def multiprocessors(self) -> int:
        return self._multiprocessors

    def encode(self, tensor_map: tensor_maps.TensorMap) -> bytes:
        return tensor_maps.emulated(tensor_map)

    def launch(self, module: Module, call: LaunchCall) -> None:
        from tile2c.runtime.emulate import ValueArgument

        arguments: list[TensorArgument | ValueArgument] = [
            _tensor(item)
            if isinstance(item, Pointer)
            else ValueArgument(item.data, None if item.tensor is None else _tensor(item.tensor))
            for item in call.arguments
        ]
        cast("EmulatedModule", module).launch(
            call.entry,
            grid=call.grid,
            block=call.block,
            shared_bytes=call.shared_bytes,
            arguments=arguments,
            cluster=call.cluster,
        )

    def time(self, run: Callable[[], None]) -> float:
        start = time.perf_counter()
        run()
        return (time.perf_counter() - start) * 1000

    def finish(self) -> None:
        """Brings back what was written to copies."""
        if self._apart is not None:
            for tensor in self._back:
                self._apart.copy_back(tensor)

    def close(self) -> None:
        """Nothing was allocated that Python does not free."""


def _tensor(pointer: Pointer) -> TensorArgument:
    from tile2c.runtime.emulate import TensorArgument

    return TensorArgument(
        pointer.name, pointer.address, pointer.nbytes, pointer.writable, pointer.owner
    )
