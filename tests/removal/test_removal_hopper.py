"""Nothing in the kernels with roles orders or guards for nothing: what is taken out is missed."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from removal import F16, Case, missed
from tile2c.runtime.backends.emulate import EmulateSession
from tile2c.transpile.lower.simt.hopper import neighbours, parts, repack

# The rounds outnumber the stages, so that each stage is filled again; sizes that end inside a tile.
TMA = (((136, 520), F16), ((520, 72), F16))
ODD = (((264, 520), F16), ((520, 72), F16))  # three rows of tiles: no clusters
ANY = (((65, 133), F16), ((133, 67), F16))
BIAS = (((72,), F16),)
ONE = {"block_M": 64, "block_N": 64, "num_stages": 2}
TWO = {"block_M": 128, "block_N": 64, "threads": 256, "num_stages": 3}

# Where K is promised to be whole tiles, the loads of the other entry do not look where it ends.
WHOLE = ((((64, 32), F16), ((32, 67), F16)), (((64, 0), F16), ((0, 67), F16)))
PROMISED = {**ONE, "K%32": 0}

CASES = {
    "gemm": Case("gemm", (TMA, ANY), ONE, elsewhere=Case("gemm", WHOLE, PROMISED)),
    "gemm_two": Case(
        "gemm", (TMA, ODD, ANY), TWO, elsewhere=Case("gemm", WHOLE, {**TWO, "K%32": 0})
    ),
    "gemm_bias_relu": Case(
        "gemm_bias_relu",
        (TMA + BIAS, (*ANY, ((67,), F16)), (ANY[0], ((133, 72), F16), *BIAS)),
        ONE,
        elsewhere=Case("gemm_bias_relu", tuple((*one, ((67,), F16)) for one in WHOLE), PROMISED),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_everything_taken_out_of_roles_is_reported(
    tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On two multiprocessors, whose blocks load for each other wherever they can.

    Rounds that blocks share have tests of their own.
    """
    monkeypatch.setattr(neighbours, "BLOCKS", 0)
    monkeypatch.setattr(parts, "_FEW", 0)
    monkeypatch.setattr(EmulateSession, "multiprocessors", lambda _: 2)
    found = [_without_line(what) for what in missed(CASES[case], "cuda:sm_90a", tmp_path / "small")]
    # Guards of the entry that copies rows: it runs only where the sizes are worth it.
    assert all("kept[turn]" in what for what in found)
    for name, value in (("_LAUNCHES", 0), ("_SLOWER", 1), ("_COPIED", 1 << 20)):
        monkeypatch.setattr(repack, name, value)
    copied = replace(CASES[case], elsewhere=None)
    again = [_without_line(what) for what in missed(copied, "cuda:sm_90a", tmp_path / "copied")]
    assert not set(found) & set(again)


def _without_line(what: str) -> str:
    return re.sub(r" on line \d+", "", what)
