"""C++ programs call launchers of emulated kernels: results, refusals, threads, several kernels."""

from __future__ import annotations

from pathlib import Path

import pytest
from embed_programs import MIXED, SAMPLES, compiled, generate, output_of

GEMM = r"""
#include <%(vendor_half)s>
#include <%(vendor)s>

#include <cmath>
#include <cstdio>
#include <thread>
#include <vector>

#include "add.h"
#include "gemm.h"

static double error(int M, int N, int K) {
    std::vector<__half> a(M * K), b(K * N), c(M * N);
    for (int i = 0; i < M * K; ++i) a[i] = __float2half(float(i %% 7) - 3);
    for (int i = 0; i < K * N; ++i) b[i] = __float2half(float(i %% 5) - 2);
    __half *A, *B, *C;
    if (%(api)sMalloc(&A, a.size() * 2) || %(api)sMalloc(&B, b.size() * 2)) return 1e9;
    if (%(api)sMalloc(&C, c.size() * 2)) return 1e9;
    (void)%(api)sMemcpy(A, a.data(), a.size() * 2, %(api)sMemcpyHostToDevice);
    (void)%(api)sMemcpy(B, b.data(), b.size() * 2, %(api)sMemcpyHostToDevice);
    if (int status = gemm_launch(A, B, C, M, N, K, nullptr)) return status;
    (void)%(api)sMemcpy(c.data(), C, c.size() * 2, %(api)sMemcpyDeviceToHost);
    double worst = 0;
    for (int i = 0; i < M; ++i)
        for (int j = 0; j < N; ++j) {
            float sum = 0;
            for (int k = 0; k < K; ++k) sum += __half2float(a[i * K + k]) * __half2float(b[k * N + j]);
            worst = std::fmax(worst, std::fabs(sum - __half2float(c[i * N + j])));
        }
    (void)%(api)sFree(A), (void)%(api)sFree(B), (void)%(api)sFree(C);
    return worst;
}

static void refused(int status) { std::puts(gemm_launch_message(status)); }

int main() {
    std::printf("%%g %%g %%g\n", error(40, 72, 48), error(33, 17, 21), error(0, 8, 8));
    double threads[2];
    std::thread one([&] { threads[0] = error(16, 16, 16); }), two([&] { threads[1] = error(8, 8, 8); });
    one.join(), two.join();
    std::printf("%%g %%g\n", threads[0], threads[1]);
    float* x = nullptr;
    (void)%(api)sMalloc(&x, 400);
    std::printf("%%d\n", add_launch(x, x, x, 100, nullptr));
    void* p = nullptr;
    (void)%(api)sMalloc(&p, 512);
    auto* h = static_cast<__half*>(p);
    refused(gemm_launch(h, nullptr, h, 8, 8, 8, nullptr));
    refused(gemm_launch(h, h, h, -1, 8, 8, nullptr));
    refused(gemm_launch(h, h, h, 8, int64_t(1) << 33, 8, nullptr));
    refused(gemm_launch(h, h, h, (1 << 24), 8, 8, nullptr));
    refused(gemm_launch(h, h, h, 64, 8, 8, nullptr));
}
"""
_CUDA = {"vendor": "cuda_runtime_api.h", "vendor_half": "cuda_fp16.h", "api": "cuda"}
VENDORS = {
    "cuda": _CUDA,
    "corex": _CUDA,
    "hip": {"vendor": "hip/hip_runtime_api.h", "vendor_half": "hip/hip_fp16.h", "api": "hip"},
    "musa": {"vendor": "musa_runtime.h", "vendor_half": "musa_fp16.h", "api": "musa"},
    "maca": {"vendor": "mc_runtime.h", "vendor_half": "common/maca_fp16.h", "api": "mc"},
    "ppu": {"vendor": "hggc_runtime_api.h", "vendor_half": "hggc_fp16.h", "api": "hggc"},
}
TARGETS = (
    "cuda:sm_80", "cuda:sm_90a", "hip:gfx942", "musa:mp_22", "maca:xcore1000", "corex:ivcore11",
    "ppu:ppu_10",
)  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_a_program_runs_on_the_cpu(tmp_path: Path, target: str) -> None:
    out, family = tmp_path / "out", target.partition(":")[0]
    sources = [str(SAMPLES / name) for name in ("gemm.py", "add.py")]
    # Tiles of 64 rows have a block each there; blocks that take tiles in turn are never too many.
    rows = ["-D", "gemm.block_M=64"] if target == "cuda:sm_90a" else []
    generate(*sources, "-o", str(out), "--target", target, "--launcher", *rows)
    program = compiled(GEMM % VENDORS[family], out, family)
    lines = output_of(program)
    assert lines[:3] == ["0 0 0", "0 0", "0"]
    assert lines[3:7] == [
        "gemm: B is null",
        "gemm: M is not within 0 to 2147418111",
        "gemm: N is not within 0 to 2147418111",
        "gemm: the sizes ask for more blocks than a grid can have",
    ]
    # The arrays are too small for these sizes: the emulator says where the kernel reads too far.
    assert lines[7] == "the kernel did what it must not do"
    assert "outside every tensor" in lines[8] and " at line " in lines[8]


CONVOLUTION = r"""
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstdio>

#include "conv2d.h"

int main() {
    const int N = 2, H = 5, W = 6, C = 64, F = 8;
    void *d, *k, *o;
    if (cudaMalloc(&d, N * H * W * C * 2) || cudaMalloc(&k, 9 * C * F * 2)) return 1;
    if (cudaMalloc(&o, N * H * W * F * 2)) return 1;
    auto data = static_cast<__half*>(d), kernel = static_cast<__half*>(k);
    auto out = static_cast<__half*>(o);
    for (int i = 0; i < N * H * W * C; ++i) data[i] = __float2half_rn(float(i % 3));
    for (int i = 0; i < 9 * C * F; ++i) kernel[i] = __float2half_rn(float(i % 5 - 2));
    if (int status = conv2d_launch(data, kernel, out, N, nullptr))
        return std::puts(conv2d_launch_message(status)), 1;
    int wrong = 0;
    for (int n = 0; n < N; ++n)
        for (int y = 0; y < H; ++y)
            for (int x = 0; x < W; ++x)
                for (int f = 0; f < F; ++f) {
                    float sum = 0;
                    for (int t = 0; t < 9; ++t) {
                        const int v = y + t / 3 - 1, u = x + t % 3 - 1;
                        if (v < 0 || v >= H || u < 0 || u >= W) continue;
                        for (int c = 0; c < C; ++c)
                            sum += __half2float(data[((n * H + v) * W + u) * C + c]) *
                                   __half2float(kernel[(t * C + c) * F + f]);
                    }
                    wrong += __half2float(out[((n * H + y) * W + x) * F + f]) != sum;
                }
    std::printf("%d wrong\n", wrong);
}
"""


def test_images_are_loaded_through_a_map_of_their_own_kind(tmp_path: Path) -> None:
    out = tmp_path / "out"
    sizes = ("H=5", "W=6", "C=64", "F=8", "block_M=64", "block_N=64", "block_K=64")
    defines = [part for size in sizes for part in ("-D", size)]
    target = ("--target", "cuda:sm_90a")
    generate(str(SAMPLES / "conv2d.py"), "-o", str(out), *target, "--launcher", *defines)
    assert "encode_im2col(&data_map" in (out / "conv2d_launch.cpp").read_text()
    assert output_of(compiled(CONVOLUTION, out)) == ["0 wrong"]


PROGRAM = r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <vector>

#include "mixed.h"

int main() {
    const int M = 37;
    void *a, *r, *s, *h, *w;
    const size_t bytes = mixed_workspace_bytes(M);
    if (cudaMalloc(&a, M * 128) || cudaMalloc(&r, 64) || cudaMalloc(&s, M * 256)) return 1;
    if (cudaMalloc(&h, M * 2) || cudaMalloc(&w, bytes)) return 1;
    for (int i = 0; i < M * 64; ++i) static_cast<__half*>(a)[i] = __float2half_rn(float(i % 9));
    for (int i = 0; i < 64; ++i) static_cast<int8_t*>(r)[i] = int8_t(i - 32);
    for (int i = 0; i < M; ++i) static_cast<__nv_bfloat16*>(h)[i] = __float2bfloat16_rn(float(i));
    auto launch = [&](void* work, size_t size, int n) {
        return mixed_launch(static_cast<__half*>(a), static_cast<int8_t*>(r), 0.5f, 2.f, n,
                            static_cast<float*>(s), static_cast<__nv_bfloat16*>(h), M, work, size,
                            nullptr);
    };
    double worst = 0;
    for (int n : {3, 4}) {
        if (int status = launch(w, bytes, n)) return std::puts(mixed_launch_message(status)), 1;
        for (int i = 0; i < M; ++i)
            for (int j = 0; j < 64; ++j) {
                const double sum = (i * 64 + j) % 9 * 0.5 + (j - 32) + i, want = n > 3 ? 2 * sum : sum;
                const double got = static_cast<float*>(s)[i * 64 + j];
                worst = got - want > worst ? got - want : want - got > worst ? want - got : worst;
            }
    }
    std::printf("%g\n", worst);
    std::puts(mixed_launch_message(launch(w, bytes - 1, 3)));
    std::puts(mixed_launch_message(launch(static_cast<char*>(w) + 16, bytes, 3)));
    std::puts(mixed_launch_message(launch(nullptr, bytes, 3)));
}
"""


def test_scalars_scratch_memory_and_conditional_launches(tmp_path: Path) -> None:
    (tmp_path / "mixed.py").write_text(MIXED)
    generate("mixed.py", "-o", "out", "--launcher")
    assert output_of(compiled(PROGRAM, tmp_path / "out")) == [
        "0",
        "mixed: the workspace is too small",
        "mixed: the workspace does not start at a multiple of 256 bytes",
        "mixed: the workspace is null",
    ]
