"""What a family's bare name means: part of the contract with scripts."""

from __future__ import annotations

import pytest
from tile2c.transpile import targets


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("cuda", "cuda:sm_80"),
        ("hip", "hip:gfx942"),
        ("ascendc", "ascendc:ascend910b"),
        ("bang", "bang:mtp_372"),
    ],
)
def test_bare_family(family: str, name: str) -> None:
    assert targets.find(family).name == name
