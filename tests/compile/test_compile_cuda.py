"""Every CUDA text compiles alone, without warnings, spills or local memory; two link together."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tile2c.transpile.output import header

if TYPE_CHECKING:
    from conftest import Nvcc

NEWER = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
SERIALIZED = re.compile(r"serialized|C75\d\d")  # what ptxas says of products that cannot overlap


@pytest.mark.parametrize("arch", NEWER)
@pytest.mark.parametrize("kernel", ["add", "row_sum", "softmax", "gemm", "gemm_bias_relu"])
def test_ampere_text(
    nvcc: Nvcc, texts: dict[str, Path], kernel: str, arch: str, tmp_path: Path
) -> None:
    """The text for sm_80 compiles for everything newer, too."""
    found = nvcc(texts["sm_80"] / f"{kernel}.cu", tmp_path, arch)
    assert (found.stack, found.spills) == (0, 0), found.said


@pytest.mark.parametrize("kernel", ["gemm", "gemm_bias_relu"])
def test_hopper_text(nvcc: Nvcc, texts: dict[str, Path], kernel: str, tmp_path: Path) -> None:
    found = nvcc(texts["sm_90a"] / f"{kernel}.cu", tmp_path, "sm_90a")
    assert (found.stack, found.spills) == (0, 0), found.said
    assert not SERIALIZED.search(found.said), found.said


MATRICES = (
    "batched_gemm", "split_k_gemm", "int4_gemm", "conv2d", "flash_attention", "gqa_attention",
    "varlen_attention",
)  # fmt: skip


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("kernel", MATRICES)
def test_matrix_operations(
    nvcc: Nvcc, texts: dict[str, Path], arch: str, kernel: str, tmp_path: Path
) -> None:
    found = nvcc(texts[arch] / f"{kernel}.cu", tmp_path, arch)
    assert (found.stack, found.spills) == (0, 0), found.said
    assert not SERIALIZED.search(found.said), found.said


ROWS = (
    "rms_norm", "layer_norm", "online_softmax", "column_sum", "transpose_scale_bias", "gemv", "cumsum",
    "quantize_fp8", "top_k",
)  # fmt: skip
# fp8 has instructions of its own from sm_89 on; the other texts are those for sm_80
ROW_TEXTS = [
    *(("sm_80", kernel) for kernel in ROWS),
    *(("sm_90a", kernel) for kernel in ("rms_norm", "transpose_scale_bias", "quantize_fp8")),
]


@pytest.mark.parametrize(("arch", "kernel"), ROW_TEXTS)
def test_row_operations(
    nvcc: Nvcc, texts: dict[str, Path], arch: str, kernel: str, tmp_path: Path
) -> None:
    found = nvcc(texts[arch] / f"{kernel}.cu", tmp_path, arch)
    assert (found.stack, found.spills) == (0, 0), found.said


def test_header_command(nvcc: Nvcc, texts: dict[str, Path], tmp_path: Path) -> None:
    """The command in a file's header is the one that compiles it."""
    for text in (texts["sm_80"] / "gemm.cu", texts["sm_90a"] / "gemm_bias_relu.cu"):
        folder = tmp_path / text.parent.name
        folder.mkdir()
        shutil.copy(text, folder)
        command = header.compile_command(text.read_text())
        assert command
        subprocess.run(command.split(), cwd=folder, check=True, stdin=subprocess.DEVNULL)
        assert (folder / f"{text.stem}.cubin").stat().st_size > 0


def test_two_kernels_link(nvcc: Nvcc, texts: dict[str, Path], tmp_path: Path) -> None:
    """Everything but the entry points is static, so files go into one library."""
    names = ("gemm", "gemm_bias_relu")
    for name in names:
        shutil.copy(texts["sm_80"] / f"{name}.cu", tmp_path)
        compile_one = [nvcc.program, "-arch=sm_80", "-O3", "-std=c++17", "-Xcompiler", "-fPIC"]
        subprocess.run([*compile_one, "-c", f"{name}.cu"], cwd=tmp_path, check=True)
    objects = [f"{name}.o" for name in names]
    link = [nvcc.program, "-arch=sm_80", "-shared", *objects, "-o", "kernels.so"]
    subprocess.run(link, cwd=tmp_path, check=True)
    symbols = subprocess.run(
        ["nm", "--defined-only", "kernels.so"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    # nvcc hides kernels outside their library; inside it, one launcher of each name is left
    entries = set(re.findall(r" [tT] (gemm\w*)$", symbols, re.MULTILINE))
    assert entries == {"gemm", "gemm_any", "gemm_bias_relu", "gemm_bias_relu_any"}


def test_targets_of_one_family_link(nvcc: Nvcc, tmp_path: Path) -> None:
    """With several targets in a run the exported names end in the architecture."""
    from tile2c.transpile.cli.main import main

    source = Path(__file__).parents[2] / "samples" / "add.py"
    assert main([str(source), "-o", str(tmp_path), "--target", "cuda:sm_80,cuda:sm_90"]) == 0
    for arch in ("sm_80", "sm_90"):
        text = (tmp_path / f"cuda_{arch}" / "add.cu").read_text()
        assert re.search(rf"__global__ .* add_{arch}\(", text)
