"""Each instruction of the BANG C model against NumPy, and what it rejects."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from bang_harness import built, launch, report
from tile2c.runtime.emulate.module import EmulatedModule
from tile2c.runtime.errors import CompileError

Array = np.ndarray[Any, Any]
Inputs = dict[str, Array]

HEAD = """#include <bang.h>

extern "C" __mlu_global__ void ops(const float* a, const float* b, const half* h,
                                   const int32_t* i, float* out, int32_t which) {
  __nram__ float A[256], B[256], F[4096], T[4096];
  __nram__ half H[512], O[1024];
  __nram__ bfloat16_t Q[512];
  __nram__ int32_t I[256], J[256];
  __nram__ int16_t W[256];
  __nram__ int8_t C[256];
  __nram__ unsigned char U[256];
  __wram__ float V[2048];
  __wram__ half X[4096];
  __memcpy(A, a, 1024, GDRAM2NRAM);
  __memcpy(B, b, 1024, GDRAM2NRAM);
  __memcpy(H, h, 1024, GDRAM2NRAM);
  __memcpy(I, i, 1024, GDRAM2NRAM);
  __bang_write_zero(F, 1024);
  switch (which) {
"""

# What an instruction writes to F (or, converted there, to O, J, ...) for inputs A, B, H, I.
OPERATIONS: dict[str, Callable[[Inputs], Array]] = {
    "__bang_add(F, A, B, 100);": lambda x: x["A"][:100] + x["B"][:100],
    "__bang_sub(F, A, B, 3);": lambda x: x["A"][:3] - x["B"][:3],
    "__bang_mul(F, A, A, 256);": lambda x: x["A"] * x["A"],
    "__bang_maxequal(F, A, B, 256);": lambda x: np.maximum(x["A"], x["B"]),
    "__bang_minequal(F, A, B, 256);": lambda x: np.minimum(x["A"], x["B"]),
    "__bang_add_scalar(F, A, 2.5f, 99);": lambda x: x["A"][:99] + np.float32(2.5),
    "__bang_sub_scalar(F, A, 2.5f, 99);": lambda x: x["A"][:99] - np.float32(2.5),
    "__bang_mul_scalar(F, A, -3.f, 1);": lambda x: x["A"][:1] * np.float32(-3),
    "__bang_maxeq_scalar(F, A, 0.f, 256);": lambda x: np.maximum(x["A"], 0),
    "__bang_mineq_scalar(F, A, 0.f, 256);": lambda x: np.minimum(x["A"], 0),
    "__bang_cycle_add(F, A, B, 240, 24);": lambda x: (
        x["A"][:240].reshape(10, 24) + x["B"][:24]
    ).ravel(),
    "__bang_cycle_mul(F, A, B, 256, 1);": lambda x: x["A"] * x["B"][0],
    "__bang_cycle_sub(F, A, B, 8, 4);": lambda x: (
        x["A"][:8].reshape(2, 4) - x["B"][:4]
    ).ravel(),
    "__bang_abs(F, A, 256);": lambda x: np.abs(x["A"]),
    "__bang_relu(F, A, 256);": lambda x: np.maximum(x["A"], 0),
    "__bang_abs(A, A, 256); __bang_sqrt(F, A, 256);": lambda x: np.sqrt(np.abs(x["A"])),
    "__bang_recip(F, A, 256);": lambda x: 1 / x["A"],
    "__bang_pow2(F, A, 256);": lambda x: np.exp2(x["A"]),
    "__bang_abs(A, A, 256); __bang_log(F, A, 256);": lambda x: np.log2(np.abs(x["A"])),
    "__bang_floor(F, A, 256);": lambda x: np.floor(x["A"]),
    "__bang_nearbyint(F, A, 256);": lambda x: np.rint(x["A"]),
    "__bang_gt(F, A, B, 256);": lambda x: (x["A"] > x["B"]).astype(np.float32),
    "__bang_le_scalar(F, A, 0.5f, 256);": lambda x: (x["A"] <= 0.5).astype(np.float32),
    "__bang_transpose(F, A, 16, 10);": lambda x: x["A"][:160].reshape(16, 10).T.ravel(),
    "__bang_sumpool(F, A, 16, 10, 1, 10, 1, 1, 1);": lambda x: (
        x["A"][:160].reshape(10, 16).sum(0)
    ),
    "__bang_maxpool(F, A, 1, 200, 1, 200, 1, 1, 1);": lambda x: x["A"][:200].max(keepdims=True),
    "__bang_minpool(F, A, 4, 6, 4, 2, 2, 2, 2);": lambda x: (
        x["A"][:96].reshape(3, 2, 2, 2, 4).min((1, 3)).ravel()
    ),
    "__bang_argmax(F, A, 256);": lambda x: x["A"].max(keepdims=True),
    "__bang_half2float(F, H, 512);": lambda x: x["H"].astype(np.float32),
    "__bang_float2half_rn(O, A, 256); __bang_half2float(F, O, 256);": lambda x: (
        x["A"].astype(np.float16).astype(np.float32)
    ),
    "__bang_float2bfloat16_rn(Q, A, 256); __bang_bfloat162float(F, Q, 256);": lambda x: (
        x["A"].astype(ml_dtypes.bfloat16).astype(np.float32)
    ),
    "__bang_add(O, H, H, 512); __bang_half2float(F, O, 512);": lambda x: (
        (x["H"] + x["H"]).astype(np.float32)
    ),
    "__bang_int322float_rn(F, I, 256, 0);": lambda x: x["I"].astype(np.float32),
    "__bang_float2int32_tz(J, A, 256, 0); __bang_int322float_rn(F, J, 256, 0);": lambda x: (
        np.trunc(x["A"])
    ),
    "__bang_float2int8_tz(C, A, 256, 0); __bang_int82float(F, C, 256, 0);": lambda x: (
        np.trunc(x["A"])
    ),
    "__bang_float2int16_rn(W, A, 256, -1); __bang_int162float(F, W, 256, 0);": lambda x: (
        np.rint(x["A"] * 2)
    ),
    "__bang_abs(A, A, 256); __bang_float2uchar_tz(U, A, 256); __bang_uchar2float(F, U, 256);": (
        lambda x: np.trunc(np.abs(x["A"]))
    ),
    "__bang_mul_scalar(J, I, -1, 256); __bang_int322float_rn(F, J, 256, 0);": lambda x: (
        -x["I"].astype(np.float32)
    ),
    "__bang_bxor((char*)F, (char*)A, (char*)B, 1024); "
    "__bang_bxor((char*)F, (char*)F, (char*)B, 1024);": lambda x: x["A"],
    "__bang_write_value(F, 7, 2.5f);": lambda x: np.full(7, 2.5, np.float32),
    "__memcpy(F, A, 100 * 4, NRAM2NRAM);": lambda x: x["A"][:100],
    "__memcpy(F, A, 4, NRAM2NRAM, 4, 8, 99);": lambda x: x["A"][0:200:2],
    "__memcpy(F, A, 8, NRAM2NRAM, 8, 1, 16, 3, 16, 1, 32, 3);": lambda x: (
        x["A"][:32].reshape(8, 4)[:, :2].ravel()
    ),
    "F[0] = A[3] + B[4];": lambda x: x["A"][3:4] + x["B"][4:5],
    # the core's own reads and writes come after what Compute was given
    "__bang_add(T, A, B, 4); F[0] = T[3];": lambda x: x["A"][3:4] + x["B"][3:4],
    "T[2] = 7.f; __bang_add(T + 1, A, B, 1); __bang_mul_scalar(F, T + 1, T[2], 1);": lambda x: (
        7 * (x["A"][:1] + x["B"][:1])
    ),
    "__memcpy_async(T, A, 16, NRAM2NRAM); F[0] = T[1];": lambda x: x["A"][1:2],
    "__store_nram(F, __load_nram(A + 2) + __load_gdram(b + 3)); __store_nram(O, half(1.f));": (
        lambda x: x["A"][2:3] + x["B"][3:4]
    ),
    "__bang_write_value(O, 4, half(3.f)); __bang_mul_scalar(O, H, O[2], 4); "
    "__bang_half2float(F, O, 4);": lambda x: x["H"][:4] * np.float16(3),
    "__bang_write_value(O, 4, half(3.f)); O[1] = O[2]; O[3] = 5.f; __bang_half2float(F, O, 4);": (
        lambda x: np.array([3, 3, 3, 5], np.float32)
    ),
    "__bang_write_value(F, 4, 1.f); F[1] = 2.f; __bang_add_scalar(F, F, 1.f, 4);": lambda x: (
        np.array([2, 3, 2, 2], np.float32)
    ),
    # 16 x 64 = (16 x 16) @ (64 x 16)^T
    "__bang_write_zero(T, 1024); __memcpy(T, A, 1024, NRAM2NRAM); "
    "__memcpy(T + 256, B, 1024, NRAM2NRAM); __bang_reshape_filter(F, T, 64, 1, 1, 16); "
    "__memcpy(V, F, 4096, NRAM2WRAM); __bang_matmul(F, A, V, 16, 16, 64);": lambda x: (
        x["A"].reshape(16, 16)
        @ np.concatenate([x["A"], x["B"], np.zeros(512, np.float32)]).reshape(64, 16).T
    ).ravel(),
    "__bang_write_zero(O, 1024); __memcpy(T, H, 1024, NRAM2NRAM); "
    "__bang_write_zero((half*)T + 512, 1536); __bang_reshape_filter((half*)T + 2048, (half*)T, 64, "
    "1, 1, 32); __memcpy(X, (half*)T + 2048, 4096, NRAM2WRAM); __bang_write_value(F, 512, 1.f); "
    "__bang_conv_partial(F, H, X, F, 32, 1, 8, 1, 1, 1, 1, 64);": lambda x: (
        1
        + x["H"][:256].reshape(8, 32).astype(np.float32)
        @ np.concatenate([x["H"], np.zeros(1536, np.float16)])
        .reshape(64, 32)
        .T.astype(np.float32)
    ).ravel(),
}  # fmt: skip

# What the model says against an instruction.
REJECTED = {
    "__bang_add(F, A, B, 0);": "__bang_add: the number of elements has to be greater than 0",
    "__bang_add(F, a, B, 4);": "source 0 lies in GDRAM, but has to lie in NRAM",
    "__bang_add(F, A, V, 4);": "source 1 lies in WRAM, but has to lie in NRAM",
    "__bang_add(F, A, B + 250, 8);": "reads bytes 1000 to 1032 of B, which has 1024",
    "__bang_add(A + 1, A, B, 8); __bang_maxequal(B, A, B, 8);": (
        "__bang_maxequal: the destination lies on source 1 (B), which this call does not allow"
    ),
    "__bang_transpose(A, A, 4, 4);": "the destination lies on src (A)",
    "__bang_floor(A, A, 4);": "__bang_floor: the destination lies on source 0 (A)",
    "__bang_half2float((float*)H, H, 4);": "__bang_half2float: the destination lies on source 0",
    "__bang_sumpool(A, A, 1, 4, 1, 4, 1, 1, 1);": "the destination lies on src (A)",
    "__bang_cycle_add(F, A, B, 10, 4);": "10 elements are no multiple of the segment's 4",
    "__bang_cycle_add(B, A, B, 8, 4);": "the destination lies on seg (B)",
    "__bang_add(Q, Q, Q, 4);": "__bang_add takes no bfloat16_t on mtp_372",
    "__bang_div(F, A, B, 4);": "__bang_div does not exist on mtp_372",
    "__bang_sumpool(F, A, 1, 70000, 1, 70000, 1, 1, 1);": "a window of 70000 elements",
    "__bang_float2int32_tz(J, A, 4, 200);": "fix_position has to lie in [-127, 127], not 200",
    "__memcpy(F, A, 0, NRAM2NRAM);": "__memcpy: size has to be greater than 0",
    "__memcpy(F, A, 8, GDRAM2NRAM);": "the source lies in NRAM, but has to lie in GDRAM",
    "__memcpy(F, A, 8, NRAM2NRAM, 4, 8, 3);": "dst_stride is 4 bytes, less than the 8",
    "__memcpy(V, A, 24, NRAM2WRAM);": "24 bytes from or to WRAM, but it takes multiples of 16",
    "__memcpy(V + 1, A, 16, NRAM2WRAM);": "an address in WRAM has to be a multiple of 8 bytes",
    "__memcpy(F, a + 250, 32, GDRAM2NRAM);": "reads bytes 1000 to 1032 of a0, which has 1024",
    "__memcpy((void*)a, A, 32, NRAM2GDRAM);": "__memcpy writes a0, an input",
    "__bang_add(T, T, A, 4); __memcpy(F, T, 16, NRAM2NRAM); __memcpy(out, F, 16, NRAM2GDRAM);": (
        "takes byte 0 of F, which nothing wrote"
    ),
    "__bang_reshape_filter(T, F, 60, 1, 1, 16);": "n has to be a multiple of 64, not 60",
    "__bang_reshape_filter(T, F, 64, 1, 1, 4);": "h * w * c takes 16 bytes, no multiple of 32",
    "__bang_matmul(F, A, B, 16, 16, 4);": "the operand in WRAM lies in NRAM, but has to lie in WRAM",
    "__bang_matmul(F, A, V, 16, 8, 64);": "takes 32 bytes, no multiple of 64",
    "__bang_matmul(F, A, V + 2, 4, 16, 64);": "the address in WRAM has to be a multiple of 32 bytes",
    "__bang_matmul(A, A, V, 4, 16, 64);": "the destination lies on src (A)",
    "__sync_io_move_compute(false, false, false);": "producers cannot all be false",
    # asynchronous copies
    "__memcpy_async(A, a, 1024, GDRAM2NRAM); __bang_add(F, A, B, 4);": (
        "__bang_add (Compute) reads bytes of A that __memcpy_async of line"
    ),
    "__bang_add(F, A, B, 4); __memcpy_async(out, F, 16, NRAM2GDRAM);": (
        "__memcpy_async (IO) reads bytes of F that __bang_add of line"
    ),
    "__memcpy_async(A, a, 1024, GDRAM2NRAM); __sync_move(); __bang_add(F, A, B, 4);": (
        "no synchronisation lies between"
    ),
    "__memcpy_async(V, A, 1024, NRAM2WRAM); __bang_add(A, A, B, 4);": (
        "__bang_add (Compute) writes bytes of A that __memcpy_async of line"
    ),
    # the core's own reads and writes
    "__memcpy_async(A, a, 1024, GDRAM2NRAM); F[0] = A[3];": (
        "the core (Compute) reads bytes of A that __memcpy_async of line"
    ),
    "__memcpy_async(out, A, 1024, NRAM2GDRAM); A[1] = 1.f;": (
        "the core (Compute) writes bytes of A that __memcpy_async of line"
    ),
    "F[0] = A[0]; __memcpy_async(A, a, 1024, GDRAM2NRAM);": (
        "__memcpy_async (IO) writes bytes of A that the core of line"
    ),
    "F[0] = 1.f; __memcpy_async(out, F, 16, NRAM2GDRAM);": (
        "__memcpy_async (IO) reads bytes of F that the core of line"
    ),
    "__memcpy_async(H, h, 64, GDRAM2NRAM); F[0] = H[3];": "(line ",
    "__memcpy_async(H, h, 64, GDRAM2NRAM); __bang_add_scalar(O, O, H[3], 4);": "(line ",
    "__memcpy_async(H, h, 64, GDRAM2NRAM); H[1] = half(F[0]);": "(line ",
    "F[0] = H[3]; __memcpy_async(H, h, 64, GDRAM2NRAM);": "of H that the core of line",
    "__memcpy_async(T, a, 256, GDRAM2NRAM); memcpy(F, T, 256);": "the core (Compute) reads bytes of T",
    "__memcpy_async(T, a, 256, GDRAM2NRAM); memset(T, 0, 256);": "the core (Compute) writes bytes of T",
    "__memcpy_async(H, h, 64, GDRAM2NRAM); struct P { half x, y, z; }; P p = ((P*)H)[1]; F[0] = p.z;": (
        "the core (Compute) reads bytes of H"
    ),
    "T[0] = T[1] + 1.f; __memcpy(out, T, 4, NRAM2GDRAM);": "takes byte 0 of T, which nothing wrote",
    "F[0] = *(volatile float*)(a + (1 << 28));": "the core reads 4 bytes outside every tensor",
    "((volatile float*)a)[1] = 2.f;": "the core writes a0, an input",
    "F[0] = ((volatile float*)V)[0];": "the core reads V itself, but WRAM takes copies only",
    "F[0] = ((volatile float*)a)[256];": "the core reads bytes 1024 to 1028 of a0, which has 1024",
}

ORDERED = (
    "__memcpy_async(A, a, 1024, GDRAM2NRAM); __sync_io(); __bang_add(F, A, B, 4);",
    "__bang_add(F, A, B, 4); __sync_compute(); __memcpy_async(out, F, 16, NRAM2GDRAM);",
    "__memcpy_async(A, a, 1024, GDRAM2NRAM); __sync(); __bang_add(F, A, B, 4);",
    "__memcpy_async(A, a, 1024, GDRAM2NRAM); __sync_io_move_compute(); __bang_add(F, A, B, 4);",
    "__bang_add(F, A, B, 4); __memcpy(out, F, 16, NRAM2GDRAM);",
    "__memcpy_async(A, a, 1024, GDRAM2NRAM); __memcpy_async(out, A, 16, NRAM2GDRAM);",
    "__memcpy_async(A, a, 1024, GDRAM2NRAM); __sync_io(); F[0] = A[3];",
    "__memcpy(A, a, 1024, GDRAM2NRAM); F[0] = A[3];",
    "F[0] = 1.f; __sync_compute(); __memcpy_async(out, F, 16, NRAM2GDRAM);",
    "F[0] = 1.f; __memcpy(out, F, 16, NRAM2GDRAM);",
    "memset(T, 0, 64); memcpy(T + 16, T, 64); __memcpy(out, T, 128, NRAM2GDRAM);",
    "((int32_t*)T)[0] = -1; __memcpy(out, T, 4, NRAM2GDRAM);",
    "float own[64]; for (int n = 0; n < 64; ++n) own[n] = A[n]; F[0] = own[which % 64];",
    "__bang_write_zero(T, 1024); __bang_reshape_filter(F, T, 64, 1, 1, 16); __memcpy(V, F, 4096, NRAM2WRAM); "
    "__bang_matmul(F, A, V, 4, 16, 64);",
)


def text() -> str:
    cases = [*OPERATIONS, *REJECTED, *ORDERED]
    body = "".join(f"    case {n}: {{ {case} break; }}\n" for n, case in enumerate(cases))
    return f"{HEAD}{body}  }}\n  __memcpy(out, F, 4096, NRAM2GDRAM);\n}}\n"


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> EmulatedModule:
    return built(text(), tmp_path_factory.mktemp("ops"))


def inputs() -> Inputs:
    random = np.random.default_rng(1)
    return {
        "A": (random.standard_normal(256) * 8).astype(np.float32),
        "B": (random.standard_normal(256) * 8).astype(np.float32),
        "H": random.standard_normal(512).astype(np.float16),
        "I": random.integers(-1000, 1000, 256).astype(np.int32),
    }


@pytest.mark.parametrize("case", OPERATIONS)
def test_operation_computes_what_it_says(case: str, module: EmulatedModule) -> None:
    given = inputs()
    out = np.zeros(1024, np.float32)
    launch(module, "ops", [*given.values(), out, list(OPERATIONS).index(case)], [4])
    wanted = OPERATIONS[case](given)
    np.testing.assert_allclose(out[: wanted.size], wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("case", REJECTED)
def test_misuse_is_rejected(case: str, module: EmulatedModule) -> None:
    which = len(OPERATIONS) + list(REJECTED).index(case)
    out = np.zeros(1024, np.float32)
    said = report(module, "ops", [*inputs().values(), out, which], [4])
    assert REJECTED[case] in said


@pytest.mark.parametrize("case", ORDERED)
def test_ordered_accesses_are_no_race(case: str, module: EmulatedModule) -> None:
    which = len(OPERATIONS) + len(REJECTED) + ORDERED.index(case)
    out = np.zeros(1024, np.float32)
    assert report(module, "ops", [*inputs().values(), out, which], [4]) == ""


# What two tasks do themselves, and what the model says against it.
TASKS = {
    "out[0] = taskId;": "the core writes bytes of a1 that the core of line",
    "if (taskId) out[1] = 1.f; else F[0] = out[1];": "reads in task 0",
    "if (taskId) out[1] = 1.f; else __memcpy(out, F, 64, NRAM2GDRAM);": (
        "the core writes bytes of a1 that __memcpy of line"
    ),
    "for (int n = 0; n < 8; ++n) out[n * 2 + taskId] = n;": "",
    "F[0] = a[0]; for (int n = 0; n < 8; ++n) out[taskId * 8 + n] = a[n];": "",
}


def test_what_tasks_write_themselves_is_told_apart(tmp_path: Path) -> None:
    cases = "".join(f"    case {n}: {{ {body} break; }}\n" for n, body in enumerate(TASKS))
    text = (
        '#include <bang.h>\nextern "C" __mlu_global__ void tasks(const float* a, float* out, int which) {\n'
        f"  __nram__ float F[64]; __bang_write_zero(F, 64);\n  switch (which) {{\n{cases}  }}\n}}\n"
    )
    module = built(text, tmp_path)
    for which, said in enumerate(TASKS.values()):
        given: list[Array | int | float] = [
            np.ones(64, np.float32),
            np.zeros(64, np.float32),
            which,
        ]
        found = report(module, "tasks", given, [1], 2)
        assert said in found if said else not found


WHEREVER = """#include <bang.h>

template <typename T>
__mlu_func__ void twice(T* dst, const T* src) {
  __nram__ T X[64];
  __memcpy(X, src, sizeof X, GDRAM2NRAM);
  for (int n = 0; n < 64; ++n) X[n] = X[n] * T(2);
  __memcpy(dst, X, sizeof X, NRAM2GDRAM);
}
__mlu_func__ void more(float* dst, const float* src, int count) {
  __nram__ float Y[64];
  __memcpy(Y, src, 256, GDRAM2NRAM);
  __bang_add_scalar(Y, Y, 1.f, count);
  __memcpy(dst, Y, 256, NRAM2GDRAM);
}
__mlu_entry__ void all(float* dst, const float* src, int count) {
  __nram__ float Z[64];
  twice(dst, src);
  more(dst, dst, count);
  __memcpy(Z, dst, 256, GDRAM2NRAM);
  __memcpy(dst, Z, 256, NRAM2GDRAM);
}
__mlu_entry__ void unwritten(float* dst, const float* src, int count) {
  __nram__ float X[64];
  __memcpy(dst, X, 256, NRAM2GDRAM);
}
__mlu_entry__ void large(float* dst, const float* src, int count) {
  __nram__ float X[64];
  __bang_transpose(X, X + 32, 0x7fffffff, 0x7fffffff);
}
"""


def test_arrays_lie_in_any_function(tmp_path: Path) -> None:
    module = built(WHEREVER, tmp_path)
    src = np.arange(64, dtype=np.float32)
    dst = np.zeros(64, np.float32)
    for _ in range(2):
        launch(module, "all", [dst, src, 64], [0])
        np.testing.assert_array_equal(dst, 2 * src + 1)
    found = {
        entry: report(module, entry, [dst, src, count], [0])
        for entry, count in (("all", 65), ("unwritten", 0), ("large", 0))
    }
    assert "reads bytes 0 to 260 of Y, which has 256" in found["all"]
    assert "takes byte 0 of X, which nothing wrote" in found["unwritten"]
    assert "of X, which has 256" in found["large"]


def test_what_is_not_there_is_told_by_the_build(tmp_path: Path) -> None:
    text = (
        '#include <bang.h>\nvoid elsewhere(float*);\nextern "C" __mlu_global__ void ops(float* out) {\n'
        "  elsewhere(out);\n}\n"
    )
    with pytest.raises(CompileError, match="elsewhere"):
        built(text, tmp_path)


LATE = """#include <bang.h>

extern "C" __mlu_global__ void late(const float* a, float* out) {{
  __nram__ float A[64], F[64];
  __bang_write_value(A, 64, 3.f);
  __bang_write_zero(F, 64);
  __sync_compute();
  {body}
}}
"""


@pytest.mark.parametrize(
    ("body", "right"),
    [
        (
            "__memcpy_async(A, a, 256, GDRAM2NRAM); {} __bang_add_scalar(F, A, 1.f, 64); "
            "__memcpy(out, F, 256, NRAM2GDRAM);",
            "__sync_io();",
        ),
        (
            "__bang_add_scalar(F, A, -1.f, 64); {} __memcpy_async(out, F, 256, NRAM2GDRAM);",
            "__sync_compute();",
        ),
        (
            "__memcpy_async(A, a, 256, GDRAM2NRAM); {} F[5] = A[5]; "
            "__memcpy(out, F, 256, NRAM2GDRAM);",
            "__sync_io();",
        ),
    ],
)
def test_a_missing_wait_is_seen_without_checks(body: str, right: str, tmp_path: Path) -> None:
    found = []
    for wait in (right, ""):
        text = LATE.format(body=body.format(wait))
        module = built(text, tmp_path, checks=frozenset())
        out = np.zeros(64, np.float32)
        launch(module, "late", [np.ones(64, np.float32), out], [1])
        found.append(out[5])
    assert found[0] in (1.0, 2.0)
    assert found[1] != found[0]
