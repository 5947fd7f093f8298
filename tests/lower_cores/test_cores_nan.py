"""Heads of kernels say what the vector unit makes of NaN, where a kernel may meet it."""

from __future__ import annotations

from pathlib import Path

import pytest
from cores_harness import HEADER, lowered

FRAME = """
@tilelang.jit
def extreme(N=256):
    @T.prim_func
    def main(X: T.Tensor((N,), "{dtype}"), Y: T.Tensor((N,), "{dtype}"), Z: T.Tensor((1,), "{dtype}")):
        with T.Kernel(1, threads=64) as bx:
            x = T.alloc_fragment((N,), "{dtype}")
            r = T.alloc_fragment((1,), "{dtype}")
            T.copy(X, x)
            {statement}
            T.reduce_sum(x, r)
            T.copy(x, Y)
            T.copy(r, Z)

    return main
"""
MAXIMUM = "for i in T.Parallel(N): x[i] = T.max(x[i], 0.5)"
CLAMP = "for i in T.Parallel(N): x[i] = T.clamp(x[i], -1.0, 2.0)"
SUM = "for i in T.Parallel(N): x[i] = x[i] + 1"
REDUCED = "T.reduce_max(x, r)"
UNKNOWN = "no document says what Max, Min and their reductions make of it"
FIRST = "max and min of NaN and a number are the first operand"
POOLS = "of pools nothing is documented"


def heads(tmp_path: Path, dtype: str, statement: str, target: str) -> list[str]:
    path = tmp_path / "extreme.py"
    path.write_text(HEADER + FRAME.format(dtype=dtype, statement=statement), "utf-8")
    text = lowered(path, {}, target).text
    assert text
    return [line[12:] for line in text.split("\n") if line.startswith("//   NaN")]


@pytest.mark.parametrize(
    ("target", "statement", "said"),
    [
        ("ascendc:ascend910b", MAXIMUM, [UNKNOWN]),
        ("ascendc:ascend910b", CLAMP, [UNKNOWN]),
        ("ascendc:ascend910b", REDUCED, [UNKNOWN]),
        ("ascendc:ascend910b", SUM, []),
        ("bang:mtp_372", MAXIMUM, [FIRST]),
        ("bang:mtp_372", REDUCED, [POOLS]),
        ("bang:mtp_372", SUM, []),
    ],
)
def test_head_tells(target: str, statement: str, said: list[str], tmp_path: Path) -> None:
    found = heads(tmp_path, "float32", statement, target)
    assert [line.strip() for line in found] == said


def test_integers_have_no_nan(tmp_path: Path) -> None:
    text = "for i in T.Parallel(N): x[i] = T.max(x[i], 5)"
    frame = FRAME.replace("            T.reduce_sum(x, r)\n", "            T.fill(r, 0)\n")
    path = tmp_path / "extreme.py"
    path.write_text(HEADER + frame.format(dtype="int32", statement=text), "utf-8")
    assert "//   NaN" not in lowered(path, {}).text


@pytest.mark.parametrize("target", ["ascendc:ascend910b", "bang:mtp_372"])
def test_reductions_that_keep_nan_are_refused(target: str, tmp_path: Path) -> None:
    path = tmp_path / "extreme.py"
    statement = "T.reduce_max(x, r, nan_propagate=True)"
    path.write_text(HEADER + FRAME.format(dtype="float32", statement=statement), "utf-8")
    form = lowered(path, {}, target)
    (found,) = form.diagnostics.items
    assert found.code == "T2C526" and found.help is not None
