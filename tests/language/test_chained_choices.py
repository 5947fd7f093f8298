"""Choices one after the other: `elif` stays one, and no comment repeats a condition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from language_programs import CUDA, HIP, checked, empty, text_of, values

CHAIN = """
@T.prim_func
def chain(X: T.Tensor((200,), "float32"), Y: T.Tensor((200,), "float32"), mode: T.int32):
    with T.Kernel(2, threads=128) as bx:
        if mode == 0:
            for i in T.Parallel(128):
                Y[bx * 128 + i] = X[bx * 128 + i]
        elif mode == 1:
            for i in T.Parallel(128):
                Y[bx * 128 + i] = X[bx * 128 + i] * 2
        else:
            for i in T.Parallel(128):
                Y[bx * 128 + i] = X[bx * 128 + i] * 3
"""
TARGETS = [CUDA, HIP, "ascendc:ascend910b", "bang:mtp_592"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_each_way_of_a_chain(tmp_path: Path, target: str, mode: int) -> None:
    x = values(200)
    found = checked(tmp_path, CHAIN, {"X": x, "Y": empty(200), "mode": mode}, target)
    assert np.array_equal(found["Y"], x * (mode + 1))


@pytest.mark.parametrize("target", TARGETS)
def test_an_elif_stays_one(tmp_path: Path, target: str) -> None:
    text = text_of(tmp_path, CHAIN, target)
    assert "} else if (mode == 1) {\n" in text
    assert text.count("} else {\n") == 1
    assert "// if" not in text and "// elif" not in text
