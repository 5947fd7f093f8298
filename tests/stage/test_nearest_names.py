"""The name that is meant by a mistyped one."""

from __future__ import annotations

from tile2c.transpile.stage.vocabulary import nearest


def test_the_same_letters_of_another_case_come_first() -> None:
    assert nearest("block_m", ["block_M", "block_N"]) == "block_M"
    assert nearest("block_n", ["block_M", "block_N"]) == "block_N"
    assert nearest("blok_M", ["block_M", "threads"]) == "block_M"
    assert nearest("nothing", ["block_M", "threads"]) is None
