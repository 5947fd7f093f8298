"""GEMMs with roles (cuda:sm_90a) beside cuBLAS in one process: right first, then burst and steady rates.

    tile2c samples/gemm.py -o OUT --target cuda:sm_90a -D block_M=128 -D block_N=256 -D block_K=64 \
        -D num_stages=4 -D threads=256
    python bench/gemm.py OUT [MORE ...] [--sizes 4096x4096x4096,8192x8192x8192] [--no-steady]

Each folder holds `gemm` or `gemm_bias_relu`, or both. Rates of one run compare with each other only.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import tile2c
import torch
from measure import burst, relative_error, steady

CHECKS = (
    (1, 8, 8), (128, 256, 64), (127, 264, 72), (129, 248, 56), (1000, 1032, 776), (256, 512, 8),
    (4096, 4096, 4096), (64, 64, 0), (77, 33, 65), (513, 1001, 999),
)  # fmt: skip
BOUND = 1e-3


def operands(m: int, n: int, k: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A, B and a bias, fresh random halves."""
    shapes = ((m, k), (k, n), (n,))
    a, b, bias = (torch.randn(shape, device="cuda", dtype=torch.float16) for shape in shapes)
    return a, b, bias


def check(kernel: object, name: str, label: str) -> int:
    """The kernel against float64 at sizes with tails, odd ones and K = 0; how many are wrong."""
    wrong = 0
    for m, n, k in CHECKS:
        a, b, bias = operands(m, n, k)
        exact = a.double() @ b.double()
        args = (a, b) if name == "gemm" else (a, b, bias)
        if name != "gemm":
            exact = torch.relu(exact + bias.double())
        out = torch.full((m, n), float("nan"), device="cuda", dtype=torch.float16)
        kernel(*args, out)  # type: ignore[operator]
        torch.cuda.synchronize()
        same = bool((out.double() == exact).all())
        error = 0.0 if same else relative_error(out, exact)
        if not error <= BOUND:
            wrong += 1
            print(f"{label} {name} {m}x{n}x{k}: error {error:.2e} WRONG")
    print(f"{label} {name}: {len(CHECKS) - wrong} of {len(CHECKS)} sizes right")
    return wrong


def contenders(
    sets: dict[str, object], name: str, m: int, n: int, k: int
) -> dict[str, Callable[[], object]]:
    """The library first, then every folder's kernel of that name; each writes its own output."""
    a, b, bias = operands(m, n, k)
    c = torch.empty(m, n, device="cuda", dtype=torch.float16)
    found: dict[str, Callable[[], object]] = {"cuBLAS": lambda: torch.mm(a, b, out=c)}
    if name != "gemm":
        found = {"cuBLAS": lambda: torch._addmm_activation(bias, a, b, out=c)}
    for label, kernels in sets.items():
        if name in kernels:  # type: ignore[operator]
            kernel, out = kernels[name], torch.empty_like(c)  # type: ignore[index]
            args = (a, b, out) if name == "gemm" else (a, b, bias, out)
            found[label] = lambda kernel=kernel, args=args: kernel(*args)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--sizes", default="4096x4096x4096")
    parser.add_argument("--no-steady", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.manual_seed(0)
    sets = {Path(folder).name: tile2c.load(folder) for folder in options.folders}
    wrong = 0
    for name in ("gemm", "gemm_bias_relu"):
        for label, kernels in sets.items():
            if name in kernels:
                wrong += check(kernels[name], name, label)
    for size in options.sizes.split(","):
        m, n, k = (int(part) for part in size.split("x"))
        for name in ("gemm", "gemm_bias_relu"):
            if not any(name in kernels for kernels in sets.values()):
                continue
            timed = contenders(sets, name, m, n, k)
            modes = {"burst": lambda timed=timed: burst(timed, options.rounds)}
            if not options.no_steady:
                modes["steady"] = lambda timed=timed: steady(timed)
            for title, measure in modes.items():
                for label, ms in (found := measure()).items():
                    rate, ratio = 2 * m * n * k / ms / 1e9, found["cuBLAS"] / ms
                    print(
                        f"{name} {size} {title:6} {label:16} {ms:.4f} ms {rate:5.0f} TFLOP/s {ratio:.3f}"
                    )
    print("wrong:", wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
