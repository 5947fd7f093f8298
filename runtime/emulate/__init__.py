"""Runs kernel files on the CPU, every thread for real.

reads   a kernel file as it would go to the device (CUDA, HIP)
writes  modules in the user's cache; results into the caller's tensors
"""

from __future__ import annotations

from pathlib import Path

from tile2c.runtime.emulate.arch import find_arch
from tile2c.runtime.emulate.compiler import BuildRequest, build
from tile2c.runtime.emulate.module import (
    MEMORY,
    RACES,
    Argument,
    EmulatedModule,
    TensorArgument,
    ValueArgument,
)
from tile2c.runtime.errors import BackendUnavailable

__all__ = [
    "MEMORY",
    "RACES",
    "Argument",
    "EmulatedModule",
    "TensorArgument",
    "ValueArgument",
    "load",
    "load_program",
]


def load(
    path: Path, *, family: str, arch: str, checks: frozenset[str] = frozenset(), brief: bool = False
) -> EmulatedModule:
    """Compiles the kernel file at `path` for the CPU, or takes it from the cache.

    family, arch  the target, as `cuda` and `sm_80`
    checks        "races" and "memory"; none gives a faster build that uses all cores
    brief         the kernels run for a moment only, so they are compiled without optimisation
    Raises BackendUnavailable without a host compiler or for a target that has no model, KernelError
    for text that the emulator does not model.
    """
    if family == "ascendc":
        from tile2c.runtime.emulate import ascendc

        text = Path(path).read_text(encoding="utf-8")
        library = ascendc.build(text, Path(path).name, arch)
        return EmulatedModule(library, file=str(path), checks=checks)
    if family == "bang":
        from tile2c.runtime.emulate import bang

        library = bang.build(Path(path).read_text(encoding="utf-8"), Path(path).name, arch)
        return EmulatedModule(library, file=str(path), checks=checks)
    known = find_arch(family, arch)
    if known is None:
        raise BackendUnavailable(f"the emulator has no model of {family}:{arch}")
    unknown = checks - {RACES, MEMORY}
    if unknown:
        raise ValueError(
            f"unknown checks: {', '.join(sorted(unknown))}; there are races and memory"
        )
    file = str(path)
    text = Path(path).read_text(encoding="utf-8")
    request = BuildRequest(file, text, known, bool(checks), brief)
    return EmulatedModule(build(request), file=file, checks=checks)


def load_program(
    path: Path,
    *,
    family: str,
    arch: str,
    kernels: tuple[str, ...],
    checks: frozenset[str] = frozenset(),
) -> EmulatedModule:
    """The kernels of a whole program's file, its host code left out; as a vendor's sample is.

    kernels  the ones to be launched; those of templates with arguments, `scale<16>`
    Raises what `load` raises.
    """
    from tile2c.runtime.emulate.compiler import INCLUDE
    from tile2c.runtime.emulate.text.device_part import device_part

    known = find_arch(family, arch)
    if known is None:
        raise BackendUnavailable(f"the emulator has no model of {family}:{arch}")
    text = device_part(path, INCLUDE / known.folder)
    instances = tuple(name for name in kernels if "<" in name)
    request = BuildRequest(str(path), text, known, bool(checks), instances=instances)
    return EmulatedModule(build(request), file=str(path), checks=checks)
