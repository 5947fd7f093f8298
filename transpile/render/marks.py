"""Marks in the rendered text that say which lines came from which statement of the source.

They are control characters while the text is put together, and turn into line numbers at the end.
"""

from __future__ import annotations

import re

from tile2c.transpile.diagnostics import Span
from tile2c.transpile.output.generated import LineOrigin

_MARK = re.compile("[\x01\x02](\\d+)\x03")


class Marks:
    """Hands out marks and finds the lines they ended up on."""

    def __init__(self) -> None:
        self.spans: list[Span] = []

    def around(self, text: str, span: Span) -> str:
        """The text with a mark before and after it."""
        number = len(self.spans)
        self.spans.append(span)
        return f"\x01{number}\x03{text}\x02{number}\x03"

    def resolve(self, text: str, *, line_directives: bool) -> tuple[str, tuple[LineOrigin, ...]]:
        """The text without marks, and the lines (from 1) of every marked stretch.

        With `line_directives` each stretch starts with a `#line` that names its source.
        """
        lines: list[str] = []
        first: dict[int, int] = {}
        found: list[LineOrigin] = []
        for line in text.split("\n"):
            opened = [int(m[1]) for m in _MARK.finditer(line) if m[0][0] == "\x01"]
            closed = [int(m[1]) for m in _MARK.finditer(line) if m[0][0] == "\x02"]
            if opened and line_directives:
                span = self.spans[opened[-1]]
                name = span.file.replace("\\", "\\\\").replace('"', '\\"')
                lines.append(f'#line {span.line} "{name}"')
            lines.append(_MARK.sub("", line))
            for number in opened:
                first[number] = len(lines)
            for number in closed:
                found.append(
                    LineOrigin(first=first[number], last=len(lines), span=self.spans[number])
                )
        return "\n".join(lines), tuple(sorted(found, key=lambda o: (o.first, -o.last)))
