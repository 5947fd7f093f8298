"""Reads a kernel file for a backend; a file with conflict marks is refused."""

from __future__ import annotations

from pathlib import Path

from tile2c.transpile.output.header import has_conflict_marks


def read_kernel(path: Path) -> str:
    """The text of a kernel file as it stands in OUT. Raises FileNotFoundError or ValueError."""
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    if has_conflict_marks(text):
        raise ValueError(f"{path} holds conflict marks; resolve the conflicts first")
    return text
