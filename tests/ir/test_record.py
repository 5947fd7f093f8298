"""Records behave as the frozen, slotted dataclasses of the standard library."""

from __future__ import annotations

from dataclasses import field, fields, is_dataclass, replace

import pytest
from tile2c.transpile.record import record


@record
class Point:
    x: int
    y: int = 0
    note: str = field(default="", compare=False, repr=False)


@record(kw_only=True)
class Named(Point):
    name: str


@record(eq=False)
class Itself:
    x: int


@record(frozen=False)
class Counter:
    """Counts."""

    steps: list[int] = field(default_factory=list)


def test_equality_is_by_class_and_compared_fields() -> None:
    assert Point(1, 2, "a") == Point(1, 2, "b") != Point(1, 3)
    assert hash(Point(1, 2, "a")) == hash(Point(1, 2, "b"))
    assert Point(1) != Named(1, name="")
    assert Itself(1) != Itself(1)
    with pytest.raises(TypeError):
        hash(Counter())


def test_text_leaves_out_what_is_not_shown() -> None:
    assert repr(Named(1, name="p")) == "Named(x=1, y=0, name='p')"


def test_fields_and_replace_are_the_standard_ones() -> None:
    assert is_dataclass(Named) and [item.name for item in fields(Named)] == [
        "x",
        "y",
        "note",
        "name",
    ]
    assert replace(Named(1, name="p"), y=5) == Named(1, 5, name="p")
    assert Counter().steps is not Counter().steps


def test_slots_leave_no_room_for_other_names() -> None:
    with pytest.raises(AttributeError):
        Point(1).z = 1  # type: ignore[attr-defined]
