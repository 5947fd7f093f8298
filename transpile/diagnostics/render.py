"""Prints diagnostics: as text for people, or as JSON for tools, one object a line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence

from tile2c.transpile.diagnostics.diagnostic import Diagnostic, Note, Span

Lines = Callable[[str], Sequence[str]]  # a file's lines, by the file's name in spans; may be empty
LONGEST_QUOTE = 200  # characters of a source line; more are cut off around the expression


def ordered(items: Iterable[Diagnostic]) -> list[Diagnostic]:
    """By file and place; those without a place first."""
    return sorted(items, key=lambda item: (item.span is not None, item.span or _NOWHERE))


def as_text(diagnostic: Diagnostic, lines: Lines) -> str:
    """The form of contract.md: message, source line, carets, diff, notes, help. No trailing newline."""
    head = f"{diagnostic.severity}[{diagnostic.code}]: {diagnostic.message}"
    if diagnostic.span is None:
        rows = [head]
    else:
        rows = [f"{diagnostic.span.start()}: {head}", *_quoted(diagnostic.span, lines)]
    rows += [f"   | {_UNSHOWN.sub('?', line)}" for line in diagnostic.diff]
    rows += [f"   = note: {_note(note)}" for note in diagnostic.notes]
    if diagnostic.help is not None:
        rows.append(f"   = help: {diagnostic.help}")
    return "\n".join(rows)


def as_json(diagnostic: Diagnostic) -> str:
    """One JSON object on one line; columns count from 1, the end column is exclusive."""
    span = diagnostic.span
    return json.dumps(
        {
            "file": span.file if span else diagnostic.file,
            "line": span.line if span else None,
            "col": span.col + 1 if span else None,
            "end_line": span.end_line if span else None,
            "end_col": span.end_col + 1 if span else None,
            "severity": str(diagnostic.severity),
            "code": diagnostic.code,
            "message": diagnostic.message,
            "notes": [_note(note) for note in diagnostic.notes],
            "help": diagnostic.help,
            **({"diff": list(diagnostic.diff)} if diagnostic.diff else {}),
        },
        ensure_ascii=False,
    )


_NOWHERE = Span("", 0, 0, 0, 0)
_UNSHOWN = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)  # would steer a terminal


def _note(note: Note) -> str:
    if note.span is None:
        return note.text
    return f"{note.text}: {note.span.file}:{note.span.line}"


def _quoted(span: Span, lines: Lines) -> list[str]:
    """The source line and carets under the expression; tabs are kept so that both line up."""
    text = lines(span.file)
    if not 1 <= span.line <= len(text):
        return []
    line = text[span.line - 1].rstrip("\n")
    end = span.end_col if span.end_line == span.line else len(line.rstrip())
    line, start, end = _window(_UNSHOWN.sub("\N{REPLACEMENT CHARACTER}", line), span.col, end)
    margin = "".join("\t" if char == "\t" else " " for char in line[:start])
    return [line, margin + "^" * max(end - start, 1)]


def _window(line: str, start: int, end: int) -> tuple[str, int, int]:
    """The part of a very long line around [start, end), and where these columns are in it."""
    if len(line) <= LONGEST_QUOTE:
        return line, start, end
    first = max(min(start - LONGEST_QUOTE // 4, len(line) - LONGEST_QUOTE), 0)
    last = first + LONGEST_QUOTE
    before, after = "…" if first else "", "…" if last < len(line) else ""
    shift = len(before) - first
    return before + line[first:last] + after, start + shift, min(end, last) + shift
