"""Several launches in one function, conditional ones, and scratch memory (language.md 5.2, 6)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from language_programs import CUDA, HIP, checked, empty, text_of, values, written
from tile2c.transpile import pipeline
from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.stage.defines import parse_defines

SEVERAL = """
@T.prim_func
def total(
    X: T.Tensor((20, 33), "float32"), P: T.Tensor((20,), "float32"),
    O: T.Tensor((1,), "float32"), n: T.int32,
):
    with T.Kernel(20, threads=64) as bx:
        x = T.alloc_fragment((33,), "float32")
        s = T.alloc_fragment((1,), "float32")
        T.copy(X[bx, 0], x)
        T.reduce_sum(x, s, dim=0)
        P[bx] = s[0]
    with T.Kernel(1, threads=32) as bx:
        x = T.alloc_fragment((20,), "float32")
        s = T.alloc_fragment((1,), "float32")
        T.copy(P, x)
        T.reduce_sum(x, s, dim=0)
        O[0] = s[0]
    if n > 3:
        with T.Kernel(1, threads=32) as bx:
            tx = T.get_thread_binding()
            if tx == 0:
                O[0] = O[0] + 1
"""
SCRATCH = """
@T.prim_func
def turned(X: T.Tensor((N, 33), "float32"), O: T.Tensor((N, 33), "float32")):
    with T.Kernel(N // 10, threads=64) as bx:
        h = T.alloc_global((3, 5), "float16")
        g = T.alloc_global((N, 33), "float32")
        if bx == 0:
            for i, j in T.Parallel(3, 5):
                h[i, j] = 1
        for i, j in T.Parallel(10, 33):
            g[bx * 10 + i, j] = X[bx * 10 + i, j] * 2
        for i, j in T.Parallel(10, 33):
            O[bx * 10 + i, j] = g[bx * 10 + 9 - i, j] * 2
"""


@pytest.mark.parametrize("target", [CUDA, HIP])
@pytest.mark.parametrize("n", [5, 2])
def test_launches_in_order(tmp_path: Path, target: str, n: int) -> None:
    x = values((20, 33))
    found = checked(tmp_path, SEVERAL, {"X": x, "P": empty(20), "O": empty(1), "n": n}, target)
    assert np.isclose(found["O"][0], x.sum() + (n > 3), rtol=1e-4)


def test_the_manifest_of_several_launches(tmp_path: Path) -> None:
    text = text_of(tmp_path, SEVERAL)
    manifest = json.loads((tmp_path / "out" / "tile2c.json").read_text())
    (kernel,) = manifest["kernels"]
    launches = kernel["launch"]
    assert [launch["entry"] for launch in launches] == ["total", "total_O", "total_third"]
    assert [launch["group"] for launch in launches] == [0, 1, 2]
    assert [launch["when"] for launch in launches] == [None, None, "n > 3"]
    assert [arg["name"] for arg in launches[1]["args"]] == ["P", "O"]
    assert {arg["name"]: arg.get("role") for arg in kernel["args"]} == {
        "X": "in", "P": "inout", "O": "inout", "n": None,
    }  # fmt: skip
    assert all(f" {launch['entry']}(" in text for launch in launches)


def test_launches_are_never_there_together(tmp_path: Path) -> None:
    """What a block takes of shared memory is what its own launch takes."""
    launch = """
    with T.Kernel(1, threads=64) as bx:
        x = T.alloc_shared((64, 96), "float32")
        T.copy(X, x)
        T.copy(x, {})
"""
    head = """
@T.prim_func
def twice(
    X: T.Tensor((64, 96), "float32"), P: T.Tensor((64, 96), "float32"),
    Y: T.Tensor((64, 96), "float32"),
):"""
    text = head + launch.format("P") + launch.format("Y")
    request = pipeline.Request(
        inputs=(written(tmp_path, text),), targets=(HIP,), defines=parse_defines(())
    )
    heard = Diagnostics()
    (kernel,) = pipeline.generate(request, heard)
    assert kernel.resources is not None
    assert kernel.resources.local_bytes == 64 * 96 * 4
    assert not heard.items


@pytest.mark.parametrize("target", [CUDA, HIP])
@pytest.mark.parametrize("n", ["50", "dynamic"])
def test_scratch_memory(tmp_path: Path, target: str, n: str) -> None:
    head = 'N = T.dynamic("N")\n\n' if n == "dynamic" else "N = 50\n\n"
    checked(tmp_path, head + SCRATCH, {"X": values((50, 33)), "O": empty((50, 33))}, target)
    manifest = json.loads((tmp_path / "out" / "tile2c.json").read_text())
    assert manifest["kernels"][0]["workspace"]["align"] == 256
