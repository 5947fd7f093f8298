"""Fragment maps of the matrix instructions against their formulas in the vendors' manuals."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from tile2c.transpile.lower.simt.banks import extra_turns, phases
from tile2c.transpile.targets import cuda, hip
from tile2c.transpile.targets.simt import Fragment, MatrixInstruction

Formula = Callable[[int, int], int]  # of the lane l and the value index v


def _coordinate(digits: tuple[tuple[str, int, int], ...], lane: int, value: int) -> int:
    at, place = 0, 1
    for holder, extent, weight in digits:
        at += (lane if holder == "lane" else value) // weight % extent * place
        place *= extent
    return at


def _same(fragment: Fragment, row: Formula, column: Formula, lanes: int = 32) -> bool:
    return all(
        _coordinate(fragment.rows, lane, v) == row(lane, v)
        and _coordinate(fragment.columns, lane, v) == column(lane, v)
        for lane, v in product(range(lanes), range(fragment.values))
    )


def _instruction(arch: str, name: str, output: str = "") -> MatrixInstruction:
    target = next(x for x in (*cuda.TARGETS, *hip.TARGETS) if x.arch == arch)
    return next(x for x in target.matrix if x.name == name and output in ("", x.output))


SUMS: tuple[Formula, Formula] = (
    lambda l, v: l // 4 + 8 * (v // 2),
    lambda l, v: 2 * (l % 4) + v % 2,
)
MAPS: dict[tuple[str, str], tuple[tuple[Formula, Formula], tuple[Formula, Formula]]] = {
    ("sm_80", "mma_m16n8k16"): (
        (lambda l, v: l // 4 + 8 * (v // 2 % 2), lambda l, v: 2 * (l % 4) + v % 2 + 8 * (v // 4)),
        (lambda l, v: l // 4, lambda l, v: 2 * (l % 4) + v % 2 + 8 * (v // 2)),
    ),
    ("sm_75", "mma_m16n8k8"): (
        (lambda l, v: l // 4 + 8 * (v // 2), lambda l, v: 2 * (l % 4) + v % 2),
        (lambda l, v: l // 4, lambda l, v: 2 * (l % 4) + v),
    ),
    ("sm_80", "mma_m16n8k8_tf32"): (
        (lambda l, v: l // 4 + 8 * (v % 2), lambda l, v: l % 4 + 4 * (v // 2)),
        (lambda l, v: l // 4, lambda l, v: l % 4 + 4 * v),
    ),
    ("sm_80", "mma_m16n8k32_int"): (
        (lambda l, v: l // 4 + 8 * (v // 4 % 2), lambda l, v: 4 * (l % 4) + v % 4 + 16 * (v // 8)),
        (lambda l, v: l // 4, lambda l, v: 4 * (l % 4) + v % 4 + 16 * (v // 4)),
    ),
}


@pytest.mark.parametrize(("arch", "name"), MAPS)
def test_mma_sync(arch: str, name: str) -> None:
    instruction = _instruction(arch, name)
    a, b = MAPS[arch, name]
    assert _same(instruction.a, *a)
    assert _same(instruction.b, *b)
    assert _same(instruction.c, *SUMS)


def test_quad_pairs() -> None:
    """Volta's four products of 8 x 8 x 4, in the quadrants of 16 x 16."""
    instruction = _instruction("sm_70", "mma_m8n8k4", "float32")

    def own(lane: int) -> int:
        return lane % 4 + 4 * (lane // 16)

    assert _same(instruction.a, lambda l, v: own(l) + 8 * (l // 4 % 2), lambda l, v: v)
    assert _same(instruction.b, lambda l, v: own(l) + 8 * (l // 8 % 2), lambda l, v: v)
    assert _same(
        instruction.c,
        lambda l, v: l % 2 + 2 * (v // 2 % 2) + 4 * (l // 16) + 8 * (l // 4 % 2),
        lambda l, v: 4 * (v // 4) + 2 * (l // 2 % 2) + v % 2 + 8 * (l // 8 % 2),
    )


@pytest.mark.parametrize("target", [*cuda.TARGETS, *hip.TARGETS], ids=lambda x: x.name)
def test_every_element_has_a_lane(target: object) -> None:
    """Sums lie with one lane each; operands are covered."""
    for instruction in target.matrix:  # type: ignore[attr-defined]
        lanes = range(target.lanes)  # type: ignore[attr-defined]
        for fragment in (instruction.a, instruction.b, instruction.c):
            found = [
                (_coordinate(fragment.rows, lane, v), _coordinate(fragment.columns, lane, v))
                for lane in lanes
                for v in range(fragment.values)
            ]
            assert set(found) == set(product(*map(range, fragment.shape))), instruction.name
            assert fragment is not instruction.c or len(set(found)) == len(found)


def test_banks() -> None:
    """Eight rows of 128 bytes lie over each other; exchanged chunks do not; bytes of a word are one."""
    rows = phases([(row, 0) for row in range(8)], 16)
    assert extra_turns(rows, lambda row, column: row * 128 + column * 2, 32) == 7
    assert extra_turns(rows, lambda row, column: row * 128 + (row % 8) * 16, 32) == 0
    assert extra_turns(phases([(0, lane) for lane in range(32)], 1), lambda _, c: c, 32) == 0
    assert len(phases([(0, lane) for lane in range(32)], 8)) == 2
