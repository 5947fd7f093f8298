"""Nothing in the Ascend C kernels orders or guards for nothing: what is taken out is missed."""

from __future__ import annotations

from pathlib import Path

import pytest
from removal import F16, F32, Case, missed

# More blocks than twice the cores: each core refills both copies of a tile.
CASES = {
    "add": Case(
        "add", (((((5 * 40 * 64 + 3,), F32), ((5 * 40 * 64 + 3,), F32))),), {"block_N": 64}
    ),
    "row_sum": Case("row_sum", ((((8 * 130 + 3, 133), F32),), (((9, 128), F32),)), {"block_N": 64}),
    "row_sum_rows": Case("row_sum", ((((130, 1027), F32),),), {"block_M": 1}),
    "softmax": Case("softmax", ((((130, 777), F16),),), {"N": 777}),
    "softmax_rows": Case("softmax", ((((130 * 4 + 1, 77), F16),),), {"N": 77, "block_M": 4}),
    "softmax_even": Case("softmax", ((((130, 2048), F16),),), {"N": 2048}),
}


@pytest.mark.parametrize("case", CASES)
def test_everything_taken_out_of_ascend_c_is_reported(tmp_path: Path, case: str) -> None:
    assert missed(CASES[case], "ascendc:ascend910b", tmp_path) == []
