"""A program for Ascend: its launcher, put into C++, runs the kernel in the model of its cores."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from embed_programs import SAMPLES, generate, output_of

CLANG = shutil.which("clang-22")
ACL = Path(__file__).parents[2] / "runtime" / "emulate" / "host" / "include" / "ascendc"

PROGRAM = r"""
#include <acl/acl.h>

#include <cmath>
#include <cstdint>
#include <cstdio>

#include "add.h"

template <typename T>
static T* array(size_t count) {
    void* made = nullptr;
    aclrtMalloc(&made, count * sizeof(T), ACL_MEM_MALLOC_HUGE_FIRST);
    return static_cast<T*>(made);
}

int main() {
    if (aclInit(nullptr) || aclrtSetDevice(0)) return 1;
    aclrtStream stream = nullptr;
    if (aclrtCreateStream(&stream)) return 1;
    const int n = 5000;
    float *a = array<float>(n), *b = array<float>(n), *c = array<float>(n);
    for (int i = 0; i < n; ++i) a[i] = float(i), b[i] = float(2 * i);
    std::puts(add_launch_message(add_launch(a, b, c, n, stream)));
    float worst = 0;
    for (int i = 0; i < n; ++i) worst = std::fmax(worst, std::fabs(c[i] - 3 * float(i)));
    std::printf("%g\n", worst);
    std::puts(add_launch_message(add_launch(a, nullptr, c, n, stream)));
    std::puts(add_launch_message(add_launch(a, b, c, -1, stream)));
    std::puts(add_launch_message(add_launch(a, b, c, n + 3000, stream)));
}
"""


def test_a_program_runs_on_the_model(tmp_path: Path) -> None:
    generate(str(SAMPLES / "add.py"), "-o", "out", "--target", "ascendc", "--launcher")
    generate("emulate", "out", "-o", "emulated", "--check", "races,memory")
    Path("main.cpp").write_text(PROGRAM)
    command = [
        "g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-Iout", "-Iemulated/include/ascendc",
        "main.cpp", "emulated/add_launch.cpp", "emulated/libtile2c_emulated.so",
        "-Wl,-rpath,emulated", "-o", "main",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = output_of(Path("./main").resolve())
    assert lines[:5] == [
        "add: launched",
        "0",
        "add: B is null",
        "add: N is not within 0 to 2147418111",
        "the kernel did what it must not do",
    ]
    assert "add.ascendc.cpp: add: DataCopyPad reads bytes" in lines[5]


# What clang's CUDA mode asks of headers for a launch; grid and dynamic memory are numbers to Ascend.
CHEVRONS = """
#include <stdint.h>
#define __global__ __attribute__((global))
typedef uint8_t* GM_ADDR;
typedef int cudaError_t;
typedef struct CUstream_st* cudaStream_t;
struct dim3 {
    unsigned x;
    dim3(unsigned x) : x(x) {}
};
extern "C" unsigned __cudaPushCallConfiguration(dim3, dim3, unsigned long = 0, void* = nullptr);
extern "C" int cudaLaunchKernel(const void*, dim3, dim3, void**, unsigned long, void*);
"""
# The order of a launch's numbers differs from CUDA's: blocks, memory, stream.
LAUNCH = re.compile(r"<<<(\w+), 0, (\w+)>>>")


@pytest.mark.skipif(CLANG is None, reason="needs clang-22 (Debian: apt install clang-22)")
@pytest.mark.parametrize("name", ["softmax", "rms_norm", "column_sum"])
def test_a_launch_fits_its_kernel(tmp_path: Path, name: str) -> None:
    """Through a compiler that knows `<<<>>>`, with the kernels' declarations in their texts' place."""
    generate(str(SAMPLES / f"{name}.py"), "-o", "out", "--target", "ascendc", "--launcher")
    kernel, launcher = Path("out", f"{name}.ascendc.cpp"), Path("out", f"{name}_launch.cpp")
    heads = re.findall(r'^extern "C" __global__[^{]*', kernel.read_text(), re.MULTILINE)
    assert heads
    declared = "".join(f"{head.replace('__aicore__', '').strip()};\n" for head in heads)
    kernel.write_text(re.sub(r"//.*", "", declared))
    launcher.write_text(
        LAUNCH.sub(r"<<<\1, 0, 0, static_cast<cudaStream_t>(\2)>>>", launcher.read_text())
    )
    Path("chevrons.h").write_text(CHEVRONS)
    command = [
        CLANG, "-x", "cuda", "--cuda-host-only", "-nocudainc", "-nocudalib", "-std=c++17", "-include",
        "chevrons.h", f"-I{ACL}", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
        "-Wno-unknown-cuda-version", str(launcher),
    ]  # fmt: skip
    done = subprocess.run([str(w) for w in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
