"""Nothing in the CUDA kernels orders or guards for nothing: what is taken out is missed."""

from __future__ import annotations

from pathlib import Path

import pytest
from removal import F16, F32, ROWS, Case, missed

SMALL = {"block_M": 64, "block_N": 64}
BIAS = (((72,), F16),)
EVEN = (((72, 136), F16), ((136, 72), F16))
SHORT = (((72, 24), F16), ((24, 72), F16))
ODD = (((65, 133), F16), ((133, 67), F16))

CASES = ROWS | {
    "add": Case("add", ((((1027,), F32), ((1027,), F32)),)),
    "row_sum": Case("row_sum", ((((9, 132), F32),), (((9, 131), F32),)), {"block_N": 128}),
    "row_sum_wide": Case("row_sum", ((((3, 1028), F32),), (((3, 1027), F32),)), {"block_M": 1}),
    "softmax": Case("softmax", ((((2, 2048), F16),),), {"N": 2048}),
    "softmax_odd": Case("softmax", ((((2, 777), F16),),), {"N": 777}),
    "softmax_rows": Case("softmax", ((((5, 72), F16),),), {"N": 72, "block_M": 4}),
    "gemm": Case("gemm", (EVEN, SHORT, ODD), SMALL),
    "gemm_bias_relu": Case(
        "gemm_bias_relu", (EVEN + BIAS, SHORT + BIAS, (*ODD, ((67,), F16))), SMALL
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_everything_taken_out_is_reported(tmp_path: Path, case: str) -> None:
    assert missed(CASES[case], "cuda:sm_80", tmp_path) == []
