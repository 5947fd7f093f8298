"""T.device_assert and T.print: what threads check and print while the kernel runs."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import tile2c
from language_programs import CUDA, HIP, checked, written
from tile2c.runtime.errors import KernelError

PROGRAM = """
@T.prim_func
def main(X: T.Tensor((64, 32), "float16"), Y: T.Tensor((64, 32), "float32"), n: T.int32):
    with T.Kernel(2, threads=128) as bx:
        tx = T.get_thread_binding()
        s = T.alloc_shared((32, 32), "float16")
        f = T.alloc_fragment((32, 32), "float32")
        T.copy(X[bx * 32, 0], s)
        T.device_assert(n > 0, "n is positive")
        for i, j in T.Parallel(32, 32):
            assert s[i, j] >= 0, "no negative input"
            f[i, j] = s[i, j] * 2
        m = T.alloc_fragment((32,), "float32")
        T.reduce_max(f, m, dim=1)
        if tx == 3:
            T.print(n, "the count")
        T.print(s[0:2, 0:2])
        T.print(m, msg="largest")
        T.copy(f, Y[bx * 32, 0])
"""


def arguments(n: int = 3) -> dict[str, object]:
    x = (np.arange(64 * 32).reshape(64, 32) % 7).astype(np.float16)
    return {"X": x, "Y": np.zeros((64, 32), np.float32), "n": n}


@pytest.mark.parametrize("target", [CUDA, HIP, "cuda:sm_90a"])
def test_prints_once_for_each_element(
    tmp_path: Path, target: str, capfd: pytest.CaptureFixture[str]
) -> None:
    checked(tmp_path, PROGRAM, arguments(), target)
    lines = capfd.readouterr().out.splitlines()
    who = Counter(re.sub(r"thread \d+: ", "", line) for line in lines)
    assert set(who.values()) == {1}  # nothing is printed twice
    assert {f"block {block} the count = 3" for block in (0, 1)} <= set(who)
    assert {f"block 0 s[{i}, {j}] = {(32 * i + j) % 7}" for i in (0, 1) for j in (0, 1)} <= set(who)
    assert {f"block 1 largest: m[{i}] = 12" for i in range(32)} <= set(who)
    assert len(lines) == 2 * (1 + 4 + 32)


@pytest.mark.parametrize("target", [CUDA, HIP])
def test_an_assertion_stops_the_kernel_where_it_stands(tmp_path: Path, target: str) -> None:
    path = written(tmp_path, PROGRAM)
    (kernel,) = tile2c.build(path, tmp_path / "out", target, backend="emulate").values()
    given = arguments()
    given["X"][40, 3] = -1  # type: ignore[index]
    for broken, words in ((given, "no negative input"), (arguments(0), "n is positive")):
        with pytest.raises(KernelError) as caught:
            kernel(**broken)
        assert caught.value.file is not None and caught.value.line is not None
        line = Path(caught.value.file).read_text().splitlines()[caught.value.line - 1]
        assert "trap()" in line and line.endswith(f"// {words}")


def test_cores_refuse_both(tmp_path: Path) -> None:
    path = written(tmp_path, re.sub(r".*\btx\b.*\n(?: {12}.*\n)?", "", PROGRAM))
    with pytest.raises(tile2c.TranspileError) as caught:
        tile2c.build(path, tmp_path / "out", "ascendc:ascend910b", backend="emulate")
    assert "an assertion asks for single elements" in str(caught.value)
