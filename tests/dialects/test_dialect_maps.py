"""Who holds what in each matrix instruction: the vendors' formulas, written down a second time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from tile2c.transpile.targets import all_targets
from tile2c.transpile.targets.simt import Fragment, MatrixInstruction, SimtTarget

Map = Callable[[int, int], tuple[int, int]]  # lane (or thread of a group), value -> row, column

TARGETS = [target for target in all_targets() if isinstance(target, SimtTarget) and target.matrix]


def held(fragment: Fragment, lane: int, value: int) -> tuple[int, int]:
    """(row, column) that a lane holds as its element `value`."""
    at = []
    for digits in (fragment.rows, fragment.columns):
        coordinate, place = 0, 1
        for holder, extent, weight in digits:
            index = lane if holder == "lane" else value
            coordinate += index // weight % extent * place
            place *= extent
        at.append(coordinate)
    return at[0], at[1]


ROWS_LAST: Map = lambda l, v: (l // 4 + 8 * (v // 4), 2 * (l % 4) + v % 2 + 8 * (v // 2 % 2))  # noqa: E731
BYTES_LAST: Map = lambda l, v: (l // 4 + 8 * (v // 8), 4 * (l % 4) + v % 4 + 16 * (v // 4 % 2))  # noqa: E731
ROWS_FIRST: Map = lambda l, v: (l // 4 + 8 * (v // 2 % 2), 2 * (l % 4) + v % 2 + 8 * (v // 4))  # noqa: E731
BYTES_FIRST: Map = lambda l, v: (l // 4 + 8 * (v // 4 % 2), 4 * (l % 4) + v % 4 + 16 * (v // 8))  # noqa: E731


def run_of(count: int) -> Map:
    """`count` neighbours in k from l / 16 on."""
    return lambda l, v: (l % 16, count * (l // 16) + v)


# name -> (a, b as (n, k), c). Helpers of dcu and maca hand b over first, which exchanges rows and columns
# of the tables' accumulators.
MAPS: dict[str, tuple[Map, Map, Map]] = {
    "mmac_16x16x16": (run_of(4), run_of(4), lambda l, v: (l // 16 + 4 * v, l % 16)),
    "mmac_16x16x16_twice": (run_of(8), run_of(8), lambda l, v: (l // 16 + 4 * v, l % 16)),
    "mmac_16x16x32": (run_of(8), run_of(8), lambda l, v: (l // 16 + 4 * v, l % 16)),
    "mma_16x16x16": (run_of(4), run_of(4), lambda l, v: (l % 16, 4 * (l // 16) + v)),
    "mma_16x16x16_twice": (run_of(8), run_of(8), lambda l, v: (l % 16, 4 * (l // 16) + v)),
    "fmma_m32n32k16": (
        lambda l, v: (l // 4 % 16 + 16 * (v // 2), 2 * (l % 4) + 8 * (l // 64) + v % 2),
        lambda l, v: (l // 4 % 16 + 16 * (v // 2), 2 * (l % 4) + 8 * (l // 64) + v % 2),
        lambda l, v: (
            l // 8 % 4 + 4 * (l // 64) + 8 * (v // 2),
            l % 8 + 8 * (l // 32 % 2) + 16 * (v % 2),
        ),
    ),
    "imma_m32n32k32": (
        lambda l, v: (l // 4 % 16 + 16 * (v // 4), 4 * (l % 4) + 16 * (l // 64) + v % 4),
        lambda l, v: (l // 4 % 16 + 16 * (v // 4), 4 * (l % 4) + 16 * (l // 64) + v % 4),
        lambda l, v: (
            l // 8 % 4 + 4 * (l // 64) + 8 * (v // 2),
            l % 8 + 8 * (l // 32 % 2) + 16 * (v % 2),
        ),
    ),
    "mad_16x16x16": (
        lambda l, v: (2 * (l // 16) + v % 2 + 8 * (v // 2), l % 16),
        lambda l, v: (l % 16, 2 * (l // 16) + v % 2 + 8 * (v // 2)),
        lambda l, v: (l // 16 + 4 * v, l % 16),
    ),
    "wmma_m16n16k16": (
        ROWS_LAST,
        ROWS_LAST,
        lambda l, v: (l // 8 + 4 * (v // 2), l % 8 + 8 * (v % 2)),
    ),
    "wmma_m16n16k32": (
        BYTES_LAST,
        BYTES_LAST,
        lambda l, v: (l // 8 + 4 * (v // 2), l % 8 + 8 * (v % 2)),
    ),
    "mma_m16n16_tc01 of 16": (
        ROWS_LAST,
        ROWS_LAST,
        lambda l, v: (l // 4 + 8 * (v // 4), l % 4 + 4 * (v % 4)),
    ),
    "mma_m16n16_tc01 of 32": (
        BYTES_LAST,
        BYTES_LAST,
        lambda l, v: (l // 4 + 8 * (v // 4), l % 4 + 4 * (v % 4)),
    ),
    "mma_m16n16_tc02 of 16": (ROWS_FIRST, ROWS_LAST, ROWS_FIRST),
    "mma_m16n16_tc02 of 32": (BYTES_FIRST, BYTES_LAST, ROWS_FIRST),
}

# Operands along m and n, of instructions that take them so: the same for both.
TURNED: dict[str, Map] = {
    "fmma_m32n32k16": lambda l, v: (2 * (l % 8) + v % 2 + 16 * (v // 2), l // 8),
    "wmma_m16n16k16": lambda l, v: (2 * (l % 4) + v % 2 + 8 * (v // 2 % 2), l // 4 + 8 * (v // 4)),
}

OURS = [
    (target, instruction)
    for target in TARGETS
    if target.family in ("dcu", "musa", "maca", "corex", "ppu")
    for instruction in target.matrix
]


@pytest.mark.parametrize(("target", "instruction"), OURS, ids=lambda x: getattr(x, "name", str(x)))
def test_maps_are_the_vendors(target: SimtTarget, instruction: MatrixInstruction) -> None:
    maps = MAPS.get(instruction.name) or MAPS[f"{instruction.name} of {instruction.k}"]
    for fragment, wanted in zip((instruction.a, instruction.b, instruction.c), maps, strict=True):
        for at in product(range(target.team), range(fragment.values)):
            assert held(fragment, *at) == wanted(*at)

    for turned in (instruction.a_turned, instruction.b_turned):
        assert (turned is not None) == (instruction.name in TURNED)
        if turned is not None:
            for at in product(range(target.team), range(turned.values)):
                assert held(turned, *at) == TURNED[instruction.name](*at)


@pytest.mark.parametrize("target", TARGETS, ids=lambda x: x.name)
def test_operands_are_covered_and_sums_held_once(target: SimtTarget) -> None:
    for instruction in target.matrix:
        for fragment in (instruction.a, instruction.b, instruction.c):
            lanes = range(target.team)
            found = [held(fragment, *at) for at in product(lanes, range(fragment.values))]
            assert set(found) == set(product(*map(range, fragment.shape))), instruction.name
            assert fragment is not instruction.c or len(set(found)) == len(found)
