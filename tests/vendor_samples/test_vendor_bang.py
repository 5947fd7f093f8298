"""Public BANG C kernels, unchanged, in the functional model; expected values are NumPy's.

No text of theirs is here. Clone what `FILES` names into the folder that TILE2C_VENDOR_SAMPLES names (see
test_vendor_samples.py): Cambricon/torch_mlu, CambriconECO/BANGC_Gemm_Tutorial and, by others,
kolp323/Cambricon-MLU-Kernel-Labs. Without it everything here is skipped.
Two of these kernels copy results with `__memcpy_async` right behind what computes them. By the vendor's guide
that takes a synchronisation, and the model says so.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tile2c.runtime.emulate.bang.builder import build
from tile2c.runtime.emulate.module import EmulatedModule

sys.path.insert(0, str(Path(__file__).parents[1] / "emulate_bang"))
from bang_harness import BOTH, launch, report

FOLDER = Path(os.environ.get("TILE2C_VENDOR_SAMPLES", "nowhere"))
LABS = "Cambricon-MLU-Kernel-Labs/matmul_optimization"
FILES = {
    "sigmoid": (
        "torch_mlu/examples/mlu_extension/mlu_custom_ext/src/mlu/bang_sigmoid_sample.mlu",
        "bang_sigmoid_kernel<float>",
    ),
    "gemm_nram": ("BANGC_Gemm_Tutorial/2_gemm_NRAM/gemm_NRAM.mlu", "gemm16Kernel"),
    "scalar": (f"{LABS}/01_scalar.mlu", "multiplyMatricesMLU"),
    "scalar_nram": (f"{LABS}/02_scalar_nram.mlu", "multiplyMatricesMLU"),
    "vector_nram": (f"{LABS}/03_vector_nram.mlu", "multiplyMatricesMLU"),
}
Array = np.ndarray[Any, Any]


def module(name: str) -> tuple[EmulatedModule, str]:
    """The kernel of a public file, and what it is called."""
    path, kernel = FOLDER / FILES[name][0], FILES[name][1]
    if not path.exists():
        pytest.skip(f"{path} is not there")
    text = path.read_text("utf-8")
    library = build(text, path.name, "mtp_372", (kernel,), (path.parent.resolve(),))
    return EmulatedModule(library, file=path.name, checks=BOTH), kernel


def drawn(*shape: int, kind: Any = np.float32) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(kind)


def test_sigmoid_of_the_vendors_extension() -> None:
    built, kernel = module("sigmoid")
    x, y = drawn(40_000), np.zeros(40_000, np.float32)
    launch(built, kernel, [y, x, x.size], [0])
    np.testing.assert_allclose(y, 1 / (1 + np.exp(-x)), rtol=1e-5)


def test_elements_read_and_written_between_plain_copies() -> None:
    built, kernel = module("gemm_nram")
    a, b = drawn(32, 64, kind=np.float16), drawn(64, 48, kind=np.float16)
    c = np.zeros((32, 48), np.float16)
    launch(built, kernel, [c, a, b, 32, 64, 48], [0])
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), atol=0.05)


def test_elements_of_global_memory() -> None:
    built, kernel = module("scalar")
    a, b, c = drawn(8, 256), drawn(256, 256), np.zeros((8, 256), np.float32)
    launch(built, kernel, [a, b, c, 8, 256, 256], [2])
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("scalar_nram", "reads bytes of result_nram that the core of line 54 (Compute) wrote"),
        ("vector_nram", "reads bytes of result_nram that __bang_matmul of line 51 (Compute) wrote"),
    ],
)
def test_a_missing_synchronisation_is_said(name: str, said: str) -> None:
    built, kernel = module(name)
    a, b, c = drawn(8, 256), drawn(256, 256), np.zeros((8, 256), np.float32)
    found = report(built, kernel, [a, b, c, 8, 256, 256], [2])
    assert said in found
    assert "no synchronisation lies between" in found
