"""half, bfloat16 and 8-bit floats against NumPy and ml_dtypes; vectors; math functions."""

# ruff: noqa: E501 - the cases are tables, one a line
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

F32, F16, BF16 = np.float32, np.float16, ml_dtypes.bfloat16
rng = np.random.default_rng(7)
# Every half as a float, and what lies between: rounding must be right everywhere.
HALVES = np.arange(65536, dtype=np.uint16).view(F16)
WIDE = np.concatenate(
    [rng.integers(0, 2**32, 65536, dtype=np.uint32).view(F32), HALVES.astype(F32),
     (HALVES.astype(F32).view(np.uint32) + 0x1000).view(F32)]
)  # fmt: skip


def same(got: np.ndarray, wanted: np.ndarray) -> None:
    """Equal bits, any NaN equal to any other."""
    nan = np.isnan(wanted.astype(F32))
    np.testing.assert_array_equal(np.isnan(got.astype(F32)), nan)
    bits = np.uint8 if got.itemsize == 1 else np.uint16 if got.itemsize == 2 else np.uint32
    np.testing.assert_array_equal(got.view(bits)[~nan], wanted.view(bits)[~nan])


def elementwise(head: str, source: str, target: str, expression: str) -> str:
    return f"""{head}
extern "C" __global__ void k(const {source}* x, {target}* z, int n) {{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) z[i] = {expression};
}}
"""


FAMILIES = [("cuda", "sm_80"), ("hip", "gfx942")]
HEADS = {
    "cuda": "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cuda_fp8.h>",
    "hip": "#include <hip/hip_runtime.h>\n#include <hip/hip_fp16.h>\n#include <hip/hip_bf16.h>\n"
    "#include <hip/hip_fp8.h>\n#define __nv_bfloat16 __hip_bfloat16",
}


def convert(
    run: Any, family: str, source: str, target: str, expression: str, x: np.ndarray, to: Any
) -> np.ndarray:
    z = np.zeros(x.size, to)
    arch = dict(FAMILIES)[family]
    run(elementwise(HEADS[family], source, target, expression), "k", {"x": x, "z": z, "n": np.int32(x.size)},
        grid=((x.size + 255) // 256, 1, 1), block=(256, 1, 1), family=family, arch=arch, checks=frozenset())  # fmt: skip
    return z


@pytest.mark.parametrize("family", ["cuda", "hip"])
def test_half_conversions(run: Any, family: str) -> None:
    with np.errstate(all="ignore"):
        same(
            convert(run, family, "float", "__half", "__float2half(x[i])", WIDE, F16),
            WIDE.astype(F16),
        )
    same(
        convert(run, family, "__half", "float", "__half2float(x[i])", HALVES, F32),
        HALVES.astype(F32),
    )


@pytest.mark.parametrize("family", ["cuda", "hip"])
def test_bfloat_conversions(run: Any, family: str) -> None:
    got = convert(run, family, "float", "__nv_bfloat16", "__float2bfloat16(x[i])", WIDE, BF16)
    same(got, WIDE.astype(BF16))
    every = HALVES.view(BF16)
    same(
        convert(run, family, "__nv_bfloat16", "float", "__bfloat162float(x[i])", every, F32),
        every.astype(F32),
    )


FLOAT8 = [
    ("cuda", "__nv_fp8_e4m3", ml_dtypes.float8_e4m3fn, 448.0),
    ("cuda", "__nv_fp8_e5m2", ml_dtypes.float8_e5m2, 57344.0),
    ("hip", "__hip_fp8_e4m3_fnuz", ml_dtypes.float8_e4m3fnuz, 240.0),
    ("hip", "__hip_fp8_e5m2_fnuz", ml_dtypes.float8_e5m2fnuz, 57344.0),
]


@pytest.mark.parametrize(("family", "name", "kind", "largest"), FLOAT8, ids=[f[1] for f in FLOAT8])
def test_float8(run: Any, family: str, name: str, kind: Any, largest: float) -> None:
    every = np.arange(256, dtype=np.uint8).view(kind)
    same(convert(run, family, name, "float", "(float)x[i]", every, F32), every.astype(F32))
    finite = np.where(np.isnan(WIDE), WIDE, np.clip(WIDE, -largest, largest)).astype(F32)
    same(convert(run, family, "float", name, f"{name}(x[i])", WIDE, kind), finite.astype(kind))


@pytest.mark.parametrize("family", ["cuda", "hip"])
@pytest.mark.parametrize(("name", "kind"), [("__half", F16), ("__nv_bfloat16", BF16)])
def test_arithmetic_rounds_once(run: Any, family: str, name: str, kind: Any) -> None:
    x = rng.standard_normal(2048).astype(kind)
    a, b = x[:1024], x[1024:]
    text = f"""{HEADS[family]}
extern "C" __global__ void k(const {name}* x, {name}* z) {{
    const int i = threadIdx.x, n = 1024;
    const {name} a = x[i], b = x[i + n];
    z[i] = a + b; z[i + n] = a - b; z[i + 2 * n] = a * b; z[i + 3 * n] = a / b;
    z[i + 4 * n] = __hmax(a, b); z[i + 5 * n] = __hmin(a, b); z[i + 6 * n] = __hfma(a, b, a);
    z[i + 7 * n] = hexp(a); z[i + 8 * n] = hsqrt(__habs(a)); z[i + 9 * n] = -a;
    {name} c = a; c += b; c *= {name}(2.0f); z[i + 10 * n] = c > b ? c : b;
}}
"""
    z = np.zeros((11, 1024), kind)
    run(text, "k", {"x": x, "z": z}, block=(1024, 1, 1), family=family, arch=dict(FAMILIES)[family])
    f, g = a.astype(np.float64), b.astype(np.float64)
    for row, wanted in enumerate((a + b, a - b, a * b, a / b, np.maximum(a, b), np.minimum(a, b))):
        same(z[row], wanted.astype(kind))
    same(z[6], (f * g + f).astype(kind))
    same(z[7], np.exp(a.astype(F32)).astype(kind))
    same(z[8], np.sqrt(np.abs(a.astype(F32))).astype(kind))
    same(z[9], -a)
    same(z[10], np.maximum((a + b) * kind(2), b))


def test_pairs(run: Any) -> None:
    text = """#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" __global__ void k(const float2* x, half2* z, __nv_bfloat162* w, float2* back) {
    const int i = threadIdx.x;
    const half2 h = __float22half2_rn(x[i]);
    z[i] = __hadd2(__hmul2(h, __float2half2_rn(0.5f)), __half2half2(__low2half(h)));
    w[i] = __floats2bfloat162_rn(x[i].x, x[i].y);
    back[i] = __half22float2(__lowhigh2highlow(h));
    const uint4 four = make_uint4(1u, 2u, 3u, 4u);
    if (four.w != 4u || sizeof(uint4) != 16 || alignof(float4) != 16 || alignof(float2) != 8) __trap();
}
"""
    x = rng.standard_normal((64, 2)).astype(F32)
    z, w, back = np.zeros((64, 2), F16), np.zeros((64, 2), BF16), np.zeros((64, 2), F32)
    run(text, "k", {"x": x, "z": z, "w": w, "back": back}, block=(64, 1, 1), reads=("x",))
    h = x.astype(F16)
    same(z, h * F16(0.5) + h[:, :1])
    same(w, x.astype(BF16))
    same(back, h.astype(F32)[:, ::-1].copy())


MATH = {
    "expf(x[i])": np.exp, "__expf(x[i])": np.exp, "exp2f(x[i])": np.exp2, "logf(fabsf(x[i]))": lambda x: np.log(np.abs(x)),
    "rsqrtf(fabsf(x[i]))": lambda x: 1 / np.sqrt(np.abs(x)), "tanhf(x[i])": np.tanh, "__fdividef(x[i], 3.f)": lambda x: x / 3,
    "powf(fabsf(x[i]), 1.5f)": lambda x: np.abs(x) ** 1.5, "sqrt(abs(x[i]))": lambda x: np.sqrt(np.abs(x)),
    "max(x[i], 0.f) + min(x[i], 0.f)": lambda x: x, "fmaxf(x[i], NAN)": lambda x: x, "sinf(x[i])": np.sin,
    "floorf(x[i]) + ceilf(x[i]) + rintf(x[i])": lambda x: np.floor(x) + np.ceil(x) + np.rint(x),
    "(float)__float2int_rz(x[i])": np.trunc, "(float)max(2, 3u)": lambda x: x * 0 + 3, "exp(x[i])": np.exp,
    "__int_as_float(__float_as_int(x[i]))": lambda x: x, "isinf(x[i] / 0.f) ? x[i] : -INFINITY": lambda x: x,
    "fmaf(x[i], x[i], 1.f)": lambda x: x * x + 1, "copysignf(2.f, x[i])": lambda x: np.copysign(2, x),
}  # fmt: skip


@pytest.mark.parametrize("family", ["cuda", "hip"])
def test_math(run: Any, family: str) -> None:
    x = rng.standard_normal(256).astype(F32)
    z = np.zeros((len(MATH), 256), F32)
    lines = "\n".join(f"    z[{row} * 256 + i] = {call};" for row, call in enumerate(MATH))
    text = f'extern "C" __global__ void k(const float* x, float* z) {{\n    const int i = threadIdx.x;\n{lines}\n}}\n'
    if family == "hip":
        text = "#include <hip/hip_runtime.h>\n" + text
    run(
        text,
        "k",
        {"x": x, "z": z},
        block=(256, 1, 1),
        reads=("x",),
        family=family,
        arch=dict(FAMILIES)[family],
    )
    for row, (call, function) in enumerate(MATH.items()):
        np.testing.assert_allclose(
            z[row], function(x.astype(np.float64)), rtol=1e-5, atol=1e-6, err_msg=call
        )
