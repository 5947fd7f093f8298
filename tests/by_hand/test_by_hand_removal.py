"""Every wait, arrival, fence and barrier of a schedule is missed where it is taken out."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import pytest
import tile2c
from by_hand_cases import CASES, TARGET, build, expected, inputs, near
from defects import switched
from tile2c.runtime.errors import KernelError

ORDERS = ("barrier", "wait", "commit", "arrival", "fence")
# Nothing depends on what the blocks of the cluster wait for here.
HARMLESS = {"clustered": ("cluster_wait();",)}


@pytest.mark.parametrize("case", [case for case in CASES if case not in ("turned", "wide_rows")])
def test_everything_taken_out_of_a_schedule_is_reported(tmp_path: Path, case: str) -> None:
    os.environ.setdefault("TILE2C_EMULATE_SECONDS", "20")
    path = build(case, tmp_path)
    text, defects = switched(path.read_text())
    path.write_text(text)
    (kernel,) = tile2c.load(tmp_path, "emulate", target=TARGET, check="races,memory").values()
    library = kernel.prepare().library  # type: ignore[attr-defined]
    switch = ctypes.c_int.in_dll(ctypes.CDLL(str(library)), "removed_thing")
    given = inputs(case)
    want = expected(case, given)

    def reported() -> bool:
        try:
            return not near(kernel(*[x.copy() for x in given]), want)
        except KernelError:
            return True

    assert not reported()
    missed = []
    for defect in defects:
        if defect.kind not in ORDERS or defect.what in HARMLESS.get(case, ()):
            continue
        switch.value = defect.number
        if not reported():
            missed.append(str(defect))
    assert missed == []
