"""Runs kernel files on the CPU, every thread for real.

reads   a kernel file as it would go to the device (CUDA, HIP)
writes  modules in the user's cache; results into the caller's tensors
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
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
        return _opened(lambda: ascendc.build(text, Path(path).name, arch), str(path), checks)
    if family == "bang":
        from tile2c.runtime.emulate import bang

        text = Path(path).read_text(encoding="utf-8")
        return _opened(lambda: bang.build(text, Path(path).name, arch), str(path), checks)
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
    return _opened(lambda: build(request), file, checks)


def _opened(make: Callable[[], Path], file: str, checks: frozenset[str]) -> EmulatedModule:
    """The module that `make` builds or finds; one that the cache has damaged is built again."""
    library = make()
    if _is_whole(library):
        with suppress(OSError):
            return EmulatedModule(library, file=file, checks=checks)
    library.unlink(missing_ok=True)
    return EmulatedModule(make(), file=file, checks=checks)


def _is_whole(library: Path) -> bool:
    """Whether an ELF file reaches to the end of its table of sections, which linkers put last.

    A file that is cut off may load all the same, and ends the process when it is touched.
    """
    with library.open("rb") as stream:
        head = stream.read(64)
    if head[:5] != b"\x7fELF\x02":  # of another system: loading it tells
        return True
    if len(head) < 64:
        return False
    start, size, count = struct.unpack_from("<Q10xHH", head, 40)
    most: int = start + size * count
    return most <= library.stat().st_size


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
    return _opened(lambda: build(request), str(path), checks)
