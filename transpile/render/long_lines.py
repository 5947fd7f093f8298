"""Statements with formulas longer than a line: broken where the fewest brackets are open.

Continuations stand under what follows the innermost open bracket, as clang-format puts them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_SIGNS = (",", "?", ":", "||", "&&", "<", ">", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%")
_RANK = {sign: rank for rank, sign in enumerate(_SIGNS)}  # loosest first
_RANK |= {":": _RANK["?"], "-": _RANK["+"], "/": _RANK["*"], "%": _RANK["*"]}
_SPOT = re.compile(r",(?= )|(?<= )(?:\|\||&&|[<>=!]=|[?:<>+*/%-])(?= )")
_TEMPLATE = re.compile(r"(?<=\w)<[^<>()]*>(?=\()")  # its commas are not between arguments
_LEAST = 20  # columns that the end of a line is worth, where there is another place


def break_formula(text: str, columns: int, value: int = 0) -> str:
    """The statement in lines of at most `columns` where that can be; `value`: where it is assigned."""
    if '"' in text or "//" in text or "{" in text:
        return text
    listed = _listed(text, columns)
    if listed:
        return listed
    lines: list[str] = []
    rest = text
    if value and value >= columns * 3 // 8:
        lines.append(text[:value].rstrip())
        rest = "    " + text[value:]
    open_at: list[int] = []  # columns behind the open brackets, of the line that `rest` is
    while len(rest) > columns or rest.lstrip().startswith("? "):
        chosen = rest.lstrip().startswith("? ")
        spot = _otherwise(rest, len(open_at)) if chosen else _spot(rest, columns, open_at)
        if spot is None:
            break
        column = _column(rest, spot, open_at, 8 if lines and not open_at else 4)
        if chosen:  # under the question mark
            column = len(rest) - len(rest.lstrip())
        lines.append(rest[:spot].rstrip())
        rest, open_at = " " * column + rest[spot:].lstrip(), _open(rest, spot, open_at)
    return "\n".join([*lines, rest])


def _listed(text: str, columns: int) -> str:
    """The arguments of a call below it, as many a line as fit, where one is too long beside its name."""
    head, bracket, rest = text.partition("(")
    if not bracket or not head.isidentifier() or not rest.endswith(");"):
        return ""
    parts, start = [], 0
    for place, sign, depth in _candidates(rest, 0):
        if sign == "," and depth == 0:
            parts.append(rest[start : place + 1].strip())
            start = place + 1
    parts.append(rest[start:].strip())
    if len(parts) < 2 or max(map(len, parts)) + 4 > columns:
        return ""
    lines = [f"{head}("]
    for part in parts:
        if len(lines) > 1 and len(lines[-1]) + 1 + len(part) <= columns:
            lines[-1] += f" {part}"
        else:
            lines.append(f"    {part}")
    return "\n".join(lines)


def _otherwise(line: str, depth: int) -> int | None:
    """Where the other value of a choice begins that stands at the line's start."""
    return next(
        (at for at, sign, level in _candidates(line, depth) if (sign, level) == (":", depth)), None
    )


def _spot(line: str, columns: int, open_at: list[int]) -> int | None:
    """Where to go on on a new line: outside most brackets, at the loosest operator, late."""
    best: tuple[tuple[bool, int, int, int], int] | None = None
    start = len(line) - len(line.lstrip())
    for place, sign, depth in _candidates(line, len(open_at)):
        before = sign in "?:"
        at = place if before else place + len(sign) + 1
        if len(line[:at].rstrip()) > columns or at <= start:
            continue
        key = (at - start < _LEAST, depth, _RANK[sign], -at)
        if best is None or key < best[0]:
            best = (key, at)
    return best[1] if best is not None else None


def _candidates(line: str, depth: int) -> Iterator[tuple[int, str, int]]:
    """(place, sign, open brackets) of each operator and comma."""
    inside = {k for found in _TEMPLATE.finditer(line) for k in range(*found.span())}
    spots = {found.start(): found[0] for found in _SPOT.finditer(line)}
    for place, char in enumerate(line):
        if place in spots and place not in inside:
            yield place, spots[place], depth
        depth += (char in "([") - (char in ")]")


def _open(line: str, end: int, open_at: list[int]) -> list[int]:
    """Columns behind the brackets that are open at `end`."""
    found = list(open_at)
    for place, char in enumerate(line[:end]):
        if char in "([":
            found.append(place + 1)
        elif char in ")]" and found:
            found.pop()
    return found


def _column(line: str, end: int, open_at: list[int], outside: int) -> int:
    found = _open(line, end, open_at)
    return found[-1] if found else outside
