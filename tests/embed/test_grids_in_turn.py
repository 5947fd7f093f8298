"""Launchers of kernels whose blocks take the grid's tiles in turn: refused is what a grid of blocks is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tile2c
from embed_programs import HEAD, compiled, generate, output_of
from tile2c.runtime.grid import GridError

SHRUNK = (
    HEAD
    + """
M, N, K = T.dynamic("M, N, K")


@T.prim_func
def shrunk(
    A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16"),
):
    with T.Kernel((N - 64) // 64, (M - 128) // 128, threads=256) as (bx, by):
        A_shared = T.alloc_shared((128, 64), "float16")
        B_shared = T.alloc_shared((64, 64), "float16")
        sums = T.alloc_fragment((128, 64), "float32")
        T.clear(sums)
        for k in T.Pipelined(T.ceildiv(K, 64), num_stages=2):
            T.copy(A[by * 128, k * 64], A_shared)
            T.copy(B[k * 64, bx * 64], B_shared)
            T.gemm(A_shared, B_shared, sums)
        T.copy(sums, C[by * 128, bx * 64])
"""
)
PROGRAM = r"""
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstdio>

#include "shrunk.h"

int main() {
    void* p = nullptr;
    if (cudaMalloc(&p, 256 * 256 * 2)) return 1;
    auto* h = static_cast<__half*>(p);
    const int64_t huge = 2000000000;
    const int64_t sizes[][2] = {{256, 64}, {0, 64}, {256, 0}, {0, 0}, {128, 0}, {huge, huge}};
    for (auto& size : sizes)
        std::puts(shrunk_launch_message(shrunk_launch(h, h, h, size[0], size[1], 64, nullptr)));
}
"""
NEGATIVE = "shrunk: the sizes ask for a grid with a negative side"
TOO_LARGE = "shrunk: the sizes ask for more blocks than a grid can have"


@pytest.mark.parametrize("target", ["cuda:sm_90a", "cuda:sm_80"])
def test_a_grid_that_is_none_is_refused_by_launchers(tmp_path: Path, target: str) -> None:
    """No tiles along one side are nothing to do; a negative side is refused, also beside an empty one."""
    out, source = tmp_path / "out", tmp_path / "shrunk.py"
    source.write_text(SHRUNK)
    generate(str(source), "-o", str(out), "--target", target, "--launcher")
    told = output_of(compiled(PROGRAM, out))
    assert told[0] == "shrunk: launched" and told[1:5] == [NEGATIVE] * 4
    assert told[5] == TOO_LARGE


@pytest.mark.parametrize("target", ["cuda:sm_90a", "cuda:sm_80", "ascendc", "bang"])
def test_a_grid_that_is_none_is_refused_in_python(tmp_path: Path, target: str) -> None:
    source = tmp_path / "shrunk.py"
    source.write_text(SHRUNK)
    (kernel,) = tile2c.build(source, tmp_path / "out", target, backend="emulate").values()
    for m, n in ((0, 64), (256, 0), (0, 0), (128, 0)):
        with pytest.raises(GridError, match=r"the grid has -\d blocks along [xy]"):
            kernel(np.zeros((m, 64), np.float16), np.zeros((64, n), np.float16))
    assert kernel(np.zeros((256, 64), np.float16), np.zeros((64, 64), np.float16)).shape == (
        256,
        64,
    )
