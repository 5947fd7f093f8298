"""A program for Ascend: its launcher, put into C++, runs the kernel in the model of its cores."""

from __future__ import annotations

import subprocess
from pathlib import Path

from embed_programs import SAMPLES, generate, output_of

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
