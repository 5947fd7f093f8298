"""Values of a project file, each with its path: read by type, or refused at its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from tile2c.transpile.diagnostics import Diagnostics, Span
from tile2c.transpile.project.places import KeyPath, Places
from tile2c.transpile.record import record

T = TypeVar("T")

_WORDS = {str: "text", bool: "true or false", list: "a list", dict: "a table", int: "a number"}


@record
class Table:
    """A table of the file; what is wrong with its values goes to `diagnostics`."""

    data: Mapping[str, object]
    path: KeyPath
    places: Places
    diagnostics: Diagnostics
    name: str  # for messages: tile2c, kernels

    def refuse_unknown(self, known: Sequence[str]) -> None:
        """An error for each key that means nothing, with the nearest that does."""
        from tile2c.transpile.cli.status import suggestion

        for key in self.data:
            if key not in known:
                self.diagnostics.error(
                    "T2C631",
                    f"{self.name} has no key {key}",
                    self.places.key((*self.path, key)),
                    help=suggestion(key, tuple(known)),
                )

    def span(self, *keys: str | int) -> Span:
        """Where the value at these keys stands."""
        return self.places.value((*self.path, *keys))

    def wrong(self, message: str, *keys: str | int, help: str | None = None) -> None:
        """An error about the value at these keys."""
        self.diagnostics.error("T2C632", message, self.span(*keys), help=help)

    def text(self, key: str) -> str | None:
        """A text that is not empty; None without one."""
        found = self._typed(key, str)
        if found is None or self._sound(found, key):
            return found
        return None

    def _sound(self, text: str, *keys: str | int) -> bool:
        """Whether the text can name something: it is not empty, and has no NUL."""
        if not text:
            self.wrong(f"{keys[0]} is empty", *keys)
        elif "\0" in text:
            self.wrong(f"{keys[0]} holds a NUL character, which no name has", *keys)
        return bool(text) and "\0" not in text

    def flag(self, key: str) -> bool | None:
        """`true` or `false`; None without one."""
        return self._typed(key, bool)

    def texts(self, key: str) -> tuple[str, ...] | None:
        """A list of texts, or one alone; None without one."""
        value = self.data.get(key)
        if isinstance(value, str):
            one = self.text(key)
            return None if one is None else (one,)
        found = self._typed(key, list)
        if found is None:
            return None
        items: list[object] = found
        for number, item in enumerate(items):
            if not isinstance(item, str):
                self.wrong(f"{key} holds {_shown(item)}, not a text", key, number)
                return None
            if not self._sound(item, key, number):
                return None
        return tuple(map(str, items))

    def table(self, key: str) -> Table | None:
        """A table inside this one; None without one."""
        found = self._typed(key, dict)
        return None if found is None else self._within(found, key)

    def tables(self, key: str) -> tuple[Table, ...]:
        """A list of tables; a table alone counts as one."""
        value = self.data.get(key)
        if isinstance(value, dict):
            return (self._within(value, key),)
        found: list[Table] = []
        for number, item in enumerate(self._typed(key, list) or ()):
            if isinstance(item, dict):
                found.append(self._within(item, key, number))
            else:
                self.wrong(f"{key} holds {_shown(item)}, not a table", key, number)
        return tuple(found)

    def _within(self, data: Mapping[str, object], *keys: str | int) -> Table:
        name = str(keys[0])
        return Table(data, (*self.path, *keys), self.places, self.diagnostics, name)

    def _typed(self, key: str, kind: type[T]) -> T | None:
        value = self.data.get(key)
        if value is None:
            return None
        if isinstance(value, kind):
            return value
        self.wrong(f"{key} is {_shown(value)}, not {_WORDS[kind]}", key)
        return None


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return _WORDS[type(value)]
    return repr(value) if isinstance(value, str) else str(value)
