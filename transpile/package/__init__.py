"""tile2c: turns tile programs into standalone, readable kernels, and runs them."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Literal

from tile2c.runtime.errors import (
    AccessError,
    BackendUnavailable,
    CompileError,
    KernelError,
    RaceError,
)

if TYPE_CHECKING:
    from tile2c.runtime.load import Kernels

__version__ = "0.1.0"  # read by the build backend; asking the installed package costs 50 ms


def __getattr__(name: str) -> object:
    """TranspileError lives with the command, which is imported only when something is built."""
    if name == "TranspileError":
        from tile2c.transpile.cli.build import TranspileError

        return TranspileError
    raise AttributeError(f"module 'tile2c' has no attribute {name!r}")


__all__ = [
    "AccessError",
    "BackendUnavailable",
    "CompileError",
    "KernelError",
    "RaceError",
    "TranspileError",
    "build",
    "load",
]


def load(
    folder: str | PathLike[str],
    backend: str | None = None,
    target: str | None = None,
    compile: Literal["auto", "never"] = "auto",
    check: str | None = None,
) -> Kernels:
    """The kernels of an output folder by name, ready to be called: `load("out/")["gemm"](A, B)`.

    - `backend`: "emulate" for the CPU, or a device's family: "cuda". None takes TILE2C_BACKEND, else
      the device that is there, and raises BackendUnavailable at once if there is none.
    - `target`: "cuda:sm_80" or its family, where the folder holds several; default the one that
      fits the device best.
    - `compile`: "auto" compiles a kernel at its first call if no module in the folder fits the
      device; with "never" that is a CompileError.
    - `check`: "races,memory", or one of them: what the emulator watches while a kernel runs. It
      raises RaceError or AccessError.
    """
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
    launcher: bool | None = None,
    license_header: str | PathLike[str] | None = None,
    line_info: bool = False,
    modules: bool = False,
) -> Kernels:
    """Transpiles a file as `tile2c SOURCE -o OUT` does and loads what it wrote.

    - `target`: one target or a tuple of them, as `--target`; default "cuda:sm_80".
    - `defines`: compile-time values, sizes and promises, as `-D`:
      `{"block_M": 64, "gemm.num_stages": 3, "dtype": "bfloat16", "K": "dynamic", "M%16": 0}`.
    - `kernels`: only these, as `--kernel`; default every kernel of the file.
    - `merge`, `force`: what becomes of files edited by hand, as `--merge` and `--force`.
    - `launcher`: True also writes launch code in C++, False removes it, as `--launcher` and
      `--no-launcher`; None keeps up to date what the folder has.
    - `license_header`, `line_info`: as `--license-header FILE` and `--line-info`.
    - `modules`: also compiles each kernel into the folder, as `--compile`.
    - `backend`, `compile`, `check`: as for `load`; but without a device the files are written all
      the same, and the first call of a kernel raises BackendUnavailable.

    Raises TranspileError with the diagnostics where the command ends with status 1, ValueError or
    FileNotFoundError where it ends with 2.
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
        launcher=launcher,
        license_header=license_header,
        line_info=line_info,
        modules=modules,
    )
