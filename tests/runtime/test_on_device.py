"""The CUDA backend on a real device; skipped where there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import manifests
import numpy as np
import pytest
import tile2c
from tile2c.runtime.errors import BackendUnavailable

COPY = (
    manifests.HEADER.format(name="copy", what="B = A, tile by tile").replace("sm_80", "sm_90a")
    + """\
#include <cuda_fp16.h>

struct alignas(64) TensorMap {
    unsigned char bytes[128];
};

extern "C" __global__ void copy(const __grid_constant__ TensorMap A_map, half* B, int M, int K) {
    __shared__ __align__(128) half tile[64][64];
    __shared__ unsigned long long arrived;
    const unsigned bar = __cvta_generic_to_shared(&arrived);
    const unsigned dst = __cvta_generic_to_shared(&tile[0][0]);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 8192;" ::"r"(bar)
                     : "memory");
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
            "[%0], [%1, {%3, %4}], [%2];" ::"r"(dst), "l"(&A_map), "r"(bar),
            "r"(int(blockIdx.x * 64)), "r"(int(blockIdx.y * 64)) : "memory");
    }
    __syncthreads();
    unsigned done = 0;
    while (!done)
        asm volatile(
            "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; "
            "selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(bar) : "memory");
    for (int i = threadIdx.x; i < 64 * 64; i += 128) {
        const int row = blockIdx.y * 64 + i / 64, col = blockIdx.x * 64 + i % 64;
        if (row < M && col < K) B[size_t(row) * K + col] = tile[i / 64][i % 64];
    }
}
"""
)


def copy_entry() -> dict[str, Any]:
    tensor = {"kind": "tensor", "dtype": "float16", "shape": ["M", "K"]}
    tensor_map = {
        "kind": "tensor_map",
        "name": "A_map",
        "tensor": "A",
        "dtype": "float16",
        "dims": ["K", "M"],
        "strides": ["2 * K"],
        "box": [64, 64],
        "element_strides": [1, 1],
        "swizzle": "none",
        "l2": "128B",
        "fill": "zeros",
    }
    launch = {
        "group": 0,
        "when": None,
        "entry": "copy",
        "grid": ["(K + 63) / 64", "(M + 63) / 64", "1"],
        "block": [128, 1, 1],
        "shared_bytes": 0,
        "cluster": None,
        "args": [
            tensor_map,
            {"kind": "tensor", "name": "B"},
            {"kind": "size", "name": "M"},
            {"kind": "size", "name": "K"},
        ],
    }
    return manifests.add_entry(
        name="copy",
        target="cuda:sm_90a",
        file="copy.cu",
        entry="copy",
        sizes=["M", "K"],
        args=[{**tensor, "name": "A", "role": "in"}, {**tensor, "name": "B", "role": "out"}],
        launch=[launch],
    )


@pytest.fixture
def add(tmp_path: Path) -> Any:
    manifests.write(tmp_path, manifests.add_entry())
    try:
        return tile2c.load(tmp_path, backend="cuda")["add"]
    except BackendUnavailable as error:
        pytest.skip(str(error))


def test_numpy_in_numpy_out(add: Any) -> None:
    a, b = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    np.testing.assert_array_equal(add(a, b, 2.0), 2 * a + b)
    times = add.time(a, b, 2.0, repeat=10)
    assert len(times) == 10 and all(0 < time < 100 for time in times)


def test_torch_streams_and_graphs(add: Any) -> None:
    torch = pytest.importorskip("torch")
    a, b = (torch.rand(1000, device="cuda") for _ in range(2))
    c = add(a, b, 2.0)
    assert c.device == a.device
    torch.testing.assert_close(c, 2 * a + b)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        add(a, b, c, 3.0)
    stream.synchronize()
    torch.testing.assert_close(c, 3 * a + b)
    add(a, b, c, 4.0, stream=stream)
    stream.synchronize()
    torch.testing.assert_close(c, 4 * a + b)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        add(a, b, c, 5.0)
    c.zero_()
    graph.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(c, 5 * a + b)


def test_cupy(add: Any) -> None:
    cupy = pytest.importorskip("cupy")
    a, b = cupy.arange(1000, dtype="float32"), cupy.ones(1000, dtype="float32")
    c = add(a, b, 2.0)
    assert isinstance(c, cupy.ndarray) and bool((c == 2 * a + b).all())


@pytest.mark.parametrize("shape", [(200, 136), (64, 64), (1, 8)])
def test_tensor_maps(tmp_path: Path, shape: tuple[int, int]) -> None:
    manifests.write(tmp_path, copy_entry(), texts={"copy.cu": COPY})
    try:
        copy = tile2c.load(tmp_path, backend="cuda")["copy"]
    except BackendUnavailable as error:
        pytest.skip(str(error))
    a = np.random.default_rng(0).random(shape).astype(np.float16)
    np.testing.assert_array_equal(copy(a), a)
    with pytest.raises(ValueError, match="not a multiple of 16"):
        copy(np.zeros((3, 9), np.float16))


@pytest.mark.parametrize("shape", [(200, 136), (1, 8)])
def test_the_emulator_reads_the_same_maps(tmp_path: Path, shape: tuple[int, int]) -> None:
    manifests.write(tmp_path, copy_entry(), texts={"copy.cu": COPY})
    copy = tile2c.load(tmp_path, backend="emulate", check="races,memory")["copy"]
    try:
        copy.prepare()
    except tile2c.KernelError as error:
        if "no model of" not in str(error):
            raise
        pytest.skip(str(error))
    a = np.random.default_rng(0).random(shape).astype(np.float16)
    np.testing.assert_array_equal(copy(a), a)
