"""Makes the classes of libcst's nodes quick to define; to be imported before libcst is.

They are some 180 frozen dataclasses. The standard decorator compiles three methods for each, which
is more than half of libcst's import and would be a third of a run of the command. While libcst is
imported here, they get an `__init__` that is compiled when the first node of the class is made, and
go without those that refuse assignments: that nothing assigns to a node is for the type checker to
say, as for our own records. Classes that need more than an `__init__` stay with the decorator.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

from tile2c.transpile.record import init_when_used

_BROUGHT = ("__repr__", "__eq__", "__hash__")  # methods that nodes have from their base

_standard = dataclasses.dataclass
_nodes: list[Any] = []


def _quick(cls: type | None = None, /, **options: Any) -> Any:
    """`dataclass`, as libcst's modules see it."""

    def made(plain: Any) -> Any:
        if options != {"frozen": True} or not plain.__module__.startswith("libcst._nodes."):
            return _standard(plain, **options)
        plain.__doc__ = plain.__doc__ or plain.__name__  # or its signature is worked out
        if _lacks_only_init(plain):
            _standard(plain, init=False, repr=False, eq=False)
            known = dataclasses.fields(plain)
            plain.__init__ = init_when_used(known, last="self.__post_init__()")
        else:
            _standard(plain)
        _nodes.append(plain)
        return plain

    return made if cls is None else made(cls)


def _lacks_only_init(plain: Any) -> bool:
    own = vars(plain)
    fields = [*own.values(), *getattr(plain, "__dataclass_fields__", {}).values()]
    return (
        "__init__" not in own
        and all(name in own for name in _BROUGHT)
        and all(item.init for item in fields if isinstance(item, dataclasses.Field))
    )


if "libcst" not in sys.modules:
    dataclasses.dataclass = _quick  # type: ignore[assignment]
    try:
        import libcst as libcst
    finally:
        dataclasses.dataclass = _standard
    for node in _nodes:  # what derives from one later has to be frozen, as ever
        node.__dataclass_params__.frozen = True
