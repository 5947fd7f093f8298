"""`T.assume` holds for a whole launch only where every block comes by it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tile2c
from normal_text import body, built

SOURCE = """
import tilelang
import tilelang.language as T


@tilelang.jit
def scale(N):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32"), w: T.int32):
        with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
            x = T.alloc_fragment((128,), "float32")
            {before}
            if bx < w:
                {inside}
                T.copy(A[bx * 128], x)
                T.copy(x, B[bx * 128])
            else:
                T.copy(A[bx * 128], x)
                T.copy(x, B[bx * 128])

    return main


scale(T.dynamic("N"))
"""
TARGETS = ("cuda:sm_80", "hip:gfx942", "ascendc", "bang")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("said", ["bx * 128 + 128 <= N", "N % 128 == 0"])
def test_what_is_assumed_under_a_condition_holds_there_alone(
    tmp_path: Path, said: str, target: str
) -> None:
    path, folder = tmp_path / "scale.py", tmp_path / "out"
    path.write_text(SOURCE.format(before="pass", inside=f"T.assume({said})"))
    tile2c.build(path, folder, target, {}, backend="emulate", force=True)
    (kernel,) = tile2c.load(folder, "emulate", check="races,memory").values()
    assert not any("N" in condition for condition in kernel.record.requires)
    a = np.arange(200, dtype=np.float32)
    b = np.zeros(200, np.float32)
    kernel(a, b, 1 if said.startswith("bx") else 0)
    assert np.array_equal(a, b)


def test_what_every_block_assumes_is_a_promise(tmp_path: Path) -> None:
    for name, before, promised in (
        ("always", "T.assume(N % 128 == 0)", True),
        ("behind", "if w > bx: T.thread_return()\n            T.assume(N % 128 == 0)", False),
        ("loop", "for i in T.serial(w): T.assume(N % 128 == 0)", False),
    ):
        path = tmp_path / f"{name}.py"
        path.write_text(SOURCE.format(before=before, inside="pass"))
        tile2c.build(path, tmp_path / name, "cuda:sm_80", {}, backend="emulate", force=True)
        (kernel,) = tile2c.load(tmp_path / name, "emulate").values()
        assert ("N % 128 == 0" in kernel.record.requires) == promised, name


LEAST = "if bx > 2:\n    at = S[bx]\n    T.assume(at {})\n    A[at] = 1"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (LEAST.format(">= 0"), True),
        (LEAST.format("> -1"), True),
        (LEAST.format("<= 63"), False),  # with at >= 64 it would say that nobody comes here
        (LEAST.format("+ bx >= 3"), False),
        ("if bx > 2:\n    at = bx - 1\n    T.assume(at >= 0)\n    A[at] = 1", False),
        ("for k in T.serial(4):\n    at = S[k]\n    T.assume(at >= 0)\n    A[at] = 1", True),
        (
            "for k in T.serial(4):\n    at = S[k]\n    if at < 0:\n        continue\n"
            "    T.assume(at >= 0)\n    A[at] = 1",
            False,
        ),
        ("at = S[bx]\nT.assume(at + bx <= 63)\nA[at] = 1", True),
        ("at = S[bx]\nif at < 0:\n    T.thread_return()\nT.assume(at >= 0)\nA[at] = 1", False),
        ("T.assume(bx * 2 <= 64)\nA[bx] = 1", True),
        ("if bx > 2:\n    T.assume(bx * 2 <= 64)\n    A[bx] = 1", False),
    ],
)
def test_of_names_that_are_bound_under_a_condition_only_their_least_value_is_kept(
    text: str, kept: bool
) -> None:
    params = "A: T.Tensor((64,), T.float32), S: T.Tensor((64,), T.int32)"
    (launch,) = built(body(text, params)).launches
    assert bool(launch.promises) is kept


@pytest.mark.parametrize(("said", "kept"), [("", True), ("if M > 4:\n        ", False)])
def test_sizes_are_promised_where_the_launch_is_not_under_a_condition(
    said: str, kept: bool
) -> None:
    inner = " " * (12 if said else 8)
    text = (
        'M = T.dynamic("M")\n@T.prim_func\ndef kernel(A: T.Tensor((M,), T.float32)):\n'
        f"    {said}with T.Kernel(1, threads=32) as bx:\n{inner}T.assume(M % 2 == 0)\n{inner}A[bx] = 1\n"
    )
    assert bool(built(text).assumptions) is kept
    outside = text.replace("with T.Kernel", "T.assume(M > 1)\n" + inner[4:] + "with T.Kernel")
    assert len(built(outside).assumptions) == (2 if kept else 0)
