"""What the emulator has to know of an architecture: lanes of a warp, shared memory, macros."""

from __future__ import annotations

import re
from dataclasses import dataclass

_KIB = 1024


@dataclass(frozen=True, slots=True)
class Arch:
    """One target of a SIMT family; sizes in bytes for one block."""

    name: str
    header: str  # what its compiler gives without an include
    folder: str  # of its own headers
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


def find_arch(family: str, arch: str) -> Arch | None:
    """The architecture, None if the emulator does not model it."""
    if family == "cuda":
        return _cuda(arch)
    if family == "hip":
        return _hip(arch)
    return None
