"""Runs every kernel of a folder once or twice on the device, for a checker around it:

    compute-sanitizer --tool memcheck python bench/sanitize.py OUT cuda:sm_80
    compute-sanitizer --tool racecheck python bench/sanitize.py OUT cuda:sm_80

NumPy arrays only, so that nothing but the kernels runs. Prints whether the numbers are right as well.
"""

from __future__ import annotations

import sys

import numpy as np
import tile2c

CASES = {
    "add": (((1003,), "float32"), ((1003,), "float32")),
    "row_sum": (((9, 777), "float32"),),
    "softmax": (((3, 8192), "float16"),),
    "gemm": (((200, 136), "float16"), ((136, 264), "float16")),
    "gemm_bias_relu": (((131, 72), "float16"), ((72, 136), "float16"), ((136,), "float16")),
}


def expected(name: str, inputs: list[np.ndarray]) -> np.ndarray:
    wide = [x.astype(np.float64) for x in inputs]
    if name == "add":
        return wide[0] + wide[1]
    if name == "row_sum":
        return wide[0].sum(1)
    if name == "softmax":
        e = np.exp(wide[0] - wide[0].max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)
    product = wide[0] @ wide[1]
    return product if name == "gemm" else np.maximum(product + wide[2], 0)


def main() -> int:
    folder, target = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    wrong = 0
    for name, kernel in tile2c.load(folder, "cuda", target).items():
        rng = np.random.default_rng(0)
        inputs = [rng.standard_normal(shape).astype(dtype) for shape, dtype in CASES[name]]
        got = np.asarray(kernel(*inputs)).astype(np.float64)
        want = expected(name, inputs)
        error = float(np.linalg.norm(got - want) / np.linalg.norm(want))
        wrong += error > 1e-3
        print(f"{name}: error {error:.1e}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
