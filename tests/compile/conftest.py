"""The CUDA compiler, and one folder with the texts it gets."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MATRICES = (
    "batched_gemm", "split_k_gemm", "int4_gemm", "conv2d", "flash_attention", "gqa_attention",
    "varlen_attention",
)  # fmt: skip
ROWS = (
    "rms_norm", "layer_norm", "online_softmax", "column_sum", "transpose_scale_bias", "gemv", "cumsum",
    "quantize_fp8", "top_k",
)  # fmt: skip


@dataclass(frozen=True)
class Compiled:
    """What ptxas says of each kernel of a file."""

    registers: tuple[int, ...]
    stack: int  # bytes of the largest frame: registers that were given an address
    spills: int  # bytes stored and loaded
    said: str


class Nvcc:
    """Compiles one file alone in a folder of its own."""

    def __init__(self, program: str) -> None:
        self.program = program

    def __call__(self, text: Path, folder: Path, arch: str, *more: str) -> Compiled:
        """Fails the test with the compiler's words if there is an error or a warning."""
        assert not any(folder.iterdir()), "the kernel has to be alone"
        shutil.copy(text, folder)
        flags = ["-O3", "-std=c++17", "-Werror", "all-warnings", "-Xptxas", "-v", *more]
        done = subprocess.run(
            [self.program, f"-arch={arch}", *flags, "-cubin", text.name, "-o", "kernel.cubin"],
            cwd=folder,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        said = done.stdout + done.stderr
        assert done.returncode == 0, said
        return Compiled(
            registers=tuple(map(int, re.findall(r"Used (\d+) registers", said))),
            stack=max(map(int, re.findall(r"(\d+) bytes stack frame", said))),
            spills=sum(map(int, re.findall(r"(\d+) bytes spill", said))),
            said=said,
        )


@pytest.fixture(scope="session")
def nvcc() -> Nvcc:
    program = shutil.which("nvcc")
    if program is None:
        pytest.skip("nvcc is not on the search path")
    return Nvcc(program)


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of generated CUDA texts by architecture."""
    from tile2c.transpile.cli.main import main

    found = {}
    for arch, names in {
        "sm_80": ("add", "row_sum", "softmax", "gemm", "gemm_bias_relu", *ROWS, *MATRICES),
        "sm_90a": ("gemm", "gemm_bias_relu", *ROWS, *MATRICES),
    }.items():
        found[arch] = tmp_path_factory.mktemp(arch)
        sources = [str(ROOT / "samples" / f"{name}.py") for name in names]
        assert main([*sources, "-o", str(found[arch]), "--target", f"cuda:{arch}"]) == 0
    return found
