"""What can go wrong when kernels are loaded and run."""

from __future__ import annotations


class KernelError(Exception):
    """A kernel did something that it must not do; the message says where and what."""


class RaceError(KernelError):
    """Two threads touched the same bytes, one of them writing, and nothing ordered them."""


class AccessError(KernelError):
    """An access outside a tensor or a shared array, or a read of what nothing wrote."""


class BackendUnavailable(RuntimeError):
    """The device, its driver or a package that reaches it is not there; the message says which."""


class CompileError(RuntimeError):
    """A kernel file does not compile; the message is the compiler's."""


class CompilerMissing(CompileError):
    """The compiler that a kernel file names is not installed."""
