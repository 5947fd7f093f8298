"""Nothing in the samples of matrix operations orders or guards for nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from removal import F16, F32, Case, missed

SMALL = {"block_M": 64, "block_N": 64}
ATTENTION = {"dim": 32, "block_M": 64, "block_N": 32}


def products(*batch: int, depth: int = 1) -> tuple[Any, ...]:
    """Operands whose tiles end early in every dimension, in both entries; K is `depth` times 5 tiles."""
    sizes = ((72, 72, depth * 136), (72, 72, 24), (65, 67, depth * 133))
    return tuple((((*batch, m, k), F16), ((*batch, k, n), F16)) for m, n, k in sizes)


def weights() -> list[list[Any]]:
    """A, bytes of B, scales."""
    rng = np.random.default_rng(0)
    return [
        [
            rng.standard_normal((m, k)).astype(F16),
            rng.integers(-128, 128, (n, k // 2), np.int8),
            rng.standard_normal((-(-k // 64), n)).astype(F16),
        ]
        for m, n, k in ((72, 72, 288), (72, 72, 32), (65, 67, 290))
    ]


def sequences() -> list[list[Any]]:
    """Packed tensors, where sequences start, the longest of them."""
    rng = np.random.default_rng(0)
    starts = np.cumsum((0, 70, 1, 37, 101)).astype(np.int32)
    packed = [rng.standard_normal((int(starts[-1]), 1, 32)).astype(F16) for _ in range(3)]
    return [[*packed, starts, np.int32(101)]]


CASES = {
    "batched_gemm": Case("batched_gemm", products(2), SMALL),
    "split_k_gemm": Case(
        "split_k_gemm",
        tuple((a, b, ((a[0][0], b[0][1]), F32)) for a, b in products(depth=2)),
        SMALL | {"split_k": 2},
    ),
    "int4_gemm": Case("int4_gemm", (), {"group_size": 64}, arrays=weights),
    "conv2d": Case(
        "conv2d",
        ((((3, 5, 7, 24), F16), ((3, 3, 24, 72), F16)),),
        SMALL | {"H": 5, "W": 7, "C": 24, "F": 72},
    ),
    "conv2d_odd": Case(
        "conv2d",
        ((((3, 5, 7, 11), F16), ((3, 3, 11, 13), F16)),),
        SMALL | {"H": 5, "W": 7, "C": 11, "F": 13},
    ),
    "flash_attention": Case(
        "flash_attention", ((((1, 2, 70, 32), F16), *(((1, 2, 133, 32), F16),) * 2),), ATTENTION
    ),
    "gqa_attention": Case(
        "gqa_attention",
        ((((1, 133, 2, 32), F16), *(((1, 133, 1, 32), F16),) * 2),),
        ATTENTION | {"groups": 2},
    ),
    "varlen_attention": Case("varlen_attention", (), ATTENTION, arrays=sequences),
}


# What only saves work, or holds for every block and for the starts that tests give: a block has a query,
# and a query a key.
SAVES = {
    "flash_attention": ("if (ko < ko_end) load_tiles", "first + 1) {"),
    "gqa_attention": ("if (ko < tiles) load_tiles",),
    "varlen_attention": (
        "if (ko < tiles) load_tiles",
        "first < length ?",
        "if (plane >= 0 && plane < total)",
    ),
    "conv2d_odd": ("< ko_end) load_tiles(ko + num_stages - 1);",),  # no copies are left running
}
# Loads through registers look where their tensors end: one more of them changes nothing.
THROUGH_REGISTERS = ("load_tiles(ko + 1);", "if (ko_end > 0) {", "if (tiles > 0) {")


@pytest.mark.parametrize(
    "target", ["cuda:sm_80", pytest.param("hip:gfx942", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("case", CASES)
def test_everything_taken_out_of_matrices_is_reported(
    tmp_path: Path, case: str, target: str
) -> None:
    found = missed(CASES[case], target, tmp_path)
    saves = SAVES.get(case, ()) + (THROUGH_REGISTERS if target.startswith("hip") else ())
    assert [what for what in found if not any(part in what for part in saves)] == []
