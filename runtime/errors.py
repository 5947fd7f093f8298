"""What can go wrong when a kernel runs."""

from __future__ import annotations


class BackendUnavailable(RuntimeError):
    """What a backend needs (a device, a driver, a compiler) is not on this machine."""


class DriverError(RuntimeError):
    """A device's driver refused something; the message has the function and the reason."""


class KernelError(RuntimeError):
    """A kernel did something wrong, or cannot run.

    file     the kernel file, as it was given to `load`
    line     the line in it, None where no line is to blame
    threads  linear numbers, in their blocks, of the threads at fault
    array    the tensor or shared array, "" if there is none
    """

    def __init__(
        self,
        message: str,
        *,
        file: str = "",
        line: int | None = None,
        threads: tuple[int, ...] = (),
        array: str = "",
    ) -> None:
        where = f"{file}:{line}: " if line else f"{file}: " if file else ""
        super().__init__(where + message)
        self.message = message
        self.file = file
        self.line = line
        self.threads = threads
        self.array = array


class RaceError(KernelError):
    """Two threads touched the same bytes, one of them writing, and nothing orders them."""


class AccessError(KernelError):
    """An access outside a tensor or shared array, misaligned, or of shared memory never written."""


class CompileError(RuntimeError):
    """A kernel file does not compile; the message is the compiler's."""


class CompilerMissing(CompileError):
    """The compiler that a kernel file names is not installed."""
