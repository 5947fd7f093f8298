"""Programs made by chance: run with both checks on, each equals its meaning or is refused at a place.

Ten thousand of them, four minutes on 16 cores:
    python tests/random_programs/run_many.py
A seed that fails is made again by `python tests/random_programs/show_program.py SEED [TARGET]`, which
leaves out statements for as long as it still fails.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest
import run_many
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_harness import Outcome, run_batch, run_programs, transpiled
from tile_programs import made

CUDA, HOPPER, HIP = "cuda:sm_80", "cuda:sm_90a", "hip:gfx942"
ASCEND, BANG = "ascendc:ascend910b", "bang:mtp_592"
# target, first seed, programs, and how many of them may be refused: as many as are
BATCHES = [
    (CUDA, 0, 60, 0),
    (CUDA, 5000, 60, 0),
    (HOPPER, 100, 30, 0),
    (HIP, 200, 50, 6),
    (ASCEND, 300, 60, 9),
    (BANG, 300, 24, 4),
]


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


# What the run of ten thousand found: rings beside roles, _Float16 of the host's compiler, names of
# loops in offsets of tensors, blocks of 32 bytes, quotients by reciprocals.
FOUND = {
    HOPPER: (7,),
    HIP: (5318,),
    "hip:gfx950": (7713,),
    "dcu:gfx936": (6405,),
    ASCEND: (793, 1893, 5420, 5866, 6766),
    "bang:mtp_372": (8185,),
}


@pytest.mark.parametrize("target", FOUND)
def test_programs_that_failed_once(tmp_path: Path, target: str) -> None:
    outcomes = run_batch(FOUND[target], target, tmp_path)
    wrong = [outcome for outcome in outcomes if outcome.kind != "ok"]
    assert not wrong, "\n\n".join(map(str, wrong))


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
def test_ten_thousand_programs(capfd: pytest.CaptureFixture[str]) -> None:
    """For all targets, those that CI does not try as well."""
    status = run_many.main(["--programs", "10000"])
    told = capfd.readouterr().out
    assert status == 0 and "10000 of 10000 programs" in told, told


def test_programs_over_processes_are_counted(capfd: pytest.CaptureFixture[str]) -> None:
    """Two shards of a few programs are the whole; a target that is named is the only one."""
    for shard in ("0", "1"):
        options = ["--programs", "4", "--shards", "2", "--shard", shard, "--jobs", "1"]
        assert run_many.main([*options, "--target", CUDA, "--batch", "2"]) == 0
        assert "2 of 2 programs tried" in capfd.readouterr().out


def test_a_process_that_dies_costs_its_program_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(seeds: list[int], target: str, folder: Path) -> list[Outcome]:
        if 3 in seeds:
            os.kill(os.getpid(), signal.SIGKILL)
        if 5 in seeds:
            time.sleep(60)
        return [Outcome(seed, target, "ok", "", "") for seed in seeds]

    monkeypatch.setattr(run_many, "run_batch", dies)
    waiting = run_many.batches(range(8), CUDA, 2)
    found = {outcome.seed: outcome.kind for outcome in run_many.run(waiting, 2, 60, patience=1)}
    assert found == {**dict.fromkeys(range(8), "ok"), 3: "dies", 5: "hangs"}


@pytest.mark.slow
@given(st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
def test_one_program_at_a_time(tmp_path_factory: pytest.TempPathFactory, random: Random) -> None:
    """Each is compiled alone, so hypothesis can make a failing one smaller."""
    program = made(random, "k0")
    (found,) = run_programs([(0, program)], CUDA, tmp_path_factory.mktemp("program"))
    assert found.kind in ("ok", "refused"), str(found)
