"""Records behave as the frozen, slotted dataclasses of the standard library."""

from __future__ import annotations

from dataclasses import field, fields, is_dataclass, replace
from threading import Barrier, Thread
from typing import ClassVar

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


def test_first_values_may_be_made_by_several_threads() -> None:
    for _ in range(20):

        @record
        class Fresh:
            x: int

        start, made = Barrier(4), []

        def make(fresh: type = Fresh, start: Barrier = start, made: list[object] = made) -> None:
            start.wait()
            made.append(fresh(1))

        threads = [Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [Fresh(1)] * 4


def test_a_kept_init_goes_on_working() -> None:
    @record
    class Fresh:
        x: int

    kept = Fresh.__init__
    point = Fresh(1)
    kept(point, 2)
    assert point.x == 2


def test_what_is_no_plain_field_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Odd\.known: records have plain fields only"):

        @record
        class Odd:
            known: ClassVar[int] = 1
