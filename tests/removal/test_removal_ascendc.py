"""Nothing in the Ascend C kernels orders or guards for nothing: what is taken out is missed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from removal import F16, F32, Case, Inputs, missed

# More blocks than twice the cores: each core refills both copies of a tile.
CASES = {
    "add": Case(
        "add", (((((5 * 40 * 64 + 3,), F32), ((5 * 40 * 64 + 3,), F32))),), {"block_N": 64}
    ),
    "row_sum": Case("row_sum", ((((8 * 130 + 3, 133), F32),), (((9, 128), F32),)), {"block_N": 64}),
    "row_sum_rows": Case("row_sum", ((((130, 1027), F32),),), {"block_M": 1}),
    "softmax": Case("softmax", ((((130, 777), F16),),), {"N": 777}),
    "softmax_rows": Case("softmax", ((((130 * 4 + 1, 77), F16),),), {"N": 77, "block_M": 4}),
    # The weight is loaded once a core; no flag of its own is needed, and none is there.
    "rms_norm": Case("rms_norm", ((((130, 200), F16), ((200,), F16)),), {"N": 200}),
    "softmax_even": Case("softmax", ((((130, 2048), F16),),), {"N": 2048}),
}


# More blocks than twice the cube cores, so that each of them takes several.
_BLOCKS = {"block_M": 16, "block_N": 32, "block_K": 32}
_PRODUCT = (((16 * 9 + 3, 150), F16), ((150, 32 * 6 + 5), F16))
PRODUCTS = {
    "gemm": Case("gemm", (_PRODUCT,), _BLOCKS),
    "gemm_parts": Case(
        "gemm", ((((130, 300), F16), ((300, 17), F16)),), {"block_N": 32, "block_K": 256}
    ),
    "gemm_bias_relu": Case("gemm_bias_relu", ((*_PRODUCT, ((32 * 6 + 5,), F16)),), _BLOCKS),
}
CASES |= PRODUCTS


def gated(x: Any, v: Any, w: Any, y: Any) -> Any:
    value, gate = (x.astype(np.float64) @ side.astype(np.float64).T for side in (v, w))
    return value / (1 + np.exp(-value)) * gate


def gated_inputs() -> list[list[Any]]:
    """Sums of two products in one loop; without K they are zeros."""
    rng = np.random.default_rng(0)
    found = []
    for m, n, k in ((16 * 9 + 3, 32 * 6 + 5, 150), (17, 33, 0)):
        given = [rng.standard_normal(s).astype(F16) for s in ((m, k), (n, k), (n, k))]
        found.append([*given, np.full((m, n), 7, F16)])
    return found


GATED = Case(
    "gated",
    (),
    _BLOCKS,
    arrays=gated_inputs,
    folder=Path(__file__).parents[1] / "lower_cores" / "products",
    reference=gated,
)


def attention(heads: int, seq_q: int, seq_kv: int) -> Inputs:
    keys = ((1, heads, seq_kv, 32), F16)
    return (((1, heads, seq_q, 32), F16), keys, keys)


ATTENTION = Case(
    "flash_attention",
    (attention(21, 70, 75), attention(1, 5, 5)),
    {"dim": 32, "block_M": 32, "block_N": 32},
)


def sequences() -> list[list[Any]]:
    """Packed tensors, where sequences start, and the longest: one is empty, the last ends with them."""
    rng = np.random.default_rng(0)
    edges = np.cumsum((0, 70, 0, 1, 33, *([31] * 20))).astype(np.int32)
    packed = [rng.standard_normal((int(edges[-1]), 1, 32)).astype(F16) for _ in range(3)]
    return [[*packed, edges, np.int32(70)]]


SEQUENCES = Case(
    "varlen_attention", (), {"dim": 32, "block_M": 32, "block_N": 32}, arrays=sequences
)
CONVOLUTION = Case(
    "conv2d",
    ((((3, 5, 7, 16), F16), ((3, 3, 16, 37), F16)),),
    _BLOCKS | {"H": 5, "W": 7, "C": 16, "F": 37},
)
# Zeros on one side of a product make up for those of the other.
EITHER = ("const int32_t end_inside = span_room < end ? span_room : end;", "if (depth < block_K) {")
# What the flags between the cores imply: scores come back only once the weights made of them went
# out; the rest bites where there is no key at all, or is the author's own, or saves empty calls.
IMPLIED = (
    "order<HardEvent::V_MTE2>();  // S has been written",
    "PipeBarrier<PIPE_V>();  // row_sum is complete",
    "if ((ko + 1) * block_N > first + 1) {",
    "if (rows > 0) {",
)
# Rows past an end are masked, or not stored: what they hold changes nothing, as long as they are numbers.
INSIDE = ("if (rows < block_M) {", "if (columns < block_N) {", "if (O_tile_rows > 0) {")


@pytest.mark.parametrize("case", CASES)
def test_everything_taken_out_of_ascend_c_is_reported(tmp_path: Path, case: str) -> None:
    assert missed(CASES[case], "ascendc:ascend910b", tmp_path) == []


def test_everything_taken_out_of_two_products_in_one_loop_is_reported(tmp_path: Path) -> None:
    found = missed(GATED, "ascendc:ascend910b", tmp_path)
    assert [what for what in found if not what.endswith((*IMPLIED, *INSIDE))] == []


def test_everything_taken_out_of_convolutions_is_reported(tmp_path: Path) -> None:
    found = missed(CONVOLUTION, "ascendc:ascend910b", tmp_path)
    assert [what for what in found if not what.endswith(EITHER)] == []


def test_everything_taken_out_of_attention_is_reported(tmp_path: Path) -> None:
    found = missed(ATTENTION, "ascendc:ascend910b", tmp_path)
    assert [what for what in found if not what.endswith(IMPLIED)] == []


def test_everything_taken_out_of_sequences_is_reported(tmp_path: Path) -> None:
    found = missed(SEQUENCES, "ascendc:ascend910b", tmp_path)
    assert [what for what in found if not what.endswith((*IMPLIED, *INSIDE))] == []
