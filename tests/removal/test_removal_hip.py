"""Nothing in the HIP kernels orders or guards for nothing: what is taken out is missed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from removal import F16, F32, ROWS, Case, missed

SMALL = {"block_M": 64, "block_N": 64}
DEEP = (((65, 133), F16), ((133, 67), F16))
EVEN = (((72, 136), F16), ((136, 72), F16))
SHORT = (((72, 24), F16), ((24, 72), F16))
BIAS = (((72,), F16),)
# Where K is promised to be whole tiles, loads do not look where it ends.
NONE = (((64, 0), F16), ((0, 64), F16))
ONE = (((64, 32), F16), ((32, 64), F16))
WHOLE = {**SMALL, "K%32": 0}

CASES = ROWS | {
    "quantize_fp8": replace(ROWS["quantize_fp8"], choices={"fp8": "float8_e4m3fnuz"}),
    "add": Case("add", ((((1027,), F32), ((1027,), F32)),)),
    "row_sum": Case("row_sum", ((((9, 132), F32),), (((9, 131), F32),)), {"block_N": 128}),
    "row_sum_wide": Case(
        "row_sum", ((((3, 1028), F32),), (((3, 1027), F32),)), {"block_M": 1, "threads": 256}
    ),
    "softmax": Case("softmax", ((((2, 2048), F16),),), {"N": 2048}),
    "softmax_odd": Case("softmax", ((((2, 777), F16),),), {"N": 777}),
    "softmax_rows": Case("softmax", ((((5, 72), F16),),), {"N": 72, "block_M": 4}),
    "gemm": Case("gemm", (EVEN, SHORT, DEEP), SMALL, elsewhere=Case("gemm", (NONE, ONE), WHOLE)),
    "gemm_bias_relu": Case(
        "gemm_bias_relu",
        (EVEN + BIAS, SHORT + BIAS, (*DEEP, ((67,), F16))),
        SMALL,
        elsewhere=Case("gemm_bias_relu", ((*NONE, ((64,), F16)), (*ONE, ((64,), F16))), WHOLE),
    ),
    "gemm_wide": Case("gemm", (EVEN, DEEP), {"block_M": 64, "block_N": 128, "num_stages": 1}),
}


@pytest.mark.parametrize("case", CASES)
def test_everything_taken_out_of_hip_is_reported(tmp_path: Path, case: str) -> None:
    assert missed(CASES[case], "hip:gfx942", tmp_path) == []
