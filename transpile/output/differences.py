"""Short unified diffs of kernel files, for people who review."""

from __future__ import annotations

from difflib import unified_diff

SHOWN = 24  # lines of a diff; who wants more asks for the files


def short_diff(
    old: str, new: str, old_name: str, new_name: str, *, shown: int | None = SHOWN, rest: str = ""
) -> tuple[str, ...]:
    """The lines that differ, with one of context; empty for equal texts.

    A longer one is cut, and its last line says by how much, and what shows the `rest`.
    """
    lines = [
        line.rstrip()
        for line in unified_diff(
            old.splitlines(), new.splitlines(), old_name, new_name, lineterm="", n=1
        )
    ]
    if shown is None or len(lines) <= shown + 1:
        return tuple(lines)
    return (*lines[:shown], f"… {len(lines) - shown} more lines{rest}")
