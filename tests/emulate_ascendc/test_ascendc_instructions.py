"""Each instruction of the Ascend C model against NumPy, and what it rejects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from model_harness import Outcome, launch

Array = np.ndarray[Any, Any]
Make = Callable[[dict[str, Array]], Array]

HEAD = """#include "kernel_operator.h"
using namespace AscendC;

#define THEN PipeBarrier<PIPE_V>();
// The addresses of 16 blocks each, so many elements apart.
#define LISTS(D, APART, S, FROM)                                         \\
  uint64_t to[16], from[16];                                             \\
  for (int k = 0; k < 16; ++k)                                           \\
    to[k] = D[k * (APART)].GetPhyAddr(), from[k] = S[k * (FROM)].GetPhyAddr();

extern "C" __global__ __aicore__ void ops(GM_ADDR a, GM_ADDR b, GM_ADDR h, GM_ADDR g, GM_ADDR i,
                                          GM_ADDR out, uint32_t which) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  TPipe pipe;
  TBuf<TPosition::VECCALC> a_buf, b_buf, h_buf, g_buf, i_buf, out_buf, tmp_buf, bits_buf;
  pipe.InitBuffer(a_buf, 1024);
  pipe.InitBuffer(b_buf, 1024);
  pipe.InitBuffer(h_buf, 1024);
  pipe.InitBuffer(g_buf, 1024);
  pipe.InitBuffer(i_buf, 1024);
  pipe.InitBuffer(out_buf, 4096);
  pipe.InitBuffer(tmp_buf, 4096);
  pipe.InitBuffer(bits_buf, 64);
  LocalTensor<float> A = a_buf.Get<float>(), B = b_buf.Get<float>();
  LocalTensor<float> F = out_buf.Get<float>(), T = tmp_buf.Get<float>();
  LocalTensor<half> H = h_buf.Get<half>(), G = g_buf.Get<half>();
  LocalTensor<half> O = out_buf.Get<half>(), TH = tmp_buf.Get<half>();
  LocalTensor<int32_t> I = i_buf.Get<int32_t>(), N = out_buf.Get<int32_t>();
  LocalTensor<int16_t> W = out_buf.Get<int16_t>();
  LocalTensor<int8_t> C = out_buf.Get<int8_t>();
  LocalTensor<bfloat16_t> Q = out_buf.Get<bfloat16_t>();
  LocalTensor<uint8_t> U = out_buf.Get<uint8_t>(), bits = bits_buf.Get<uint8_t>();
  GlobalTensor<float> a_gm, b_gm;
  GlobalTensor<half> h_gm, g_gm;
  GlobalTensor<int32_t> i_gm, out_gm;
  a_gm.SetGlobalBuffer((__gm__ float*)a, 256);
  b_gm.SetGlobalBuffer((__gm__ float*)b, 256);
  h_gm.SetGlobalBuffer((__gm__ half*)h, 512);
  g_gm.SetGlobalBuffer((__gm__ half*)g, 512);
  i_gm.SetGlobalBuffer((__gm__ int32_t*)i, 256);
  out_gm.SetGlobalBuffer((__gm__ int32_t*)out, 1024);
  DataCopy(A, a_gm, 256);
  DataCopy(B, b_gm, 256);
  DataCopy(H, h_gm, 512);
  DataCopy(G, g_gm, 512);
  DataCopy(I, i_gm, 256);
  Duplicate(N, 0, 1024);
  PipeBarrier<PIPE_ALL>();
  switch (which) {
"""
TAIL = """  }
  PipeBarrier<PIPE_ALL>();
  DataCopy(out_gm, N, 1024);
}
"""

rng = np.random.default_rng(5)
DATA: dict[str, Array] = {
    "A": (4 * rng.standard_normal(256)).astype(np.float32),
    "B": (4 * rng.standard_normal(256)).astype(np.float32),
    "H": (4 * rng.standard_normal(512)).astype(np.float16),
    "G": (4 * rng.standard_normal(512)).astype(np.float16),
    "I": rng.integers(-1000, 1000, 256, dtype=np.int32),
}
A, B, H, G, I = (DATA[name] for name in "ABHGI")
F32, F16, I32 = np.float32, np.float16, np.int32
A8, B8 = A.reshape(4, 64), B.reshape(4, 64)
H4 = H.reshape(4, 128)


def tree(row: Array) -> Array:
    """Pairwise sums in the row's own type."""
    while len(row) > 1:
        row = np.append(row, row.dtype.type(0)) if len(row) % 2 else row
        row = row[::2] + row[1::2]
    return row[0]  # type: ignore[no-any-return]


def strided(rows: Array, places: list[int], size: int) -> Array:
    out = np.zeros(size, rows.dtype)
    for row, place in zip(rows, places, strict=True):
        out[place : place + len(row)] = row
    return out


def selected(bits: Array, a: Array, b: Array | float) -> Array:
    return np.where(bits, a, b).astype(a.dtype)


BYTES = A.view(np.int8)  # 32 rows of 32
HIGH = np.zeros((16, 32), np.int8)
HIGH[:, 16:] = BYTES.reshape(32, 32)[:16, :16].T

# snippet, what the first bytes of `out` hold
CASES: dict[str, tuple[str, Array]] = {
    "turn_square": ("Transpose(O, H);", H[:256].reshape(16, 16).T.ravel()),
    "turn_in_place": (
        "Adds(O, H, (half)0, 256); THEN Transpose(O, O);",
        H[:256].reshape(16, 16).T.ravel(),
    ),
    "turn_half": (
        "LISTS(O, 16, H, 32) TransDataTo5HD<half>(to, from, {false, false, 2, 16, 1});",
        H.reshape(16, 32).T.ravel(),
    ),
    "turn_half_once": (
        "LISTS(O, 16, H, 32) TransDataTo5HD<half>(to, from, {false, false, 1, 0, 0});",
        H.reshape(16, 32)[:, :16].T.ravel(),
    ),
    "turn_half_a_stride_further": (
        "LISTS(O, 16, H, 32) TransDataTo5HD<half>(to, from, {false, false, 1, 0, 1});",
        H.reshape(16, 32)[:, 16:].T.ravel(),
    ),
    "turn_float": (
        "LISTS(F, 8, A, 16) TransDataTo5HD<float>(to, from, {false, false, 2, 16, 1});",
        A.reshape(16, 16).T.ravel(),
    ),
    "turn_int": (
        "LISTS(N, 8, I, 8) TransDataTo5HD<int32_t>(to, from, {false, false, 1, 0, 0});",
        I[:128].reshape(16, 8).T.ravel(),
    ),
    "turn_bytes": (
        "LISTS(C, 32, A.ReinterpretCast<int8_t>(), 32) "
        "TransDataTo5HD<int8_t>(to, from, {true, false, 1, 0, 0});",
        HIGH.ravel(),
    ),
    "turn_tensors": (
        "LocalTensor<float> d[16], s[16]; for (int k = 0; k < 16; ++k) d[k] = F[k * 8], s[k] = "
        "A[k * 16]; TransDataTo5HD<float>(d, s, {false, false, 1, 0, 0});",
        A.reshape(16, 16)[:, :8].T.ravel(),
    ),
    "add": ("Add(F, A, B, 201);", A[:201] + B[:201]),
    "sub_half": ("Sub(O, H, G, 333);", H[:333] - G[:333]),
    "mul_int": ("Mul(N, I, I, 100);", I[:100] * I[:100]),
    "div_half": ("Div(O, H, G, 512);", (H.astype(F32) / G.astype(F32)).astype(F16)),
    "max": ("Max(F, A, B, 256);", np.maximum(A, B)),
    "min": ("Min(O, H, G, 7);", np.minimum(H, G)[:7]),
    "adds": ("Adds(O, H, (half)1.5f, 100);", H[:100] + F16(1.5)),
    "muls": ("Muls(F, A, 0.25f, 100);", A[:100] * F32(0.25)),
    "maxs": ("Maxs(F, A, 0.5f, 100);", np.maximum(A[:100], F32(0.5))),
    "mins": ("Mins(N, I, 12, 100);", np.minimum(I[:100], 12)),
    "leaky": ("LeakyRelu(F, A, 0.5f, 100);", np.where(A >= 0, A, A * F32(0.5))[:100]),
    "relu": ("Relu(O, H, 100);", np.maximum(H, F16(0))[:100]),
    "abs": ("Abs(F, A, 100);", np.abs(A)[:100]),
    "exp": ("Exp(F, A, 100);", np.exp(A[:100])),
    "ln": ("Abs(T, A, 100); THEN Ln(F, T, 100);", np.log(np.abs(A[:100]))),
    "sqrt": ("Abs(T, A, 100); THEN Sqrt(F, T, 100);", np.sqrt(np.abs(A[:100]))),
    "axpy": ("Adds(F, B, 0.0f, 99); THEN Axpy(F, A, 2.0f, 99);", A[:99] * 2 + B[:99]),
    "axpy_wide": (
        "Adds(F, B, 0.0f, 99); THEN Axpy(F, H, (half)2.0f, 99);",
        H[:99].astype(F32) * 2 + B[:99],
    ),
    "mul_add_dst": ("Adds(F, B, 0.0f, 99); THEN MulAddDst(F, A, A, 99);", A[:99] * A[:99] + B[:99]),
    "add_repeat": (
        "Add(F, A, B, 40, 4, {1, 1, 1, 8, 8, 8});",
        strided(A8[:, :40] + B8[:, :40], [0, 64, 128, 192], 256),
    ),
    "add_row_broadcast": ("Add(F, A, B, 64, 4, {1, 1, 1, 8, 8, 0});", (A8 + B8[0]).ravel()),
    "add_block_broadcast": (
        "Mul(F, A, B, 64, 4, {1, 1, 0, 8, 8, 1});",
        (A8.reshape(4, 8, 8) * B[:32].reshape(4, 1, 8)).ravel(),
    ),
    "fold": ("Duplicate(F, 0.0f, 64); THEN Add(F, A, F, 64, 4, {1, 1, 1, 0, 8, 0});", A8.sum(0)),
    "adds_bits": (
        "uint64_t m[2] = {0x5, 0}; Adds(F, A, 1.0f, m, 2, {1, 1, 8, 8});",
        strided(
            np.stack([A8[:2, 0], 0 * A8[:2, 0], A8[:2, 2]], 1) + np.array([1, 0, 1], F32),
            [0, 64],
            67,
        ),
    ),
    "duplicate_half": ("Duplicate(O, (half)3.0f, 77);", np.full(77, 3, F16)),
    "duplicate_repeat": (
        "Duplicate(F, 2.0f, 8, 3, 1, 2);",
        strided(np.full((3, 8), 2, F32), [0, 16, 32], 48),
    ),
    "progression": ("CreateVecIndex(N, 5, 40);", np.arange(5, 45, dtype=I32)),
    "brcb": ("Brcb(F, A, 2, {1, 8});", np.repeat(A[:16], 8)),
    "brcb_half": (
        "Brcb(O, H, 1, {2, 8});",
        strided(np.repeat(H[:8, None], 16, 1), [32 * i for i in range(8)], 256),
    ),
    "row_sums": ("WholeReduceSum(F, A, 64, 4, 1, 1, 8);", np.array([tree(r) for r in A8])),
    "row_sums_masked": (
        "WholeReduceSum(F, A, 33, 4, 2, 1, 8);",
        strided(np.array([[tree(r[:33])] for r in A8]), [0, 2, 4, 6], 8),
    ),
    "row_max": ("WholeReduceMax(F, A, 64, 4, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);", A8.max(1)),
    "row_max_pairs": (
        "WholeReduceMax(F, A, 64, 4, 1, 1, 8);",
        np.stack([A8.max(1), A8.argmax(1).astype(I32).view(F32)], 1).ravel(),
    ),
    "row_min_pairs": (
        "WholeReduceMin(O, H, 128, 4, 1, 1, 8, ReduceOrder::ORDER_INDEX_VALUE);",
        np.stack([H4.argmin(1).astype(np.uint16).view(F16), H4.min(1)], 1).ravel(),
    ),
    "row_argmax": (
        "WholeReduceMax(F, A, 64, 4, 1, 1, 8, ReduceOrder::ORDER_ONLY_INDEX);",
        A8.argmax(1).astype(I32),
    ),
    "block_max": ("BlockReduceMax(F, A, 4, 64, 1, 1, 8);", A.reshape(32, 8).max(1)),
    "block_sum": (
        "BlockReduceSum(O, H, 4, 128, 1, 1, 8);",
        np.array([tree(r) for r in H.reshape(32, 16)]),
    ),
    "pair_sum": ("PairReduceSum(F, A, 4, 64, 1, 1, 8);", A[::2] + A[1::2]),
    "reduce_sum": (
        "ReduceSum(F, A, T, 201);",
        np.array([tree(A[:64]) + tree(A[64:128]) + tree(A[128:192]) + tree(A[192:201])]),
    ),
    "reduce_max": (
        "ReduceMax(F, A, T, 201, true);",
        np.array([A[:201].max(), I32(A[:201].argmax()).view(F32)]),
    ),
    "reduce_min": ("ReduceMin(O, H, TH, 500);", np.array([H[:500].min()])),
    "compare": ("Compare(U, A, B, CMPMODE::LT, 256);", np.packbits(A < B, bitorder="little")),
    "compare_scalar": (
        "CompareScalar(U, H, (half)0.5f, CMPMODE::GE, 512);",
        np.packbits(H >= F16(0.5), bitorder="little"),
    ),
    "compare_int": ("Compare(U, I, I, CMPMODE::EQ, 64);", np.full(8, 255, np.uint8)),
    "select": (
        "Compare(bits, A, B, CMPMODE::GT, 256); THEN "
        "Select(F, bits, A, B, SELMODE::VSEL_TENSOR_TENSOR_MODE, 201);",
        selected(A > B, A, B)[:201],
    ),
    "select_scalar": (
        "CompareScalar(bits, A, 0.0f, CMPMODE::GT, 256); THEN "
        "Select(F, bits, A, -1.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, 201);",
        selected(A > 0, A, -1)[:201],
    ),
    "select_registers": (
        "Compare(bits, A, B, CMPMODE::GT, 64); THEN "
        "Select(F, bits, A, B, SELMODE::VSEL_CMPMASK_SPR, 256);",
        selected(np.tile(A8[0] > B8[0], 4), A, B),
    ),
    "to_float": ("Cast(F, H, RoundMode::CAST_NONE, 200);", H[:200].astype(F32)),
    "to_half": ("Cast(O, A, RoundMode::CAST_RINT, 200);", A[:200].astype(F16)),
    "to_bfloat": ("Cast(Q, A, RoundMode::CAST_RINT, 200);", A[:200].astype(ml_dtypes.bfloat16)),
    "to_bfloat_down": (
        "Abs(T, A, 200); THEN Cast(Q, T, RoundMode::CAST_TRUNC, 200);",
        (np.abs(A[:200]).view(np.uint32) >> 16).astype(np.uint16),
    ),
    "to_int_rint": ("Cast(N, A, RoundMode::CAST_RINT, 200);", np.rint(A[:200]).astype(I32)),
    "to_int_floor": ("Cast(N, H, RoundMode::CAST_FLOOR, 200);", np.floor(H[:200]).astype(I32)),
    "to_int_trunc": ("Cast(W, A, RoundMode::CAST_TRUNC, 200);", np.trunc(A[:200]).astype(np.int16)),
    "to_int_ceil": ("Cast(C, H, RoundMode::CAST_CEIL, 200);", np.ceil(H[:200]).astype(np.int8)),
    "from_int": ("Cast(F, I, RoundMode::CAST_NONE, 200);", I[:200].astype(F32)),
    "cast_repeat": ("Cast(F, H, RoundMode::CAST_NONE, 64, 4, {1, 1, 8, 4});", H[:256].astype(F32)),
    "copy": ("DataCopy(F, A, 64);", A[:64]),
    "copy_gaps": (
        "DataCopy(F, A, DataCopyParams(3, 1, 1, 0));",
        A.reshape(16, 2, 8)[:3, 0].ravel(),
    ),
    "scalar": ("F.SetValue(3, A.GetValue(5) * 2);", np.array([0, 0, 0, 2 * A[5]], F32)),
}

# snippet, kind of the report, words of it
REJECTED: dict[str, tuple[str, str, str]] = {
    "turn_type": (
        "LISTS(Q, 16, Q, 16) TransDataTo5HD<bfloat16_t>(to, from, {false, false, 1, 0, 0});",
        "misuse",
        "does not take bfloat16_t",
    ),
    "turn_start": (
        "LISTS(O, 8, H, 16) TransDataTo5HD<half>(to, from, {false, false, 1, 0, 0});",
        "misuse",
        "result 1 starts at byte",
    ),
    "turn_repeats": (
        "LISTS(O, 16, H, 16) TransDataTo5HD<half>(to, from, {false, false, 256, 0, 0});",
        "misuse",
        "more than 255 repeats",
    ),
    "turn_results": (
        "LISTS(O, 16, H, 16) TransDataTo5HD<half>(to, from, {false, false, 2, 0, 1});",
        "misuse",
        "two results lie at byte",
    ),
    "turn_overlap": (
        "LISTS(O, 16, O, 16) TransDataTo5HD<half>(to, from, {false, false, 1, 0, 0});",
        "misuse",
        "lies where a result does",
    ),
    "turn_square_type": ("Transpose(F, A);", "misuse", "does not take float"),
    "turn_race": (
        "Adds(TH, H, (half)0, 512); LISTS(O, 16, TH, 16) "
        "TransDataTo5HD<half>(to, from, {false, false, 1, 0, 0});",
        "race",
        "no PipeBarrier is between them",
    ),
    "bfloat": (
        "Add(Q, Q, Q, 16);",
        "misuse",
        "Add does not take bfloat16_t on this core, only half, float",
    ),
    "int_div": ("Div(N, I, I, 16);", "misuse", "Div does not take int32_t"),
    "unaligned": ("Add(F[1], A, B, 16);", "misuse", "starts at byte 5124"),
    "overlap": ("Add(F[8], F, B, 16);", "misuse", "overlap in part"),
    "repeat_overlap": (
        "Adds(F[64], F, 1.0f, 64, 2, {1, 1, 8, 8});",
        "misuse",
        "an earlier repeat wrote",
    ),
    "past_buffer": ("Add(F, A, B, 257);", "memory", "bytes 0 to 1028 of a_buf, which has 1024"),
    "repeats": ("Add(F, A, B, 64, 256, {1, 1, 1, 8, 8, 8});", "misuse", "256 repeats"),
    "mask": ("Add(F, A, B, 65, 1, {1, 1, 1, 8, 8, 8});", "misuse", "a mask of 65 lanes"),
    "compare_tail": ("Compare(U, A, B, CMPMODE::LT, 200);", "misuse", "no multiple of 256"),
    "compare_int": ("Compare(U, I, I, CMPMODE::LT, 64);", "misuse", "EQ only"),
    "select_mode": (
        "Select(F, bits, A, B, SELMODE::VSEL_TENSOR_SCALAR_MODE, 64);",
        "misuse",
        "takes a scalar",
    ),
    "cast_mode": (
        "Cast(N, A, RoundMode::CAST_NONE, 64);",
        "misuse",
        "from float to int32_t does not take CAST_NONE",
    ),
    "cast_pair": (
        "Cast(Q, H, RoundMode::CAST_RINT, 64);",
        "misuse",
        "from half to bfloat16_t does not exist",
    ),
    "unwritten": ("Add(F, T, B, 64);", "memory", "byte 0 of tmp_buf, which nothing wrote"),
    "pair_align": ("WholeReduceMax(F[1], A, 64, 1, 1, 1, 8);", "misuse", "no multiple of 8"),
    "copy_count": ("DataCopy(A, a_gm, 100);", "misuse", "the hardware copies only 384"),
    "copy_blocks": ("DataCopy(A, a_gm, DataCopyParams(4096, 1, 0, 0));", "misuse", "at most 4095"),
    "pad_bytes": (
        "DataCopyPad(A, a_gm, {1, 30, 0, 0, 0}, {false, 0, 0, 0});",
        "misuse",
        "no multiple of the 4",
    ),
    "pad_width": (
        "DataCopyPad(A, a_gm, {1, 32, 0, 0, 0}, {true, 0, 9, 0});",
        "misuse",
        "at most 32",
    ),
    "pad_zero": (
        "DataCopyPad(A, a_gm, {1, 4, 0, 0, 0}, {true, 0, 0, 0}); PipeBarrier<PIPE_ALL>(); "
        "Add(F, A, B, 8);",
        "memory",
        "unspecified",
    ),
    "flag_id": ("SetFlag<HardEvent::V_S>(8);", "misuse", "event ids 0 to 7"),
    "flag_reserved": ("SetFlag<HardEvent::V_S>(6);", "misuse", "reserved"),
    "flag_twice": (
        "SetFlag<HardEvent::V_S>(0); SetFlag<HardEvent::V_S>(0);",
        "misuse",
        "comes before the WaitFlag",
    ),
    "flag_never": ("WaitFlag<HardEvent::V_S>(0);", "deadlock", "waits for ever"),
    "flag_left": ("SetFlag<HardEvent::V_S>(0);", "misuse", "still set at the end"),
    "barrier_s": ("PipeBarrier<PIPE_S>();", "misuse", "PIPE_S"),
    "same_ub_twice": (
        "DataCopy(A, a_gm, 64); DataCopy(A, b_gm, 64);",
        "race",
        "no PipeBarrier is between them",
    ),
    "same_gm_twice": (
        "DataCopy(out_gm, I, 64); DataCopy(out_gm, I, 64);",
        "race",
        "no PipeBarrier is between them",
    ),
    "gm_then_ub": (
        "DataCopy(out_gm, I, 64); DataCopy(N, out_gm, 64);",
        "race",
        "no flag, queue or barrier",
    ),
    "buffer_size": ("out_buf.GetWithOffset<float>(1024, 32);", "misuse", "from a TBuf of 4096"),
    "buffer_missing": ("TBuf<> none; none.Get<float>();", "misuse", "without InitBuffer"),
    "ub_full": ("TBuf<> more; pipe.InitBuffer(more, 190000);", "misuse", "which has 196352 to use"),
    "select_reserve": (
        "TBuf<> more; pipe.InitBuffer(more, 180000); Compare(bits, A, B, CMPMODE::GT, 64); "
        "Select(F, bits, A, B, SELMODE::VSEL_TENSOR_TENSOR_MODE, 64);",
        "misuse",
        "last 8 KB",
    ),
    "past_the_data": (
        "Adds(T, A, 0.0f, 5); THEN Adds(F, T, 0.0f, 6);",
        "memory",
        "Adds reads byte 20 of tmp_buf, which nothing wrote, and DataCopy of line",
    ),
    "queue_event": (
        "TQue<TPosition::VECIN, 1> q; pipe.InitBuffer(q, 1, 64); auto t = q.AllocTensor<float>(); "
        "DataCopy(t, a_gm, 16); SetFlag<HardEvent::MTE2_V>(0); q.EnQue(t);",
        "misuse",
        "take ids from AllocEventID",
    ),
    "queue_left": (
        "TQue<TPosition::VECIN, 1> q; pipe.InitBuffer(q, 1, 64); auto t = q.AllocTensor<float>(); "
        "DataCopy(t, a_gm, 16); q.EnQue(t);",
        "misuse",
        "a buffer of q is still enqueued at the end",
    ),
    "queue_depth": (
        "TQue<TPosition::VECIN, 1> q; pipe.InitBuffer(q, 2, 64); auto t = q.AllocTensor<float>(); "
        "q.EnQue(t); t = q.AllocTensor<float>(); q.EnQue(t);",
        "misuse",
        "q has depth 1 and holds 1",
    ),
    "queue_missing": (
        "TQue<TPosition::VECIN, 1> q; q.AllocTensor<float>();",
        "misuse",
        "without InitBuffer",
    ),
    "buffers": (
        "TBuf<> more[60]; for (auto& one : more) pipe.InitBuffer(one, 32);",
        "misuse",
        "this is buffer 65; a kernel may have 64",
    ),
    "vector_reads": ("Abs(T, A, 64); Ln(F, T, 64);", "race", "no PipeBarrier is between them"),
    "vector_overwrites": (
        "Abs(F, A, 64); Adds(A, B, 0.0f, 64);",
        "race",
        "(unit V) writes byte 0 of a_buf, which Abs (unit V",
    ),
    "vector_writes_twice": ("Abs(F, A, 64); Abs(F, B, 64);", "race", "unit V) writes byte 0"),
    "scalar_reads": (
        "Add(F, A, B, 64); N.SetValue(100, F.ReinterpretCast<int32_t>().GetValue(1));",
        "race",
        "GetValue (unit S) reads",
    ),
    "vector_after_scalar": (
        "TH.SetValue(0, (half)1.0f); Adds(O, TH, (half)1.0f, 1);",
        "race",
        "which SetValue (unit S",
    ),
    "vector_overwrites_scalar": (
        "float x = A.GetValue(0); Adds(A, B, 0.0f, 1); F.SetValue(0, x);",
        "race",
        "which GetValue (unit S",
    ),
    "read_race": (
        "Add(A, A, B, 64); DataCopy(out_gm, A.ReinterpretCast<int32_t>(), 64);",
        "race",
        "unit MTE3) reads",
    ),
}

ACCEPTED = {
    "pad_value": (
        "DataCopyPad(A, a_gm, {2, 4, 4, 0, 0}, {true, 0, 3, 7.0f}); PipeBarrier<PIPE_ALL>(); "
        "Adds(F, A, 0.0f, 16);",
        np.array([A[0], *[7] * 7, A[2], *[7] * 7], F32),
    ),
    "same_ub_with_barrier": (
        "DataCopy(A, a_gm, 64); PipeBarrier<PIPE_MTE2>(); DataCopy(A, b_gm, 64); "
        "PipeBarrier<PIPE_ALL>(); Adds(F, A, 0.0f, 64);",
        B[:64],
    ),
    "event_from_pipe": (
        "auto id = pipe.AllocEventID<HardEvent::MTE2_V>(); DataCopy(A, b_gm, 64); "
        "SetFlag<HardEvent::MTE2_V>(id); WaitFlag<HardEvent::MTE2_V>(id); "
        "pipe.ReleaseEventID<HardEvent::MTE2_V>(id); Adds(F, A, 0.0f, 64);",
        B[:64],
    ),
    "atomic": (
        "SetAtomicAdd<int32_t>(); DataCopy(out_gm, I, 64); DataCopy(out_gm, I, 64); "
        "SetAtomicNone(); PipeBarrier<PIPE_ALL>(); DataCopy(N, out_gm, 64);",
        2 * I[:64],
    ),
    "compare_past_the_data": (
        "Adds(T, A, 0.0f, 100); THEN Compare(bits, T, B, CMPMODE::GT, 128); THEN "
        "Select(F, bits, T, B, SELMODE::VSEL_TENSOR_TENSOR_MODE, 100);",
        selected(A > B, A, B)[:100],
    ),
    "brcb_past_the_data": (
        "Adds(T, A, 0.0f, 5); THEN Brcb(T[64], T, 1, {1, 8}); THEN Adds(F, T[64], 0.0f, 40);",
        np.repeat(A[:5], 8),
    ),
    "scalar_in_between": (
        "Add(F, A, B, 64); SetFlag<HardEvent::V_S>(0); WaitFlag<HardEvent::V_S>(0); "
        "float x = F.GetValue(1); F.SetValue(0, x); "
        "SetFlag<HardEvent::S_V>(0); WaitFlag<HardEvent::S_V>(0); Adds(F, F, 1.0f, 2);",
        np.array([A[1] + B[1] + 1, A[1] + B[1] + 1, A[2] + B[2]], F32),
    ),
}

SNIPPETS = [
    *(c[0] for c in CASES.values()),
    *(c[0] for c in ACCEPTED.values()),
    *(c[0] for c in REJECTED.values()),
]
NAMES = [*CASES, *ACCEPTED, *(f"not_{name}" for name in REJECTED)]


def run(name: str) -> tuple[Outcome, Array]:
    """One snippet of the one kernel that holds them all."""
    cases = [f"    case {i}: {{ {text} break; }}\n" for i, text in enumerate(SNIPPETS)]
    out = np.zeros(4096, np.uint8)
    arguments: list[Array | int | float] = [A, B, H, G, I, out, NAMES.index(name)]
    return launch(HEAD + "".join(cases) + TAIL, "ops", arguments, [5], cores=1), out


@pytest.mark.parametrize("name", [*CASES, *ACCEPTED])
def test_instruction(name: str) -> None:
    outcome, out = run(name)
    assert outcome.kind == "none", outcome.text
    expected = ({**CASES, **ACCEPTED})[name][1]
    got = out[: expected.nbytes].view(expected.dtype)
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(got, expected, rtol=1e-6 if expected.dtype == F32 else 2e-3)
    else:
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", REJECTED)
def test_rejection(name: str) -> None:
    outcome, _ = run(f"not_{name}")
    _, kind, words = REJECTED[name]
    assert outcome.kind == kind, outcome.text
    assert words in outcome.text
