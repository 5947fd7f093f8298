"""Programs made by chance: run with both checks on, each equals its meaning or is refused at a place.

Ten thousand of them, about an hour on two cores:
    pytest -m slow tests/random_programs -n 2
A seed that fails is made again by `python tests/random_programs/show_program.py SEED [TARGET]`, which
leaves out statements for as long as it still fails.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_harness import run_batch, run_programs, transpiled
from tile_programs import made

CUDA, HOPPER, HIP, ASCEND = "cuda:sm_80", "cuda:sm_90a", "hip:gfx942", "ascendc:ascend910b"
# target, first seed, programs, and how many of them may be refused
BATCHES = [
    (CUDA, 0, 60, 0),
    (CUDA, 5000, 60, 0),
    (HOPPER, 100, 30, 0),
    (HIP, 200, 50, 15),
    (ASCEND, 300, 60, 58),
]
WHOLE, STEP = 10_000, 100


def check(target: str, seeds: range, refused: int, folder: Path) -> None:
    outcomes = run_batch(seeds, target, folder)
    wrong = [outcome for outcome in outcomes if outcome.kind not in ("ok", "refused")]
    assert not wrong, "\n\n".join(map(str, wrong))
    counts = Counter(outcome.kind for outcome in outcomes)
    told = [outcome.detail for outcome in outcomes if outcome.kind == "refused"]
    assert counts["refused"] <= refused, "\n".join(told)


@pytest.mark.parametrize(("target", "first", "count", "refused"), BATCHES)
def test_programs(tmp_path: Path, target: str, first: int, count: int, refused: int) -> None:
    check(target, range(first, first + count), refused, tmp_path)


@given(st.randoms(use_true_random=False))
@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_every_program_is_transpiled_or_refused_at_a_place(
    tmp_path_factory: pytest.TempPathFactory, random: Random
) -> None:
    """Hypothesis looks for the corners of the choices; nothing is compiled here."""
    program = made(random, "k0")
    found = transpiled(0, program, CUDA, tmp_path_factory.mktemp("program"))
    assert found is None or found.kind == "refused", str(found)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, WHOLE, STEP))
def test_ten_thousand_programs(tmp_path: Path, first: int) -> None:
    """Of a hundred, ten go to HIP and ten to Hopper."""
    check(CUDA, range(first, first + 80), 2, tmp_path)
    check(HIP, range(first + 80, first + 90), 6, tmp_path)
    check(HOPPER, range(first + 90, first + STEP), 2, tmp_path)


@pytest.mark.slow
@given(st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
def test_one_program_at_a_time(tmp_path_factory: pytest.TempPathFactory, random: Random) -> None:
    """Each is compiled alone, so hypothesis can make a failing one smaller."""
    program = made(random, "k0")
    (found,) = run_programs([(0, program)], CUDA, tmp_path_factory.mktemp("program"))
    assert found.kind in ("ok", "refused"), str(found)
