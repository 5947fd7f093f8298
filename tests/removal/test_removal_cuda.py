"""Nothing in the CUDA kernels orders or guards for nothing: what is taken out is missed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tile2c
from defects import defects
from tile2c.runtime.errors import KernelError

SAMPLES = Path(__file__).parents[2] / "samples"
F16, F32 = np.float16, np.float32

Inputs = tuple[tuple[tuple[int, ...], Any], ...]
SMALL = {"block_M": 64, "block_N": 64}

# kernel, defines, and sets of inputs: between them every dependence and every edge bites
CASES: dict[str, tuple[str, dict[str, object], tuple[Inputs, ...]]] = {
    "add": ("add", {}, ((((1027,), F32), ((1027,), F32)),)),
    "row_sum": ("row_sum", {"block_N": 128}, ((((9, 132), F32),), (((9, 131), F32),))),
    "row_sum_wide": ("row_sum", {"block_M": 1}, ((((3, 1028), F32),), (((3, 1027), F32),))),
    "softmax": ("softmax", {"N": 2048}, ((((2, 2048), F16),),)),
    "softmax_odd": ("softmax", {"N": 777}, ((((2, 777), F16),),)),
    "softmax_rows": ("softmax", {"N": 72, "block_M": 4}, ((((5, 72), F16),),)),
    "gemm": (
        "gemm",
        SMALL,
        (
            (((72, 136), F16), ((136, 72), F16)),
            (((72, 24), F16), ((24, 72), F16)),
            (((65, 133), F16), ((133, 67), F16)),
        ),
    ),
    "gemm_bias_relu": (
        "gemm_bias_relu",
        SMALL,
        (
            (((72, 136), F16), ((136, 72), F16), ((72,), F16)),
            (((72, 24), F16), ((24, 72), F16), ((72,), F16)),
            (((65, 133), F16), ((133, 67), F16), ((67,), F16)),
        ),
    ),
}


def expected(kernel: str, inputs: list[Any]) -> Any:
    """The result in float64."""
    a = [x.astype(np.float64) for x in inputs]
    if kernel == "add":
        return a[0] + a[1]
    if kernel == "row_sum":
        return a[0].sum(1)
    if kernel == "softmax":
        e = np.exp(a[0] - a[0].max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)
    product = a[0] @ a[1]
    return product if kernel == "gemm" else np.maximum(product + a[2], 0)


def run(folder: Path, kernel: str, inputs: list[Any]) -> bool:
    """Whether the kernel as it stands gives the right numbers; KernelError where a check finds more."""
    (found,) = tile2c.load(folder, "emulate", check="races,memory").values()
    got = np.asarray(found(*inputs)).astype(np.float64)
    want = expected(kernel, inputs)
    return bool(np.allclose(got, want, rtol=2e-2, atol=2e-2 * max(1.0, float(np.abs(want).max()))))


def reported(folder: Path, kernel: str, sets: list[list[Any]]) -> bool:
    """Whether a check fails, or a number is wrong, on any of the sets of inputs."""
    for inputs in sets:
        try:
            if not run(folder, kernel, inputs):
                return True
        except KernelError:
            return True
    return False


@pytest.mark.parametrize("case", CASES)
def test_everything_taken_out_is_reported(tmp_path: Path, case: str) -> None:
    kernel, choices, shapes = CASES[case]
    rng = np.random.default_rng(0)
    # Far below zero: padding that slips into a maximum changes it.
    shift = 30000 if kernel == "softmax" else 1
    sets = [
        [(rng.standard_normal(shape) * 8 - shift).astype(dtype) for shape, dtype in inputs]
        for inputs in shapes
    ]
    tile2c.build(SAMPLES / f"{kernel}.py", tmp_path, "cuda:sm_80", choices, backend="emulate")
    (path,) = tmp_path.glob("*.cu")
    text = path.read_text()
    assert not reported(tmp_path, kernel, sets)
    missed = []
    for defect in defects(text):
        path.write_text(defect.text)
        if not reported(tmp_path, kernel, sets):
            missed.append(str(defect))
    assert not missed
