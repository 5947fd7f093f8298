"""Programs in, diagnostics and texts out, in this process: the attacks' common ground."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.output.generated import GeneratedKernel
from tile2c.transpile.pipeline import Request, generate
from tile2c.transpile.stage import parse_defines

ELEMENTS = """
import tilelang.language as T

def make(N=None):
    {before}

    @T.prim_func
    def kern({params}):
        with T.Kernel({grid}, threads={threads}) as {blocks}:
            {body}

    return kern
"""
PLAIN = {
    "before": 'N = T.dynamic("N")',
    "params": 'A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")',
    "grid": "T.ceildiv(N, 128)",
    "threads": "128",
    "blocks": "bx",
    "body": "for i in T.Parallel(128):\n                B[bx * 128 + i] = A[bx * 128 + i]",
}


def elements(**parts: str) -> str:
    """A program of one kernel over elements, with some of its parts exchanged."""
    return ELEMENTS.format(**(PLAIN | parts))


def transpiled(
    folder: Path, text: str, target: str = "cuda:sm_80", defines: Sequence[str] = ()
) -> tuple[list[GeneratedKernel], list[tuple[str, int, str]]]:
    """The kernels, and every diagnostic as (code, line, message)."""
    path = folder / "input.py"
    path.write_text(text, encoding="utf-8")
    diagnostics = Diagnostics()
    request = Request(inputs=(path,), targets=(target,), defines=parse_defines(tuple(defines)))
    kernels = generate(request, diagnostics)
    told = [(d.code, d.span.line if d.span else 0, d.message) for d in diagnostics.items]
    return list(kernels), told
