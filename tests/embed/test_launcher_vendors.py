"""Launchers of vendors whose compilers nobody has here, through compilers that are near.

Kernel and launcher are compiled as their headers say, clang and nvcc in the vendor's compiler's place,
and linked with a program whose runtime only looks on: it knows the handles that the compiler registers.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from embed_programs import MIXED, generate

CLANG, NVCC = shutil.which("clang-22"), shutil.which("nvcc")
HERE = Path(__file__).parent
STUBS = HERE.parent / "dialects" / "stubs"
PRELUDE = HERE.parent / "hip" / "prelude"

# What clang's HIP mode asks of headers for the host's half of a file.
HOST = """
#include <stddef.h>
typedef struct ihipStream_t* hipStream_t;
enum hipError_t { hipSuccess };
extern "C" hipError_t hipLaunchKernel(const void*, dim3, dim3, void**, size_t, hipStream_t);
extern "C" hipError_t __hipPopCallConfiguration(dim3*, dim3*, size_t*, hipStream_t*);
"""

PROGRAM = r"""
#define STAND_IN_DIM3
#include "runtime.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "mixed.h"

static std::map<const void*, std::string>& known() {
    static std::map<const void*, std::string> names;
    return names;
}
extern "C" {
void __hipRegisterFunction(void**, const void* handle, char*, const char* name, unsigned, void*, void*,
                           void*, void*, int*) {
    known()[handle] = name;
}
void __cudaRegisterFunction(void**, const char* handle, char*, const char* name, int, void*, void*, void*,
                            void*, int*) {
    known()[handle] = name;
}
static void* module;
void** __hipRegisterFatBinary(const void*) { return &module; }
void** __cudaRegisterFatBinary(void*) { return &module; }
void __cudaRegisterFatBinaryEnd(void**) {}
char __cudaInitModule(void**) { return 1; }
void __hipUnregisterFatBinary(void**) {}
void __cudaUnregisterFatBinary(void**) {}
int __hipPopCallConfiguration(dim3*, dim3*, size_t*, void*) { return 0; }
int __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*) { return 0; }
int __cudaGetKernel(void**, const void*) { return 0; }
int __cudaLaunchKernel(const void*, dim3, dim3, void**, size_t, void*) { return 0; }
int hipLaunchKernel(const void*, dim3, dim3, void**, size_t, void*) { return 0; }
#ifndef IS_CUDA
int cudaLaunchKernel(const void*, dim3, dim3, void**, size_t, void*) { return 0; }
#endif

const char* API(GetErrorString)(API(Error_t)) { return "an error"; }
API(Error_t) API(LaunchKernel)(const void* kernel, dim3 grid, dim3 block, void** args, size_t shared,
                               API(Stream_t) stream) {
    const std::string name = known()[kernel];
    std::printf("%s %u %u %zu %p", name.c_str(), grid.x, block.x, shared, (void*)stream);
    if (name == "mixed") {
        uint16_t alpha;
        int M;
        void* first;
        std::memcpy(&first, args[0], sizeof first);
        std::memcpy(&alpha, args[2], sizeof alpha);
        std::memcpy(&M, args[6], sizeof M);
        std::printf(" A %p alpha %x M %d", first, alpha, M);
    } else {
        float beta;
        std::memcpy(&beta, args[0], sizeof beta);
        std::printf(" beta %g", beta);
    }
    std::puts("");
    return API(Success);
}
}

int main() {
    void* p = reinterpret_cast<void*>(4096);
    auto* floats = static_cast<float*>(p);
    auto* stream = reinterpret_cast<API(Stream_t)>(64);
    int status = mixed_launch(static_cast<HALF*>(p), static_cast<int8_t*>(p), 0.1f, 2.5f, 4, floats,
                              static_cast<BFLOAT*>(p), 100, p, 1 << 20, stream);
    std::puts(mixed_launch_message(status));
}
"""


@dataclass(frozen=True)
class Vendor:
    """How a target's files are compiled here, and what the stand-in is called."""

    target: str
    suffix: str
    prefix: str
    stream: str
    limit: str
    headers: tuple[str, ...]
    compiler: tuple[str | None, ...]
    types: tuple[str, str] = ("void", "void")


def _clang(stub: str, *before: str) -> tuple[str | None, ...]:
    flags = ("-x", "hip", "--offload-arch=gfx90a", "-nogpulib", "-nogpuinc", f"-I{PRELUDE}")
    return (CLANG, *flags, f"-I{STUBS / stub}", "-include", "host.h", *before)


def _nvcc(stub: str, *flags: str) -> tuple[str | None, ...]:
    return (NVCC, "-x", "cu", "-arch=sm_80", f"-I{STUBS / stub}", *flags)


VENDORS = (
    Vendor("maca:xcore1000", ".maca", "mc", "MCstream_st",
           "mcDeviceAttributeMaxSharedMemoryPerBlock", ("mc_runtime.h",), _clang("maca")),
    Vendor("corex:ivcore11", ".cu", "cuda", "CUstream_st",
           "cudaDevAttrMaxSharedMemoryPerBlockOptin", ("cuda_runtime.h",),
           _clang("corex", "-include", str(STUBS / "wave64.h")),
           ("struct __half", "struct __nv_bfloat16")),
    Vendor("musa:mp_31", ".mu", "musa", "MUstream_st", "musaDevAttrMaxSharedMemoryPerBlockOptin",
           ("musa_runtime.h",), _nvcc("musa", "-D__MUSA_ARCH__=310")),
    Vendor("ppu:ppu_10", ".hg", "hggc", "HGstream_st", "hggcDevAttrMaxSharedMemoryPerBlockOptin",
           ("hggc_runtime.h", "hggc_runtime_api.h"), _nvcc("ppu")),
)  # fmt: skip


def passes(*command: object) -> str:
    done = subprocess.run([str(w) for w in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    return done.stdout


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.target.replace(":", "_"))
def test_a_vendors_launcher_names_the_compilers_handles(tmp_path: Path, vendor: Vendor) -> None:
    if vendor.compiler[0] is None:
        pytest.skip("needs clang-22 and nvcc")
    Path("mixed.py").write_text(MIXED)
    generate("mixed.py", "-o", "out", "--launcher", "--target", vendor.target)
    names = {"PREFIX": vendor.prefix, "STREAM": vendor.stream, "LIMIT": vendor.limit}
    names |= dict(zip(("HALF", "BFLOAT"), vendor.types, strict=True))
    names |= {"IS_CUDA": ""} if vendor.prefix == "cuda" else {}
    defines = "".join(f"#define {name} {value}\n" for name, value in names.items())
    Path("runtime.h").write_text(f'{defines}#include "{HERE / "stand_in_runtime.h"}"\n')
    Path("host.h").write_text(f"#include <hip/hip_runtime.h>\n{DIM3}{HOST}")
    Path("main.cpp").write_text(PROGRAM)
    for header in vendor.headers:  # the launcher includes the stub of the dialect and the stand-in
        Path("api").mkdir(exist_ok=True)
        stub = STUBS / vendor.target.partition(":")[0] / header
        also = f'#include "{stub}"\n' if stub.exists() else ""
        Path("api", header).write_text(f'#pragma once\n{also}#include "../runtime.h"\n')
    flags = ("-std=c++17", "-c")
    program, *own = vendor.compiler
    passes(program, *own, *flags, f"out/mixed{vendor.suffix}", "-o", "mixed.o")
    passes(program, "-Iapi", *own, *flags, "out/mixed_launch.cpp", "-o", "launch.o")
    passes("g++", "-std=c++17", "-Iout", "main.cpp", "mixed.o", "launch.o", "-o", "main")
    assert passes("./main").splitlines() == [
        "mixed 4 64 0 0x40 A 0x1000 alpha 2e66 M 100",
        "mixed_stream 4 64 0 0x40 beta 2.5",
        "mixed: launched",
    ]


# With the constructor that the vendors' own has.
DIM3 = """
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
"""
