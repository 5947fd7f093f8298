"""Author's names that the dialect reserves get a suffix, everywhere at once."""

from __future__ import annotations

import unicodedata
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar

from tile2c.transpile.ir.expr import Buffer, Const, Var
from tile2c.transpile.ir.forms import Function, Param
from tile2c.transpile.lower.simt.names import C_KEYWORDS, in_c_library
from tile2c.transpile.record import inner_names

T = TypeVar("T")


def rename_reserved(function: Function, reserved: frozenset[str]) -> Function:
    """The function with every name usable in the dialect's C.

    reads   tile IR, verified          writes  tile IR, verified
    """
    names = _names(function, set())
    taken = set(names)
    constants = {constant.name for constant in function.constants}
    table: dict[str, str] = {}
    for name in sorted(names):
        fixed = name
        while (
            fixed in C_KEYWORDS
            or fixed in reserved
            or (fixed in constants and in_c_library(fixed))  # they stand at file scope
            or (fixed != name and fixed in taken)
        ):
            fixed += "_"
        if fixed != name:
            table[name] = fixed
            taken.add(fixed)
    return _rewrite(function, table) if table else function


def entry_name(name: str, taken: frozenset[str]) -> str:
    """The exported symbol of kernel `name`: another one where C, its library or the file has that.

    Letters beyond ASCII stand in no device function's name: nvcc refuses them.
    """
    name = "".join(letter if letter.isascii() else _spelled(letter) for letter in name)
    while name in C_KEYWORDS or name in taken or in_c_library(name):
        name += "_kernel"
    return name


def _spelled(letter: str) -> str:
    """The letter without its accents, or its number."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", letter) if c.isascii() and c.isalnum())
    return plain or f"u{ord(letter):04x}"


def author_names(function: Function) -> frozenset[str]:
    """Every name the author gave: parameters, sizes, constants, buffers, loop variables."""
    return frozenset(_names(function, set()))


def _names(value: object, found: set[str]) -> set[str]:
    if isinstance(value, Buffer | Var | Param):
        found.add(value.name)
    elif isinstance(value, Const) and value.name is not None:
        found.add(value.name)
    if isinstance(value, tuple):
        for part in value:
            _names(part, found)
    else:
        for name in inner_names(type(value)):  # type: ignore[arg-type]  # a type has a hash
            _names(getattr(value, name), found)
    return found


def _rewrite(value: T, table: dict[str, str]) -> T:
    if isinstance(value, tuple):
        return tuple(_rewrite(part, table) for part in value)  # type: ignore[return-value]
    if not is_dataclass(value) or isinstance(value, type):
        return value
    changes: dict[str, object] = {}
    for item in fields(value):
        old = getattr(value, item.name)
        new: object = old
        if (
            item.name == "name"
            and isinstance(old, str)
            and isinstance(value, Buffer | Var | Param | Const)
        ):
            new = table.get(old, old)
        elif isinstance(old, tuple) or (is_dataclass(old) and not isinstance(old, type)):
            new = _rewrite(old, table)
        if new is not old:
            changes[item.name] = new
    return replace(value, **changes) if changes else value  # type: ignore[type-var]
