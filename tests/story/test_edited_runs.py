"""Kernels that people edited are checked as they are: races, memory, and what the source means."""

from __future__ import annotations

from pathlib import Path

import pytest
from tile2c.transpile.cli.main import main

OPS = Path(__file__).with_name("ops.py")

# Edit, what the run says of it (nothing: all is well).
EDITS = {
    "a barrier is gone": ("        __syncthreads();\n", "", "race in A_shared"),
    "a wait is weaker": ("copies_wait<num_stages - 2>", "copies_wait<num_stages - 1>", "no wait"),
    "a guard is weaker": ("row < M ? K - col : 0", "row <= M ? K - col : 0", "outside"),
    "a wrong index": (
        "const int i = warp_m + m * 16 + h * 8 + lane / 4,",
        "const int i = warp_m + m * 16 + lane / 4,",
        "elements differ",
    ),
    "a mistake of typing": ("const int bx = blockIdx.x", "const int bx = blockIdx.x x", "compile"),
    "another spelling": ("row < M ? K - col : 0", "M > row ? K - col : 0", ""),
    "one more barrier": (
        "        __syncthreads();\n", "        __syncthreads();\n        __syncthreads();\n", ""
    ),
    "a loop unrolled": ("for (int k = 0; k < block_K; k += 16) {",
                        "UNROLL\n        for (int k = 0; k < block_K; k += 16) {", ""),
}  # fmt: skip


@pytest.mark.parametrize("edit", EDITS)
def test_edits_are_judged(home: Path, capsys: pytest.CaptureFixture[str], edit: str) -> None:
    old, new, complaint = EDITS[edit]
    Path("ops.py").write_text(OPS.read_text())
    assert main(["ops.py", "-o", "out", "--kernel", "linear"]) == 0
    path = Path("out/linear.cu")
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    options = ["--backend", "emulate", "--check", "races,memory", "--against", "interpreter"]
    capsys.readouterr()
    status = main(["run", "out", "--sizes", "M=72,N=72,K=168", *options])
    captured = capsys.readouterr()
    assert "linear.cu was edited by hand; it runs as it is" in captured.err
    if complaint:
        assert status == 1 and complaint in captured.out + captured.err
    else:
        assert status == 0 and "equal within the tolerance" in captured.out
    if complaint == "race in A_shared":
        assert "= note: line" in captured.err and "T.copy(A[by * block, ko" in captured.err


def test_a_source_that_has_changed_since_is_told(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("ops.py").write_text(OPS.read_text())
    assert main(["ops.py", "-o", "out", "--kernel", "scale_add"]) == 0
    Path("ops.py").write_text("# A line more.\n" + OPS.read_text())
    options = ["--backend", "emulate", "--against", "interpreter"]
    assert main(["run", "out", "--sizes", "N=600", *options]) == 0
    assert "ops.py has changed since scale_add.cu was generated" in capsys.readouterr().err
