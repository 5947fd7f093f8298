"""HIP kernels of the samples and of a GEMM with every choice open, and what the tile program says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tile2c
from ml_dtypes import bfloat16
from tile2c.runtime.load import Kernels
from tile2c.transpile import pipeline
from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.ir import interpret
from tile2c.transpile.stage.defines import parse_defines

SAMPLES = Path(__file__).parents[2] / "samples"
GEMMS = Path(__file__).parent / "gemms.py"
REDUCTIONS = Path(__file__).parent / "reductions.py"
ROWS = (
    "rms_norm", "layer_norm", "online_softmax", "column_sum", "transpose_scale_bias", "gemv", "cumsum",
    "top_k",
)  # fmt: skip
MATRICES = (
    "batched_gemm", "split_k_gemm", "int4_gemm", "conv2d", "flash_attention", "gqa_attention",
    "varlen_attention",
)  # fmt: skip
NAMES = ("add", "row_sum", "softmax", "gemm", "gemm_bias_relu")
BOTH = "races,memory"
DTYPES: dict[str, Any] = {"float16": np.float16, "bfloat16": bfloat16, "float32": np.float32}


def built(source: Path, out: Path, arch: str = "gfx942", **defines: object) -> Kernels:
    """The kernels of a tile program in the emulator, with races and memory checked."""
    target = f"hip:{arch}"
    return tile2c.build(source, out, target, defines, backend="emulate", check=BOTH)


def text_of(source: Path, out: Path, arch: str = "gfx942", **defines: object) -> Path:
    """The one kernel file of a tile program."""
    built(source, out, arch, **defines)
    (path,) = out.glob("*.hip")
    return path


def meant(source: Path, arguments: dict[str, Any], **defines: object) -> dict[str, Any]:
    """The outputs that the tile program itself gives, in float64."""
    spelled = parse_defines(tuple(f"{name}={value}" for name, value in defines.items()))
    request = pipeline.Request(inputs=(source,), targets=("hip:gfx942",), defines=spelled)
    diagnostics = Diagnostics()
    ((_, function),) = pipeline.functions(request, diagnostics)
    return interpret.run(function, arguments, float64=True)


def random(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(DTYPES[dtype])


def close(got: Any, wanted: Any, dtype: str, scale: float = 1.0) -> None:
    """Equal up to the rounding of `dtype`; `scale` is how large the summands of one element are."""
    tolerance = {"float16": 2e-3, "bfloat16": 1.2e-2, "float32": 2e-5}[dtype]
    got = np.asarray(got).astype(np.float64)
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance * scale)
