"""HIP: waves of 64 and 32, MFMA and WMMA fragments, what orders a wave."""

# ruff: noqa: E501 - the cases are tables, one a line
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tile2c.runtime.errors import KernelError, RaceError

F32, F16, BF16, F64, I8, I32 = (
    np.float32,
    np.float16,
    ml_dtypes.bfloat16,
    np.float64,
    np.int8,
    np.int32,
)
E4M3, E4M3Z = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz
HEAD = "#include <hip/hip_runtime.h>\n#include <hip/hip_fp16.h>\n#include <hip/hip_bf16.h>\n"
# builtin, m, k, input, output, operand's C type with its vector length, accumulator's type, arch
MFMA = [
    ("f32_16x16x16f16", 16, 16, F16, F32, "_Float16", "float", "gfx90a"),
    ("f32_32x32x8f16", 32, 8, F16, F32, "_Float16", "float", "gfx942"),
    ("f32_16x16x16bf16_1k", 16, 16, BF16, F32, "short", "float", "gfx942"),
    ("f32_32x32x8bf16_1k", 32, 8, BF16, F32, "short", "float", "gfx90a"),
    ("f32_16x16x4f32", 16, 4, F32, F32, "float", "float", "gfx942"),
    ("f32_32x32x2f32", 32, 2, F32, F32, "float", "float", "gfx942"),
    ("f64_16x16x4f64", 16, 4, F64, F64, "double", "double", "gfx90a"),
    ("i32_16x16x16i8", 16, 16, I8, I32, "int", "int", "gfx90a"),
    ("i32_16x16x32_i8", 16, 32, I8, I32, "long", "int", "gfx942"),
    ("i32_32x32x16_i8", 32, 16, I8, I32, "long", "int", "gfx950"),
    ("f32_16x16x32_fp8_fp8", 16, 32, E4M3Z, F32, "long", "float", "gfx942"),
    ("f32_16x16x32_fp8_fp8", 16, 32, E4M3, F32, "long", "float", "gfx950"),
    ("f32_16x16x8_xf32", 16, 8, F32, F32, "float", "float", "gfx942"),
    ("f32_16x16x32_f16", 16, 32, F16, F32, "_Float16", "float", "gfx950"),
    ("f32_32x32x16_bf16", 32, 16, BF16, F32, "__bf16", "float", "gfx950"),
]


def draw(shape: tuple[int, int], kind: Any) -> np.ndarray:
    rng = np.random.default_rng(11)
    if np.dtype(kind).kind == "i":
        return rng.integers(-100, 100, shape).astype(kind)
    x = rng.standard_normal(shape)
    return x.astype(BF16).astype(kind) if np.dtype(kind) == np.float32 else x.astype(kind)


def matrix_text(call: str, kind: str, n_in: int, acc: str, n_out: int) -> str:
    operand = (
        f"typedef {kind} operand __attribute__((ext_vector_type({n_in})));"
        if n_in > 1
        else f"typedef {kind} operand;"
    )
    return f"""{HEAD}{operand}
using result = {acc} __attribute__((ext_vector_type({n_out})));
extern "C" __global__ void k(const operand* A, const operand* B, result* D) {{
    const int l = threadIdx.x;
    result acc = {{0}};
    acc = __builtin_amdgcn_{call};
    for (int v = 0; v < {n_out}; ++v) D[l][v] = acc[v];
}}
"""


@pytest.mark.parametrize(("name", "m", "k", "kind", "out", "c_kind", "acc", "arch"), MFMA,
                         ids=[f"{c[0]}-{c[7]}" for c in MFMA])  # fmt: skip
def test_mfma(
    run: Any, name: str, m: int, k: int, kind: Any, out: Any, c_kind: str, acc: str, arch: str
) -> None:
    a, b = draw((m, k), kind), draw((k, m), kind)
    per = m * k // 64
    lanes = np.arange(64)[:, None]
    ks = per * (lanes // m) + np.arange(per)
    pa, pb = np.ascontiguousarray(a[lanes % m, ks]), np.ascontiguousarray(b[ks, lanes % m])
    n_out = m * m // 64
    d = np.zeros((64, n_out), out)
    vector = 1 if c_kind in {"int", "long"} else per
    run(matrix_text(f"mfma_{name}(A[l], B[l], acc, 0, 0, 0)", c_kind, vector, acc, n_out), "k",
        {"A": pa, "B": pb, "D": d}, block=(64, 1, 1), reads=("A", "B"), family="hip", arch=arch)  # fmt: skip
    v = np.arange(n_out)
    if out is F64:
        rows = lanes // 16 + 4 * v
    elif m == 16:
        rows = 4 * (lanes // 16) + v
    else:
        rows = 8 * (v // 4) + 4 * (lanes // 32) + v % 4
    got = np.zeros((m, m))
    got[rows, lanes % m] = d
    np.testing.assert_allclose(got, a.astype(F64) @ b.astype(F64), rtol=1e-3, atol=1e-4)


WMMA = [
    ("f32_16x16x16_f16_w32", F16, F32, "_Float16", "float", "gfx1100"),
    ("f32_16x16x16_bf16_w32", BF16, F32, "short", "float", "gfx1100"),
    ("f32_16x16x16_f16_w32_gfx12", F16, F32, "_Float16", "float", "gfx1201"),
]


@pytest.mark.parametrize(
    ("name", "kind", "out", "c_kind", "acc", "arch"), WMMA, ids=[c[0] for c in WMMA]
)
def test_wmma(run: Any, name: str, kind: Any, out: Any, c_kind: str, acc: str, arch: str) -> None:
    a, b = draw((16, 16), kind), draw((16, 16), kind)
    lanes = np.arange(32)[:, None]
    new = arch == "gfx1201"
    ks = 8 * (lanes // 16) + np.arange(8) if new else np.arange(16)[None, :] + 0 * lanes
    pa, pb = np.ascontiguousarray(a[lanes % 16, ks]), np.ascontiguousarray(b[ks, lanes % 16])
    d = np.zeros((32, 8), out)
    run(matrix_text(f"wmma_{name}(A[l], B[l], acc)", c_kind, pa.shape[1], acc, 8), "k",
        {"A": pa, "B": pb, "D": d}, block=(32, 1, 1), reads=("A", "B"), family="hip", arch=arch)  # fmt: skip
    got = np.zeros((16, 16))
    got[8 * (lanes // 16) + np.arange(8) if new else 2 * np.arange(8) + lanes // 16, lanes % 16] = d
    np.testing.assert_allclose(got, a.astype(F64) @ b.astype(F64), rtol=1e-3, atol=1e-4)


def test_builtin_that_the_arch_lacks(run: Any) -> None:
    text = matrix_text("mfma_f32_16x16x8_xf32(A[l], B[l], acc, 0, 0, 0)", "float", 2, "float", 4)
    x = np.zeros((64, 2), F32)
    with pytest.raises(KernelError, match="mfma_f32_16x16x8_xf32"):
        run(text, "k", {"A": x, "B": x, "D": x}, family="hip", arch="gfx90a")


def body(lines: str) -> str:
    return f'{HEAD}extern "C" __global__ void k(const int* x, int* z) {{\n    const int t = threadIdx.x;\n{lines}\n}}\n'


X = np.arange(128, dtype=I32) * 3


@pytest.mark.parametrize(("arch", "wave"), [("gfx942", 64), ("gfx1100", 32)])
def test_waves(run: Any, arch: str, wave: int) -> None:
    z = np.zeros((3, 128), I32)
    text = body("""    z[t] = __shfl_xor(x[t], warpSize / 2);
    z[128 + t] = __popcll(__ballot(t % 2));
    int s = x[t];
    for (int d = warpSize / 2; d; d /= 2) s += __shfl_down(s, d);
    z[256 + t] = __shfl(s, 0);""")
    run(text, "k", {"x": X, "z": z}, block=(128, 1, 1), reads=("x",), family="hip", arch=arch)
    t = np.arange(128)
    np.testing.assert_array_equal(z[0], X[t ^ (wave // 2)])
    assert (z[1] == wave // 2).all()
    np.testing.assert_array_equal(z[2], np.repeat(X.reshape(-1, wave).sum(1), wave))


def test_lanes_apart(run: Any) -> None:
    """A function without a mask meets the lanes that come."""
    z = np.zeros(64, I32)
    text = body("    int v = x[t]; if (t < 16) v = __shfl_xor(v, 8); __syncthreads(); z[t] = v;")
    run(text, "k", {"x": X[:64].copy(), "z": z}, block=(64, 1, 1), family="hip", arch="gfx942")
    np.testing.assert_array_equal(z[:16], X[np.arange(16) ^ 8])


STEP = "    __shared__ int s[64]; s[t] = x[t];\n    {order}\n    z[t] = s[t ^ 1];"
ORDER = '__builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront"); __builtin_amdgcn_wave_barrier(); __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");'


def test_wave_barrier_orders_with_a_fence(run: Any) -> None:
    z = np.zeros(64, I32)
    args = {"x": X[:64].copy(), "z": z}
    run(body(STEP.format(order=ORDER)), "k", args, block=(64, 1, 1), family="hip", arch="gfx942")
    np.testing.assert_array_equal(z, X[np.arange(64) ^ 1])
    for order in ("__builtin_amdgcn_wave_barrier();", ""):
        with pytest.raises(RaceError):
            run(
                body(STEP.format(order=order)),
                "k",
                args,
                block=(64, 1, 1),
                family="hip",
                arch="gfx942",
            )


def test_native_types(run: Any) -> None:
    text = f"""{HEAD}
typedef float vec4 __attribute__((ext_vector_type(4)));
typedef _Float16 h4 __attribute__((ext_vector_type(4)));
extern "C" __global__ void k(const _Float16* x, __bf16* b, float* z) {{
    const int t = threadIdx.x;
    const _Float16 h = x[t] * (_Float16)2 + x[t];
    b[t] = (__bf16)(float)h;
    vec4 v = {{1.f, 2.f, 3.f, (float)h}};
    v = v * 2.f + vec4(1.f);
    const h4 n = __builtin_convertvector(v, h4);
    z[t] = v.x + v[3] + (float)n.y;
}}
"""
    x = np.random.default_rng(1).standard_normal(64).astype(F16)
    b, z = np.zeros(64, BF16), np.zeros(64, F32)
    run(text, "k", {"x": x, "b": b, "z": z}, block=(64, 1, 1), family="hip", arch="gfx942")
    h = (x * F16(2) + x).astype(F32)
    np.testing.assert_array_equal(b.astype(F32), h.astype(BF16).astype(F32))
    np.testing.assert_allclose(z, 3 + (2 * h + 1) + 5, rtol=1e-6)


@pytest.mark.parametrize("checks", [frozenset(), frozenset(("races", "memory"))])
def test_each_operation_of_float16_rounds(run: Any, checks: frozenset[str]) -> None:
    """The host's compiler would keep more digits between them."""
    x = (np.arange(1, 33) / 4).astype(F16)
    y, z = np.zeros(32, F32), np.zeros(32, F32)
    text = (
        HEAD
        + """extern "C" __global__ void k(const _Float16* x, float* y, float* z) {
    const int t = threadIdx.x;
    y[t] = float(x[t] / _Float16(3.0f));
    z[t] = float(_Float16(2048.0f) + x[t] - _Float16(2048.0f));
}
"""
    )
    run(
        text,
        "k",
        {"x": x, "y": y, "z": z},
        reads=("x",),
        arch="gfx942",
        family="hip",
        checks=checks,
    )
    assert (y == (x / F16(3)).astype(F32)).all()
    assert (z == ((F16(2048) + x) - F16(2048)).astype(F32)).all()
