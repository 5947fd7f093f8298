"""What only Hopper's texts have, on the device, at odd sizes and on hard data; also under a checker:

    python bench/hopper_check.py --texts OUT            # anywhere
    python bench/hopper_check.py OUT [NAME...]          # says what is wrong, by NumPy in double
    compute-sanitizer --tool memcheck python bench/hopper_check.py OUT [NAME...]

NumPy arrays only, so that nothing but the kernels runs. Products of 8-bit floats are of one sign too, where
sums that stay in the matrix unit are far off.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import tile2c

ROOT = Path(__file__).parents[1]
REFERENCES = runpy.run_path(str(ROOT / "samples" / "references.py"))
TARGET = "cuda:sm_90a"
Sizes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Check:
    """A sample with its choices, sizes, and how far off it may be (norm of the difference)."""

    sample: str
    choices: str
    sizes: Sizes  # M, N, K; of images: how many; of attention: batches, heads, queries, keys
    bound: float = 1e-3


TAILS = ((1, 8, 8), (128, 256, 64), (129, 264, 136), (300, 520, 1032))
FP8_TAILS = ((1, 16, 16), (129, 272, 144), (300, 528, 1040), (64, 64, 16384))
FP8 = "block_K=128 threads=256"
# Queries that are fewer than the keys, tails of both; more tiles, and pairs of them, than blocks run at once.
HEADS = ((1, 3, 257, 300), (2, 5, 640, 640), (1, 1, 1, 77), (2, 132, 130, 200))
CHECKS = {
    "wide": Check("gemm", "block_M=128 block_N=256 block_K=64 threads=256", TAILS),
    "turned": Check("gemm", "block_M=256 block_N=128 block_K=64 threads=256", TAILS),
    "odd": Check(
        "gemm",
        "block_M=128 block_N=256 block_K=64 threads=256",
        ((1025, 1027, 1029), (1024, 1031, 1040), (1025, 1032, 1033), (65, 67, 69)),
    ),
    # Rows that are no whole lines of the L2, an even number of tiles along M, more of them than SMs.
    "clusters": Check(
        "gemm",
        "block_M=128 block_N=256 block_K=64 threads=256",
        ((1500, 3080, 520), (2560, 2056, 72), (1280, 4072, 4088)),
    ),
    "few": Check(
        "gemm", "block_M=16 block_N=64 block_K=128", ((16, 64, 128), (3, 520, 1032), (17, 200, 8))
    ),
    "parts": Check(  # 8, 4, 2 and 1 of them; some without rounds; several tiles of rows
        "gemm",
        "block_M=16 block_N=64 block_K=64",
        ((16, 64, 2112), (13, 72, 1096), (5, 520, 2056), (48, 200, 520), (16, 4160, 520)),
    ),
    "eight": Check("gemm", "block_M=8 block_N=128 block_K=64 threads=256", ((8, 264, 520),)),
    "fp8": Check("fp8_gemm", f"block_M=128 block_N=128 {FP8}", FP8_TAILS),
    "fp8_parts": Check("fp8_gemm", f"block_M=128 block_N=256 {FP8}", FP8_TAILS),
    "fp8_clusters": Check(
        "fp8_gemm", f"block_M=128 block_N=192 {FP8}", ((1500, 3088, 528), (1280, 2832, 144))
    ),
    "fp8_fast": Check(
        "fp8_gemm", f"block_M=128 block_N=256 fast_accumulation=True {FP8}", FP8_TAILS[:3], 1e-2
    ),
    "attention": Check(
        "flash_attention", "dim=128 causal=False block_M=128 block_N=128 threads=256", HEADS
    ),
    "attention_pairs": Check(
        "flash_attention", "dim=128 causal=True block_M=128 block_N=128 threads=256", HEADS
    ),
    "attention_two": Check(  # blocks of an SM
        "flash_attention", "dim=64 causal=True block_M=128 block_N=64 threads=256", HEADS
    ),
    "attention_three": Check(  # warpgroups
        "flash_attention", "dim=64 causal=False block_M=192 block_N=128 threads=384", HEADS
    ),
    "attention_wide": Check(
        "flash_attention", "dim=256 causal=True block_M=128 block_N=64 threads=256", HEADS
    ),
    "conv": Check(
        "conv2d", "H=13 W=11 C=64 F=72 block_M=256 block_N=128 block_K=64 threads=256", ((1,), (7,))
    ),
    "conv_apart": Check(
        "conv2d",
        "H=14 W=17 C=16 F=40 stride=2 dilation=2 padding=0 block_M=64 block_N=64 block_K=64",
        ((1,), (5,)),
    ),
}


def values(check: Check) -> dict[str, str]:
    return dict(word.split("=") for word in check.choices.split())


def data(check: Check, sizes: tuple[int, ...]) -> Iterator[tuple[str, list[Any]]]:
    """Inputs of each kind: random ones, ones of one sign, large ones."""
    rng = np.random.default_rng(0)
    if check.sample == "conv2d":
        h, w, c, f = (int(values(check)[x]) for x in "HWCF")
        shapes = [(*sizes, h, w, c), (3, 3, c, f)]
    elif check.sample == "flash_attention":
        batch, heads, queries, keys = sizes
        dim = int(values(check)["dim"])
        shapes = [(batch, heads, x, dim) for x in (queries, keys, keys)]
    else:
        m, n, k = sizes
        shapes = [(m, k), (n, k) if check.sample == "fp8_gemm" else (k, n)]
    kind = ml_dtypes.float8_e4m3fn if check.sample == "fp8_gemm" else np.float16
    yield "random", [rng.standard_normal(x).astype(kind) for x in shapes]
    yield "of one sign", [rng.random(x).astype(kind) for x in shapes]
    if check.sample != "fp8_gemm":
        yield "large", [(rng.standard_normal(x) * 30).astype(kind) for x in shapes]


def wrong(name: str, check: Check, kernel: Any) -> int:
    """How many of the results are."""
    count = 0
    own: dict[str, int | bool] = {
        x: int(values(check)[x]) for x in ("stride", "dilation", "padding") if x in values(check)
    }
    if "causal" in values(check):
        own["causal"] = values(check)["causal"] == "True"
    for sizes in check.sizes:
        for word, arrays in data(check, sizes):
            want = REFERENCES[check.sample](*arrays, **own)
            if np.abs(want).max() > 60000:
                continue  # half has no such numbers
            got = np.asarray(kernel(*arrays)).astype(np.float64)
            error = float(np.linalg.norm(got - want) / max(np.linalg.norm(want), 1e-30))
            hard = check.bound > 1e-3 and word == "of one sign"  # what fast accumulation is bad at
            verdict = "ok" if error <= (1.0 if hard else check.bound) else "WRONG"
            count += verdict != "ok"
            print(f"{name:12} {sizes!s:20} {word:12} error {error:.1e} {verdict}", flush=True)
    return count


def main() -> int:
    if sys.argv[1] == "--texts":
        for name, check in CHECKS.items():
            source = ROOT / "samples" / f"{check.sample}.py"
            out = Path(sys.argv[2]) / name
            tile2c.build(source, out, TARGET, values(check), force=True)
        return 0
    folder, names = Path(sys.argv[1]), sys.argv[2:] or list(CHECKS)
    failed = 0
    for name in names:
        (kernel,) = tile2c.load(folder / name, "cuda", TARGET).values()
        failed += wrong(name, CHECKS[name], kernel)
    print("wrong:", failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
