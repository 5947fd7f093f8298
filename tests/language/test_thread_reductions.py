"""TVM's reduction over threads, as matrix-vector products spell it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from language_programs import CUDA, HIP, checked, empty, refusal, values

GEMV = """
@T.prim_func
def gemv(A: T.Tensor((10, 256), "float16"), X: T.Tensor((256,), "float16"), Y: T.Tensor((10,), "float32")):
    with T.Kernel(T.ceildiv(10, ROWS), threads=THREADS) as bn:
        tn = T.get_thread_binding(ROW)
        tk = T.get_thread_binding(COLUMN)
        part = T.alloc_local((1,), "float32")
        total = T.alloc_local((1,), "float32")
        T.clear(part)
        for k in T.serial(256 // LANES):
            part[0] += A[bn * ROWS + tn, k * LANES + tk].astype("float32") * X[
                k * LANES + tk
            ].astype("float32")
        with T.attr(
            T.comm_reducer(lambda x, y: x + y, [T.Cast("float32", 0)]),
            "reduce_scope",
            T.reinterpret(T.uint64(0), dtype="handle"),
        ):
            T.evaluate(
                T.tvm_thread_allreduce(
                    T.uint32(1), part[0], True, total[0], tk, dtype="handle"
                )
            )
        if tk == 0:
            Y[bn * ROWS + tn] = total[0]
"""


def spelled(lanes: int, rows: int, column: int) -> str:
    threads = (lanes, rows) if column == 0 else (rows, lanes)
    named = {"ROWS": rows, "THREADS": threads, "ROW": 1 - column, "COLUMN": column, "LANES": lanes}
    text = GEMV
    for name, value in named.items():
        text = text.replace(name, str(value))
    return text


@pytest.mark.parametrize("target", [CUDA, HIP])
@pytest.mark.parametrize(
    ("lanes", "rows", "column"), [(32, 4, 0), (8, 4, 0), (64, 2, 0), (16, 4, 1)]
)
def test_sums_over_threads(tmp_path: Path, target: str, lanes: int, rows: int, column: int) -> None:
    a, x = values((10, 256), "float16"), values(256, "float16", 1)
    given = {"A": a, "X": x, "Y": empty(10)}
    found = checked(tmp_path, spelled(lanes, rows, column), given, target, rtol=1e-3, atol=1e-3)
    wanted = a.astype(np.float64) @ x.astype(np.float64)
    np.testing.assert_allclose(found["Y"], wanted, rtol=1e-3, atol=1e-3)


def test_a_reduction_without_its_combiner(tmp_path: Path) -> None:
    lines = spelled(32, 4, 0).split("\n")
    start = next(n for n, line in enumerate(lines) if "with T.attr" in line)
    lines[start : start + 5] = ["        if True:"]
    assert "T2C231" in refusal(tmp_path, "\n".join(lines))
