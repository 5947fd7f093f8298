"""Names of asynchronous copies: by their size where a text has several, overloads where it can."""

from __future__ import annotations

from typing import cast

import pytest
from tile2c.transpile.lower.simt.context import Context, CopyKind


class Names:
    """As much of a context as names need."""

    def __init__(self) -> None:
        self.copies: dict[tuple[int, CopyKind], str] = {}

    def of(self, size: int, kind: CopyKind) -> str:
        return Context.copy_name(cast(Context, self), size, kind)


CASES: dict[str, list[tuple[int, CopyKind, str]]] = {
    "one size": [(16, "whole", "copy_async"), (16, "whole", "copy_async")],
    "an overload": [(16, "whole", "copy_async"), (16, "inside", "copy_async")],
    "the other way round": [(16, "inside", "copy_async"), (16, "part", "copy_async")],
    "two sizes": [(16, "inside", "copy_async"), (4, "inside", "copy_async_4")],
    "two that take a count": [
        (16, "inside", "copy_async"),
        (16, "whole", "copy_async"),
        (16, "part", "copy_async_16"),
    ],
    "and another size": [
        (4, "inside", "copy_async"),
        (16, "whole", "copy_async_16"),
        (16, "part", "copy_async_16_part"),
        (16, "inside", "copy_async_16"),
    ],
}


@pytest.mark.parametrize("case", CASES)
def test_names(case: str) -> None:
    names = Names()
    assert [names.of(size, kind) for size, kind, _ in CASES[case]] == [x for *_, x in CASES[case]]
