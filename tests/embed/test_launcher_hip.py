"""HIP's compiler registers a kernel under the very address by which the launcher names it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from embed_programs import SAMPLES, generate

CLANG = shutil.which("clang-22")
HEADERS = Path(__file__).parents[2] / "runtime" / "emulate" / "host" / "include"
PRELUDE = Path(__file__).parents[1] / "hip" / "prelude"

# What the compiler asks of ROCm's headers for the host's half of a file.
HOST = """
#include <hip/hip_runtime.h>
#include <stddef.h>
typedef struct ihipStream_t* hipStream_t;
enum hipError_t { hipSuccess };
struct dim3 { unsigned x, y, z; };
extern "C" hipError_t hipLaunchKernel(const void*, dim3, dim3, void**, size_t, hipStream_t);
extern "C" hipError_t __hipPopCallConfiguration(dim3*, dim3*, size_t*, hipStream_t*);
"""

# A runtime that only looks on.
PROGRAM = r"""
#include <hip/hip_runtime_api.h>

#include <cstdio>
#include <map>
#include <string>

#include "gemm.h"

static std::map<const void*, std::string>& known() {
    static std::map<const void*, std::string> names;
    return names;
}
extern "C" void __hipRegisterFunction(void**, const void* handle, char*, const char* name, unsigned,
                                      void*, void*, void*, void*, int*) {
    known()[handle] = name;
}
extern "C" void** __hipRegisterFatBinary(const void*) {
    static void* module = nullptr;
    return &module;
}
extern "C" void __hipUnregisterFatBinary(void**) {}
extern "C" hipError_t __hipPopCallConfiguration(dim3*, dim3*, size_t*, hipStream_t*) {
    return hipSuccess;
}
extern "C" hipError_t hipLaunchKernel(const void* handle, dim3 grid, dim3 block, void**, size_t,
                                      hipStream_t) {
    std::printf("%s %u %u %u\n", known()[handle].c_str(), grid.x, grid.y, block.x);
    return hipSuccess;
}
extern "C" const char* hipGetErrorString(hipError_t) { return ""; }

int main() {
    alignas(16) char memory[512];
    auto* p = reinterpret_cast<struct __half*>(memory);
    return gemm_launch(p, p, p, 200, 8, 8, nullptr) | gemm_launch(p, p, p, 8, 333, 7, nullptr);
}
"""


@pytest.mark.skipif(CLANG is None, reason="needs clang-22 (Debian: apt install clang-22 lld-22)")
@pytest.mark.parametrize("pie", ["-pie", "-no-pie"])
def test_the_launcher_names_the_compilers_handles(tmp_path: Path, pie: str) -> None:
    generate(str(SAMPLES / "gemm.py"), "-o", "out", "--launcher", "--target", "hip:gfx942")
    Path("host.h").write_text(HOST)
    Path("main.cpp").write_text(PROGRAM)
    compile_it = [
        CLANG, "-x", "hip", "--offload-arch=gfx942", "-nogpulib", "-nogpuinc", f"-I{PRELUDE}",
        "-include", "host.h", "-std=c++17", "-c", "out/gemm.hip", "-o", "gemm.o",
    ]  # fmt: skip
    link_it = [
        "g++", "-std=c++17", pie, f"-I{HEADERS / 'hip'}", "-Iout", "main.cpp",
        "out/gemm_launch.cpp", "gemm.o", "-o", "main",
    ]  # fmt: skip
    for command in (compile_it, link_it):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    done = subprocess.run(["./main"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["gemm 1 2 128", "gemm_any 3 1 128"]
