"""asm statements: scalar instructions, little programs, refusals."""

# ruff: noqa: E501 - the cases are tables, one a line
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tile2c.runtime.errors import KernelError

INT, FLOAT, PAIR = np.int32, np.float32, np.uint32


def one(asm: str, outs: str, ins: str, kind: str = "unsigned", out_kind: str = "unsigned") -> str:
    return f"""
extern "C" __global__ void k(const {kind}* x, const {kind}* y, {out_kind}* z) {{
    const int t = threadIdx.x;
    asm volatile("{asm}" : {outs} : {ins});
}}
"""


XY = '"r"(x[t]), "r"(y[t])'
Z = '"=r"(z[t])'
rng = np.random.default_rng(3)
X = rng.integers(0, 2**32, 32, dtype=np.uint32)
Y = rng.integers(0, 2**32, 32, dtype=np.uint32)


def perm(a: int, b: int, s: int) -> int:
    data = a.to_bytes(4, "little") + b.to_bytes(4, "little")
    return int.from_bytes(bytes(data[s >> 4 * i & 7] for i in range(4)), "little")


@pytest.mark.parametrize(
    ("asm", "wanted"),
    [
        ("add.u32 %0, %1, %2;", X + Y),
        ("sub.s32 %0, %1, %2;", X - Y),
        ("mul.lo.u32 %0, %1, %2;", X * Y),
        ("min.s32 %0, %1, %2;", np.minimum(X.view(INT), Y.view(INT)).view(PAIR)),
        ("max.u32 %0, %1, %2;", np.maximum(X, Y)),
        ("and.b32 %0, %1, %2;", X & Y),
        ("xor.b32 %0, %1, 0xff;", X ^ np.uint32(0xFF)),
        ("shr.u32 %0, %1, 4;", X >> np.uint32(4)),
        ("shl.b32 %0, %1, 33;", X * np.uint32(0)),
        ("lop3.b32 %0, %1, %2, 0x0f0f0f0f, 0xea;", (X & Y) | np.uint32(0x0F0F0F0F)),
        ("lop3.b32 %0, %1, %2, %1, 0x3c;", X ^ Y),
        ("prmt.b32 %0, %1, %2, 0x5140;", np.array([perm(int(a), int(b), 0x5140) for a, b in zip(X, Y, strict=True)], PAIR)),
        ("{ .reg .pred p; .reg .b32 a<2>; add.u32 a0, %1, %2; mov.u32 a1, 7; setp.lt.u32 p, %1, %2;"
         " @p mov.u32 a1, a0; mov.u32 %0, a1; }", np.where(X < Y, X + Y, np.uint32(7))),
        ("{ .reg .pred p; setp.gt.u32 p, %1, %2; selp.b32 %0, %1, %2, p; }", np.maximum(X, Y)),
        ("{ .reg .pred p; .reg .u32 i; mov.u32 i, 0; AGAIN%=: add.u32 i, i, 1; setp.lt.u32 p, i, 10;"
         " @p bra AGAIN%=; add.u32 %0, %1, i; }", X + np.uint32(10)),
        ("mov.b32 %0, %laneid;", np.arange(32, dtype=PAIR)),
        ("bfe.u32 %0, %1, 4, 8;", X >> np.uint32(4) & np.uint32(255)),
        ("popc.b32 %0, %1;", np.array([int(x).bit_count() for x in X], PAIR)),
    ],
)  # fmt: skip
def test_integers(run: Any, asm: str, wanted: np.ndarray) -> None:
    z = np.zeros(32, PAIR)
    run(one(asm, Z, XY), "k", {"x": X, "y": Y, "z": z}, reads=("x", "y"))
    np.testing.assert_array_equal(z, wanted)


F, G = rng.standard_normal(32).astype(FLOAT), rng.standard_normal(32).astype(FLOAT)


@pytest.mark.parametrize(
    ("asm", "wanted"),
    [
        ("add.f32 %0, %1, %2;", F + G),
        ("fma.rn.f32 %0, %1, %2, %1;", (F.astype(float) * G + F).astype(FLOAT)),
        ("ex2.approx.ftz.f32 %0, %1;", np.exp2(F)),
        ("rcp.approx.f32 %0, %1;", 1 / F),
        ("tanh.approx.f32 %0, %1;", np.tanh(F)),
        ("max.f32 %0, %1, 0f00000000;", np.maximum(F, 0)),
        ("cvt.rna.tf32.f32 %0, %1;", ((F.view(PAIR) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(FLOAT)),
        ("{ .reg .f32 a; mul.f32 a, %1, %2; neg.f32 %0, a; }", -(F * G)),
    ],
)  # fmt: skip
def test_floats(run: Any, asm: str, wanted: np.ndarray) -> None:
    z = np.zeros(32, FLOAT)
    text = one(asm, '"=f"(z[t])', '"f"(x[t]), "f"(y[t])', "float", "float")
    run(text, "k", {"x": F, "y": G, "z": z}, reads=("x", "y"))
    np.testing.assert_allclose(z, wanted, rtol=2e-7)


def test_pairs_and_conversions(run: Any) -> None:
    text = r"""
extern "C" __global__ void k(const float* x, unsigned* z) {
    const int t = threadIdx.x;
    unsigned pair, sum; unsigned short lo, hi;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(x[2 * t + 1]), "f"(x[2 * t]));
    asm("add.f16x2 %0, %1, %1;" : "=r"(sum) : "r"(pair));
    asm("mov.b32 {%0, %1}, %2;" : "=h"(lo), "=h"(hi) : "r"(sum));
    asm("mov.b32 %0, {%1, %2};" : "=r"(z[t]) : "h"(lo), "h"(hi));
}
"""
    x, z = rng.standard_normal(64).astype(FLOAT), np.zeros(32, PAIR)
    run(text, "k", {"x": x, "z": z}, reads=("x",))
    np.testing.assert_array_equal(z.view(np.float16), x.astype(np.float16) + x.astype(np.float16))


def test_macros_and_lines(run: Any) -> None:
    text = """#define OP "add"
#define PAIR(a, b) "r"(a), \\
    "r"(b)
#define COPY(d, s) \\
    asm volatile(OP ".u32 %0, %1, %2;" : "=r"(d) : PAIR(s, 5u))
extern "C" __global__ void k(const unsigned* x, unsigned* z) {
    COPY(z[threadIdx.x], x[threadIdx.x]);
    z[threadIdx.x + 1000] = 1;
}
"""
    z = np.zeros(32, PAIR)
    with pytest.raises(KernelError) as caught:
        run(text, "k", {"x": X, "z": z})
    assert caught.value.line == 8
    np.testing.assert_array_equal(z[:1], X[:1] + np.uint32(5))


def test_unknown_instruction_is_named(run: Any) -> None:
    text = 'extern "C" __global__ void k(int* x) {\n  asm volatile(\n"frobnicate.sync %0;" :: "r"(1));\n}\n'
    with pytest.raises(KernelError, match=r"no model of frobnicate\.sync") as caught:
        run(text, "k", {"x": X})
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("body", "arch", "message"),
    [
        ('asm volatile("cp.async.wait_all;");', "sm_75", "cp.async.wait_all needs sm_80, the target is sm_75"),
        ("x[0] = __reduce_add_sync(~0u, x[0]);", "sm_75", "__reduce_add_sync needs sm_80"),
        ('asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%0,%0,%0}, {%0,%0,%0,%0},'
         ' {%0,%0}, {%0,%0,%0,%0};" : "+r"(x[0]));', "sm_75", "needs sm_80"),
        ("no_such_function(x);", "sm_80", "no_such_function"),
    ],
)  # fmt: skip
def test_refused(run: Any, body: str, arch: str, message: str) -> None:
    text = f'extern "C" __global__ void k(int* x) {{\n\n    {body}\n}}\n'
    with pytest.raises(KernelError, match=message) as caught:
        run(text, "k", {"x": np.zeros(4, INT)}, arch=arch)
    assert caught.value.line == 3


def test_memory_instructions(run: Any) -> None:
    text = r"""
extern "C" __global__ void k(const float4* x, float4* z, unsigned* count) {
    __shared__ float4 tile[32];
    const int t = threadIdx.x;
    float a, b, c, d;
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%0, %1, %2, %3}, [%4];"
        : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(x + t));
    const unsigned at = __cvta_generic_to_shared(&tile[t]);
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" :: "r"(at), "f"(d), "f"(c), "f"(b), "f"(a) : "memory");
    asm volatile("bar.sync 1, 32;" ::: "memory");
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(a), "=f"(b) : "r"(at));
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2+8];" : "=f"(c), "=f"(d) : "r"(at));
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" :: "l"(z + t), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
    asm volatile("red.global.add.u32 [%0], %1;" :: "l"(count), "r"(t) : "memory");
    unsigned old;
    asm volatile("atom.global.cas.b32 %0, [%1], %2, %3;" : "=r"(old) : "l"(count + 1), "r"(0), "r"(t + 1) : "memory");
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
}
"""
    x = rng.standard_normal((32, 4)).astype(FLOAT)
    z, count = np.zeros_like(x), np.zeros(2, PAIR)
    run(text, "k", {"x": x, "z": z, "count": count}, reads=("x",))
    np.testing.assert_array_equal(z, x[:, ::-1])
    assert list(count) == [496, 1]
