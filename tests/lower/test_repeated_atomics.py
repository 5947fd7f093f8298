"""Sums of a block's statement: every thread adds, and the author is told how often."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tile2c.transpile import lower, pipeline, targets
from tile2c.transpile.cli.generate import parsed_defines
from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.ir import interpret
from tile2c.transpile.ir.forms import Function

HEAD = """\
import tilelang
import tilelang.language as T


@tilelang.jit
def total(M):
    @T.prim_func
    def main(X: T.Tensor((M,), "float32"), S: T.Tensor((64,), "float32")):
        with T.Kernel(T.ceildiv(M, 64), threads=64) as bx:
            tx = T.get_thread_binding()
            x = T.alloc_fragment((64,), "float32")
            s = T.alloc_fragment((1,), "float32")
            own = T.alloc_local((1,), "float32")
            own[0] = tx
            T.copy(X[bx * 64], x)
            T.reduce_sum(x, s)
"""
TOLD = [
    "T.atomic_add(S[0], s[0])",
    "for k in T.serial(2):\n    T.atomic_add(S[k], s[0])",
    "if bx == 0:\n    T.atomic_add(S[bx], s[0])",
]
UNTOLD = [
    "for i in T.Parallel(1):\n    T.atomic_add(S[i], s[i])",
    "if tx == 0:\n    T.atomic_add(S[0], s[0])",
    "T.atomic_add(S[tx], s[0])",
    "T.atomic_add(S[0], own[0])",
    "where = tx // 2\nT.atomic_add(S[where], s[0])",
    "T.atomic_max(S[0], s[0])",
    "for k in T.serial(tx, 64):\n    T.atomic_add(S[k], s[0])",
]


def built(statement: str, folder: Path) -> tuple[Function, list[str]]:
    """The function, and what lowering says of repeated sums."""
    path = folder / "total.py"
    lines = "".join(f"            {line}\n" for line in statement.splitlines())
    path.write_text(f"{HEAD}{lines}\n    return main\n")
    request = pipeline.Request(inputs=(path,), targets=("cuda:sm_80",), defines=parsed_defines(()))
    diagnostics = Diagnostics()
    found = [function for _, function in pipeline.functions(request, diagnostics)]
    assert found, diagnostics.items
    assert lower.lower(found[0], targets.find("cuda:sm_80"), diagnostics), diagnostics.items
    return found[0], [item.message for item in diagnostics.items if item.code == "T2C414"]


@pytest.mark.parametrize("statement", TOLD)
def test_told_with_the_number(statement: str, tmp_path: Path) -> None:
    _, (message,) = built(statement, tmp_path)
    assert "64 threads" in message and "64 times" in message


@pytest.mark.parametrize("statement", UNTOLD)
def test_what_differs_between_threads_is_meant(statement: str, tmp_path: Path) -> None:
    assert built(statement, tmp_path)[1] == []


@pytest.mark.parametrize(("statement", "times"), [(TOLD[0], 64), (UNTOLD[0], 1), (UNTOLD[1], 1)])
def test_the_interpreter_adds_as_often_as_threads_do(
    statement: str, times: int, tmp_path: Path
) -> None:
    function, _ = built(statement, tmp_path)
    arguments = {"X": np.ones(64, np.float32), "S": np.zeros(64, np.float32)}
    assert interpret.run(function, arguments)["S"][0] == 64 * times
