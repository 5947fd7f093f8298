"""Where keys and values stand in a TOML file that tomllib has accepted.

tomllib tells values but no places, and a message about a value has to point at it.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right

from tile2c.transpile.diagnostics import Span
from tile2c.transpile.record import record

KeyPath = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL
)
_SCALAR = re.compile(r"[^,\]}#\r\n]*")


@record
class Place:
    """The spans of a key and of its value; for an item of a list both are the value's."""

    key: Span
    value: Span


class Places:
    """Places by path: `("kernels", 0, "targets", 1)`. A path without one has that of its parent."""

    def __init__(self, text: str, file: str) -> None:
        self._text, self._file = text, file
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._found: dict[KeyPath, Place] = {}
        self._arrays: dict[KeyPath, int] = {}
        self._at = 0
        self._read()

    def of(self, path: KeyPath) -> Place:
        """The place of a path, or of the nearest table around it; else the file's first line."""
        while path and path not in self._found:
            path = path[:-1]
        return self._found.get(path) or Place(self._span(0, 0), self._span(0, 0))

    def value(self, path: KeyPath) -> Span:
        """Where a value stands."""
        return self.of(path).value

    def key(self, path: KeyPath) -> Span:
        """Where a key stands."""
        return self.of(path).key

    def _span(self, start: int, end: int) -> Span:
        return Span(self._file, *self._position(start), *self._position(end))

    def _position(self, at: int) -> tuple[int, int]:
        line = bisect_right(self._starts, at)
        return line, at - self._starts[line - 1]

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._text, self._at)
        self._at = found.end() if found else self._at

    def _read(self) -> None:
        table: KeyPath = ()
        self._skip(_BLANK)
        while self._at < len(self._text):
            if self._text[self._at] == "[":
                table = self._table()
            else:
                self._pair(table)
            self._skip(_BLANK)

    def _table(self) -> KeyPath:
        """`[a.b]` or `[[a.b]]`: the path that following keys belong to."""
        start = self._at
        double = self._text.startswith("[[", self._at)
        self._at += 1 + double
        keys, span = self._keys()
        self._skip(_SPACE)
        self._at += 1 + double
        path = self._inside(keys[:-1])
        path = (*path, keys[-1])
        place = Place(span, self._span(start, self._at))
        self._found.setdefault(path, place)
        if not double:
            return (*path, self._arrays[path] - 1) if path in self._arrays else path
        number = self._arrays.get(path, 0)
        self._arrays[path] = number + 1
        self._found[(*path, number)] = place
        return (*path, number)

    def _inside(self, keys: tuple[str, ...]) -> KeyPath:
        """A path through arrays of tables: always their last table."""
        path: KeyPath = ()
        for key in keys:
            path = (*path, key)
            if path in self._arrays:
                path = (*path, self._arrays[path] - 1)
        return path

    def _keys(self) -> tuple[tuple[str, ...], Span]:
        """A key with its dots."""
        self._skip(_SPACE)
        start, keys = self._at, []
        while found := _KEY.match(self._text, self._at):
            raw = found[0]
            keys.append(next(iter(tomllib.loads(f"{raw} = 0"))) if raw[0] in "\"'" else raw)
            self._at = end = found.end()
            self._skip(_SPACE)
            if self._text[self._at : self._at + 1] != ".":
                break
            self._at += 1
            self._skip(_SPACE)
        return tuple(keys), self._span(start, end if keys else start)

    def _pair(self, table: KeyPath) -> None:
        start = self._at
        keys, span = self._keys()
        if not keys:  # never, in a file that is TOML
            self._at = start + 1
            return
        self._skip(_SPACE)
        self._at += 1  # the sign of equality
        path = (*table, *keys)
        self._found[path] = Place(span, self._value(path))

    def _value(self, path: KeyPath) -> Span:
        self._skip(_SPACE)
        start = self._at
        letter = self._text[start : start + 1]
        if letter == "[":
            self._list(path)
        elif letter == "{":
            self._inline(path)
        elif found := _STRING.match(self._text, start):
            self._at = found.end()
        else:
            scalar = _SCALAR.match(self._text, start)
            assert scalar is not None
            self._at = start + len(scalar[0].rstrip())
        return self._span(start, self._at)

    def _list(self, path: KeyPath) -> None:
        self._at += 1
        self._skip(_BLANK)
        number = 0
        while self._at < len(self._text) and self._text[self._at] != "]":
            span = self._value((*path, number))
            self._found[(*path, number)] = Place(span, span)
            number += 1
            self._comma()
        self._at += 1

    def _inline(self, path: KeyPath) -> None:
        self._at += 1
        self._skip(_BLANK)
        while self._at < len(self._text) and self._text[self._at] != "}":
            self._pair(path)
            self._comma()
        self._at += 1

    def _comma(self) -> None:
        self._skip(_BLANK)
        if self._text[self._at : self._at + 1] == ",":
            self._at += 1
            self._skip(_BLANK)
