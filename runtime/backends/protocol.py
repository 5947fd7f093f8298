"""What a backend offers: it fits targets, loads kernel files, and runs calls in sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tile2c.runtime.records import KernelRecord
from tile2c.runtime.tensor_maps import TensorMap
from tile2c.runtime.tensors import TensorView


@dataclass(frozen=True, slots=True)
class Pointer:
    """A tensor (or the workspace) as an entry point's argument."""

    name: str
    address: int
    nbytes: int
    writable: bool
    owner: object


@dataclass(frozen=True, slots=True)
class Value:
    """A size, a scalar or a tensor map as an entry point's argument, by value.

    For a tensor map, `tensor` is what it points to.
    """

    data: bytes
    align: int
    tensor: Pointer | None = None


@dataclass(frozen=True, slots=True)
class LaunchCall:
    """One launch with all its numbers."""

    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    cluster: tuple[int, int, int] | None
    arguments: tuple[Pointer | Value, ...]


class Module(Protocol):
    """A kernel file, loaded; only the backend that made it looks inside."""


class Session(Protocol):
    """One call: places tensors, launches, brings results back. Closed by its caller."""

    def place(self, name: str, tensor: TensorView, *, reads: bool, writes: bool) -> int:
        """The tensor's address on the device; host memory is copied there if it must be."""

    def scratch(self, nbytes: int, align: int) -> Pointer:
        """Memory for this call."""

    def multiprocessors(self) -> int:
        """Of the device: how many blocks run at once where an SM takes one."""

    def encode(self, tensor_map: TensorMap) -> bytes:
        """The 128 bytes of a tensor map."""

    def launch(self, module: Module, call: LaunchCall) -> None:
        """Starts one launch in the session's stream."""

    def time(self, run: Callable[[], None]) -> float:
        """Milliseconds that the launches of `run` take on the device."""

    def finish(self) -> None:
        """Copies back what was copied to the device for this call; waits only for that."""

    def close(self) -> None:
        """Gives back what this call allocated."""


class Backend(Protocol):
    """A way to run kernels."""

    name: str

    def select(self, targets: Sequence[str]) -> str | None:
        """The best fit for the device among these targets, None if none runs on it."""

    def module(self, record: KernelRecord, folder: Path, *, may_compile: bool) -> Module:
        """Loads a kernel file; compiles it if no module fits and that is allowed."""

    def session(self, tensors: Sequence[TensorView], stream: object | None) -> Session:
        """Starts a call with these tensors."""
