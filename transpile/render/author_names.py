"""Manifests speak of arguments and sizes by the author's names, also where the text cannot.

reads   a manifest entry with the text's names, and the function before lowering renamed any
writes  the entry with the author's names: `half`, where the text has to say `half_`
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tile2c.transpile.ir.forms import Function
    from tile2c.transpile.output.generated import JsonValue

_FIELDS = ("args", "sizes", "launch", "requires", "workspace")  # where names and expressions are
_WORDS = frozenset({"kind", "dtype", "role", "entry"})  # keys whose values are neither
_NAME = re.compile(r"[^\W\d]\w*")


def with_author_names(entry: dict[str, JsonValue], function: Function) -> dict[str, JsonValue]:
    """The manifest entry of `function`, every renamed argument and size as in the source."""
    table: dict[str, str] = {}
    theirs = [param.name for param in function.params], [size.name for size in function.sizes]
    for names, key in zip(theirs, ("args", "sizes"), strict=True):
        ours = entry[key]
        assert isinstance(ours, list)
        for name, value in zip(names, ours, strict=True):
            told = value["name"] if isinstance(value, dict) else value
            if isinstance(told, str) and told != name:
                table[told] = name
    if not table:
        return entry
    return {
        key: _spelled(value, table) if key in _FIELDS else value for key, value in entry.items()
    }


def _spelled(value: JsonValue, table: dict[str, str]) -> JsonValue:
    if isinstance(value, str):
        return _NAME.sub(lambda match: table.get(match[0], match[0]), value)
    if isinstance(value, list):
        return [_spelled(part, table) for part in value]
    if isinstance(value, dict):
        return {
            key: part if key in _WORDS else _spelled(part, table) for key, part in value.items()
        }
    return value
