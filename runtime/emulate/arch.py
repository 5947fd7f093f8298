"""What the emulator has to know of an architecture: lanes of a warp, shared memory, macros."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_KIB = 1024


@dataclass(frozen=True, slots=True)
class Arch:
    """One target of a SIMT family; sizes in bytes for one block."""

    name: str
    header: str | Path  # what its compiler gives without an include; under include/, or a file
    folder: str | Path  # of its own headers
    warp: int
    static_shared: int
    total_shared: int
    macros: tuple[tuple[str, str], ...]


# Static and dynamic shared memory together, by compute capability.
_CUDA_SHARED = {70: 96, 75: 64, 80: 163, 86: 99, 87: 163, 89: 99, 90: 227, 100: 227, 103: 227, 110: 227,
                120: 99, 121: 99}  # fmt: skip
_WAVE64 = {"gfx90a", "gfx942", "gfx950"}
_HIP_SHARED = {"gfx950": 160}


def _cuda(arch: str) -> Arch | None:
    found = re.fullmatch(r"sm_(\d+)([af]?)", arch)
    if not found or int(found.group(1)) not in _CUDA_SHARED:
        return None
    level = int(found.group(1))
    macros = [("__CUDA_ARCH__", str(level * 10)), ("__CUDACC__", "1"), ("__NVCC__", "1"),
              ("EMU_ARCH", str(level * 10))]  # fmt: skip
    if found.group(2) == "a":
        macros.append((f"__CUDA_ARCH_FEAT_SM{level}_ALL", "1"))
    return Arch(
        arch, "emulate/cuda.h", "cuda", 32, 48 * _KIB, _CUDA_SHARED[level] * _KIB, tuple(macros)
    )


def _hip(arch: str) -> Arch | None:
    found = re.fullmatch(r"gfx(\d+)([0-9a-f]{2})", arch)
    if not found:
        return None
    wave = 64 if arch in _WAVE64 else 32
    shared = _HIP_SHARED.get(arch, 64) * _KIB
    macros = (("__HIP__", "1"), ("__HIPCC__", "1"), ("__HIP_DEVICE_COMPILE__", "1"),
              ("__HIP_PLATFORM_AMD__", "1"), (f"__{arch}__", "1"), (f"__GFX{found.group(1)}__", "1"),
              ("__AMDGCN_WAVEFRONT_SIZE", str(wave)), ("EMU_GFX", f"0x{arch[3:]}"))  # fmt: skip
    return Arch(arch, "emulate/hip.h", "hip", wave, shared, shared, macros)


# Shared memory of a block and lanes of a warp, as the vendors' tools list them.
_DCU = ("gfx926", "gfx928", "gfx936")
_MUSA = {"mp_21": (28, 128), "mp_22": (72, 128), "mp_31": (192, 32)}
_PPU = {"ppu_10": 100, "ppu_15": 150}


def _dcu(arch: str) -> Arch | None:
    if arch not in _DCU:
        return None
    like = _hip(arch)
    assert like is not None
    macros = (*(pair for pair in like.macros if not pair[0].startswith("__AMDGCN_WAVE")),
              ("__AMDGCN_WAVEFRONT_SIZE", "64"))  # fmt: skip
    return Arch(arch, "emulate/dcu.h", "hip", 64, 64 * _KIB, 64 * _KIB, macros)


def _musa(arch: str) -> Arch | None:
    if arch not in _MUSA:
        return None
    shared, warp = _MUSA[arch]
    level = arch.removeprefix("mp_") + "0"
    macros = (("__MUSACC__", "1"), ("__MUSA__", "1"), ("__MUSA_ARCH__", level), ("EMU_MUSA", level))
    return Arch(arch, "emulate/musa.h", "musa", warp, shared * _KIB, shared * _KIB, macros)


def _maca(arch: str) -> Arch | None:
    if arch != "xcore1000":
        return None
    macros = (("__MACACC__", "1"), ("__MACA_ARCH__", "1000"))
    return Arch(arch, "emulate/maca.h", "maca", 64, 64 * _KIB, 64 * _KIB, macros)


def _corex(arch: str) -> Arch | None:
    if arch not in ("ivcore11", "ivcore11_mad"):
        return None
    macros = (("__CUDACC__", "1"), ("__ILUVATAR__", "1"), ("__ivcore11__", "1"))
    return Arch(arch, "emulate/corex.h", "corex", 64, 48 * _KIB, 128 * _KIB, macros)


def _ppu(arch: str) -> Arch | None:
    if arch not in _PPU:
        return None
    macros = (("__HGGC_ARCH__", str(_PPU[arch])),)
    return Arch(arch, "emulate/ppu.h", "ppu", 32, 48 * _KIB, 48 * _KIB, macros)


_FAMILIES: dict[str, Callable[[str], Arch | None]] = {
    "cuda": _cuda,
    "hip": _hip,
    "dcu": _dcu,
    "musa": _musa,
    "maca": _maca,
    "corex": _corex,
    "ppu": _ppu,
}


def find_arch(family: str, arch: str) -> Arch | None:
    """The architecture, None if the emulator does not model it.

    A package that adds a family says so itself: `emulated(arch)` in the module that its entry point
    `tile2c.targets` names.
    """
    if family in _FAMILIES:
        return _FAMILIES[family](arch)
    from tile2c.transpile.targets.registry import plug_in

    own: Callable[[str], Arch | None] | None = getattr(plug_in(family), "emulated", None)
    return own(arch) if own else None
