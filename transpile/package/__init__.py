"""tile2c: turns tile programs into standalone, readable kernels, and runs them."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Literal

from tile2c.runtime.errors import AccessError, BackendUnavailable, KernelError, RaceError

if TYPE_CHECKING:
    from tile2c.runtime.load import Kernels

__version__ = "0.1.0"  # read by the build backend; asking the installed package costs 50 ms


def __getattr__(name: str) -> object:
    """TranspileError lives with the command, which is imported only when something is built."""
    if name == "TranspileError":
        from tile2c.transpile.cli.build import TranspileError

        return TranspileError
    raise AttributeError(f"module 'tile2c' has no attribute {name!r}")


__all__ = ["AccessError", "BackendUnavailable", "KernelError", "RaceError", "build", "load"]


def load(
    folder: str | PathLike[str],
    backend: str | None = None,
    target: str | None = None,
    compile: Literal["auto", "never"] = "auto",
    check: str | None = None,
) -> Kernels:
    """The kernels of an output folder by name, ready to be called: see tile2c.runtime.load."""
    from tile2c.runtime.load import load as load_folder

    return load_folder(folder, backend, target, compile, check)


def build(
    source: str | PathLike[str],
    out: str | PathLike[str],
    target: str | tuple[str, ...] | None = None,
    defines: Mapping[str, object] | None = None,
    kernels: tuple[str, ...] = (),
    *,
    backend: str | None = None,
    compile: Literal["auto", "never"] = "auto",
    check: str | None = None,
    merge: bool = False,
    force: bool = False,
) -> Kernels:
    """Transpiles a file as the command does and loads what it wrote.

    Raises TranspileError with the diagnostics where the command ends with status 1 or 2.
    """
    from tile2c.transpile.cli.build import build_folder

    return build_folder(
        source,
        out,
        target=target,
        defines=defines or {},
        kernels=kernels,
        load_options={"backend": backend, "compile": compile, "check": check},
        merge=merge,
        force=force,
    )
