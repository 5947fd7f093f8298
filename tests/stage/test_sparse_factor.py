"""Numbers of the 2:4 format that programs ask TileLang's package for."""

from __future__ import annotations

import pytest
from tile2c.transpile.stage.library import sparse_factor


@pytest.mark.parametrize(
    ("elements", "metadata", "factor"),
    [("float16", "int16", 16), ("int8", "int32", 32), ("float32", "int16", 8)],
)
def test_elements_that_one_number_of_metadata_tells_of(
    elements: str, metadata: str, factor: int
) -> None:
    assert sparse_factor("get_e_factor", elements, metadata) == factor


def test_threads_that_share_one() -> None:
    shared = [sparse_factor("get_e_replicate_factor", x) for x in ("int8", "float16", None)]
    assert shared == [1, 2, None]
