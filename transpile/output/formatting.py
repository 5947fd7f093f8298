"""A project's own formatter: its command reads a text and writes it in the project's style.

The head of the text, which tile2c reads again, stays as it is.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tile2c.transpile.output import header
from tile2c.transpile.output.generated import GeneratedKernel, LineOrigin

LONGEST = 60.0  # seconds


class FormatterFailed(Exception):
    """The command is not there, or it says no; the message says what it said."""


def formatted(text: str, file: str, command: Sequence[str], folder: Path) -> str:
    """The text below its head as the command leaves it; `{file}` in the command is the file's name.

    folder  where the command runs, so that it finds the project's settings
    """
    parts = header.split(text)
    words = [word.replace("{file}", file) for word in command]
    try:
        done = subprocess.run(
            words,
            input="".join(parts.after),
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=folder,
            timeout=LONGEST,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        raise FormatterFailed(f"{words[0]} cannot run: {error}") from error
    if done.returncode:
        said = done.stderr.strip().split("\n")[-1] or f"exit status {done.returncode}"
        raise FormatterFailed(f"{' '.join(words)}: {said}")
    if not done.stdout.strip():
        raise FormatterFailed(f"{' '.join(words)} writes nothing")
    return "".join((*parts.before, *parts.header)) + done.stdout.rstrip("\n") + "\n"


def format_kernel(kernel: GeneratedKernel, text: str) -> GeneratedKernel:
    """The kernel with its formatted text, its lines still told with their places in the source."""
    lines = _moved_lines(kernel.text, text)
    if lines is None:  # the formatter does more than lay out: no line can be told
        return replace(kernel, text=text, origins=())
    origins = tuple(
        LineOrigin(first=lines[o.first - 1][0], last=lines[o.last - 1][1], span=o.span)
        for o in kernel.origins
        if o.last <= len(lines)
    )
    return replace(kernel, text=text, origins=origins)


def _moved_lines(before: str, after: str) -> list[tuple[int, int]] | None:
    """For each line of `before` the first and last line of `after` with its letters."""
    if _letters(before) != _letters(after):
        return None
    at = [number for number, line in enumerate(after.split("\n"), 1) for _ in _letters(line)]
    found: list[tuple[int, int]] = []
    count = 0
    for line in before.split("\n"):
        size = len(_letters(line))
        first = at[count] if count < len(at) else (at[-1] if at else 1)
        found.append((first, at[count + size - 1] if size else first))
        count += size
    return found


def _letters(text: str) -> str:
    return "".join(text.split())
