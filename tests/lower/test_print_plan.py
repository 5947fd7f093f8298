"""`--emit plan`: what a reviewer wants to know of a kernel, in words."""

from __future__ import annotations

from pathlib import Path

import pytest
from tile2c.transpile.cli.main import main

SAMPLES = Path(__file__).parents[2] / "samples"


def plan(capsys: pytest.CaptureFixture[str], sample: str, target: str) -> dict[str, list[str]]:
    """The sections of a printed plan by the first word of their headings."""
    assert main([str(SAMPLES / f"{sample}.py"), "--emit", "plan", "--target", target]) == 0
    blocks = capsys.readouterr().out.rstrip("\n").split("\n\n")
    assert blocks[0].startswith(f"plan of {sample} for {target}: ")
    parts = [block.split("\n") for block in blocks[1:]]
    return {lines[0].split()[0].rstrip(":,"): [line.strip() for line in lines] for lines in parts}


def test_a_kernel_for_ampere(capsys: pytest.CaptureFixture[str]) -> None:
    found = plan(capsys, "gemm_bias_relu", "cuda:sm_80")
    assert "bias: float16 [N], in" in found["arguments"]
    assert any(line.startswith("when K % 8 == 0") for line in found["launches"])
    assert any("warps of C_local = 2 x 2" in line for line in found["decisions"])
    first = "at      0  A_shared  3 x 8192 bytes, chunk c of row r at c ^ (r / 2 % 4)"
    assert first in found["shared"]
    assert any(line.startswith("at      0  C_tile") for line in found["shared"])  # in its place
    width = "8 x float16, 16 bytes in one access, where rows are aligned"
    assert f"copies to A_shared: {width}" in found["accesses"]
    assert found["barriers"][1].startswith("barrier: tile ko is complete for all threads")
    assert any("read after write of A_shared" in line for line in found["barriers"])


def test_roles_and_offsets_for_hopper(capsys: pytest.CaptureFixture[str]) -> None:
    found = plan(capsys, "gemm", "cuda:sm_90a")
    assert any(line.startswith("roles = 1 warpgroup loads, 2") for line in found["decisions"])
    rows = [line.split() for line in found["shared"] if line.startswith("at ")]
    starts = [int(row[1]) for row in rows]
    assert starts[0] == 0 and starts == sorted(starts) and len(starts) >= 3
    assert any("mbarriers" in line for line in found["shared"])


def test_a_core_without_threads_prints_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    found = plan(capsys, "softmax", "ascendc:ascend910b")
    assert "X: float16 [M, 8192], in" in found["arguments"]
    assert any(line.startswith("blocks = each core takes") for line in found["decisions"])
    assert any("queue of loads" in line for line in found["local"])
    assert any("# x is complete" in line for line in found["steps"])
