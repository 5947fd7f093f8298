"""Who holds what: the instructions' maps are the vendor's, register tiles cover their tile once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tile2c.transpile.lower.simt.layouts import grouped_layout
from tile2c.transpile.targets.registry import find
from tile2c.transpile.targets.simt import Fragment, SimtTarget

Map = Callable[[int, int], tuple[int, int]]


def element(fragment: Fragment, lane: int, value: int) -> tuple[int, int]:
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


# From the vendor's tables, with lane l and element v; c with its operands exchanged where a helper does.
MAPS: dict[str, tuple[Map, Map]] = {
    "mfma_16x16x16": (
        lambda l, v: (l % 16, 4 * (l // 16) + v),
        lambda l, v: (l % 16, 4 * (l // 16) + v),
    ),
    "mfma_16x16x32": (
        lambda l, v: (l % 16, 8 * (l // 16) + v),
        lambda l, v: (l % 16, 4 * (l // 16) + v),
    ),
    "mfma_16x16x16_twice": (
        lambda l, v: (l % 16, 8 * (l // 16) + v),
        lambda l, v: (l % 16, 4 * (l // 16) + v),
    ),
    "mfma_16x16x32_bytes": (
        lambda l, v: (l % 16, 8 * (l // 16) + v),
        lambda l, v: (l % 16, 4 * (l // 16) + v),
    ),
    "wmma_16x16x16_fp8_gfx12": (
        lambda l, v: (l % 16, 8 * (l // 16) + v),
        lambda l, v: (l % 16, 8 * (l // 16) + v),
    ),
    "wmma_16x16x16": (lambda l, v: (l % 16, v), lambda l, v: (2 * v + l // 16, l % 16)),
    "wmma_16x16x16_gfx12": (
        lambda l, v: (l % 16, 8 * (l // 16) + v),
        lambda l, v: (l % 16, 8 * (l // 16) + v),
    ),
}


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_maps_of_instructions(arch: str) -> None:
    target = find(f"hip:{arch}")
    assert isinstance(target, SimtTarget)
    for instruction in target.matrix:
        operand, output = MAPS[instruction.name]
        for fragment, wanted in (
            (instruction.a, operand),
            (instruction.b, operand),
            (instruction.c, output),
        ):
            held = [
                (lane, value) for lane in range(target.lanes) for value in range(fragment.values)
            ]
            assert all(element(fragment, *at) == wanted(*at) for at in held)
            rows, columns = fragment.shape
            assert {element(fragment, *at) for at in held} == {
                (row, column) for row in range(rows) for column in range(columns)
            }


@pytest.mark.parametrize("shape", [(32, 128), (16, 48), (64, 16), (48, 96)])
@pytest.mark.parametrize("threads", [64, 128, 192, 256])
@pytest.mark.parametrize(("width", "group"), [(8, 4), (8, 8), (4, 16), (1, 4)])
def test_grouped_layout_covers_the_tile(
    shape: tuple[int, int], threads: int, width: int, group: int
) -> None:
    layout = grouped_layout(shape, threads, width, group)
    held: dict[tuple[int, ...], set[int]] = {}
    for thread in range(threads):
        for value in range(layout.values):
            at = layout.locate(thread, value)
            assert value not in held.setdefault((thread, *at), {value}) - {value}
            held[(thread, *at)].add(value)
    assert all(len(values) == 1 for values in held.values())
    assert {at[1:] for at in held} == {(r, c) for r in range(shape[0]) for c in range(shape[1])}
    for thread in range(threads):  # whole groups of rows lie in one thread
        rows = {at[1] for at in held if at[0] == thread}
        assert all(row // group * group + k in rows for row in rows for k in range(group))
