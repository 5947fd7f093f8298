"""T.sigmoid in every float type, to the ends of its range."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from language_programs import CUDA, HIP, checked, empty


@pytest.mark.parametrize("target", [CUDA, HIP])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_sigmoid(tmp_path: Path, target: str, dtype: str) -> None:
    text = f"""
@T.prim_func
def main(X: T.Tensor((64,), "{dtype}"), O: T.Tensor((64,), "{dtype}")):
    with T.Kernel(1, threads=32) as bx:
        for i in T.Parallel(64):
            O[i] = T.sigmoid(X[i])
"""
    x = np.linspace(-30, 30, 64).astype(dtype)
    x[:6] = [-np.inf, np.inf, np.nan, -1000.0, 1000.0, 0.0]
    with np.errstate(over="ignore"):
        found = checked(tmp_path, text, {"X": x, "O": empty(64, dtype)}, target, rtol=2e-3)["O"]
    assert found[0] == 0 and found[1] == 1 and np.isnan(found[2])
    assert found[3] == 0 and found[4] == 1 and found[5] == 0.5
