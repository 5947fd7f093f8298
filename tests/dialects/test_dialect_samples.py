"""Samples on every target: docs/samples-on-targets.md says what is true.

All cells: `pytest -m slow tests/dialects/test_dialect_samples.py`, or `sample_table.py` for parts of them.
"""

from __future__ import annotations

import pytest
import sample_table
from sample_cells import NAMES, Cell, cell
from sample_sizes import SMALL

TARGETS = sample_table.targets()
# Each sample on one target, another each; each family's product with everything.
IN_TURN = [(name, TARGETS[number * 7 % len(TARGETS)]) for number, name in enumerate(NAMES)]
FAMILIES = {target.partition(":")[0]: target for target in reversed(TARGETS)}
PRODUCTS = [("gemm_bias_relu", target) for target in FAMILIES.values()]


def agrees(sample: str, target: str) -> None:
    """The cell as it is now, and as the page has it; a compiler that is not here is left out."""
    told = sample_table.known()[sample, target]
    found = cell(sample, target)
    assert not any(word in str(found) for word in sample_table.FAILED), found.told
    assert str(found.joined(told)) == str(told)


def test_every_sample_has_a_small_size() -> None:
    assert list(SMALL) and set(SMALL) == set(NAMES)


def test_the_page_has_every_sample_and_target() -> None:
    table = sample_table.known()
    assert set(table) == {(sample, target) for sample in NAMES for target in TARGETS}
    assert sample_table.page(table) == sample_table.PAGE.read_text(encoding="utf-8")
    bad = [key for key, found in table.items() if "e" not in str(found) and not found.refused]
    assert not bad, "not shown to mean their programs"


def test_gpu_dialects_have_every_sample_but_for_types() -> None:
    """What is refused on a target with threads holds a type or a barrier that the chip lacks."""
    for (sample, target), found in sample_table.known().items():
        if target.partition(":")[0] not in ("ascendc", "bang"):
            assert found.refused in ("", "T2C557", "T2C590"), (sample, target)


@pytest.mark.parametrize(
    "found", [Cell("T2C557"), Cell("", True, True), Cell("", None, True), Cell("", False, False)]
)
def test_the_page_is_read_as_it_is_written(found: Cell) -> None:
    key = (NAMES[0], TARGETS[0])
    assert str(sample_table.parsed(sample_table.page({key: found}))[key]) == str(found)


@pytest.mark.parametrize(("sample", "target"), [*IN_TURN, *PRODUCTS])
def test_cells_in_turn(sample: str, target: str) -> None:
    agrees(sample, target)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("sample", NAMES)
def test_every_cell(sample: str, target: str) -> None:
    agrees(sample, target)
