"""Lines of an edited file beside those of the text it started from."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher


def base_line(base: Sequence[str], edited: Sequence[str], line: int) -> tuple[int, bool]:
    """The line of `base` (from 1) that line `line` of `edited` was, and whether it is unchanged.

    A changed line is the one at its place among those it replaced; an added one is the line before.
    """
    matcher = SequenceMatcher(None, base, edited, autojunk=False)
    for tag, low, high, first, last in matcher.get_opcodes():
        if first < line <= last:
            if tag == "equal":
                return low + line - first, True
            return max(min(low + line - first, high), 1), False
    return len(base), False
