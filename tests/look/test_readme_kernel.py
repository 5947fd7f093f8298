"""The kernel that README.md shows is the one that is generated now."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from look_texts import SAMPLES, Case

README = Path(__file__).parents[2] / "README.md"
BLOCK = re.compile(r"(?<=```cuda\n).*?(?=\n```)", re.DOTALL)
SOURCE = re.compile(r"(?<=```python\n)with T.Kernel.*?(?=\n```)", re.DOTALL)


def test_generated_body(text_of: Callable[[Case], str], pytestconfig: pytest.Config) -> None:
    text = text_of(Case("cuda:sm_80", "gemm_bias_relu"))
    body = text[
        text.index("template <bool aligned>\nstatic __device__ void gemm_bias_relu_block") :
    ]
    body = body[: body.index("\n}\n") + 2]
    readme = README.read_text()
    shown = BLOCK.search(readme)
    assert shown
    if pytestconfig.getoption("--update-golden"):
        README.write_text(readme.replace(shown[0], body))
    else:
        assert shown[0] == body, "write it anew with: pytest tests/look --update-golden"


def test_program() -> None:
    shown = SOURCE.search(README.read_text())
    assert shown
    lines = [" " * 8 + line if line else "" for line in shown[0].split("\n")]
    assert "\n".join(lines) in (SAMPLES / "gemm_bias_relu.py").read_text()
