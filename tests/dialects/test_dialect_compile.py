"""Texts of dialects whose compilers nobody has here, through compilers that are near, with stub headers.

clang for AMD's chips takes those of waves of 64; nvcc takes those that resemble CUDA. Types and syntax
are checked, of matrix builtins the operands; assembler of other vendors passes unread.
All texts: `pytest -m slow tests/dialects/test_dialect_compile.py`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from text_compilers import CLANG, LIKE_CUDA, NVCC, WAVES, clang_command, nvcc_command
from tile2c.transpile.cli.main import main

SAMPLES = Path(__file__).parents[2] / "samples"
PRODUCTS = SAMPLES.parent / "tests" / "hip" / "gemms.py"
# source and defines of each text
TEXTS: dict[str, tuple[Path, tuple[str, ...]]] = {
    "softmax": (SAMPLES / "softmax.py", ()),
    "gemm_bias_relu": (SAMPLES / "gemm_bias_relu.py", ()),
    "bfloat16": (PRODUCTS, ("dtype=bfloat16", "out_dtype=bfloat16")),
}
CHOSEN = [
    "gemm_bias_relu",
    *(pytest.param(text, marks=pytest.mark.slow) for text in TEXTS if text != "gemm_bias_relu"),
]


def some(targets: Iterable[str]) -> list[Any]:
    """The targets, those that differ least from others marked slow."""
    often = ("dcu:gfx936", "maca:xcore1000", "musa:mp_31", "musa:mp_22", "ppu:ppu_15")
    return [t if t in often else pytest.param(t, marks=pytest.mark.slow) for t in targets]


def written(folder: Path, target: str, text: str) -> Path:
    source, defines = TEXTS[text]
    chosen = [word for define in defines for word in ("-D", define)]
    assert main([str(source), "-o", str(folder), "--target", target, *chosen]) == 0
    (path,) = (x for x in folder.iterdir() if x.suffix not in (".json", "") and x.is_file())
    return path


def passes(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]


@pytest.mark.skipif(CLANG is None, reason="needs clang-22 (Debian: apt install clang-22)")
@pytest.mark.parametrize("text", CHOSEN)
@pytest.mark.parametrize("target", some(WAVES))
def test_through_clang(tmp_path: Path, target: str, text: str) -> None:
    path = written(tmp_path, target, text)
    assembly = tmp_path / "text.s"
    passes(clang_command(target, path, assembly))
    unit = text != "softmax" and target not in ("dcu:gfx926", "corex:ivcore11")
    assert ("v_mfma" in assembly.read_text()) == unit


@pytest.mark.skipif(NVCC is None, reason="needs nvcc of CUDA 12 or later")
@pytest.mark.parametrize("text", CHOSEN)
@pytest.mark.parametrize("target", some(LIKE_CUDA))
def test_through_nvcc(tmp_path: Path, target: str, text: str) -> None:
    path = written(tmp_path, target, text)
    passes(nvcc_command(target, path, tmp_path / "text.ptx"))
    if text != "softmax" and target != "musa:mp_21":
        made = (tmp_path / "text.ptx").read_text()
        assert ("__musa_" if target.startswith("musa") else "ppu.tc") in made
