"""Shuffles, votes, barriers and atomics."""

# ruff: noqa: E501 - the cases are tables, one a line
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tile2c.runtime.errors import KernelError, RaceError

HEAD = 'extern "C" __global__ void k('


def lanes(body: str, out: str = "int") -> str:
    return f"{HEAD}const int* x, {out}* z) {{\n    const int t = threadIdx.x;\n    {body}\n}}\n"


X = np.random.default_rng(5).integers(-100, 100, 32).astype(np.int32)
LANE = np.arange(32)


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        ("__shfl_sync(~0u, x[t], 5)", np.full(32, X[5])),
        ("__shfl_sync(~0u, x[t], t + 1)", X[(LANE + 1) % 32]),
        ("__shfl_sync(~0u, x[t], 9, 8)", X[LANE // 8 * 8 + 1]),
        ("__shfl_xor_sync(~0u, x[t], 16)", X[LANE ^ 16]),
        ("__shfl_down_sync(~0u, x[t], 3)", X[np.where(LANE + 3 < 32, LANE + 3, LANE)]),
        ("__shfl_down_sync(~0u, x[t], 3, 8)", X[np.where(LANE % 8 + 3 < 8, LANE + 3, LANE)]),
        ("__shfl_up_sync(~0u, x[t], 2, 16)", X[np.where(LANE % 16 >= 2, LANE - 2, LANE)]),
        ("__ballot_sync(~0u, x[t] > 0)", np.full(32, sum(1 << int(i) for i in LANE if X[i] > 0)).astype(np.uint32).view(np.int32)),
        ("__any_sync(~0u, t == 3) + 2 * __all_sync(~0u, t < 32)", np.full(32, 3)),
        ("__reduce_add_sync(~0u, x[t])", np.full(32, X.sum())),
        ("__reduce_min_sync(~0u, x[t])", np.full(32, X.min())),
        ("(int)__reduce_max_sync(~0u, (unsigned)x[t])", np.full(32, X.view(np.uint32).max()).view(np.int32)[:32]),
        ("(int)__match_any_sync(~0u, t / 8)", np.array([0xFF << (int(l) // 8 * 8) for l in LANE], np.uint32).view(np.int32)),
        ("__syncthreads_count(x[t] > 0)", np.full(32, (X > 0).sum())),
        ("__syncthreads_or(t == 40) + 2 * __syncthreads_and(t < 40)", np.full(32, 2)),
        ("__popc(x[t]) + __clz(x[t]) + __ffs(x[t])", np.array([int(np.uint32(x)).bit_count() + (32 - int(np.uint32(x)).bit_length())
          + ((int(x) & -int(x)).bit_length()) for x in X])),
    ],
)  # fmt: skip
def test_lane_functions(run: Any, call: str, wanted: np.ndarray) -> None:
    z = np.zeros(32, np.int32)
    run(lanes(f"z[t] = {call};"), "k", {"x": X, "z": z}, reads=("x",))
    np.testing.assert_array_equal(z, wanted.astype(np.int32))


def test_parts_of_a_warp_go_separate_ways(run: Any) -> None:
    body = """
    int v = x[t];
    if (t < 12) { for (int d = 4; d; d /= 2) v += __shfl_xor_sync(t < 8 ? 0xffu : 0xf00u, v, d % (t < 8 ? 8 : 4)); }
    else v = __shfl_sync(0xfffff000u, v, 31);
    z[t] = v;"""
    z = np.zeros(32, np.int32)
    run(lanes(body), "k", {"x": X, "z": z}, reads=("x",))
    assert (z[:8] == X[:8].sum()).all()
    assert (z[12:] == X[31]).all()


def test_block_of_24_threads(run: Any) -> None:
    z = np.zeros(24, np.int32)
    body = "z[t] = __shfl_down_sync(~0u, x[t], 16) ; __syncthreads();"
    run(lanes(body), "k", {"x": X, "z": z}, reads=("x",), block=(24, 1, 1))
    np.testing.assert_array_equal(z[:8], X[16:24])
    assert (z[8:16] == -1).all()  # lanes 24 to 31 are not there: no value


def test_own_lane_must_be_in_the_mask(run: Any) -> None:
    with pytest.raises(KernelError, match="leaves out its own lane") as caught:
        run(lanes("z[t] = __shfl_sync(0xffu, x[t], 0);"), "k", {"x": X, "z": X.copy()})
    assert caught.value.line == 3


ATOMICS = """#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" __global__ void k(int* i, unsigned* u, float* f, double* d, unsigned long long* q, __half* h,
                             __half2* h2, __nv_bfloat16* b) {
    __shared__ int s[4];
    const int t = threadIdx.x, g = blockIdx.x * 32 + t;
    if (t < 4) s[t] = t == 2 ? 1000 : 0;
    __syncthreads();
    atomicAdd(&s[0], t); atomicMax(&s[1], t); atomicMin(&s[2], t - 5); atomicXor((unsigned*)&s[3], 1u << t);
    __syncthreads();
    if (t == 0) for (int n = 0; n < 4; ++n) atomicAdd(&i[n], s[n]);
    atomicAdd(u, 1); atomicInc(u + 1, 9); atomicOr(u + 2, 1u << t); atomicExch(u + 3, 7);
    atomicAdd(f, 0.5f); atomicMax((int*)f + 1, __float_as_int((float)g)); atomicAdd(d, 0.25);
    atomicAdd(q, 1ull << 32); atomicMax(q + 1, (unsigned long long)g);
    atomicAdd(h, __half(1)); atomicAdd(h2, __floats2half2_rn(1.f, 2.f)); atomicAdd(b, __nv_bfloat16(1.f));
    unsigned seen = *(volatile unsigned*)(u + 4), next;
    (void)seen;
    do { next = atomicAdd(u + 4, 0); } while (atomicCAS(u + 4, next, next + 3) != next);
}
"""


@pytest.mark.parametrize("checks", [frozenset({"memory"}), frozenset()])
def test_atomics(run: Any, checks: frozenset[str]) -> None:
    i, u, f, d = np.zeros(4, np.int32), np.zeros(5, np.uint32), np.zeros(2, np.float32), np.zeros(1)
    q, h, h2 = np.zeros(2, np.uint64), np.zeros(1, np.float16), np.zeros(2, np.float16)
    b = np.zeros(1, np.uint16)
    args = {"i": i, "u": u, "f": f, "d": d, "q": q, "h": h, "h2": h2, "b": b}
    run(ATOMICS, "k", args, grid=(8, 1, 1), checks=checks)
    assert list(i[:3]) == [8 * 496, 8 * 31, 8 * -5] and i[3] == np.int64(8) * -1
    assert list(u) == [256, 256 % 10, 0xFFFFFFFF, 7, 768]
    assert f[0] == 128 and f[1] == 255 and d[0] == 64
    assert list(q) == [256 << 32, 255]
    assert h[0] == 256 and list(h2) == [256, 512] and b[0] == 0x4380


def test_plain_read_beside_atomics_races(run: Any) -> None:
    args = {"i": np.zeros(4, np.int32), "u": np.zeros(5, np.uint32), "f": np.zeros(2, np.float32),
            "d": np.zeros(1), "q": np.zeros(2, np.uint64), "h": np.zeros(1, np.float16),
            "h2": np.zeros(2, np.float16), "b": np.zeros(1, np.uint16)}  # fmt: skip
    with pytest.raises(RaceError, match="race in u, byte 16"):
        run(ATOMICS, "k", args, grid=(8, 1, 1))


LAST_BLOCK = """extern "C" __global__ void k(const int* x, int* parts, unsigned* count, int* sum) {
    __shared__ bool last;
    const int t = threadIdx.x;
    parts[blockIdx.x * 32 + t] = x[blockIdx.x * 32 + t];
    FENCE;
    __syncthreads();
    if (t == 0) last = TICKET == gridDim.x - 1;
    __syncthreads();
    if (last && t == 0) {
        __threadfence();
        int all = 0;
        for (int i = 0; i < 32 * gridDim.x; ++i) all += parts[i];
        *sum = all;
    }
}
"""


def last_block(run: Any, fence: str, ticket: str) -> int:
    x = np.arange(256, dtype=np.int32)
    parts, count, total = np.zeros(256, np.int32), np.zeros(1, np.uint32), np.zeros(1, np.int32)
    text = LAST_BLOCK.replace("FENCE", fence).replace("TICKET", ticket)
    args = {"x": x, "parts": parts, "count": count, "sum": total}
    run(text, "k", args, grid=(8, 1, 1), reads=("x",))
    return int(total[0])


def test_fence_and_atomic_order_blocks(run: Any) -> None:
    assert last_block(run, "__threadfence()", "atomicAdd(count, 1)") == 255 * 128
    # The fence of thread 0 after the barrier stands for all: what it knows is released.
    assert last_block(run, "", "(__threadfence(), atomicAdd(count, 1))") == 255 * 128


def test_without_a_fence_blocks_race(run: Any) -> None:
    with pytest.raises(RaceError, match=r"race in parts.*no order between the two blocks"):
        last_block(run, "", "atomicAdd(count, 1)")
