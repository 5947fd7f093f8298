"""What the race and memory checks report, and what they let pass."""

# ruff: noqa: E501 - the cases are tables, one a line
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tile2c.runtime.errors import AccessError, KernelError, RaceError

N = 256


def kernel(body: str, before: str = "") -> str:
    """Lines of `body` start at line 4."""
    return (
        f'{before}\nextern "C" __global__ void k(const int* x, int* z) {{\n'
        f"    const int t = threadIdx.x;\n{body}\n}}\n"
    )


def go(
    run: Any, body: str, *, before: str = "", block: int = 64, grid: int = 1, **more: Any
) -> np.ndarray:
    x, z = np.arange(N, dtype=np.int32), np.zeros(N, np.int32)
    run(kernel(body, before), "k", {"x": x, "z": z}, block=(block, 1, 1), grid=(grid, 1, 1),
        reads=("x",), **more)  # fmt: skip
    return z


FINE = {
    "through shared memory": "__shared__ int s[64]; s[t] = x[t]; __syncthreads(); z[t] = s[63 - t];",
    "warp step": "__shared__ int s[64]; s[t] = x[t]; __syncwarp(); z[t] = s[t ^ 1];",
    "half a warp": """__shared__ int s[64]; s[t] = x[t];
    const unsigned mask = t % 32 < 16 ? 0xffffu : 0xffff0000u; __syncwarp(mask); z[t] = s[t ^ 15];""",
    "same value by all": "__shared__ int s; s = x[7]; __syncthreads(); z[t] = s;",
    "same value in global memory": "z[5] = x[5];",
    "neighbouring bytes": "((char*)z)[t] = (char)t;",
    "reading together": "__shared__ int s; if (t == 0) s = 4; __syncthreads(); z[t] = s + x[3];",
    "named barrier": """__shared__ int s[64]; s[t] = x[t];
    asm volatile("bar.sync 3, 64;" ::: "memory"); z[t] = s[63 - t];""",
    "named barrier, arrive": """__shared__ int s[32];
    if (t < 32) { s[t] = x[t]; asm volatile("bar.arrive 2, 64;" ::: "memory"); }
    else { asm volatile("bar.sync 2, 64;" ::: "memory"); z[t] = s[t - 32]; }""",
    "blocks apart": "z[blockIdx.x * 64 + t] = x[t];",
    "early return": "__shared__ int s[64]; s[t] = x[t]; if (t >= 40) return; __syncthreads(); z[t] = s[39 - t];",
    "loop with two buffers": """__shared__ int s[2][64]; int v = x[t];
    for (int i = 0; i < 6; ++i) { s[i & 1][t] = v; __syncthreads(); v = s[i & 1][63 - t]; } z[t] = v;""",
    "a struct in shared memory": """struct Pair { int a; float b; }; __shared__ Pair p[64];
    p[t].a = t; p[t].b = 1.f; __syncthreads(); z[t] = p[63 - t].a;""",
    "local arrays": "int a[8]; for (int i = 0; i < 8; ++i) a[i] = x[i]; int s = 0; for (int i = 0; i < 8; ++i) s += a[(i + t) % 8]; z[t] = s;",
}  # fmt: skip


@pytest.mark.parametrize("what", FINE)
def test_fine(run: Any, what: str) -> None:
    go(run, "    " + FINE[what], grid=2 if what == "blocks apart" else 1)


def test_constant_tables_and_device_variables(run: Any) -> None:
    before = "__constant__ int table[4] = {1, 2, 3, 4}; __device__ int last; static __device__ int f(int i) { return table[i]; }"
    z = go(run, "    z[t] = f(t % 4); if (t == 3) last = z[t];", before=before)
    assert list(z[:4]) == [1, 2, 3, 4]


RACES = {
    "read after write": ("__shared__ int s[64]; s[t] = x[t];\n    z[t] = s[t ^ 1];", 5, "s"),
    "write after read": ("__shared__ int s[64]; s[t] = x[t]; __syncthreads(); int v = s[63 - t];\n    s[t] = v;", 5, "s"),
    "write after write": ("__shared__ int s;\n    s = x[t]; __syncthreads(); z[t] = s;", 5, "s"),
    "global write after write": ("\n    z[0] = x[t];", 5, "z"),
    "global read after write": ("z[t] = x[t];\n    const int v = z[63 - t]; __syncthreads(); z[t] = v;", 5, "z"),
    "shuffles order nothing": ("__shared__ int s[64]; s[t] = x[t]; __shfl_sync(~0u, t, 0);\n    z[t] = s[t ^ 1];", 5, "s"),
    "__syncwarp is not a block barrier": ("__shared__ int s[64]; s[t] = x[t]; __syncwarp();\n    z[t] = s[63 - t];", 5, "s"),
    "half a warp is not a warp": ("""__shared__ int s[64]; s[t] = x[t]; __syncwarp(t % 32 < 16 ? 0xffffu : 0xffff0000u);
    z[t] = s[t ^ 16];""", 5, "s"),
    "another named barrier": ("""__shared__ int s[64]; s[t] = x[t];
    if (t < 32) asm volatile("bar.sync 1, 32;" ::: "memory"); else asm volatile("bar.sync 2, 32;" ::: "memory");
    z[t] = s[t ^ 32];""", 6, "s"),
    "atomic beside plain": ("__shared__ int s; if (t == 0) s = 0; __syncthreads(); atomicAdd(&s, 1);\n    z[t] = s;", 5, "s"),
}  # fmt: skip


@pytest.mark.parametrize("what", RACES)
def test_race(run: Any, what: str) -> None:
    body, line, array = RACES[what]
    with pytest.raises(RaceError) as caught:
        go(run, "    " + body)
    error = caught.value
    assert error.array == array and len(error.threads) == 2 and error.threads[0] != error.threads[1]
    assert str(line) in str(error) and error.line in {4, 5, 6}


def test_blocks_race(run: Any) -> None:
    with pytest.raises(RaceError, match=r"no order between the two blocks") as caught:
        go(run, "    z[t] = blockIdx.x;", grid=2)
    assert caught.value.array == "z" and caught.value.line == 4


ACCESS = {
    "past the end": ("z[t + 200] = 1;", "writes 4 bytes outside every tensor", "z"),
    "before the start": ("z[t] = x[t - 5];", "outside every tensor", "x"),
    "read-only": ("((int*)x)[t] = 1;", "x, which is read-only", "x"),
    "past a shared array": ("__shared__ int s[64]; s[t + 1] = 1;", "outside every array", "s"),
    "never written": ("__shared__ int s[65]; s[t] = t; __syncthreads(); z[t] = s[t + 1];", "nothing wrote", "s"),
    "misaligned vector": ("*(int2*)(z + t + 1) = int2{1, 2};", "not a multiple of 8", ""),
    "misaligned shared vector": ("__shared__ int s[260]; *(int4*)(s + 4 * t + 2) = int4{1, 2, 3, 4};", "not a multiple of 16", "s"),
    "alignment not asked for": ("__shared__ char s[1024]; *(int4*)(s + 16 * t) = int4{1, 2, 3, 4};", "not a multiple of 16", "s"),
    "null pointer": ("int* p = nullptr; p[t] = 1;", "outside every tensor", ""),
    "cp.async past the end": ("""__shared__ __align__(16) int s[4]; if (t == 0) asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::
     "r"((unsigned)__cvta_generic_to_shared(s)), "l"(x + 256) : "memory");""", "outside every tensor", "x"),
}  # fmt: skip


@pytest.mark.parametrize("what", ACCESS)
def test_access(run: Any, what: str) -> None:
    body, message, array = ACCESS[what]
    with pytest.raises(AccessError, match=message) as caught:
        go(run, "    " + body)
    assert caught.value.line in {4, 5} and caught.value.array == array


def test_asynchronous_copies_own_their_bytes(run: Any) -> None:
    copy = """    __shared__ __align__(16) int s[256];
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::
        "r"((unsigned)__cvta_generic_to_shared(s + 4 * t)), "l"(x + 4 * t), "r"(t % 2 ? 16 : 4) : "memory");
    asm volatile("cp.async.commit_group;");
"""
    wait = '    asm volatile("cp.async.wait_group 0;" ::: "memory");\n'
    z = go(
        run,
        copy
        + wait
        + "    __syncthreads(); z[4 * t] = s[4 * (63 - t)]; z[4 * t + 1] = s[4 * (63 - t) + 1];",
    )
    assert (
        z[0] == 252 and z[1] == 253 and z[4] == 248 and z[5] == 0
    )  # what the source is short of is 0
    for late in (
        "    z[t] = s[4 * t];",
        "    __syncthreads(); z[t] = s[4 * (63 - t)];",
        "    s[4 * t] = 1;",
    ):
        with pytest.raises(RaceError, match="asynchronous operation"):
            go(run, copy + late + "\n" + wait)
    with pytest.raises(RaceError, match="no barrier"):
        go(run, copy + wait + "    z[t] = s[4 * (63 - t)];")


def test_divergent_barrier_is_named(run: Any) -> None:
    body = '    if (t < 32)\n        asm volatile("bar.sync 1, 64;");\n    else\n        __syncthreads();'
    with pytest.raises(KernelError, match="no thread can go on") as caught:
        go(run, body)
    assert "line 5" in str(caught.value) and "line 7" in str(caught.value)


@pytest.mark.parametrize("checks", [frozenset(), frozenset({"races", "memory"})])
@pytest.mark.parametrize("loop", ["while (v < 1000) v &= 7; z[t] = v;", "while (*(volatile int*)z == 0) v++;",
                                  "while (true) __syncthreads();"])  # fmt: skip
def test_endless_loop(
    run: Any, monkeypatch: pytest.MonkeyPatch, loop: str, checks: frozenset[str]
) -> None:
    monkeypatch.setenv("TILE2C_EMULATE_SECONDS", "0.3")
    with pytest.raises(KernelError, match="does not come to an end"):
        go(run, f"    volatile int v = t; {loop}", checks=checks)


def test_flag_in_shared_memory_is_polled(run: Any) -> None:
    body = """    __shared__ int flag; if (t == 0) flag = 0; __syncthreads();
    if (t == 40) { __threadfence(); atomicExch(&flag, 1); }
    else while (atomicAdd(&flag, 0) == 0) {}
    z[t] = 1;"""
    assert go(run, body).sum() == 64


def test_a_crash_leaves_the_process_usable(run: Any) -> None:
    for body in ("    int* p = (int*)8; p[t] = 1;", "    z[t] = (t + 5) / x[0];"):
        with pytest.raises(KernelError):
            go(run, body, checks=frozenset())
    assert go(run, "    z[t] = 1;", checks=frozenset()).sum() == 64


@pytest.mark.parametrize("elements", [40_000, 1_000_000])
@pytest.mark.parametrize("checks", [frozenset(), frozenset(("races", "memory"))])
def test_local_arrays_that_are_too_large(run: Any, elements: int, checks: frozenset[str]) -> None:
    """Nobody else's stack is touched, and the process goes on."""
    body = f"""    int a[{elements}]; for (int i = 0; i < {elements}; i += 999) a[i] = x[i % 64];
    int s = 0; for (int i = 0; i < {elements}; i += 999) s += a[i + (t & x[0])]; z[t] = s;"""
    with pytest.raises(KernelError, match="more local memory than the emulator gives"):
        go(run, body, checks=checks)
    assert go(run, "    z[t] = 1;", checks=checks).sum() == 64


def test_launch_is_checked(run: Any) -> None:
    text = 'extern "C" __global__ void __launch_bounds__(64) k(int* z, int n, double s) {}\n'
    z = np.zeros(4, np.int32)
    good = {"z": z, "n": np.int32(3), "s": np.float64(1)}
    run(text, "k", good, block=(64, 1, 1))
    with pytest.raises(KernelError, match="no kernel other"):
        run(text, "other", good)
    with pytest.raises(
        KernelError, match=r"takes parameters of \[8, 4, 8\] bytes, it was given \[8, 4\]"
    ):
        run(text, "k", {"z": z, "n": np.int32(3)})
    with pytest.raises(KernelError, match="__launch_bounds__ say 64"):
        run(text, "k", good, block=(128, 1, 1))
    with pytest.raises(KernelError, match="dynamic shared memory; sm_80 has 166912"):
        run(text, "k", good, shared=200000)


def test_dynamic_shared_memory(run: Any) -> None:
    body = "    float* s = smem + 1; s[t] = x[t]; __syncthreads(); z[t] = (int)s[63 - t];"
    before = "extern __shared__ __align__(16) float smem[];"
    assert go(run, body, before=before, shared=260)[0] == 63
    inside = "    extern __shared__ float smem[]; smem[t + 1] = x[t]; __syncthreads(); z[t] = (int)smem[64 - t];"
    assert go(run, inside, shared=260)[0] == 63
    with pytest.raises(AccessError) as caught:
        go(run, inside, shared=256)
    assert caught.value.array == "smem"
