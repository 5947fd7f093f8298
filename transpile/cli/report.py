"""Prints diagnostics on standard error, as text or JSON, and what a run has done."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

from tile2c.transpile.cli.status import Status
from tile2c.transpile.diagnostics import Diagnostic, Diagnostics, Severity

Format = Literal["text", "json"]


class Reporter:
    """Prints in one of the two formats."""

    def __init__(self, format: Format) -> None:
        self.format = format
        lines_of.cache_clear()  # sources may have changed since an earlier run of this process

    def show(self, diagnostic: Diagnostic) -> None:
        """One diagnostic: in JSON one line, in text with its source line."""
        from tile2c.transpile.diagnostics import render

        sys.stdout.flush()  # where both streams go to one file, in the order of printing
        if self.format == "json":
            print(render.as_json(diagnostic), file=sys.stderr)
        else:
            print(render.as_text(diagnostic, lines_of), file=sys.stderr)

    def show_all(self, items: Iterable[Diagnostic]) -> None:
        """Many, by file and place; those about files of OUT come first, as they were found."""
        from tile2c.transpile.diagnostics import render

        for item in render.ordered(items):
            self.show(item)

    def problem(self, code: str, message: str, help: str | None) -> None:
        """A problem that has no place in a file."""
        self.show(Diagnostic(Severity.ERROR, code, message, None, (), help))

    def done(self, text: str) -> None:
        """What a run has done, for people; tools read the manifest."""
        if self.format == "text":
            sys.stdout.flush()
            print(text, file=sys.stderr)


def status_of(diagnostics: Diagnostics) -> Status:
    """The exit status that these problems mean: codes of the 0xx section are the command line's."""
    errors = [item for item in diagnostics.items if item.severity is Severity.ERROR]
    if any(item.code.startswith("T2C0") for item in errors):
        return Status.USAGE
    return Status.INPUT if errors else Status.DONE


@cache
def lines_of(file: str) -> Sequence[str]:
    """A source file's lines for quoting; without the file, none."""
    try:
        text = Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    return text.removeprefix("\ufeff").split("\n")
