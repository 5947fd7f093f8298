"""Kernels in a program's file, beside its host code: as vendors publish their samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tile2c.runtime.emulate import TensorArgument, ValueArgument, load_program
from tile2c.runtime.emulate.__main__ import main
from tile2c.runtime.errors import KernelError

PROGRAM = """\
#include "pieces.h"
#include "from_elsewhere.hpp"
#include <hip/hip_runtime.h>
#include <iostream>
#include <vector>

#define CHECK(call)                    \\
    if (call) {                        \\
        std::cerr << "wrong";          \\
    }

namespace { constexpr int kept = 16; }
const int also_kept = 2;
std::vector<float> gone{1.f, 2.f};

template <int width, typename T>
__global__ void turn(const T* in, T* out, Shape shape) {
    __shared__ T tile[width][width];
    tile[threadIdx.y][threadIdx.x] = twice(in[threadIdx.y * shape.columns + threadIdx.x]);
    __syncthreads();
    out[threadIdx.y * width + threadIdx.x] = tile[threadIdx.x][threadIdx.y] * T(also_kept);
}

void launch(const float* in, float* out) {
    CHECK(hipMemset(out, 0, 4));
    turn<kept, float><<<1, dim3(kept, kept)>>>(in, out, Shape{kept});
}

__global__ void out_of_bounds(float* x) { x[threadIdx.x + 1] = 0; }

int main() { std::cout << "host" << std::endl; }
"""
PIECES = """\
#pragma once
#include <cstdint>
struct Shape { int32_t columns; };
__device__ inline float twice(float x) { return 2 * x; }
inline void host_only(std::vector<int>& x) { x.clear(); }
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "pieces.h").write_text(PIECES)
    path = tmp_path / "main.hip"
    path.write_text(PROGRAM)
    return path


@pytest.mark.parametrize("target", ["hip:gfx942", "dcu:gfx936"])
def test_a_template_of_a_program(program: Path, target: str) -> None:
    family, _, arch = target.partition(":")
    name = "turn<16, float>"
    checks = frozenset({"races", "memory"})
    module = load_program(program, family=family, arch=arch, kernels=(name,), checks=checks)
    x = np.arange(256, dtype=np.float32).reshape(16, 16)
    y = np.zeros_like(x)
    given = [TensorArgument(n, a.ctypes.data, a.nbytes, True, a) for n, a in (("x", x), ("y", y))]
    module.launch(name, (1, 1, 1), (16, 16, 1), 0, [*given, ValueArgument(np.int32(16).tobytes())])
    np.testing.assert_array_equal(y, 4 * x.T)


def test_reports_name_the_authors_line(program: Path) -> None:
    module = load_program(
        program,
        family="hip",
        arch="gfx942",
        kernels=("out_of_bounds",),
        checks=frozenset({"memory"}),
    )
    x = np.zeros(4, np.float32)
    with pytest.raises(KernelError) as caught:
        module.launch(
            "out_of_bounds",
            (1, 1, 1),
            (4, 1, 1),
            0,
            [TensorArgument("x", x.ctypes.data, 16, True, x)],
        )
    line = next(n for n, row in enumerate(program.read_text().splitlines(), 1) if "out_of_b" in row)
    assert caught.value.line == line


def test_the_command(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = program.parent / "y.npy"
    arguments = [str(program), "--target", "hip:gfx1100", "--kernel", "turn<16, float>", "--block",
                 "16,16", "--check", "races", "--save", f"1={wanted}", "float32[16,16]=count",
                 "float32[16,16]", "int32=16"]  # fmt: skip
    assert main(arguments) == 0
    assert "1: float32[16,16]  sum 130560, starts 0 64 128" in capsys.readouterr().out
    np.testing.assert_array_equal(np.load(wanted)[0, :3], [0, 64, 128])
    assert main([*arguments[:4], "missing", *arguments[5:]]) == 1
    assert "the file has no kernel missing" in capsys.readouterr().err
