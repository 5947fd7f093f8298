"""Hand-written kernels of the cube core, alone and with vector cores: right, and each defect is reported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from model_harness import Outcome, changed, launch, source

Array = np.ndarray[Any, Any]


def gemm(text: str, m: int = 29, n: int = 41, k: int = 40, **options: int) -> tuple[Outcome, bool]:
    rng = np.random.default_rng(1)
    a, b, bias = (rng.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n), (n,)))
    c = np.zeros((m, n), np.float32)
    outcome = launch(text, "gemm", [a, b, bias, c, m, n, k], [3], cores=1, **options)
    want = np.maximum(a.astype(np.float32) @ b.astype(np.float32) + bias, 0)
    return outcome, bool(np.allclose(c, want, rtol=1e-4, atol=1e-4))


def passing(text: str, groups: int = 2, rounds: int = 3, **options: int) -> tuple[Outcome, bool]:
    rng = np.random.default_rng(2)
    tiles = groups * rounds
    a, b = (rng.standard_normal((tiles, *s)).astype(np.float16) for s in ((32, 16), (16, 16)))
    work = np.zeros((groups, 32, 16), np.float32)
    y = np.zeros((tiles, 32, 16), np.float32)
    outcome = launch(text, "passing", [a, b, work, y, rounds], [2, 3], cores=groups, **options)
    want = 2 * (a.astype(np.float32) @ b.astype(np.float32))
    return outcome, bool(np.allclose(y, want, rtol=1e-4, atol=1e-4))


@pytest.mark.parametrize(("m", "n", "k"), [(32, 48, 32), (1, 1, 1), (29, 41, 70), (17, 48, 96)])
def test_gemm(m: int, n: int, k: int) -> None:
    outcome, right = gemm(source("gemm"), m, n, k)
    assert outcome.kind == "none", outcome.text
    assert right


@pytest.mark.parametrize(("groups", "rounds"), [(1, 1), (2, 3), (3, 2)])
def test_sums_pass_to_vector_cores(groups: int, rounds: int) -> None:
    outcome, right = passing(source("passing"), groups, rounds)
    assert outcome.kind == "none", outcome.text
    assert right


# old text, new text, kind of the report, words of it
GEMM_DEFECTS = [
    ("    WaitFlag<HardEvent::MTE2_MTE1>(turn);\n", "", "race", "unit MTE1) reads"),
    ("    WaitFlag<HardEvent::MTE1_M>(EVENT_ID0);\n", "", "race", "unit M) reads"),
    ("    WaitFlag<HardEvent::MTE1_MTE2>(turn);\n", "", "misuse", "before the WaitFlag"),
    ("    WaitFlag<HardEvent::M_MTE1>(EVENT_ID0);\n", "", "misuse", "before the WaitFlag"),
    ("  WaitFlag<HardEvent::M_FIX>(EVENT_ID0);\n", "", "race", "unit FIX) reads"),
    (
        "      Mmad(sums, a2, b2, MmadParams",
        "      Mmad(sums, a2, b2, MmadParams(BM, BN, BK, 0, false, false));\n"
        "      Mmad(sums, a2, b2, MmadParams",
        "race",
        "no PipeBarrier is between them",
    ),
    ("      PipeBarrier<PIPE_MTE2>();\n", "", "race", "no PipeBarrier is between them"),
    ("  WaitFlag<HardEvent::MTE2_MTE1>(EVENT_ID2);\n", "", "race", "bias1_buffer"),
    (
        "  WaitFlag<HardEvent::M_MTE1>(EVENT_ID0);\n  SetFlag<HardEvent::M_FIX>",
        "  SetFlag<HardEvent::M_FIX>",
        "misuse",
        "still set at the end",
    ),
    ("KERNEL_TYPE_AIC_ONLY", "KERNEL_TYPE_AIV_ONLY", "misuse", "a vector core does not"),
    (
        "      InitConstValue(a1, InitConstValueParams<half>(1, BM * BK / 16, 0, 0));\n",
        "",
        "memory",
        "a1_buffer, which nothing wrote",
    ),
    (
        "Nd2NzParams(1, M, depth, 0, K, BM, 1, 0)",
        "Nd2NzParams(1, M, depth, 0, K, 8, 1, 0)",
        "misuse",
        "overlap",
    ),
    (
        "Nd2NzParams(1, M, depth, 0, K, BM, 1, 0)",
        "Nd2NzParams(1, M + 1, depth, 0, K, BM, 1, 0)",
        "memory",
        "SetGlobalBuffer",
    ),
    ("LoadData(a2[i * BK * 16]", "LoadData(a2[i * BK * 16 + 16]", "misuse", "multiple of 512"),
    (
        "LoadData(a2[i * BK * 16], a1",
        "LoadData(sums_buffer.Get<half>(), a1",
        "misuse",
        "not in L0A or L0B",
    ),
    (
        "LoadData2DParams(0, BK / 16, BM / 16",
        "LoadData2DParams(0, 2 * BK / 16, BM / 16",
        "memory",
        "which has",
    ),
    (
        "Mmad(sums, a2, b2, MmadParams",
        "Mmad(sums, b2, a2, MmadParams",
        "misuse",
        "the left matrix lies in L0B",
    ),
    (
        "Mmad(sums, a2, b2, MmadParams(BM, BN, BK",
        "Mmad(sums, a2, b2, MmadParams(5000, BN, BK",
        "misuse",
        "m is 5000",
    ),
    ("Mmad(sums, a2, b2, bias2,", "Mmad(sums, a2, b2, bias2[4],", "misuse", "multiple of 64"),
    (
        "FixpipeParamsV220(N, M, BM, N, true)",
        "FixpipeParamsV220(N, M, 16, N, true)",
        "misuse",
        "srcStride is 16",
    ),
    (
        "FixpipeParamsV220(N, M, BM, N, true)",
        "FixpipeParamsV220(N, M + 1, BM, N, true)",
        "memory",
        "SetGlobalBuffer",
    ),
    (
        "pipe.InitBuffer(a2_buffer, BM",
        "pipe.InitBuffer(a2_buffer, 64 * BM",
        "misuse",
        "which has 65536 to use",
    ),
    ("GlobalTensor<float> c_gm", "GlobalTensor<half> c_gm", "misuse", "takes quantPre F322F16"),
]


def some(defects: list[tuple[str, str, str, str]], step: int) -> list[Any]:
    """Each `step`-th one, and the rest for the slow run: each costs a compilation."""
    return [
        defect if place % step == 0 else pytest.param(*defect, marks=pytest.mark.slow)
        for place, defect in enumerate(defects)
    ]


@pytest.mark.parametrize(("old", "new", "kind", "words"), some(GEMM_DEFECTS, 3))
def test_defect_of_a_gemm_is_reported(old: str, new: str, kind: str, words: str) -> None:
    text = changed(source("gemm"), old, new)
    if "half> c_gm" in new:
        text = text.replace("<__gm__ float*>(c)", "<__gm__ half*>(c)")
    outcome, _ = gemm(text)
    assert outcome.kind == kind, outcome.text
    assert words in outcome.text
    assert outcome.lines[0] > 0


# Taken the other way round, or unturned, fractals give wrong numbers without a report.
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("BK / 16, BM / 16, 0, 0, false, 0", "BK / 16, 1, 0, 0, false, 0"),
        ("BN / 16, BK / 16, 0, 0, true, 0", "BN / 16, BK / 16, 0, 0, false, 0"),
        (
            "MmadParams(BM, BN, BK, 0, false, false));\n    }",
            "MmadParams(BM, BN, BK, 0, false, true));\n    }",
        ),
    ],
)
def test_wrong_fractals_give_wrong_numbers(old: str, new: str) -> None:
    outcome, right = gemm(changed(source("gemm"), old, new))
    assert outcome.kind == "none", outcome.text
    assert not right


PASSING_DEFECTS = [
    ("      CrossCoreSetFlag<2, PIPE_FIX>(READY);\n", "", "deadlock", "waits for flag 1"),
    ("      CrossCoreWaitFlag(READY);\n", "", "race", "no flag between the two cores"),
    ("      CrossCoreWaitFlag(FREE);\n", "", "race", "no flag between the two cores"),
    ("    CrossCoreWaitFlag(FREE);\n  }", "  }", "misuse", "is not waited for"),
    ("    CrossCoreSetFlag<2, PIPE_MTE2>(FREE);\n    for", "    for", "deadlock", "waits for flag"),
    (
        "CrossCoreSetFlag<2, PIPE_FIX>(READY)",
        "CrossCoreSetFlag<2, PIPE_MTE3>(READY)",
        "misuse",
        "a cube core does not have",
    ),
    (
        "CrossCoreSetFlag<2, PIPE_FIX>(READY)",
        "CrossCoreSetFlag<2, PIPE_M>(READY)",
        "race",
        "no flag between the two cores",
    ),
    (
        "CrossCoreSetFlag<2, PIPE_FIX>(READY)",
        "CrossCoreSetFlag<2, PIPE_FIX>(16)",
        "misuse",
        "flag ids 0 to 15",
    ),
    ("KERNEL_TYPE_MIX_AIC_1_2", "KERNEL_TYPE_AIC_ONLY", "misuse", "only a mixed kernel"),
    ("GetSubBlockIdx() * M / 2 * N", "0", "race", "no flag between the two cores"),
]


@pytest.mark.parametrize(("old", "new", "kind", "words"), some(PASSING_DEFECTS, 3))
def test_defect_between_cores_is_reported(old: str, new: str, kind: str, words: str) -> None:
    outcome, _ = passing(changed(source("passing"), old, new))
    assert outcome.kind == kind, outcome.text
    assert words in outcome.text
