"""Compilers that take the texts of each target, or are near the vendor's.

NVIDIA's texts go through nvcc and ptxas, those of Volta through NVRTC 12.9. AMD's go through clang.
Others have no compiler outside of their vendor: clang for AMD's chips takes those of waves of 64, nvcc
those that resemble CUDA, both with stub headers; types and syntax are checked, of matrix builtins the
operands.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
STUBS, PRELUDE = HERE / "stubs", HERE.parent / "hip" / "prelude"
CLANG, NVCC = shutil.which("clang-22"), shutil.which("nvcc")
BY_NVRTC = ("cuda:sm_70",)  # newer toolkits do not know it

# target -> flags; what stands before the text where the dialect has no header for it
WAVES: dict[str, tuple[str, ...]] = {
    "dcu:gfx936": ("--offload-arch=gfx942", "-include", str(STUBS / "dcu" / "mmac.h")),
    "dcu:gfx928": ("--offload-arch=gfx942", "-include", str(STUBS / "dcu" / "mmac.h")),
    "dcu:gfx926": ("--offload-arch=gfx90a",),
    "maca:xcore1000": ("--offload-arch=gfx90a", f"-I{STUBS / 'maca'}"),
    "corex:ivcore11": (
        "--offload-arch=gfx90a", "-include", str(STUBS / "wave64.h"), f"-I{STUBS / 'corex'}",
    ),
}  # fmt: skip
LIKE_CUDA: dict[str, tuple[str, ...]] = {
    "musa:mp_31": ("-D__MUSA_ARCH__=310", f"-I{STUBS / 'musa'}"),
    "musa:mp_22": ("-D__MUSA_ARCH__=220", f"-I{STUBS / 'musa'}"),
    "musa:mp_21": ("-D__MUSA_ARCH__=210", f"-I{STUBS / 'musa'}"),
    "ppu:ppu_10": (f"-I{STUBS / 'ppu'}",),
    "ppu:ppu_15": (f"-I{STUBS / 'ppu'}",),
}


def has_compiler(target: str) -> bool:
    """Whether this machine has what takes the target's texts."""
    if target in BY_NVRTC:
        return importlib.util.find_spec("nvidia.cuda_nvrtc") is not None
    if target in WAVES or target.startswith("hip:"):
        return CLANG is not None
    return NVCC is not None and (target in LIKE_CUDA or target.startswith("cuda:"))


def clang_command(target: str, text: Path, assembly: Path) -> list[str]:
    """Device code alone, with stand-ins for the vendor's headers."""
    arch = target.partition(":")[2]
    flags = WAVES.get(target, (f"--offload-arch={arch}",))
    return [
        str(CLANG), "-x", "hip", "--offload-device-only", "-O3", "-std=c++17", "-nogpuinc",
        "-nogpulib", "--no-gpu-bundle-output", f"-I{PRELUDE}", "-Wall", "-Wextra", "-Werror",
        "-Wno-unused-parameter", *flags, "-S", str(text), "-o", str(assembly),
    ]  # fmt: skip


def nvcc_command(target: str, text: Path, made: Path) -> list[str]:
    """NVIDIA's own texts to machine code, others to its assembler with stub headers."""
    if target in LIKE_CUDA:
        return [
            str(NVCC), "-x", "cu", "-arch=sm_80", "-std=c++17", "-rdc=true", "-ptx",
            *LIKE_CUDA[target], str(text), "-o", str(made),
        ]  # fmt: skip
    arch = target.partition(":")[2]
    return [
        str(NVCC), f"-arch={arch}", "-O3", "-std=c++17", "-Werror", "all-warnings", "-cubin",
        str(text), "-o", str(made),
    ]  # fmt: skip


def compiles(folder: Path, target: str) -> str:
    """What the compiler has against the folder's text; nothing where it takes it."""
    (text,) = (x for x in folder.iterdir() if x.suffix not in (".json", "") and x.is_file())
    if target in BY_NVRTC:
        return _by_nvrtc(text.read_text(encoding="utf-8"), target.partition(":")[2])
    made = folder / "made"
    if target in WAVES or target.startswith("hip:"):
        command = clang_command(target, text, made)
    else:
        command = nvcc_command(target, text, made)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    made.unlink(missing_ok=True)
    return (done.stderr + done.stdout)[:2000] if done.returncode else ""


def _by_nvrtc(text: str, arch: str) -> str:
    import ctypes

    import nvidia.cuda_nvrtc
    import nvidia.cuda_runtime

    folder = Path(next(iter(nvidia.cuda_nvrtc.__path__))) / "lib"
    include = Path(next(iter(nvidia.cuda_runtime.__path__))) / "include"
    lib = ctypes.CDLL(str(next(folder.glob("libnvrtc.so*"))))
    program = ctypes.c_void_p()
    create = (ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    if lib.nvrtcCreateProgram(*create):
        return "NVRTC makes no program"
    words = [f"-arch={arch}", "-std=c++17", f"-I{include}"]
    options = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
    status = lib.nvrtcCompileProgram(program, len(words), options)
    size = ctypes.c_size_t()
    lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    lib.nvrtcGetProgramLog(program, log)
    lib.nvrtcDestroyProgram(ctypes.byref(program))
    return log.value.decode()[:2000] if status else ""
