"""What a barrier says of itself: what no other barrier orders, in words of the program."""

from __future__ import annotations

import pytest
from tile2c.transpile.lower.plan import Arc, Sync
from tile2c.transpile.lower.simt.barrier_words import reason
from tile2c.transpile.lower.simt.steps import Access, LoopStep, Node, Step
from tile2c.transpile.lower.simt.syncs import place_barriers


def arc(buffer: str, kind: str, *, proven: bool = True) -> Arc:
    return Arc(
        source="x", sink="y", buffer=buffer, kind=kind, loop=None, distance=0, ring="",
        proven=proven, witness="always",
    )  # fmt: skip


CASES = {
    "written": ([("X", "RAW")], "X is complete"),
    "both": ([("X", "RAW"), ("X", "WAR")], "X is complete; nobody still reads what it held"),
    "two": (
        [("X", "RAW"), ("Z", "RAW"), ("X", "WAR"), ("Z", "WAR")],
        "X and Z are complete; nobody still reads what they held",
    ),
    "overwritten": ([("X", "RAW"), ("Z", "WAR")], "X is complete; nobody still reads the old Z"),
    "a stage": (
        [("A", "RAW"), ("A", "WAR")],
        "tile ko is complete for all threads; nobody still reads the stage refilled next",
    ),
    "a stage and more": (
        [("A", "RAW"), ("X", "RAW"), ("A", "WAR"), ("X", "WAR")],
        "tile ko and X are complete; nobody still reads the stage refilled next or the old X",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_words(case: str) -> None:
    arcs, words = CASES[case]
    assert reason(tuple(arc(*part) for part in arcs), {"A": "ko"}) == words


def test_what_could_not_be_disproved() -> None:
    words = reason((arc("X", "RAW", proven=False),))
    assert words == "X is complete; kept because a dependence could not be disproved"


def test_two_barriers_in_a_loop_name_their_own_part() -> None:
    """Written, read, written again in the next round: each passes both, one of them is its own."""
    steps: tuple[Node, ...] = (
        Step(body=(), accesses=(Access(buffer="X", write=True),), quote="write"),
        Step(body=(), accesses=(Access(buffer="X", write=False),), quote="read"),
    )
    loop = LoopStep(frame=None, body=steps, runs=True, name="ko")  # type: ignore[arg-type]
    (placed,), arcs = place_barriers((loop,))
    assert isinstance(placed, LoopStep)
    syncs = [
        x
        for node in placed.body
        if isinstance(node, Step)
        for x in node.body
        if isinstance(x, Sync)
    ]
    assert [x.remark for x in syncs] == ["X is complete", "nobody still reads the old X"]
    assert set().union(*(x.arcs for x in syncs)) == set(arcs)
