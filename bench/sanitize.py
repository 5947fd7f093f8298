"""Runs every kernel of a folder once or twice on the device, for a checker around it:

    compute-sanitizer --tool memcheck python bench/sanitize.py OUT cuda:sm_80
    compute-sanitizer --tool racecheck python bench/sanitize.py OUT cuda:sm_80

NumPy arrays only, so that nothing but the kernels runs. Prints whether the numbers are right as well.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tile2c

REFERENCES = runpy.run_path(str(Path(__file__).parents[1] / "samples" / "references.py"))
HALF, SINGLE = "float16", "float32"
CASES = {
    "add": (((1003,), SINGLE), ((1003,), SINGLE)),
    "row_sum": (((9, 777), SINGLE),),
    "column_sum": (((201, 137), SINGLE),),
    "softmax": (((3, 8192), HALF),),
    "online_softmax": (((9, 777), HALF),),
    "rms_norm": (((3, 8192), HALF), ((8192,), HALF)),
    "layer_norm": (((3, 8192), HALF), ((8192,), HALF), ((8192,), HALF)),
    "transpose_scale_bias": (((131, 72), HALF), ((72,), HALF)),
    "gemv": (((131, 777), HALF), ((777,), HALF)),
    "cumsum": (((9, 777), SINGLE),),
    "quantize_fp8": (((131, 264), HALF),),
    "top_k": (((77, 128), SINGLE),),
    "gemm": (((200, 136), HALF), ((136, 264), HALF)),
    "gemm_bias_relu": (((131, 72), HALF), ((72, 136), HALF), ((136,), HALF)),
}
BOUNDS = {"quantize_fp8": 0.05}  # the others: as far as half rounds


def first(found: Any) -> np.ndarray:
    """The result, or the first of several."""
    return np.asarray(found[0] if isinstance(found, tuple | list) else found).astype(np.float64)


def main() -> int:
    folder, target = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    wrong = 0
    for name, kernel in tile2c.load(folder, "cuda", target).items():
        if name not in CASES:
            print(f"{name}: no case")
            continue
        rng = np.random.default_rng(0)
        inputs = [rng.standard_normal(shape).astype(dtype) for shape, dtype in CASES[name]]
        got, want = first(kernel(*inputs)), first(REFERENCES[name](*inputs))
        error = float(np.linalg.norm(got - want) / np.linalg.norm(want))
        wrong += error > BOUNDS.get(name, 1e-3)
        print(f"{name}: error {error:.1e}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
