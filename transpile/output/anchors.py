"""Anchors: lines that hold a merge to what belongs together, and apart what does not.

git takes changes of neighbouring lines for a conflict, and may shift an insertion to either end of
like lines. In a kernel file neighbours are often independent: lines of the header, includes,
constants, helpers, statements. Each of those gets an anchor line before and behind it in all three
texts of a merge, named by what it is about; afterwards the anchors are taken out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_MARK = "\x03"
_ALONE = (
    re.compile(r"^//   (\w+)  "),  # a line of the header: `//   sizes    …`
    re.compile(r"^(#include .*\S)"),
    re.compile(r"^constexpr .*?(\w+) ="),
)
_REST = re.compile(r"^//    +\S")  # a line of the header goes on
_NAMED = (
    re.compile(r"^struct\b[^{;]*?(\w+) \{"),
    re.compile(r"^(?!//)[^(=]*?\b(\w+)\("),
)
_QUOTE = re.compile(r"^\s+// ((?:T\.|for |while |if |with ).*)")


def anchored(text: str) -> str:
    """The text with anchors around its independent parts; every line of it ends in a line end."""
    found: list[str] = []
    for part in parts(text.splitlines(keepends=True)):
        name = name_of(part)
        found += part if name is None else [f"{_MARK}({name}\n", *part, f"{_MARK}){name}\n"]
    return "".join(found)


def without(text: str) -> str:
    """The text without its anchors."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(_MARK))


def can_anchor(*texts: str) -> bool:
    """Whether no text holds the anchors' own character, or an end of line that only Python sees."""
    return not any(_MARK in text or text.count("\n") != len(text.splitlines()) for text in texts)


def parts(lines: list[str]) -> Iterator[list[str]]:
    """The lines in parts: one that stands alone with what goes on with it, a paragraph, a gap."""
    part: list[str] = []
    for line in lines:
        alone = _alone(line)
        goes_on = bool(part) and (_REST.match(line) if _alone(part[0]) else not alone)
        ends = line.isspace() or bool(_QUOTE.match(line)) or (bool(part) and part[-1].isspace())
        if part and (not goes_on or ends):
            yield part
            part = []
        part.append(line)
    if part:
        yield part


def _alone(line: str) -> str | None:
    found = next((match for pattern in _ALONE if (match := pattern.match(line))), None)
    return found[1] if found else None


def name_of(part: list[str]) -> str | None:
    """What a part is about: a word of the header, a constant, a function, a quoted statement."""
    alone = _alone(part[0])
    if alone is not None:
        return alone
    quote = _QUOTE.match(part[0])
    if quote is not None:
        return quote[1]
    if part[0][0].isspace():
        return None
    found = (match for line in part for pattern in _NAMED if (match := pattern.match(line)))
    return next((match[1] for match in found), None)
