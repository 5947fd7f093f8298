"""Kernels that schedule themselves compute what their tile programs mean, at sizes that end inside tiles."""

from __future__ import annotations

from pathlib import Path

import pytest
from by_hand_cases import CASES, build, emulated, expected, inputs, meaning, near


@pytest.mark.parametrize("case", CASES)
def test_the_tile_program_means_what_its_author_wants(case: str) -> None:
    given = inputs(case)
    assert near(meaning(case, given), expected(case, given))


@pytest.mark.parametrize("case", CASES)
def test_the_text_computes_what_the_tile_program_means(tmp_path: Path, case: str) -> None:
    build(case, tmp_path)
    given = inputs(case)
    assert near(emulated(tmp_path, given), expected(case, given))
