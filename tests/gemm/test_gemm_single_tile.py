"""A warp with one row of fragments, or one column: nothing counts to one in the text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tile2c.transpile.cli.main import main

GEMM = Path(__file__).parents[2] / "samples" / "gemm.py"
SHAPES = {
    "a row": ("cuda:sm_80", {"block_M": 16, "block_N": 128, "threads": 64}),
    "a column": ("cuda:sm_80", {"block_M": 128, "block_N": 16, "threads": 64}),
    "a row of vectors": ("hip:gfx942", {"block_M": 16, "block_N": 64, "threads": 64}),
    "a column of vectors": ("hip:gfx942", {"block_M": 64, "block_N": 16, "threads": 64}),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_no_loop_runs_once(tmp_path: Path, shape: str) -> None:
    target, defines = SHAPES[shape]
    given = [f"-D{name}={value}" for name, value in defines.items()]
    assert main([str(GEMM), "-o", str(tmp_path), "--target", target, *given]) == 0
    (kernel,) = [path for path in tmp_path.iterdir() if path.suffix in (".cu", ".hip")]
    text = kernel.read_text()
    assert "T.gemm(A_shared, B_shared, C_local)" in text
    assert not re.search(r"for \(int (\w+) = 0; \1 < 1; ", text)
