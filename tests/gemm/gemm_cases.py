"""Builds a gemm program, runs it in the emulator with both checks, and says what NumPy has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import tile2c

PROGRAMS = Path(__file__).parent / "programs"
TYPES: dict[str, Any] = {
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": np.float32,
    "float64": np.float64,
    "int8": np.int8,
    "uint8": np.uint8,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}
# Of the largest result: sums in the type, products of TF32.
_BOUNDS = {"float16": 4e-3, "bfloat16": 2e-2, "float32": 2e-5, "float64": 1e-12, "int32": 0.0}
_TF32 = 2e-3
Defines = Mapping[str, object]


def build(folder: Path, kernel: str, target: str, defines: Defines, program: str = "") -> str:
    """Writes the kernel's text to the folder and returns it."""
    source = PROGRAMS / f"{program or kernel}.py"
    tile2c.build(source, folder, target, dict(defines), (kernel,), backend="emulate", force=True)
    (path,) = (x for x in folder.iterdir() if x.suffix in (".cu", ".hip"))
    return path.read_text()


def run(folder: Path, target: str, *operands: Any) -> Any:
    """The result in float64; KernelError where a check finds more than numbers."""
    (found,) = tile2c.load(folder, "emulate", target=target, check="races,memory").values()
    return np.asarray(found(*operands)).astype(np.float64)


def numbers(dtype: str, *shape: int, seed: int = 0) -> Any:
    """Inputs of the element type."""
    rng, kind = np.random.default_rng(seed), TYPES[dtype]
    if dtype in ("int8", "uint8"):
        low = 0 if dtype == "uint8" else -128
        return rng.integers(low, low + 256, shape).astype(kind)
    return rng.standard_normal(shape).astype(kind)


def close(got: Any, want: Any, dtype: str, sums: str) -> bool:
    """Whether the results agree as sums of the type can."""
    bound = _TF32 if dtype == "float32" else _BOUNDS[sums]
    error = float(np.abs(got - want).max(initial=0))
    return got.shape == want.shape and error <= bound * max(1.0, float(np.abs(want).max(initial=0)))


def exact(x: Any) -> Any:
    return x.astype(np.float64)


def product_is_right(
    folder: Path, target: str, defines: Defines, sizes: tuple[int, int, int]
) -> str:
    """Builds and runs programs/product.py; the text, once its numbers are right."""
    text = build(folder, "product", target, defines)
    m, n, k = sizes
    dtype, sums = str(defines.get("dtype", "float16")), str(defines.get("sum_dtype", "float32"))
    turned_a, turned_b = defines.get("trans_A", False), defines.get("trans_B", False)
    a = numbers(dtype, *((k, m) if turned_a else (m, k)))
    b = numbers(dtype, *((n, k) if turned_b else (k, n)), seed=1)
    want = (exact(a).T if turned_a else exact(a)) @ (exact(b).T if turned_b else exact(b))
    assert close(run(folder, target, a, b), want, dtype, sums)
    return text
