"""The samples of matrix operations beside their rivals on one device: right, then fast.

    python bench/matrices.py OUT [more folders with the same kernels in other tile sizes ...]

OUT holds the samples for cuda:sm_80 (and cuda:sm_90a, where wanted):

    tile2c samples/batched_gemm.py samples/split_k_gemm.py samples/int4_gemm.py samples/conv2d.py
        samples/flash_attention.py samples/gqa_attention.py samples/varlen_attention.py
        -o OUT --target cuda:sm_80,cuda:sm_90a

Attention on Hopper wants wider tiles: -D block_N=128 with --target cuda:sm_90a, in a folder of its own.
Rivals are torch's cuBLAS, cuDNN (conv2d, channels last) and scaled_dot_product_attention by cuDNN and
FlashAttention-2; weights of 4 bits stand beside cuBLAS with weights of 16. Prints burst and steady
rates (see measure.py), ratios to the first rival.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from measure import Launch, burst, flush, relative_error, steady
from torch.nn.attention import SDPBackend, sdpa_kernel

HALF = torch.float16
Sets = Mapping[str, Mapping[str, Any]]  # label -> kernels by name


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=HALF)


@dataclass(frozen=True)
class Problem:
    """One kernel with its arguments, what it has to give, and who else can do it."""

    kernel: str
    size: str
    arguments: tuple[Any, ...]
    expected: Callable[[], torch.Tensor]
    rivals: Mapping[str, Launch]
    flops: float = 0.0
    bytes: float = 0.0  # moved at least; where this is set, rates are of memory
    in_place: bool = False  # the last argument is the output
    bound: float = 2e-3  # relative error


def batched(batch: int, m: int, n: int, k: int) -> Problem:
    a, b = randn(batch, m, k), randn(batch, k, n)
    out = torch.empty(batch, m, n, device="cuda", dtype=HALF)
    return Problem(
        "batched_gemm",
        f"{batch} x {m}x{n}x{k}",
        (a, b),
        lambda: a.float() @ b.float(),
        {"cuBLAS": lambda: torch.bmm(a, b, out=out)},
        flops=2.0 * batch * m * n * k,
    )


def split_k(m: int, n: int, k: int) -> Problem:
    a, b = randn(m, k), randn(k, n)
    out = torch.empty(m, n, device="cuda", dtype=HALF)
    c = torch.zeros(m, n, device="cuda")
    return Problem(
        "split_k_gemm",
        f"{m}x{n}x{k}",
        (a, b, c),
        lambda: a.double() @ b.double(),
        {"cuBLAS": lambda: torch.mm(a, b, out=out)},
        flops=2.0 * m * n * k,
        in_place=True,
    )


def int4(m: int, n: int, k: int, group: int = 128) -> Problem:
    a = randn(m, k)
    b = torch.randint(-128, 128, (n, k // 2), device="cuda", dtype=torch.int8)
    scales = torch.rand(k // group, n, device="cuda", dtype=HALF) / 64
    weights = torch.stack(((b << 4) >> 4, b >> 4), dim=-1).reshape(n, k).to(HALF)
    weights = weights * scales.repeat_interleave(group, dim=0).T
    out = torch.empty(m, n, device="cuda", dtype=HALF)
    return Problem(
        "int4_gemm",
        f"{m}x{n}x{k}",
        (a, b, scales),
        lambda: a.double() @ weights.double().T,
        {"cuBLAS fp16": lambda: torch.mm(a, weights.T, out=out)},
        flops=2.0 * m * n * k,
        bytes=n * k / 2 + 2.0 * m * (n + k) if m <= 64 else 0.0,
    )


def conv(n: int, h: int, w: int, c: int, f: int) -> Problem:
    data, kernel = randn(n, h, w, c), randn(3, 3, c, f)
    images = data.permute(0, 3, 1, 2)
    weights = kernel.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    torch.backends.cudnn.benchmark = True
    return Problem(
        "conv2d",
        f"N{n} {h}x{w} C{c} F{f}",
        (data, kernel),
        lambda: torch.conv2d(images, weights, padding=1).permute(0, 2, 3, 1),
        {"cuDNN": lambda: torch.conv2d(images, weights, padding=1)},
        flops=2.0 * n * h * w * 9 * c * f,
    )


def sdpa(backend: SDPBackend, q: Any, k: Any, v: Any, causal: bool) -> Launch:
    def launch() -> torch.Tensor:
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    return launch


def attention(kernel: str, batch: int, heads: int, length: int, groups: int = 1) -> Problem:
    """Causal attention: [batch, heads, length, dim], or [batch, length, heads, dim] with groups."""
    dim = 128
    if kernel == "flash_attention":
        q, k, v = (randn(batch, heads, length, dim) for _ in range(3))
        first = (q, k, v)
    else:
        q = randn(batch, length, heads, dim)
        k, v = (randn(batch, length, heads // groups, dim) for _ in range(2))
        first = (
            q.transpose(1, 2),
            *(x.transpose(1, 2).repeat_interleave(groups, dim=1).contiguous() for x in (k, v)),
        )
    rivals = {
        "cuDNN": sdpa(SDPBackend.CUDNN_ATTENTION, *first, True),
        "FlashAttention-2": sdpa(SDPBackend.FLASH_ATTENTION, *first, True),
    }

    def expected() -> torch.Tensor:
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            found = F.scaled_dot_product_attention(*first, is_causal=True)
        return found if kernel == "flash_attention" else found.transpose(1, 2)

    return Problem(
        kernel,
        f"B{batch} H{heads} S{length} D{dim} causal",
        (q, k, v),
        expected,
        rivals,
        flops=2.0 * batch * heads * length * length * dim,  # half of the scores
    )


def varlen(heads: int, *lengths: int) -> Problem:
    dim = 128
    q, k, v = (randn(sum(lengths), heads, dim) for _ in range(3))
    starts = torch.tensor((0, *lengths), device="cuda").cumsum(0).to(torch.int32)
    parts = [x.transpose(0, 1).split(lengths, dim=1) for x in (q, k, v)]

    def by_sequence() -> torch.Tensor:
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            return torch.cat(
                [
                    F.scaled_dot_product_attention(*(x[None] for x in one), is_causal=True)[0]
                    for one in zip(*parts, strict=True)
                ],
                dim=1,
            )

    return Problem(
        "varlen_attention",
        f"H{heads} S{'+'.join(map(str, lengths))} D{dim} causal",
        (q, k, v, starts, max(lengths)),
        lambda: by_sequence().transpose(0, 1),
        {"FlashAttention-2, one by one": by_sequence},
        flops=2.0 * heads * dim * sum(n * n for n in lengths),
    )


def small() -> list[Problem]:
    """Sizes with tails, odd ones and the smallest: only whether they are right."""
    return [
        batched(1, 1, 1, 1),
        batched(3, 65, 67, 69),
        batched(2, 1000, 776, 136),
        split_k(1, 1, 1),
        split_k(100, 200, 5000),
        split_k(65, 67, 133),
        int4(1, 8, 128),
        int4(65, 200, 384),
        conv(3, 64, 64, 128, 128),
        attention("flash_attention", 1, 2, 1),
        attention("flash_attention", 2, 3, 1000),
        attention("gqa_attention", 1, 4, 999, 4),
        varlen(2, 1000, 1, 129),
    ]


def large() -> list[Problem]:
    """The sizes that are timed."""
    return [
        batched(16, 2048, 2048, 2048),
        split_k(256, 256, 65536),
        split_k(16, 8192, 8192),
        int4(16, 8192, 8192),
        int4(4096, 4096, 4096),
        conv(128, 64, 64, 128, 128),
        attention("flash_attention", 4, 32, 4096),
        attention("gqa_attention", 4, 32, 4096, 4),
        varlen(32, 4096, 1000, 129, 8192),
    ]


def check(sets: Sets, problem: Problem) -> int:
    """How many kernels are wrong on this problem."""
    failed = 0
    want = problem.expected()
    for label, kernels in sets.items():
        if problem.kernel not in kernels:
            continue
        given = list(problem.arguments)
        if problem.in_place:
            given[-1] = torch.zeros_like(given[-1])
        found = kernels[problem.kernel](*given)
        error = relative_error(given[-1] if problem.in_place else found, want)
        verdict = "ok" if error <= problem.bound else "WRONG"
        failed += verdict != "ok"
        print(f"{label:24} {problem.kernel:18} {problem.size:30} error {error:.2e} {verdict}")
    return failed


def contenders(sets: Sets, problem: Problem) -> dict[str, Launch]:
    """Rivals that work here, then our kernels into outputs of their own."""
    found: dict[str, Launch] = {}
    for name, launch in problem.rivals.items():
        try:
            launch()
            found[name] = launch
        except RuntimeError as problem_of_rival:
            print(f"{name}: {str(problem_of_rival).splitlines()[0]}")
    for label, kernels in sets.items():
        if problem.kernel not in kernels:
            continue
        kernel, given = kernels[problem.kernel], list(problem.arguments)
        if problem.in_place:
            given[-1] = torch.zeros_like(given[-1])
        else:
            given.append(torch.empty_like(kernel(*given)))
        found[label] = lambda kernel=kernel, given=given: kernel(*given)  # type: ignore[misc]
    return found


def time(sets: Sets, problem: Problem) -> None:
    launches = contenders(sets, problem)
    ways = {"flush": flush} if problem.bytes else {"burst": burst, "steady": steady}
    for title, way in ways.items():
        times = way(launches)
        first = next(iter(times.values()))
        for name, ms in times.items():
            rate = problem.flops / ms / 1e9
            memory = f" {problem.bytes / ms / 1e6:6.0f} GB/s" if problem.bytes else ""
            print(
                f"{problem.kernel:18} {problem.size:30} {title:6} {name:30} {ms:8.4f} ms "
                f"{rate:6.0f} TFLOP/s{memory} {first / ms:.3f} of {next(iter(times))}"
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", nargs="+", help="folders with the kernels")
    parser.add_argument("--only", default="", help="kernels whose names hold this")
    options = parser.parse_args()
    import tile2c

    sets: dict[str, Mapping[str, Any]] = {}
    for folder in options.out:
        for target in ("cuda:sm_80", "cuda:sm_90a"):
            try:
                sets[f"{target} {Path(folder).name}"] = tile2c.load(folder, target=target)
            except Exception as problem:  # a target that the folder does not hold
                print(f"{folder}, {target}: {problem}")
    torch.manual_seed(0)
    failed = 0
    for problem in (*small(), *large()):
        if options.only in problem.kernel:
            failed += check(sets, problem)
    for problem in large():
        if options.only in problem.kernel:
            time(sets, problem)
    print("failed checks:", failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
