"""Samples of matrix operations: small choices for each, inputs with tails, odd sizes and the smallest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

F16, F32, I8, I32 = np.float16, np.float32, np.int8, np.int32
F8 = ml_dtypes.float8_e4m3fn
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """A sample with values for its parameters, and shapes of its tensors."""

    sample: str
    choices: dict[str, object]
    inputs: tuple[tuple[tuple[Shape, Any], ...], ...]
    reference: dict[str, object] = field(default_factory=dict)  # for the function of references.py
    family: str = ""  # the only one that has the types

    def arrays(self, seed: int = 3) -> Iterator[list[Any]]:
        rng = np.random.default_rng(seed)
        for shapes in self.inputs:
            if self.sample == "varlen_attention":
                yield _packed(rng, *shapes[0][0])
            else:
                yield [_random(rng, shape, dtype) for shape, dtype in shapes]


def _random(rng: np.random.Generator, shape: Shape, dtype: Any) -> Any:
    if dtype == I8:
        return rng.integers(-128, 128, shape, dtype)
    return rng.standard_normal(shape).astype(dtype)


def _packed(rng: np.random.Generator, *sizes: int) -> list[Any]:
    """Three tensors of all rows, where the sequences start, the longest; sizes: heads, dim, lengths."""
    heads, dim, *lengths = sizes
    starts = np.concatenate(([0], np.cumsum(lengths))).astype(I32)
    tensors = [_random(rng, (int(starts[-1]), heads, dim), F16) for _ in range(3)]
    return [*tensors, starts, np.int32(max(lengths))]


def _products(*sizes: Shape) -> tuple[tuple[tuple[Shape, Any], ...], ...]:
    """Operands of products with sizes (*batch, M, N, K)."""
    return tuple((((*b, m, k), F16), ((*b, k, n), F16)) for *b, m, n, k in sizes)


def _attention(*sizes: Shape) -> tuple[tuple[tuple[Shape, Any], ...], ...]:
    """Q, K and V with (batch, heads, queries, keys, dim)."""
    return tuple(
        (((b, h, m, d), F16), ((b, h, n, d), F16), ((b, h, n, d), F16)) for b, h, m, n, d in sizes
    )


def _grouped(*sizes: Shape) -> tuple[tuple[tuple[Shape, Any], ...], ...]:
    """Q, K and V with (batch, rows, heads, groups, dim)."""
    return tuple(
        (((b, n, h, d), F16), ((b, n, h // g, d), F16), ((b, n, h // g, d), F16))
        for b, n, h, g, d in sizes
    )


def _weighted(*sizes: Shape) -> tuple[tuple[tuple[Shape, Any], ...], ...]:
    """A, the bytes of B and the scales with (M, N, K, group)."""
    return tuple((((m, k), F16), ((n, k // 2), I8), ((-(-k // g), n), F16)) for m, n, k, g in sizes)


SMALL = {"block_M": 64, "block_N": 64}
ATTENTION = {"dim": 32, "block_M": 64, "block_N": 32}
CASES = {
    "batched_gemm": Case(
        "batched_gemm", SMALL, _products((1, 1, 1, 1), (3, 65, 72, 40), (2, 64, 67, 69))
    ),
    "split_k_gemm": Case(
        "split_k_gemm",
        SMALL | {"split_k": 3},
        tuple(
            (*operands, ((m, n), F32))
            for operands, (m, n) in zip(
                _products((1, 1, 1), (65, 72, 424), (64, 67, 133)),
                ((1, 1), (65, 72), (64, 67)),
                strict=True,
            )
        ),
    ),
    "fp8_gemm": Case(
        "fp8_gemm",
        SMALL | {"block_K": 64, "threads": 128},
        tuple(
            (((m, k), F8), ((n, k), F8)) for m, n, k in ((1, 1, 1), (65, 72, 208), (64, 67, 133))
        ),
        family="cuda",
    ),
    "gemm_warp_specialized": Case(
        "gemm_warp_specialized",
        {"block_N": 128, "num_stages": 2},
        _products((1, 8, 8), (136, 264, 200)),
        family="cuda:sm_90a",
    ),
    "int4_gemm": Case(
        "int4_gemm",
        {"group_size": 64},
        _weighted((1, 1, 2, 64), (65, 72, 160, 64), (3, 67, 98, 64)),
        {"group_size": 64},
    ),
    "conv2d": Case(
        "conv2d",
        SMALL | {"H": 7, "W": 9, "C": 16, "F": 40},
        tuple((((n, 7, 9, 16), F16), ((3, 3, 16, 40), F16)) for n in (1, 2)),
    ),
    "conv2d_apart": Case(
        "conv2d",
        SMALL | {"H": 8, "W": 13, "C": 12, "F": 21} | {"stride": 2, "dilation": 2, "padding": 0},
        ((((3, 8, 13, 12), F16), ((3, 3, 12, 21), F16)),),
        {"stride": 2, "dilation": 2, "padding": 0},
    ),
    "flash_attention": Case(
        "flash_attention", ATTENTION, _attention((1, 1, 1, 1, 32), (1, 2, 66, 100, 32))
    ),
    "flash_attention_full": Case(
        "flash_attention",
        ATTENTION | {"causal": False},
        _attention((1, 1, 2, 33, 32), (2, 1, 66, 64, 32)),
        {"causal": False},
    ),
    "gqa_attention": Case(
        "gqa_attention", ATTENTION | {"groups": 2}, _grouped((1, 1, 2, 2, 32), (1, 67, 4, 2, 32))
    ),
    "varlen_attention": Case(
        "varlen_attention",
        ATTENTION,
        ((((1, 32, 1), F16),), (((2, 32, 70, 1, 37, 0, 64), F16),)),
    ),
}
