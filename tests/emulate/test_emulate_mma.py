"""mma.sync against NumPy, with fragment maps written here from the instruction set's tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

Map = Callable[[int, int], tuple[int, int]]  # (lane, element) -> (row, col); B as (n, k)

A16: Map = lambda l, v: (l // 4 + 8 * ((v // 2) % 2), 2 * (l % 4) + v % 2 + 8 * (v // 4))  # noqa: E731
B16: Map = lambda l, v: (l // 4, 2 * (l % 4) + v % 2 + 8 * (v // 2))  # noqa: E731
C: Map = lambda l, v: (l // 4 + 8 * (v // 2), 2 * (l % 4) + v % 2)  # noqa: E731
A16K8: Map = lambda l, v: (l // 4 + 8 * (v // 2), 2 * (l % 4) + v % 2)  # noqa: E731
B16K8: Map = lambda l, v: (l // 4, 2 * (l % 4) + v)  # noqa: E731
ATF: Map = lambda l, v: (l // 4 + 8 * (v % 2), l % 4 + 4 * (v // 2))  # noqa: E731
BTF: Map = lambda l, v: (l // 4, l % 4 + 4 * v)  # noqa: E731
A8: Map = lambda l, v: (l // 4 + 8 * ((v // 4) % 2), 4 * (l % 4) + v % 4 + 16 * (v // 8))  # noqa: E731
B8: Map = lambda l, v: (l // 4, 4 * (l % 4) + v % 4 + 16 * (v // 4))  # noqa: E731
AB8K16: Map = lambda l, v: (l // 4, 4 * (l % 4) + v)  # noqa: E731
C8: Map = lambda l, v: (l // 4, 2 * (l % 4) + v)  # noqa: E731
AB64: Map = lambda l, v: (l // 4, l % 4)  # noqa: E731

F16, BF16, F32, F64 = np.float16, ml_dtypes.bfloat16, np.float32, np.float64
E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
CASES: list[tuple[str, str, Any, Any, Any, Map, Map, Map, str]] = [
    ("m16n8k16", "f32.f16.f16.f32", F16, F16, F32, A16, B16, C, "sm_80"),
    ("m16n8k16", "f16.f16.f16.f16", F16, F16, F16, A16, B16, C, "sm_80"),
    ("m16n8k16", "f32.bf16.bf16.f32", BF16, BF16, F32, A16, B16, C, "sm_80"),
    ("m16n8k8", "f32.f16.f16.f32", F16, F16, F32, A16K8, B16K8, C, "sm_75"),
    ("m16n8k8", "f32.bf16.bf16.f32", BF16, BF16, F32, A16K8, B16K8, C, "sm_80"),
    ("m16n8k8", "f32.tf32.tf32.f32", F32, F32, F32, ATF, BTF, C, "sm_80"),
    ("m16n8k4", "f32.tf32.tf32.f32", F32, F32, F32, ATF, BTF, C, "sm_80"),
    ("m16n8k32", "s32.s8.s8.s32", np.int8, np.int8, np.int32, A8, B8, C, "sm_80"),
    ("m16n8k32", "s32.u8.s8.s32", np.uint8, np.int8, np.int32, A8, B8, C, "sm_86"),
    ("m8n8k16", "s32.s8.s8.s32", np.int8, np.int8, np.int32, AB8K16, AB8K16, C8, "sm_75"),
    ("m8n8k4", "f64.f64.f64.f64", F64, F64, F64, AB64, AB64, C8, "sm_80"),
    ("m16n8k32", "f32.e4m3.e4m3.f32", E4M3, E4M3, F32, A8, B8, C, "sm_89"),
    ("m16n8k32", "f32.e5m2.e4m3.f32", E5M2, E4M3, F32, A8, B8, C, "sm_89"),
]  # fmt: skip


def shape_of(name: str) -> tuple[int, int, int]:
    m, rest = name[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


def pack(matrix: np.ndarray, where: Map, per_lane: int) -> np.ndarray:
    """One row of registers' bytes a lane."""
    return np.array(
        [[matrix[where(l, v)] for v in range(per_lane)] for l in range(32)], matrix.dtype
    )


def kernel(shape: str, types: str, na: int, nb: int, nc: int, letter: str, word: str) -> str:
    names = [f"%{i}" for i in range(2 * nc + na + nb)]
    d, a = names[:nc], names[nc : nc + na]
    b, c = names[nc + na : nc + na + nb], names[nc + na + nb :]
    groups = ", ".join("{" + ", ".join(g) + "}" for g in (d, a, b, c))
    outs = ", ".join(f'"={letter}"(d[{i}])' for i in range(nc))
    io_letter = "d" if word == "double" else "r"
    ins = ", ".join(
        [f'"{io_letter}"(A[threadIdx.x * {na} + {i}])' for i in range(na)]
        + [f'"{io_letter}"(B[threadIdx.x * {nb} + {i}])' for i in range(nb)]
        + [f'"{letter}"(C[threadIdx.x * {nc} + {i}])' for i in range(nc)]
    )
    acc = {"f": "float", "r": "unsigned", "d": "double"}[letter]
    return (
        f'extern "C" __global__ void k(const {word}* A, const {word}* B, const {acc}* C, {acc}* D) {{\n'
        f"    {acc} d[{nc}];\n"
        f'    asm volatile("mma.sync.aligned.{shape}.row.col.{types} {groups};"\n'
        f"        : {outs} : {ins});\n"
        f"    for (int i = 0; i < {nc}; ++i) D[threadIdx.x * {nc} + i] = d[i];\n}}\n"
    )


@pytest.mark.parametrize(
    ("shape", "types", "a_type", "b_type", "c_type", "a_map", "b_map", "c_map", "arch"),
    CASES, ids=[f"{c[0]}.{c[1]}" for c in CASES],
)  # fmt: skip
def test_product(
    run: Any, shape: str, types: str, a_type: Any, b_type: Any, c_type: Any, a_map: Map, b_map: Map,
    c_map: Map, arch: str,
) -> None:  # fmt: skip
    m, n, k = shape_of(shape)
    rng = np.random.default_rng(1)
    integers = np.dtype(c_type) == np.int32
    draw = (lambda s: rng.integers(0, 100, s)) if integers else rng.standard_normal
    a, b, c = draw((m, k)).astype(a_type), draw((n, k)).astype(b_type), draw((m, n)).astype(c_type)
    if np.dtype(a_type) == np.int8:
        a, b = (a.astype(np.int32) - 50).astype(np.int8), (b.astype(np.int32) - 50).astype(np.int8)
    if "tf32" in types:  # exactly representable, so that truncation shows nothing
        a, b = a.astype(BF16).astype(F32), b.astype(BF16).astype(F32)
    pa, pb, pc = (pack(x, where, x.size // 32) for x, where in ((a, a_map), (b, b_map), (c, c_map)))
    d = np.zeros_like(pc)
    size = 8 if np.dtype(a_type) == np.float64 else 4
    word, letter = ("double", "d") if size == 8 else ("unsigned", "r")
    if np.dtype(c_type) == np.float32:
        letter = "f"
    registers = [x.nbytes // 32 // size for x in (pa, pb, pc)]
    run(kernel(shape, types, *registers, letter, word), "k", {"A": pa, "B": pb, "C": pc, "D": d},
        reads=("A", "B", "C"), arch=arch)  # fmt: skip
    wanted = a.astype(F64) @ b.astype(F64).T + c.astype(F64)
    got = np.zeros((m, n))
    for lane in range(32):
        for v in range(d.shape[1]):
            got[c_map(lane, v)] = d[lane, v]
    tolerance = 2e-2 if np.dtype(c_type) == np.float16 else 1e-4
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("a_major", ["row", "col"])
@pytest.mark.parametrize("b_major", ["row", "col"])
def test_volta_quad_pairs(run: Any, a_major: str, b_major: str) -> None:
    """Four products of 8 x 8 x 4, one for each quad pair."""
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((4, 8, 4)).astype(F16), rng.standard_normal((4, 4, 8)).astype(F16)
    pa, pb = np.zeros((32, 4), F16), np.zeros((32, 4), F16)
    d = np.zeros((32, 8), F32)
    for lane in range(32):
        q, r = lane // 4 % 4, lane % 4 + 4 * (lane // 16)
        for v in range(4):
            turned = v + 4 * (lane // 16)
            pa[lane, v] = a[q, r, v] if a_major == "row" else a[q, turned, lane % 4]
            pb[lane, v] = b[q, v, r] if b_major == "col" else b[q, lane % 4, turned]
    text = f"""
extern "C" __global__ void k(const unsigned* A, const unsigned* B, float* D) {{
    float d[8] = {{}};
    const int t = threadIdx.x;
    asm volatile("mma.sync.aligned.m8n8k4.{a_major}.{b_major}.f32.f16.f16.f32 "
        "{{%0,%1,%2,%3,%4,%5,%6,%7}}, {{%8,%9}}, {{%10,%11}}, {{%0,%1,%2,%3,%4,%5,%6,%7}};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
        : "r"(A[2 * t]), "r"(A[2 * t + 1]), "r"(B[2 * t]), "r"(B[2 * t + 1]));
    for (int i = 0; i < 8; ++i) D[8 * t + i] = d[i];
}}
"""
    run(text, "k", {"A": pa, "B": pb, "D": d}, reads=("A", "B"), arch="sm_70")
    wanted = a.astype(F64) @ b.astype(F64)
    for lane in range(32):
        for v in range(8):
            row = lane % 2 + 2 * ((v // 2) % 2) + 4 * (lane // 16)
            col = 4 * (v // 4) + 2 * ((lane // 2) % 2) + v % 2
            assert abs(d[lane, v] - wanted[lane // 4 % 4, row, col]) < 1e-3


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_ldmatrix_stmatrix(run: Any, count: int, transposed: bool) -> None:
    """ldmatrix gives each lane two neighbours of a row (of a column); stmatrix undoes it."""
    x = np.arange(count * 64, dtype=np.uint16).reshape(count, 8, 8)
    d, back = np.zeros((32, count), np.uint32), np.zeros_like(x)
    trans = ".trans" if transposed else ""
    names = ", ".join(f"%{i}" for i in range(count))
    text = f"""
extern "C" __global__ void k(const uint4* X, unsigned* D, uint4* back) {{
    __shared__ __align__(16) unsigned short tile[{count} * 64], other[{count} * 64];
    const int t = threadIdx.x;
    if (t < {count} * 8) ((uint4*)tile)[t] = X[t];
    __syncwarp();
    unsigned r[{count}];
    unsigned at = __cvta_generic_to_shared(&tile[t % ({count} * 8) * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{names}}}, [%{count}];"
        : {", ".join(f'"=r"(r[{i}])' for i in range(count))} : "r"(at) : "memory");
    for (int i = 0; i < {count}; ++i) D[t * {count} + i] = r[i];
    at = __cvta_generic_to_shared(&other[t % ({count} * 8) * 8]);
    asm volatile("stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%{count}], {{{names}}};"
        :: {", ".join(f'"r"(r[{i}])' for i in range(count))}, "r"(at) : "memory");
    __syncwarp();
    if (t < {count} * 8) back[t] = ((uint4*)other)[t];
}}
"""
    run(text, "k", {"X": x, "D": d, "back": back}, reads=("X",), arch="sm_90")
    halves = d.view(np.uint16).reshape(32, count, 2)
    for lane in range(32):
        for i in range(count):
            for e in range(2):
                row, col = lane // 4, 2 * (lane % 4) + e
                assert halves[lane, i, e] == (x[i, col, row] if transposed else x[i, row, col])
    np.testing.assert_array_equal(back, x)
