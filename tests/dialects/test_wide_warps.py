"""Reductions, scans, shuffles and atomics of the suite on warps of 64 and of 128 lanes.

All of them: `pytest -m slow tests/dialects/test_wide_warps.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import tile2c
from suite_cases import Case, cases
from tile2c.transpile.targets import find

# 64 lanes and masks of 64 bits; 128 lanes that work together by 32; 64 lanes, HIP's functions.
WIDE = ("corex:ivcore11", "maca:xcore1000", "musa:mp_22", "dcu:gfx936")
CASES = list(cases())
FIRST = list({case.function: case for case in reversed(CASES)}.values())[::-1]
IN_TURN = [(case, WIDE[number % 2 * 2]) for number, case in enumerate(FIRST)]


def run(case: Case, folder: Path, target: str) -> None:
    """The case, unless the chip's documents do not say how some of the threads could meet."""
    if "shuffles_and_votes" in case.name and not target.startswith("musa"):
        pytest.skip("lane numbers and votes are those of wider warps")
    if "stay_in_registers[(4, 512)-float32-cumsum-256" in case.name and target.startswith("musa"):
        pytest.skip("its rows lie over 64 lanes, and lanes work together by 32")
    if "bytes_of_an_operand[48" in case.name and target.startswith("corex"):
        pytest.skip("its tiles fit side by side, and the case asks that they share bytes")
    corex = "elements_and_tiles[float16-add" in case.name and target.startswith("corex")
    either = "elements_and_tiles[bfloat16-min" in case.name and target[:5] in ("corex", "musa:")
    if corex or either:
        pytest.skip(
            "the 32 bits around the last element are half outside: the checks do not allow it"
        )
    if "some_threads" in case.name and not getattr(find(target), "lanes_meet"):  # noqa: B009
        with pytest.raises(tile2c.TranspileError, match="T2C506"):
            case.run(folder, target)
        return
    if "bytes_of_an_operand[160" in case.name:
        with pytest.raises(tile2c.TranspileError, match="T2C401"):  # 160 KiB, more than a block has
            case.run(folder, target)
        return
    case.run(folder, target)


@pytest.mark.parametrize(("case", "target"), IN_TURN, ids=str)
def test_one_of_each_kind(tmp_path: Path, case: Case, target: str) -> None:
    run(case, tmp_path, target)


@pytest.mark.slow
@pytest.mark.parametrize("target", WIDE)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_case(tmp_path: Path, case: Case, target: str) -> None:
    run(case, tmp_path, target)
