"""Schedules that are wrong are told with their lines: by the meaning of the program, and by its text."""

from __future__ import annotations

from pathlib import Path

import pytest
from by_hand_cases import PROGRAMS, TARGET
from tile2c.transpile.cli.main import main

# what is wrong -> the change, what the interpreter says ("": nothing), what the emulator says
WRONG = {
    "wrong phase": (
        "T.barrier_wait(used, (ko + 1) % 2)", "T.barrier_wait(used, ko % 2)",
        "deadlock: threads 0 to 127 wait on line {line} for the phase of parity 0 of used",
        "comes from {file}:{line}:17: T.barrier_wait(used, ko % 2)",
    ),
    "too many arrivals wanted": (
        "used = T.alloc_barrier(arrive_count=128)", "used = T.alloc_barrier(arrive_count=129)",
        "of used, whose phase 0 lacks 1 of 129 arrivals",
        "whose phase 0 lacks 1 of 129 arrivals",
    ),
    "too few arrivals wanted": (
        "arrived = T.alloc_barrier(128)", "arrived = T.alloc_barrier(32)",
        "128 arrivals at arrived, whose phase 0 lacks 32 of 32",
        "error[T2C701]",
    ),
    "a phase that is over too early": (
        "T.barrier_wait(arrived, ko % 2)", "T.barrier_wait(arrived, (ko + 1) % 2)",
        "",
        "T.gemm(A_shared, B_shared, C_local, transpose_A=trans_A, transpose_B=trans_B)",
    ),
    "no wait": (
        "T.barrier_wait(arrived, ko % 2)", "pass",
        "",
        "T.gemm(A_shared, B_shared, C_local, transpose_A=trans_A, transpose_B=trans_B)",
    ),
    "no arrival": (
        "T.barrier_arrive(arrived)", "pass",
        "lacks 128 of 128 arrivals",
        "no thread can go on",
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_schedule_is_told_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: str
) -> None:
    old, new, meaning, text = WRONG[wrong]
    source = PROGRAMS.read_text()
    at = source.index(old)
    path = tmp_path / "wrong.py"
    path.write_text(source[:at] + new + source[at + len(old) :])
    names = {"file": str(path), "line": source[:at].count("\n") + 1}
    out = str(tmp_path / "out")
    assert main([str(path), "-o", out, "--target", TARGET, "--kernel", "one_stage"]) == 0
    run = ["run", out, "--source", str(path), "--backend", "emulate", "--check", "races,memory"]
    run += ["--sizes", "M=64,N=64,K=200"]
    if meaning:
        assert main([*run, "--against", "interpreter"]) == 1
        assert meaning.format(**names) in capsys.readouterr().err
    assert main(run) == 1
    assert text.format(**names) in capsys.readouterr().err
