"""T.Parallel over part of an array on the chip, how much of it being known only at run time."""

from __future__ import annotations

from pathlib import Path

import pytest
from language_programs import checked, empty, text_of, values

ASCEND = "ascendc:ascend910b"
SHRINKING = """
@T.prim_func
def main(A: T.Tensor((128,), "float32"), C: T.Tensor((6, 128), "float32"), n: T.int32):
    with T.Kernel(1, threads=128) as bx:
        S = T.alloc_shared((16, 128), "float32")
        for i, j in T.Parallel(16, 128):
            S[i, j] = 0
        for k in T.serial(n):
            for i, j in T.Parallel({rows}, {columns}):
                S[i, j] = S[i, j] + A[j]
        for k in T.serial(n):
            for i in T.Parallel(128):
                C[k, i] = S[k % 16, i]
"""


@pytest.mark.parametrize(
    ("rows", "columns"), [("8", "100 - k"), ("12 - k", "128"), ("9 - k", "90 + k")]
)
@pytest.mark.parametrize("target", ["cuda:sm_80", ASCEND])
def test_rows_or_columns_that_get_fewer(
    tmp_path: Path, target: str, rows: str, columns: str
) -> None:
    """What lies behind them keeps its values, and nothing past the array is touched."""
    text = SHRINKING.format(rows=rows, columns=columns)
    checked(tmp_path, text, {"A": values(128), "C": empty((6, 128)), "n": 6}, target)


def test_they_are_gone_through_at_once(tmp_path: Path) -> None:
    """The array itself says how far they can go: there is no loop over stretches of it."""
    text = text_of(tmp_path, SHRINKING.format(rows="8", columns="100 - k"), ASCEND)
    assert "j_block" not in text and "j_tile" not in text
