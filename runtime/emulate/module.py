"""A kernel file compiled for the CPU, and how its kernels are launched."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tile2c.runtime.errors import AccessError, KernelError, RaceError

Triple = tuple[int, int, int]

RACES, MEMORY = "races", "memory"
_CHECK_BITS = {RACES: 1, MEMORY: 2}
_ERRORS: dict[int, type[KernelError]] = {1: RaceError, 2: AccessError}
_MARK = re.compile(r"<pc:([0-9a-f+]+)>")


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("bytes", ctypes.c_uint64),
        ("writable", ctypes.c_int32),
    )


class _Report(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_int32),
        ("thread_a", ctypes.c_int32),
        ("thread_b", ctypes.c_int32),
        ("line_a", ctypes.c_int32),
        ("line_b", ctypes.c_int32),
        ("array", ctypes.c_char * 128),
        ("text", ctypes.c_char * 4096),
    )


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """A buffer: its address is the argument. `alive` keeps it from being freed."""

    name: str
    address: int
    nbytes: int
    writable: bool
    alive: object = None


@dataclass(frozen=True, slots=True)
class ValueArgument:
    """A scalar, a size or a struct, as the bytes that the kernel's parameter holds.

    `tensor` is the buffer that a tensor map in the struct describes; the kernel may touch it.
    """

    data: bytes
    tensor: TensorArgument | None = None


Argument = TensorArgument | ValueArgument


class EmulatedModule:
    """The kernels of one file; launching one returns when it has ended."""

    def __init__(self, library: Path, *, file: str, checks: frozenset[str]) -> None:
        self.library = library
        self.file = file
        self.checks = checks
        self._module = ctypes.CDLL(str(library))

    def parameter_sizes(self, entry: str) -> tuple[int, ...] | None:
        """Bytes of each parameter of `entry`, None if the file has no such kernel."""
        sizes = (ctypes.c_uint64 * 256)()
        count = self._module.emu_parameters(entry.encode(), sizes, 256)
        return tuple(sizes[:count]) if count >= 0 else None

    def launch(
        self,
        entry: str,
        grid: Triple,
        block: Triple,
        shared_bytes: int,
        arguments: Sequence[Argument],
        cluster: Triple | None = None,
    ) -> None:
        """Runs `entry` over `grid` blocks of `block` threads.

        shared_bytes  dynamic shared memory of a block
        Raises RaceError, AccessError, or KernelError for all else that stops a kernel; the process
        stays usable.
        """
        self._check_arguments(entry, arguments)
        values = [_value_bytes(argument) for argument in arguments]
        cells = [_aligned_copy(value) for value in values]
        pointers = (ctypes.c_void_p * max(1, len(cells)))(*(address for address, _ in cells))
        tensors = [tensor for argument in arguments if (tensor := _buffer(argument)) is not None]
        table = (_Tensor * max(1, len(tensors)))(
            *(_Tensor(t.name.encode(), t.address, t.nbytes, int(t.writable)) for t in tensors)
        )
        report = _Report()
        triple = ctypes.c_uint32 * 3
        self._module.emu_launch(
            entry.encode(), triple(*grid), triple(*block), triple(*(cluster or (0, 0, 0))),
            ctypes.c_uint64(shared_bytes), pointers, len(arguments), table, len(tensors),
            sum(_CHECK_BITS[check] for check in self.checks), ctypes.byref(report),
        )  # fmt: skip
        if report.kind:
            raise self._error(report)

    def _check_arguments(self, entry: str, arguments: Sequence[Argument]) -> None:
        if not hasattr(self._module, "emu_parameters"):
            return
        sizes = self.parameter_sizes(entry)
        if sizes is None:
            raise KernelError(f"the file has no kernel {entry}", file=self.file)
        given = [8 if isinstance(a, TensorArgument) else len(a.data) for a in arguments]
        if list(sizes) != given:
            raise KernelError(
                f"{entry} takes parameters of {list(sizes)} bytes, it was given {given}",
                file=self.file,
            )

    def _error(self, report: _Report) -> KernelError:
        text = report.text.decode(errors="replace")
        chains = [self._chain(mark) for mark in _MARK.findall(text)]
        shown = iter([_show(chain) for chain in chains])
        message = _MARK.sub(lambda _: next(shown), text)
        lines = [chain[0] for chain in chains if chain]
        line = report.line_a or (lines[0] if lines else 0)
        threads = tuple(t for t in (report.thread_a, report.thread_b) if t >= 0)
        return _ERRORS.get(report.kind, KernelError)(
            message,
            file=self.file,
            line=line or None,
            threads=threads,
            array=report.array.decode(errors="replace"),
        )

    def _chain(self, mark: str) -> tuple[int, ...]:
        """The author's lines of a place and its callers, innermost first."""
        offsets = (int(offset, 16) for offset in mark.split("+"))
        names = ("kernel", "unit.cpp", Path(self.file).name)
        return tuple(line for offset in offsets for line in _lines(self.library, offset, names))


def _buffer(argument: Argument) -> TensorArgument | None:
    return argument if isinstance(argument, TensorArgument) else argument.tensor


def _value_bytes(argument: Argument) -> bytes:
    if isinstance(argument, TensorArgument):
        return argument.address.to_bytes(8, "little")
    return argument.data


def _aligned_copy(data: bytes) -> tuple[int, object]:
    """The address of a copy that is aligned as any parameter may want, and what keeps it alive."""
    buffer = ctypes.create_string_buffer(len(data) + 128)
    address = (ctypes.addressof(buffer) + 127) & ~127
    ctypes.memmove(address, data, len(data))
    return address, buffer


def _show(chain: tuple[int, ...]) -> str:
    """`line 21 (called from line 75)`; the innermost line is the one that touches memory."""
    if not chain:
        return "an unknown line"
    callers = ", ".join(f"called from line {line}" for line in chain[1:])
    return f"line {chain[0]}" + (f" ({callers})" if callers else "")


@cache
def _lines(library: Path, offset: int, names: tuple[str, ...]) -> tuple[int, ...]:
    """The author's lines at a return address in the module: the call, then those it is inlined in.

    `names` are what compilers call the author's file.
    """
    command = ["addr2line", "-i", "-s", "-e", str(library), hex(offset - 1)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ()
    ours = rf"^(?:{'|'.join(map(re.escape, names))}):(\d+)"
    return tuple(int(line) for line in re.findall(ours, done.stdout, re.MULTILINE))
