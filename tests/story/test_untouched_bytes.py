"""What stands above a kernel in its source, and is not used by it, changes no byte of its text."""

from __future__ import annotations

from pathlib import Path

import pytest
from story_merges import generated_from

SAMPLES = Path(__file__).parents[2] / "samples"

ADDITIONS = {
    "an import": ("import tilelang\n", "import math\nfrom os import path\nimport tilelang\n"),
    "a comment": ("@tilelang.jit", "# A remark\n# of two lines.\n\n@tilelang.jit"),
    "a function": ("@tilelang.jit", "def other(x, block_M=3):\n    return x + 1\n\n\n@tilelang.jit"),
    "a constant": ("@tilelang.jit", "BLOCKS = [1, 2, 3]\n\n\n@tilelang.jit"),
    "a comment of its own": ("    @T.prim_func", "    # A remark.\n    @T.prim_func"),
    "a comment of the factory": ("@tilelang.jit", "# A remark.\n@tilelang.jit"),
    "empty lines": ("@tilelang.jit", "\n\n\n\n@tilelang.jit"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("sample", "target"),
    [("gemm_bias_relu", "cuda:sm_90a"), ("softmax", "ascendc:ascend910b"), ("gemm", "hip:gfx942")],
)
def test_no_byte_changes(sample: str, target: str) -> None:
    source = (SAMPLES / f"{sample}.py").read_text()
    text = generated_from(source, target).text
    for what, (old, new) in ADDITIONS.items():
        assert old in source
        changed = source.replace(old, new, 1)
        assert generated_from(changed, target).text == text, what
