"""A program for Cambricon: its launcher, put into C++, runs the kernel in the model of its cores."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from embed_programs import SAMPLES, generate, output_of

CLANG = shutil.which("clang-22")
CNRT = Path(__file__).parents[2] / "runtime" / "emulate" / "host" / "include" / "bang"

PROGRAM = r"""
#include <cnrt.h>

#include <cmath>
#include <cstdint>
#include <cstdio>

#include "add.h"

template <typename T>
static T* array(size_t count) {
    void* made = nullptr;
    cnrtMalloc(&made, count * sizeof(T));
    return static_cast<T*>(made);
}

int main() {
    cnrtQueue_t queue = nullptr;
    if (cnrtSetDevice(0) || cnrtQueueCreate(&queue)) return 1;
    const int n = 5000;
    float *a = array<float>(n), *b = array<float>(n), *c = array<float>(n);
    for (int i = 0; i < n; ++i) a[i] = float(i), b[i] = float(2 * i);
    std::puts(add_launch_message(add_launch(a, b, c, n, queue)));
    if (cnrtQueueSync(queue)) return 1;
    float worst = 0;
    for (int i = 0; i < n; ++i) worst = std::fmax(worst, std::fabs(c[i] - 3 * float(i)));
    std::printf("%g\n", worst);
    std::puts(add_launch_message(add_launch(a, nullptr, c, n, queue)));
    std::puts(add_launch_message(add_launch(a, b, c, -1, queue)));
    std::puts(add_launch_message(add_launch(a, b, c, n + 3000, queue)));
    std::printf("%d\n", cnrtGetLastError());
}
"""


def test_a_program_runs_on_the_model(tmp_path: Path) -> None:
    generate(str(SAMPLES / "add.py"), "-o", "out", "--target", "bang:mtp_592", "--launcher")
    generate("emulate", "out", "-o", "emulated", "--check", "races,memory")
    Path("main.cpp").write_text(PROGRAM)
    command = [
        "g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-Iout", "-Iemulated/include/bang",
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
    assert any("add.mlu: add: " in line for line in lines[5:])
    assert "0" in lines[5:]


# What clang's CUDA mode asks of headers for a launch; the language of `.mlu` is clang's too.
CHEVRONS = """
#include <cnrt.h>
#include <stdint.h>
#define __mlu_global__ __attribute__((global))
struct half;
struct bfloat16_t;
typedef int cudaError_t;
typedef struct CUstream_st* cudaStream_t;
struct dim3 {
    unsigned x;
    dim3(cnrtDim3_t tasks) : x(tasks.x) {}
    dim3(cnrtFunctionType_t) : x(1) {}
};
extern "C" unsigned __cudaPushCallConfiguration(dim3, dim3, unsigned long = 0, void* = nullptr);
extern "C" int cudaLaunchKernel(const void*, dim3, dim3, void**, unsigned long, void*);
"""


@pytest.mark.skipif(CLANG is None, reason="needs clang-22 (Debian: apt install clang-22)")
@pytest.mark.parametrize("name", ["softmax", "varlen_attention", "gemm_bias_relu", "top_k"])
def test_a_launch_fits_its_kernel(tmp_path: Path, name: str) -> None:
    """Through a compiler that knows `<<<>>>`, with the kernels' declarations in their texts' place."""
    generate(str(SAMPLES / f"{name}.py"), "-o", "out", "--target", "bang:mtp_592", "--launcher")
    kernel, launcher = Path("out", f"{name}.mlu"), Path("out", f"{name}_launch.mlu")
    heads = [part.partition("{")[0] for part in kernel.read_text().split('\nextern "C" ')[1:]]
    assert heads
    kernel.write_text("".join(f'extern "C" {head};\n' for head in heads))
    text = launcher.read_text()
    launched = "cnrtFuncTypeBlock, queue>>>"
    assert text.count(launched) == text.count("<<<")
    text = text.replace(launched, "cnrtFuncTypeBlock, 0, reinterpret_cast<cudaStream_t>(queue)>>>")
    launcher.write_text(text)
    Path("chevrons.h").write_text(CHEVRONS)
    command = [
        CLANG, "-x", "cuda", "--cuda-host-only", "-nocudainc", "-nocudalib", "-std=c++17", "-include",
        "chevrons.h", f"-I{CNRT}", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
        "-Wno-unknown-cuda-version", str(launcher),
    ]  # fmt: skip
    done = subprocess.run([str(w) for w in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
