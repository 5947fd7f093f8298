"""Breaks the long lines of a launcher where clang-format would, so that no formatter changes it.

Templates write one statement a line. Lines that are too long are calls, declarations of functions
and conditions; their parts are packed into lines that start behind the opening bracket.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tile2c.transpile.render.finish import WIDTH

_RETURN = re.compile(r"^( *)(if \(.*\)) (return \w+;)$")
_CONDITION = re.compile(r"^( *(?:\} else )?if \()(.*)(\)(?: \{)?)$")
_ASSIGNED = re.compile(r"^(( *)[\w ]+ =) (\w+\(.*)$")
_CALL = re.compile(r"^( *[^()/]*\()(.*)(\)(?:;| \{))$")


def fit(text: str) -> str:
    """The text with its long lines broken; comments and strings stay as they are."""
    return "\n".join(part for line in text.split("\n") for part in _fitted(line))


def _fitted(line: str) -> Iterator[str]:
    if len(line) <= WIDTH or line.lstrip().startswith(("//", "#", '"')):
        yield line
    elif short := _RETURN.match(line):
        yield from _fitted(short[1] + short[2])
        yield f"{short[1]}    {short[3]}"
    elif condition := _CONDITION.match(line):
        yield from packed(condition[1], _split(condition[2], " && "), condition[3], " ")
    elif assigned := _ASSIGNED.match(line):
        below = [assigned[1], *_fitted(f"{assigned[2]}    {assigned[3]}")]
        beside = _call(line)
        yield from below if len(below) <= len(beside) else beside
    elif _CALL.match(line):
        yield from _call(line)
    else:
        yield line


def _call(line: str) -> list[str]:
    parts = _CALL.match(line)
    return packed(parts[1], _split(parts[2], ", "), parts[3], " ") if parts else [line]


def packed(head: str, parts: Sequence[str], tail: str, gap: str) -> list[str]:
    """`head` with as many parts on each line as fit; later lines start behind it."""
    lines, line, start = [], head, " " * len(head)
    for index, part in enumerate(parts):
        end = tail if index == len(parts) - 1 else ""
        fresh = line in (head, start)
        room = WIDTH - len(line) - (0 if fresh else len(gap)) - len(end)
        if not fresh and len(part) > room:
            lines.append(line)
            line, fresh = start, True
        line += part if fresh else gap + part
    return [*lines, line + tail]


def _split(text: str, separator: str) -> list[str]:
    """The text cut behind each separator outside brackets; the separator's word stays in front."""
    parts, depth, begin = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if depth == 0 and text.startswith(separator, at):
            parts.append(text[begin : at + len(separator)].rstrip())
            begin = at + len(separator)
    return [*parts, text[begin:]]
