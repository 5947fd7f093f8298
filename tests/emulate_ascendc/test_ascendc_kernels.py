"""Hand-written kernels are right at odd sizes, and each planted defect is reported where it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from model_harness import Outcome, changed, launch, source

Array = np.ndarray[Any, Any]


def add(text: str, n: int = 5003, **options: int) -> tuple[Outcome, bool]:
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal(n).astype(np.float16) for _ in range(2))
    z = np.zeros(n, np.float16)
    outcome = launch(text, "add", [x, y, z, n], [2], **options)
    return outcome, bool((z == x + y).all())


def row_sum(text: str, rows: int = 21, columns: int = 201, **options: int) -> tuple[Outcome, bool]:
    x = np.random.default_rng(2).standard_normal((rows, columns)).astype(np.float32)
    y = np.zeros(rows, np.float32)
    outcome = launch(text, "row_sum", [x, y, rows, columns], [1], **options)
    return outcome, bool(np.allclose(y, x.sum(1, dtype=np.float64), rtol=1e-5, atol=1e-4))


def softmax(text: str, rows: int = 11, columns: int = 203, **options: int) -> tuple[Outcome, bool]:
    x = (3 * np.random.default_rng(3).standard_normal((rows, columns))).astype(np.float16)
    y = np.zeros_like(x)
    outcome = launch(text, "softmax", [x, y, rows, columns], [1], **options)
    wide = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return outcome, bool(np.allclose(y, wide / wide.sum(1, keepdims=True), rtol=2e-3, atol=1e-6))


RUN: dict[str, Callable[[str], tuple[Outcome, bool]]] = {
    "add": add,
    "row_sum": row_sum,
    "softmax": softmax,
}


@pytest.mark.parametrize("cores", [1, 3])
@pytest.mark.parametrize("n", [1, 16, 1000, 1024, 5003])
def test_add(n: int, cores: int) -> None:
    outcome, right = add(source("add"), n, cores=cores)
    assert outcome.kind == "none", outcome.text
    assert right


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (8, 64), (21, 201), (17, 130)])
def test_row_sum(rows: int, columns: int) -> None:
    outcome, right = row_sum(source("row_sum"), rows, columns)
    assert outcome.kind == "none", outcome.text
    assert right


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (4, 16), (11, 203), (9, 1024)])
def test_softmax(rows: int, columns: int) -> None:
    outcome, right = softmax(source("softmax"), rows, columns)
    assert outcome.kind == "none", outcome.text
    assert right


# kernel, old text, new text, kind of the report, words of it
DEFECTS = [
    ("add", "    x_queue.EnQue(x);\n", "", "misuse", "nothing is enqueued in x_queue"),
    ("add", "x = x_queue.DeQue<half>()", "x = x_queue.AllocTensor<half>()", "misuse", "in use"),
    ("add", "    x_queue.FreeTensor(x);\n", "", "misuse", "all 2 buffers of x_queue are in use"),
    (
        "add",
        "    y_queue.FreeTensor(y);\n",
        "    y_queue.FreeTensor(y);\n" * 2,
        "misuse",
        "is free",
    ),
    ("add", "    z_queue.FreeTensor(z);\n", "    x_queue.FreeTensor(z);\n", "misuse", "of z_queue"),
    (
        "add",
        "DataCopyPad(z_gm[start], z, rows)",
        "DataCopy(z_gm[start], z, count)",
        "misuse",
        "DataCopyPad",
    ),
    (
        "add",
        "count * sizeof(half)), 0, 0, 0};\n    DataCopyPadExt",
        "(count - 1) * sizeof(half)), 0, 0, 0};\n    DataCopyPadExt",
        "memory",
        "unspecified",
    ),
    ("add", "x_queue, 2, TILE", "x_queue, 2, 60 * TILE", "misuse", "which has 196352 to use"),
    ("add", "y_gm[start], rows", "y_gm[start + 64], rows", "memory", "SetGlobalBuffer"),
    ("add", "z_gm[start], z", "x_gm[start], z", "memory", "writes a0, an input"),
    ("add", "z_gm[start], z", "z_gm[start / 2], z", "race", "nothing orders two cores"),
    (
        "add",
        "AscendC::Add(z, x, y, count)",
        "AscendC::Add(z, x[8], y, count)",
        "misuse",
        "multiple of 32",
    ),
    (
        "add",
        "pipe.InitBuffer(x_queue, 2",
        "pipe.InitBuffer(x_queue, 7",
        "misuse",
        "event ids suffice for 8",
    ),
    ("add", "CopyOut(start, count);", "", "misuse", "AllocTensor"),
    (
        "row_sum",
        "      SetFlag<HardEvent::MTE2_V>(turn);\n      WaitFlag<HardEvent::MTE2_V>(turn);\n",
        "",
        "race",
        "chunk_buffer",
    ),
    ("row_sum", "      WaitFlag<HardEvent::MTE2_V>(turn);\n", "", "race", "unit V) reads"),
    ("row_sum", "      SetFlag<HardEvent::MTE2_V>(turn);\n", "", "deadlock", "WaitFlag<MTE2_V>(0)"),
    (
        "row_sum",
        "    WaitFlag<HardEvent::V_MTE2>(EVENT_ID1);\n",
        "",
        "misuse",
        "SetFlag<V_MTE2>(1)",
    ),
    (
        "row_sum",
        "    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);\n    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);\n",
        "",
        "race",
        "result_buffer",
    ),
    (
        "row_sum",
        "    SetFlag<HardEvent::MTE3_V>(EVENT_ID0);\n    WaitFlag<HardEvent::MTE3_V>(EVENT_ID0);\n",
        "",
        "race",
        "which WholeReduceSum (unit V",
    ),
    ("row_sum", "turn * ROWS * CHUNK * sizeof(float)", "0", "race", "chunk_buffer"),
    ("row_sum", "result, sum, 64, height", "result, sum, 65, height", "misuse", "mask of 65 lanes"),
    (
        "row_sum",
        "sum, sum, chunk, width, height",
        "sum, sum, chunk, width, height + 256",
        "misuse",
        "at most 255",
    ),
    (
        "row_sum",
        "    Duplicate(sum, 0.0f, ROWS * CHUNK);\n",
        "",
        "memory",
        "sum_buffer, which nothing wrote",
    ),
    (
        "row_sum",
        "Duplicate(sum, 0.0f, ROWS * CHUNK)",
        "Duplicate(sum, 0.0f, 2 * ROWS * CHUNK)",
        "memory",
        "which has 2048",
    ),
    ("row_sum", "chunk, width, height", "chunk, 64, height", "memory", "unspecified"),
    (
        "softmax",
        "ReduceMax(one, line, work, columns)",
        "ReduceMax(one, line, work, pitch)",
        "memory",
        "GetValue takes",
    ),
    ("softmax", "CAST_NONE", "CAST_RINT", "misuse", "from half to float does not take CAST_RINT"),
    (
        "softmax",
        "      Exp(line, line, columns)",
        "      Exp(line, line[8], columns)",
        "misuse",
        "overlap in part",
    ),
    ("softmax", "    out_queue.FreeTensor(out);\n", "", "misuse", "out_queue"),
    (
        "softmax",
        "in_queue.FreeTensor(in);\n",
        "in_queue.FreeTensor(wide);\n",
        "misuse",
        "a tensor of wide_buffer",
    ),
    (
        "softmax",
        "    in_queue.EnQue(in);\n\n    in = in_queue.DeQue<half>();\n",
        "",
        "race",
        "in_queue",
    ),
]


@pytest.mark.parametrize(("kernel", "old", "new", "kind", "words"), DEFECTS)
def test_defect_is_reported(kernel: str, old: str, new: str, kind: str, words: str) -> None:
    text = changed(source(kernel), old, new)
    outcome, _ = RUN[kernel](text)
    assert outcome.kind == kind, outcome.text
    assert words in outcome.text
    assert outcome.lines[0] > 0


@pytest.mark.parametrize(
    "old",
    [
        "      SetFlag<HardEvent::MTE2_V>(turn);\n      WaitFlag<HardEvent::MTE2_V>(turn);\n",
        "    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);\n    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);\n",
    ],
)
def test_missing_flag_gives_wrong_numbers_without_checks(old: str) -> None:
    outcome, right = row_sum(changed(source("row_sum"), old, ""), checks=0)
    assert outcome.kind == "none", outcome.text
    assert not right


def test_race_names_both_lines() -> None:
    flags = (
        "    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);\n    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);\n"
    )
    text = changed(source("row_sum"), flags, "")
    outcome, _ = row_sum(text)
    lines = text.splitlines()
    assert "WholeReduceSum" in lines[outcome.lines[1] - 1]
    assert "DataCopyPad(y_gm" in lines[outcome.lines[0] - 1]
    assert outcome.array == "result_buffer"
