"""Records: the frozen, slotted dataclasses that forms are made of, quick to define.

A run of the command defines more than two hundred of them, and `@dataclass(frozen=True, slots=True)`
compiles six methods for each from text, which took a quarter of the run. Here `__init__` alone is
compiled, when the first value is made; comparison, hash and text are closures over the fields. That
nothing assigns to a field is for the type checker to say. `fields`, `field`, `replace` and
`is_dataclass` work as ever; ClassVar, InitVar and KW_ONLY are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
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
        known = _described(plain, kw_only)
        return _slotted(plain, tuple(item.name for item in known), methods_of(known, eq, frozen))

    return made if cls is None else made(cls)


def _described(plain: type, kw_only: bool) -> tuple[Field[Any], ...]:
    """The fields, of a dataclass without methods. `dataclass` would search the text of each type."""
    types = vars(plain).get("__annotations__", {})
    for name, text in types.items():
        if any(word in str(text) for word in ("ClassVar", "InitVar", "KW_ONLY")):
            raise TypeError(f"{plain.__name__}.{name}: records have plain fields only")
    plain.__doc__ = plain.__doc__ or plain.__name__  # or its signature is worked out
    plain.__annotations__ = dict.fromkeys(types, object)
    dataclass(init=False, repr=False, eq=False, match_args=False, kw_only=kw_only)(plain)
    plain.__annotations__ = types
    known: dict[str, Field[Any]] = plain.__dataclass_fields__  # type: ignore[attr-defined]
    for name, text in types.items():
        known[name].type = text
    return tuple(known.values())


def _slotted(plain: type[Record], names: tuple[str, ...], methods: dict[str, Any]) -> type[Record]:
    """The class again, each field in a slot, with those methods that it has not."""
    inherited = {name for kind in plain.__mro__[1:] for name in getattr(kind, "__slots__", ())}
    left_out = {*names, "__dict__", "__weakref__"}
    body = methods | {name: value for name, value in vars(plain).items() if name not in left_out}
    body["__slots__"] = tuple(name for name in names if name not in inherited)
    kind: Callable[..., type[Record]] = type(plain)
    slotted = kind(plain.__name__, plain.__bases__, body)
    slotted.__qualname__ = plain.__qualname__
    return slotted


def methods_of(
    known: tuple[Field[Any], ...], eq: bool, frozen: bool, last: str = ""
) -> dict[str, Any]:
    """What `dataclass` adds to a class with these fields. `last`: a statement that ends `__init__`."""
    methods: dict[str, Any] = {
        "__init__": _init_when_used(known, last),
        "__match_args__": tuple(item.name for item in known if item.init and not item.kw_only),
        "__repr__": _text(tuple(item.name for item in known if item.repr)),
    }
    if eq:
        values = _values(tuple(item.name for item in known if item.compare))
        methods["__eq__"] = _comparison(values)
        methods["__hash__"] = _hash(values) if frozen else None
    return methods


def _init_when_used(known: tuple[Field[Any], ...], last: str) -> Callable[..., None]:
    """An `__init__` that puts the compiled one into its place when it is called first.

    It goes on working for whoever kept it, or calls it while another thread puts that one into its place.
    """
    compiled: Callable[..., None] | None = None

    def init(self: Any, *values: Any, **named: Any) -> None:
        nonlocal compiled
        if compiled is None:
            owners = (kind for kind in type(self).__mro__ if vars(kind).get("__init__") is init)
            owner = next(owners, type(self))
            made = _init(owner, known, last)
            if vars(owner).get("__init__") is init:
                owner.__init__ = made  # type: ignore[misc]
            compiled = made
        compiled(self, *values, **named)

    return init


def _init(owner: type, known: tuple[Field[Any], ...], last: str) -> Callable[..., None]:
    """`def __init__(self, name, number=_default1, *, spans=_made): …`; `_made`: by the factory."""
    scope: dict[str, Any] = {"_made": object()}
    ordered: list[str] = ["self"]
    named: list[str] = []
    lines: list[str] = []
    for place, item in enumerate(known):
        value, default = item.name, ""
        if item.default is not MISSING:
            scope[f"_default{place}"], default = item.default, f"=_default{place}"
        elif item.default_factory is not MISSING:
            scope[f"_factory{place}"], default = item.default_factory, "=_made"
            value = f"_factory{place}() if {item.name} is _made else {item.name}"
        if item.init:
            (named if item.kw_only else ordered).append(item.name + default)
        elif default:
            lines.append(f"{item.name}{default}")
        if item.init or default:
            lines.append(f"self.{item.name} = {value}")
    parameters = ", ".join([*ordered, *(["*", *named] if named else [])])
    body = "\n    ".join([*lines, last or "pass"])
    exec(f"def __init__({parameters}):\n    {body}", scope)
    init: Callable[..., None] = scope["__init__"]
    init.__qualname__ = f"{owner.__qualname__}.__init__"  # for messages of wrong calls
    return init


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
