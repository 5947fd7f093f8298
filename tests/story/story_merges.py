"""Versions of one kernel as its source changes, and edits as people make them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tile2c.transpile import pipeline
from tile2c.transpile.cli.generate import parsed_defines
from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.output.generated import GeneratedKernel
from tile2c.transpile.output.scope import Policy, Scope
from tile2c.transpile.output.write import write_folder

SOURCE = (Path(__file__).parents[2] / "samples/gemm_bias_relu.py").read_text()
SCOPE = Scope(tile2c="0.1.0", sources=("gemm.py",), targets=("cuda:sm_80",))

Change = Callable[[str], str]


def replaced(old: str, new: str) -> Change:
    def change(text: str) -> str:
        assert old in text, old
        return text.replace(old, new)

    return change


COPY_A = "                T.copy(A[by * block_M, ko * block_K], A_shared)\n"
COPY_B = "                T.copy(B[ko * block_K, bx * block_N], B_shared)\n"

# What happens to a tile program.
CHANGES: dict[str, Change] = {
    "nothing": lambda text: text,
    "depth": replaced("num_stages=3", "num_stages=2"),
    "deeper": replaced("num_stages=3", "num_stages=5"),
    "tile": replaced("block_K=32", "block_K=64"),
    "threads": replaced("threads=128", "threads=256"),
    "renamed": replaced("C_local", "acc"),
    "renamed tensor": lambda text: text.replace("bias[", "offset[").replace("bias:", "offset:"),
    "moved": lambda text: (
        text.replace("import tilelang\n", "import os\nimport tilelang\n", 1)
        + "\n\ndef later():\n    pass\n"
    ),
    "arithmetic": replaced("T.max(C_local[i, j] +", "T.max(C_local[i, j] * 2 +"),
    "statement": replaced(
        "            T.copy(C_local, C",
        "            for i, j in T.Parallel(block_M, block_N):\n"
        "                C_local[i, j] = T.min(C_local[i, j], 6)\n"
        "            T.copy(C_local, C",
    ),
    "argument": lambda text: text.replace(
        "        C: T.Tensor", "        scale: T.float32,\n        C: T.Tensor"
    ).replace("T.max(C_local[i, j]", "T.max(scale * C_local[i, j]"),
    "swapped": replaced(COPY_A + COPY_B, COPY_B + COPY_A),
    "comment": replaced("# Bias and activation are", "# Bias and ReLU are"),
}

# What people do to a kernel: each stands in any version of it.
EDITS: dict[str, Change] = {
    "header": replaced("//   sizes ", "//   owner    the team of linear layers\n//   sizes "),
    "title": lambda text: "// SPDX-License-Identifier: MIT\n" + text,
    "include": replaced("#include <cuda_fp16.h>\n", "#include <cuda_fp16.h>\n#include <cuda.h>\n"),
    "helper": replaced("// `n` neighbours that move", "// Mine: n neighbours that move"),
    "fast path": lambda text: re.sub(
        r"^( *__syncthreads\(\);\n)( *if)", r"\1        __nanosleep(20);\n\2", text, flags=re.M
    ),
    "loop": lambda text: re.sub(r"^( *)(// T\.gemm\()", r"\1// By hand.\n\1\2", text, flags=re.M),
    "end": lambda text: text + "// The end.\n",
}  # fmt: skip


@cache
def generated(change: str, target: str = "cuda:sm_80") -> GeneratedKernel:
    """The kernel after a change of its source."""
    return generated_from(CHANGES[change](SOURCE), target)


@cache
def generated_from(source: str, target: str = "cuda:sm_80") -> GeneratedKernel:
    """The only kernel of a program that lies in a file `gemm.py`."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "gemm.py")
        path.write_text(source)
        diagnostics = Diagnostics()
        request = pipeline.Request(inputs=(path,), targets=(target,), defines=parsed_defines(()))
        (kernel,) = pipeline.generate(request, diagnostics)
        assert not diagnostics.failed
        return kernel


def write(folder: Path, kernel: GeneratedKernel, **policy: bool) -> list[str]:
    """A run of the command with one kernel; the codes of what it says."""
    diagnostics = Diagnostics()
    write_folder(folder, [kernel], SCOPE, Policy(**policy), diagnostics)
    return [item.code for item in diagnostics.items]
