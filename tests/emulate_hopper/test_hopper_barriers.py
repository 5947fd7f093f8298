"""mbarriers, clusters, cp.async arrivals, elections and register budgets, one small kernel each."""

# ruff: noqa: E501  (texts of kernels)
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tile2c.runtime.errors import AccessError, KernelError, RaceError

sys.path.insert(0, str(Path(__file__).parent))
from hopper_harness import BOTH, NONE, launch, tensor, tensor_map

Array = np.ndarray[Any, Any]
PRELUDE = """
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
static __device__ __forceinline__ unsigned shared_addr(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
static __device__ __forceinline__ void barrier_init(unsigned long long* bar, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(shared_addr(bar)), "r"(count) : "memory");
}
static __device__ __forceinline__ void barrier_arrive(unsigned long long* bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(shared_addr(bar)) : "memory");
}
static __device__ __forceinline__ void barrier_wait(unsigned long long* bar, unsigned parity) {
    asm volatile("{\\n.reg .pred p;\\nwait_%=:\\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\\n@!p bra wait_%=;\\n}"
                 :: "r"(shared_addr(bar)), "r"(parity) : "memory");
}
#if __CUDA_ARCH__ >= 900
static __device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
#endif
"""


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


def go(
    tmp_path: Path,
    body: str,
    out: Array,
    *more: Array,
    bounds: str = "",
    block: int = 64,
    grid: int = 1,
    cluster: int = 1,
    checks: frozenset[str] = BOTH,
    arch: str = "sm_90a",
) -> None:
    """Runs `body` as a kernel with arrays out, a, b, c of int."""
    names = ["out", "a", "b", "c"][: 1 + len(more)]
    parameters = ", ".join(f"int* {name}" for name in names)
    text = f'{PRELUDE}extern "C" __global__ void {bounds} kernel({parameters}) {{\n{body}\n}}\n'
    path = tmp_path / "kernel.cu"
    path.write_text(text)
    launch(
        path,
        "kernel",
        [tensor(name, array) for name, array in zip(names, (out, *more), strict=True)],
        block=(block, 1, 1),
        grid=(grid, 1, 1),
        checks=checks,
        cluster=(cluster, 1, 1),
        arch=arch,
    )


# Two threads hand an array to and fro: 32 fill it, the others read it, four times.
RELAY = """
    __shared__ int box[32];
    __shared__ unsigned long long full, empty;
    if (threadIdx.x == 0) { barrier_init(&full, 32); barrier_init(&empty, 32); }
    __syncthreads();
    const int lane = threadIdx.x % 32;
    for (int round = 0; round < 4; ++round) {
        if (threadIdx.x < 32) {
            barrier_wait(&empty, (round & 1) ^ 1);
            box[lane] = 100 * round + lane;
            barrier_arrive(&full);
        } else {
            barrier_wait(&full, round & 1);
            out[round * 32 + lane] = box[31 - lane];
            barrier_arrive(&empty);
        }
    }
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("checks", [NONE, BOTH, frozenset({"races"}), frozenset({"memory"})])
def test_relay(tmp_path: Path, checks: frozenset[str], arch: str) -> None:
    out = np.zeros(128, np.int32)
    go(tmp_path, RELAY, out, checks=checks, arch=arch)
    wanted = 100 * np.arange(4)[:, None] + 31 - np.arange(32)
    np.testing.assert_array_equal(out, wanted.ravel())


@pytest.mark.parametrize(
    ("old", "new", "error", "words"),
    [
        ("            barrier_wait(&full, round & 1);\n", "", RaceError, "race in box"),
        ("            barrier_wait(&empty, (round & 1) ^ 1);\n", "", KernelError, ""),
        ("barrier_wait(&empty, (round & 1) ^ 1)", "barrier_wait(&empty, round & 1)", KernelError,
         "in mbarrier.try_wait for the mbarrier empty, byte 0, whose phase 0 lacks 32"),
        ("            barrier_arrive(&empty);\n", "", KernelError, "mbarrier empty, byte 0, whose phase 0 lacks 32 of 32"),
        ("barrier_init(&full, 32)", "barrier_init(&full, 33)", KernelError, "lacks 1 of 33"),
        ("barrier_init(&full, 32)", "barrier_init(&full, 16)", KernelError, "are 16 arrivals a phase too few?"),
        ("    __syncthreads();\n", "", RaceError, "what thread 0 of block (0, 0) writes"),
        ("barrier_init(&empty, 32);", "", KernelError, "no mbarrier.init made it"),
    ],
)  # fmt: skip
def test_mutants_of_relay(
    tmp_path: Path, old: str, new: str, error: type[KernelError], words: str
) -> None:
    assert RELAY.count(old) == 1
    with pytest.raises(error) as caught:
        go(tmp_path, RELAY.replace(old, new), np.zeros(128, np.int32))
    print(caught.value)
    assert words in str(caught.value)


def test_states_counts_and_generic_addresses(tmp_path: Path) -> None:
    out = np.zeros(8, np.int32)
    go(
        tmp_path,
        """
    __shared__ unsigned long long bar;
    if (threadIdx.x) return;
    unsigned long long state;
    unsigned done = 9;
    asm volatile("mbarrier.init.b64 [%0], 3;" :: "l"(&bar) : "memory");
    asm volatile("mbarrier.arrive.b64 %0, [%1];" : "=l"(state) : "l"(&bar) : "memory");
    asm volatile("{ .reg .pred p; mbarrier.test_wait.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "l"(&bar), "l"(state));
    out[0] = done;
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0], 2;" :: "r"(shared_addr(&bar)) : "memory");
    asm volatile("{ .reg .pred p; mbarrier.try_wait.b64 p, [%1], %2, 1000; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "l"(&bar), "l"(state));
    out[1] = done;
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 32;" :: "r"(shared_addr(&bar)) : "memory");
    asm volatile("mbarrier.arrive_drop.shared::cta.b64 _, [%0];" :: "r"(shared_addr(&bar)) : "memory");
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1], 2;" : "=l"(state) : "r"(shared_addr(&bar)) : "memory");
    asm volatile("mbarrier.complete_tx.shared::cta.b64 [%0], 32;" :: "r"(shared_addr(&bar)) : "memory");
    barrier_wait(&bar, 1);
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1], 2;" : "=l"(state) : "r"(shared_addr(&bar)) : "memory");
    barrier_wait(&bar, 0);  // one has dropped out
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(shared_addr(&bar)) : "memory");
    barrier_init(&bar, 1);
    out[2] = (int)state + 5;
""",
        out,
    )
    assert out[:3].tolist() == [0, 1, 7]


@pytest.mark.parametrize("schedule", ["latest", "earliest"])
@pytest.mark.parametrize("form", ["noinc", "plain"])
def test_cp_async_arrivals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, schedule: str
) -> None:
    monkeypatch.setenv("TILE2C_EMULATE_SCHEDULE", schedule)
    out, a = np.zeros(128, np.int32), np.arange(128, dtype=np.int32)
    arrive = (
        '"cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];"'
        if form == "noinc"
        else '"cp.async.mbarrier.arrive.shared.b64 [%0];\\nmbarrier.arrive.shared.b64 _, [%0];"'
    )
    body = f"""
    __shared__ alignas(16) int box[128];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) barrier_init(&full, 32);
    __syncthreads();
    if (threadIdx.x < 32) {{
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(shared_addr(box + 4 * threadIdx.x)), "l"(a + 4 * threadIdx.x) : "memory");
        asm volatile({arrive} :: "r"(shared_addr(&full)) : "memory");
    }} else {{
        barrier_wait(&full, 0);
        for (int i = threadIdx.x - 32; i < 128; i += 32) out[i] = box[127 - i];
    }}
"""
    go(tmp_path, body, out, a)
    np.testing.assert_array_equal(out, a[::-1])
    with pytest.raises(RaceError):
        go(tmp_path, body.replace("        barrier_wait(&full, 0);\n", ""), out, a)


def test_elect_and_lanes(tmp_path: Path) -> None:
    out = np.zeros(64, np.int32)
    go(
        tmp_path,
        """
    unsigned leader, chosen;
    asm volatile("{ .reg .pred p; elect.sync %0|p, %2; selp.u32 %1, 1, 0, p; }" : "=r"(leader), "=r"(chosen) : "r"(0xffffffffu));
    out[threadIdx.x] = leader * 10 + chosen;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(chosen));
    out[threadIdx.x] += chosen;
""",
        out,
    )
    assert out.tolist() == [2 if i % 32 == 0 else 0 for i in range(64)]


# ---- clusters

EXCHANGE = """
    __shared__ int mine[4];
    unsigned rank, count, there;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
    if (threadIdx.x == 0) mine[0] = 10 + blockIdx.x;
    cluster_sync();
    if (threadIdx.x == 0) {
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_addr(mine)), "r"((rank + 1) % count));
        int value;
        asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(there) : "memory");
        out[blockIdx.x] = value;
        asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(there + 4), "r"(value * 2) : "memory");
    }
    cluster_sync();
    if (threadIdx.x == 0) out[8 + blockIdx.x] = mine[1];
"""


def test_exchange(tmp_path: Path) -> None:
    out = np.zeros(16, np.int32)
    go(tmp_path, EXCHANGE, out, grid=8, cluster=4, bounds="__cluster_dims__(4, 1, 1)")
    wanted = [10 + i // 4 * 4 + (i + 1) % 4 for i in range(8)]
    assert out[:8].tolist() == wanted
    assert out[8:].tolist() == [2 * (10 + i) for i in range(8)]


def test_mutants_of_exchange(tmp_path: Path) -> None:
    out = np.zeros(16, np.int32)
    first = EXCHANGE.replace("    cluster_sync();\n", "", 1)
    with pytest.raises((RaceError, AccessError)):
        go(tmp_path, first, out, grid=4, cluster=4)
    at = EXCHANGE.rindex("    cluster_sync();\n")
    with pytest.raises(RaceError, match="race in mine, byte 4"):
        go(
            tmp_path,
            EXCHANGE[:at] + EXCHANGE[at:].replace("    cluster_sync();\n", ""),
            out,
            grid=4,
            cluster=4,
        )
    with pytest.raises(
        KernelError, match=r"barrier.cluster.wait, where 64 of 192 threads have arrived"
    ):
        body = """
    __shared__ unsigned long long bar;
    if (threadIdx.x == 0) barrier_init(&bar, 1);
    __syncthreads();
    if (blockIdx.x == 1) cluster_sync();
    else barrier_wait(&bar, 0);
"""
        go(tmp_path, body, out, grid=3, cluster=3)
    with pytest.raises(KernelError, match="to block 4 of its cluster"):
        go(tmp_path, EXCHANGE.replace("(rank + 1) % count", "rank + 4"), out, grid=4, cluster=4)


REMOTE = """
    __shared__ alignas(16) int box[4];
    __shared__ unsigned long long full;
    unsigned rank, there, bar;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) {
        barrier_init(&full, 2);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16;" :: "r"(shared_addr(&full)) : "memory");
    }
    cluster_sync();
    if (threadIdx.x == 0) {
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_addr(box)), "r"(rank ^ 1));
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(bar) : "r"(shared_addr(&full)), "r"(rank ^ 1));
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];"
                     :: "r"(there), "r"(rank), "r"(1), "r"(2), "r"(3), "r"(bar) : "memory");
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(bar) : "memory");
    }
    barrier_wait(&full, 0);
    if (threadIdx.x < 4) out[blockIdx.x * 4 + threadIdx.x] = box[threadIdx.x];
    cluster_sync();
"""


@pytest.mark.parametrize("schedule", ["latest", "earliest"])
def test_remote_stores_and_arrivals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schedule: str
) -> None:
    monkeypatch.setenv("TILE2C_EMULATE_SCHEDULE", schedule)
    out = np.zeros(8, np.int32)
    go(tmp_path, REMOTE, out, grid=2, cluster=2)
    assert out.tolist() == [1, 1, 2, 3, 0, 1, 2, 3]
    with pytest.raises(RaceError, match="race in box"):
        go(tmp_path, REMOTE.replace("    barrier_wait(&full, 0);\n", ""), out, grid=2, cluster=2)


MULTICAST = (
    PRELUDE
    + """
extern "C" __global__ void __cluster_dims__(2, 1, 1) share(const __grid_constant__ TensorMap map, int* out) {
    __shared__ alignas(128) int tile[2][64];
    __shared__ unsigned long long full;
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) {
        barrier_init(&full, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    cluster_sync();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;" :: "r"(shared_addr(&full)) : "memory");
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2}], [%3], %4;"
                     :: "r"(shared_addr(tile[rank])), "l"(&map), "r"(rank * 64), "r"(shared_addr(&full)), "h"((unsigned short)3) : "memory");
    }
    barrier_wait(&full, 0);
    for (int i = threadIdx.x; i < 128; i += blockDim.x) out[blockIdx.x * 128 + i] = tile[i / 64][i % 64];
    cluster_sync();
}
"""
)


@pytest.mark.parametrize("schedule", ["latest", "earliest"])
def test_multicast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schedule: str) -> None:
    monkeypatch.setenv("TILE2C_EMULATE_SCHEDULE", schedule)
    path = tmp_path / "share.cu"
    path.write_text(MULTICAST)
    x, out = np.arange(128, dtype=np.int32), np.zeros(256, np.int32)
    launch(
        path,
        "share",
        [tensor_map("x", x, (64,), swizzle="none"), tensor("out", out)],
        grid=(2, 1, 1),
        block=(64, 1, 1),
    )
    np.testing.assert_array_equal(out, np.tile(x, 2))
    path.write_text(MULTICAST.replace("], 512;", "], 256;"))
    with pytest.raises(KernelError) as caught:
        launch(
            path,
            "share",
            [tensor_map("x", x, (64,), swizzle="none"), tensor("out", out)],
            grid=(2, 1, 1),
            block=(64, 1, 1),
        )
    assert "bulk" in str(caught.value)


LATE = MULTICAST.replace(
    "__shared__ unsigned long long full;",
    "__shared__ alignas(128) int late[64];\n    __shared__ unsigned long long full, more;",
).replace("barrier_init(&full, 1);", "barrier_init(&full, 1);\n        barrier_init(&more, 1);")
LATE = (
    LATE[: LATE.rindex("    cluster_sync();")]
    + """
    if (rank == 1 && threadIdx.x == 0)
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" :: "r"(shared_addr(&more)) : "memory");
    if (rank == 0 && threadIdx.x == 0)
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2}], [%3], %4;"
                     :: "r"(shared_addr(late)), "l"(&map), "r"(0), "r"(shared_addr(&more)), "h"((unsigned short)2) : "memory");
    if (rank == 1) barrier_wait(&more, 0);
}
"""
)


@pytest.mark.parametrize("schedule", ["latest", "earliest"])
def test_a_bulk_copy_into_a_block_that_may_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schedule: str
) -> None:
    """The block it writes to has to wait for it, in whatever order the blocks run."""
    monkeypatch.setenv("TILE2C_EMULATE_SCHEDULE", schedule)
    path = tmp_path / "share.cu"
    x, out = np.arange(128, dtype=np.int32), np.zeros(256, np.int32)

    def run(text: str) -> None:
        path.write_text(text)
        given = [tensor_map("x", x, (64,), swizzle="none"), tensor("out", out)]
        launch(path, "share", given, grid=(2, 1, 1), block=(64, 1, 1))

    run(LATE)
    with pytest.raises(RaceError) as caught:
        run(LATE.replace("    if (rank == 1) barrier_wait(&more, 0);\n", ""))
    assert "the bulk copy of thread 0 of block (0, 0) writes" in str(caught.value)
    assert "shared memory of another block of its cluster" in str(caught.value)


# ---- register budgets


def test_register_budgets(tmp_path: Path) -> None:
    out = np.zeros(4, np.int32)
    split = """
    if (threadIdx.x < 128) asm volatile("setmaxnreg.dec.sync.aligned.u32 {low};");
    else asm volatile("setmaxnreg.inc.sync.aligned.u32 {high};");
    if (threadIdx.x == 0) out[0] = 1;
"""
    bounds = "__launch_bounds__(384, 1)"
    go(tmp_path, split.format(low=24, high=240), out, block=384, bounds=bounds)
    assert out[0] == 1
    with pytest.raises(KernelError, match=r"setmaxnreg.inc, where its block has"):
        go(tmp_path, split.format(low=32, high=240), out, block=384, bounds=bounds)
    half = "__launch_bounds__(384, 2)"
    go(tmp_path, split.format(low=24, high=104), out, block=384, bounds=half)
    with pytest.raises(KernelError, match=r"setmaxnreg.inc, where its block has"):
        go(tmp_path, split.format(low=24, high=112), out, block=384, bounds=half)
    with pytest.raises(KernelError, match="without __launch_bounds__"):
        go(tmp_path, split.format(low=24, high=240), out, block=384)
    with pytest.raises(KernelError, match="multiples of 8 from 24 to 256"):
        go(tmp_path, split.format(low=20, high=240), out, block=384, bounds=bounds)
    with pytest.raises(KernelError, match=r"with 200 at line .*; it has 168"):
        go(tmp_path, split.format(low=200, high=240), out, block=384, bounds=bounds)


def test_named_barriers(tmp_path: Path) -> None:
    out = np.zeros(96, np.int32)
    body = """
    __shared__ int box[32];
    if (threadIdx.x < 32) {
        box[threadIdx.x] = threadIdx.x;
        asm volatile("bar.arrive 3, 96;" ::: "memory");
    } else {
        asm volatile("bar.sync 3, 96;" ::: "memory");
        out[threadIdx.x] = box[threadIdx.x % 32];
    }
"""
    go(tmp_path, body, out, block=96)
    assert out[32:].tolist() == list(range(32)) * 2
    with pytest.raises(RaceError):
        go(
            tmp_path,
            body.replace('        asm volatile("bar.sync 3, 96;" ::: "memory");\n', ""),
            out,
            block=96,
        )
    with pytest.raises(KernelError, match=r"bar.sync"):
        go(
            tmp_path,
            body.replace('        asm volatile("bar.arrive 3, 96;" ::: "memory");\n', ""),
            out,
            block=96,
        )


def test_an_older_target_lacks_them(tmp_path: Path) -> None:
    from tile2c.runtime.emulate import load

    path = tmp_path / "kernel.cu"
    for opcode, wanted in (
        ("wgmma.fence.sync.aligned", "sm_90a"),
        ("barrier.cluster.arrive", "sm_90"),
    ):
        path.write_text(
            f'extern "C" __global__ void kernel() {{\n    asm volatile("{opcode};");\n}}\n'
        )
        with pytest.raises(KernelError, match=f"needs {wanted}, the target is sm_80") as caught:
            load(path, family="cuda", arch="sm_80")
        assert caught.value.line == 2
