"""Whole kernels as people see them; a change here is read in review."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from look_texts import WHOLE, Case


@pytest.mark.parametrize("case", WHOLE, ids=str)
def test_kernel(
    case: Case, text_of: Callable[[Case], str], golden: Callable[[str, str], None]
) -> None:
    golden(text_of(case), case.suffix)
