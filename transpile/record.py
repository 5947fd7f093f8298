"""Records: the frozen, slotted dataclasses that forms are made of, quick to define.

A run of the command defines more than two hundred of them, and `@dataclass(frozen=True, slots=True)`
compiles six methods for each from text, which took a quarter of the run. Here `__init__` alone is
compiled; comparison, hash and text are closures over the fields. That nothing assigns to a field is
for the type checker to say. `fields`, `field`, `replace` and `is_dataclass` work as ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields, is_dataclass
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

Record = TypeVar("Record")

# Words of types whose values hold no other forms.
_PLAIN = frozenset({"int", "float", "bool", "str", "None", "Span", "DType", "tuple"})
_BETWEEN_WORDS = str.maketrans("|[],.", "     ")


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[Record], /) -> type[Record]: ...


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(
    *, kw_only: bool = False, eq: bool = True, frozen: bool = True
) -> Callable[[type[Record]], type[Record]]: ...


def record(
    cls: type[Record] | None = None,
    /,
    *,
    kw_only: bool = False,
    eq: bool = True,
    frozen: bool = True,
) -> Any:
    """Makes a class a record. Equal are two of the same class with equal fields; `eq=False` leaves
    each equal to itself alone, and what is not `frozen` has no hash."""

    def made(plain: type[Record]) -> type[Record]:
        own = set(vars(plain))
        plain.__doc__ = plain.__doc__ or plain.__name__  # or its signature is worked out
        slotted = dataclass(repr=False, eq=False, slots=True, kw_only=kw_only)(plain)
        known: tuple[Field[Any], ...] = tuple(slotted.__dataclass_fields__.values())  # type: ignore[attr-defined]
        methods: dict[str, Any] = {
            "__repr__": _text(tuple(item.name for item in known if item.repr))
        }
        if eq:
            values = _values(tuple(item.name for item in known if item.compare))
            methods["__eq__"] = _comparison(values)
            methods["__hash__"] = _hash(values) if frozen else None
        for name, method in methods.items():
            if name not in own:
                setattr(slotted, name, method)
        return slotted

    return made if cls is None else made(cls)


def _values(names: tuple[str, ...]) -> Callable[[Any], Any]:
    return attrgetter(*names) if names else lambda _: ()


def _comparison(values: Callable[[Any], Any]) -> Callable[[Any, object], Any]:
    def equal(self: Any, other: object) -> Any:
        if self is other:
            return True
        if self.__class__ is not other.__class__:
            return NotImplemented
        return values(self) == values(other)

    return equal


def _hash(values: Callable[[Any], Any]) -> Callable[[Any], int]:
    return lambda self: hash(values(self))


def _text(names: tuple[str, ...]) -> Callable[[Any], str]:
    def text(self: Any) -> str:
        parts = (f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({', '.join(parts)})"

    return text


@cache
def inner_names(kind: type) -> tuple[str, ...]:
    """Names of the fields that may hold other forms, alone or in tuples; () if `kind` has none.

    Walks over forms look into these alone: numbers, texts, places and types are most of what is there.
    """
    if not is_dataclass(kind):
        return ()
    words = ((item.name, str(item.type).translate(_BETWEEN_WORDS).split()) for item in fields(kind))
    return tuple(name for name, named in words if not _PLAIN.issuperset(named))
