"""Nothing in the BANG C kernels waits or guards for nothing: what is taken out is missed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from removal import F16, F32, Case, missed

# More blocks than twice the tasks: both copies of a tile are filled again.
_BLOCKS = {"block_M": 16, "block_N": 32, "block_K": 32}
CASES = {
    "row_sum": Case("row_sum", ((((8 * 40 + 3, 133), F32),), (((9, 128), F32),)), {"block_N": 64}),
    "gemm": Case("gemm", ((((16 * 9 + 3, 150), F16), ((150, 32 * 6 + 5), F16)),), _BLOCKS),
    # The unit sums over multiples of 32 halves: rows of both operands are copied to longer ones.
    "short_gemm": Case(
        "gemm", ((((16 * 9 + 3, 150), F16), ((150, 32 * 6 + 5), F16)),), _BLOCKS | {"block_K": 24}
    ),
    "conv2d": Case(
        "conv2d",
        ((((3, 5, 7, 12), F16), ((3, 3, 12, 37), F16)),),
        _BLOCKS | {"H": 5, "W": 7, "C": 12, "F": 37},
    ),
}


def sequences() -> list[list[Any]]:
    """Packed tensors, where sequences start, and the longest: one is empty, the last ends with them."""
    rng = np.random.default_rng(0)
    edges = np.cumsum((0, 70, 0, 1, 33, *([31] * 20))).astype(np.int32)
    packed = [rng.standard_normal((int(edges[-1]), 1, 32)).astype(F16) for _ in range(3)]
    return [[*packed, edges, np.int32(70)]]


CASES["sequences"] = Case(
    "varlen_attention", (), {"dim": 32, "block_M": 32, "block_N": 32}, arrays=sequences
)
# Zeros on one side of a product make up for those of the other; where a loop asks only to save work,
# or whether starts lie inside of their tensors, nothing is missed here (test_cores_lengths.py).
SAVES = ("guard", "edge", "prefill")


def test_everything_taken_out_of_bang_c_is_reported(tmp_path: Path) -> None:
    assert missed(CASES["row_sum"], "bang:mtp_592", tmp_path) == []


@pytest.mark.parametrize("case", ["gemm", "short_gemm", "conv2d", "sequences"])
def test_every_wait_of_products_is_needed(tmp_path: Path, case: str) -> None:
    found = missed(CASES[case], "bang:mtp_592", tmp_path)
    assert [what for what in found if not what.startswith(SAVES)] == []
