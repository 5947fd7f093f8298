"""A reduction whose result only the loop's end is asked for: threads meet once, behind the loop."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from language_programs import CUDA, HIP, checked, empty, text_of, values

ACROSS = re.compile(r"(?:warp|wave|lanes)_(?:sum|max|min)\w*\(|__syncthreads")


def program(body: str, threads: int = 128, shape: str = "(4, 256)", result: str = "(4,)") -> str:
    return f"""
@T.prim_func
def main(X: T.Tensor((64, 64), "float32"), Y: T.Tensor((64,), "float32"), n: T.int32):
    with T.Kernel(1, threads={threads}) as bx:
        x = T.alloc_fragment({shape}, "float32")
        s = T.alloc_fragment({result}, "float32")
{body}
        T.copy(s, Y[0:{result.strip("(),")}])
"""


ONE = """
        T.{fill}
        for k in T.{loop}:
            for i, j in T.Parallel(4, 256):
                x[i, j] = X[k, j % 64] * (i + 1)
            T.reduce_{op}(x, s, dim=1, clear=False)
"""
DOWN = """
        T.clear(s)
        for k in T.serial(n):
            for i, j in T.Parallel(64, 32):
                x[i, j] = X[i, k + j]
            T.reduce_sum(x, s, dim=0, clear=False)
"""
NESTED = """
        T.clear(s)
        for k in T.serial(n):
            for m in T.serial(k):
                for i, j in T.Parallel(4, 256):
                    x[i, j] = X[k + m, j % 64] * (i + 1)
                T.reduce_sum(x, s, dim=1, clear=False)
"""
LOOKED_AT = """
        T.clear(s)
        for k in T.serial(n):
            for i, j in T.Parallel(4, 256):
                x[i, j] = X[k, j % 64] * (i + 1)
            T.reduce_sum(x, s, dim=1, clear=False)
            for i in T.Parallel(4):
                s[i] = s[i] * 0.5
"""
INNER = """
        T.clear(s)
        for k in T.serial(n):
            for m in T.serial(3):
                for i, j in T.Parallel(4, 256):
                    x[i, j] = X[k + m, j % 64] * (i + 1)
                T.reduce_sum(x, s, dim=1, clear=False)
            for i in T.Parallel(4):
                s[i] = s[i] * 0.5
"""
SHRUNK_INSIDE = """
        T.clear(s)
        for k in T.serial(n):
            for m in T.serial(3):
                for i, j in T.Parallel(4, 256):
                    x[i, j] = X[k + m, j % 64] * (i + 1)
                T.reduce_sum(x, s, dim=1, clear=False)
                for i in T.Parallel(4):
                    s[i] = s[i] * 0.5
"""
SOMETIMES = """
        T.clear(s)
        for k in T.serial(n):
            for i, j in T.Parallel(4, 256):
                x[i, j] = X[k, j % 64] * (i + 1)
            if k % 2 == 1:
                T.reduce_sum(x, s, dim=1, clear=False)
"""
SAMES = {
    "sum": program(ONE.format(fill="clear(s)", loop="serial(n)", op="sum")),
    "old value": program(ONE.format(fill="fill(s, 3.5)", loop="serial(n)", op="sum")),
    "max": program(ONE.format(fill="fill(s, -T.infinity('float32'))", loop="serial(n)", op="max")),
    "max of old": program(ONE.format(fill="fill(s, 1.5)", loop="serial(n)", op="max")),
    "whole block": program(ONE.format(fill="clear(s)", loop="serial(n)", op="sum"), 1024),
    "pipelined": program(
        ONE.format(fill="clear(s)", loop="Pipelined(n, num_stages=2)", op="sum"), 64
    ),
    "down": program(DOWN, 256, "(64, 32)", "(32,)"),
    "nested": program(NESTED),
    "looked at": program(LOOKED_AT),
    "inner": program(INNER),
    "shrunk inside": program(SHRUNK_INSIDE),
    "sometimes": program(SOMETIMES),
}


ON_HIP = [(name, HIP) for name in ("old value", "down", "whole block")]


@pytest.mark.parametrize(("case", "target"), [*((name, CUDA) for name in SAMES), *ON_HIP])
def test_late_reductions_mean_the_same(tmp_path: Path, case: str, target: str) -> None:
    for rounds in (0, 5) if target == CUDA else (5,):
        folder = tmp_path / str(rounds)
        folder.mkdir()
        arguments = {"X": values((64, 64)), "Y": empty(64), "n": np.int32(rounds)}
        checked(folder, SAMES[case], arguments, target, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("case", ["sum", "max", "whole block", "down", "nested", "pipelined"])
def test_threads_meet_behind_the_loop(tmp_path: Path, case: str) -> None:
    text = text_of(tmp_path, SAMES[case])
    kernel = text[text.index("__global__") :]
    loop = kernel[kernel.index("// for k in") :]
    inside, after = loop.split("\n    }\n", 1)
    assert not ACROSS.search(inside) and ACROSS.search(after)


@pytest.mark.parametrize("case", ["shrunk inside", "sometimes"])
def test_a_result_that_is_used_in_the_loop_is_whole_there(tmp_path: Path, case: str) -> None:
    text = text_of(tmp_path, SAMES[case])
    loop = text[text.index("// for k in") :].split("\n    }\n", 1)[0]
    assert ACROSS.search(loop)


def test_a_fresh_sum_may_have_a_name(tmp_path: Path) -> None:
    body = """
        p = T.alloc_fragment((4,), "float32")
        T.clear(s)
        for k in T.serial(n):
            for i, j in T.Parallel(4, 256):
                x[i, j] = X[k, j % 64] * (i + 1)
            T.reduce_sum(x, p, dim=1)
            for i in T.Parallel(4):
                new = p[i] * 0.5
                s[i] = s[i] * 0.5 + new
"""
    arguments = {"X": values((64, 64), "float32"), "Y": empty(64), "n": 3}
    checked(tmp_path, program(body), arguments, rtol=1e-4, atol=1e-4)


BY_ITSELF = """
        p = T.alloc_fragment((4,), "float32")
        T.clear(s)
        for k in T.serial(n):
            for i, j in T.Parallel(4, 256):
                x[i, j] = X[k, j % 64] * (i + 1)
            T.reduce_sum(x, p, dim=1)
            for i in T.Parallel(4):
                s[i] = s[i] * p[i] + p[i]
"""
CHANGED = """
        p = T.alloc_fragment((4,), "float32")
        T.clear(s)
        for k in T.serial(n):
            for i, j in T.Parallel(4, 256):
                x[i, j] = X[k, j % 64] * (i + 1)
            T.reduce_sum(x, p, dim=1)
            for i in T.Parallel(4):
                x[i, 0] = 1000.0
                s[i] = s[i] * 0.5 + p[i]
"""


@pytest.mark.parametrize("body", [BY_ITSELF, CHANGED], ids=["by itself", "changed"])
@pytest.mark.parametrize("target", [CUDA, HIP])
def test_sums_that_cannot_join_at_once(tmp_path: Path, body: str, target: str) -> None:
    """Scaled by what was summed, or summed before its source changes."""
    arguments = {"X": values((64, 64)) / 64, "Y": empty(64), "n": 3}
    checked(tmp_path, program(body), arguments, target, rtol=1e-4, atol=1e-4)
