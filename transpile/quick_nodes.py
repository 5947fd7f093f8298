"""Makes the classes of libcst quick to define; to be imported before libcst is.

They are some 200 dataclasses, and the standard decorator compiles up to six methods for each, which
is more than half of libcst's import and would be a third of a run of the command. While libcst is
imported here, they get the methods of our own records instead, and go without those that refuse
assignments: that nothing assigns to a node is for the type checker to say.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

from tile2c.transpile.record import methods_of

_standard = dataclasses.dataclass
_frozen: list[Any] = []


def _quick(cls: type | None = None, /, **options: Any) -> Any:
    """`dataclass`, as libcst's modules see it."""

    def made(plain: Any) -> Any:
        if not plain.__module__.startswith("libcst.") or options.keys() - {"frozen"}:
            return _standard(plain, **options)
        plain.__doc__ = plain.__doc__ or plain.__name__  # or its signature is worked out
        _standard(plain, init=False, repr=False, eq=False)
        frozen = options.get("frozen", False)
        last = "self.__post_init__()" if hasattr(plain, "__post_init__") else ""
        methods = methods_of(dataclasses.fields(plain), eq=True, frozen=frozen, last=last)
        for name, method in methods.items():
            if name not in vars(plain):
                setattr(plain, name, method)
        if frozen:
            _frozen.append(plain)
        return plain

    return made if cls is None else made(cls)


if "libcst" not in sys.modules:
    dataclasses.dataclass = _quick
    try:
        import libcst as libcst
    finally:
        dataclasses.dataclass = _standard
    for kind in _frozen:  # what derives from one later has to be frozen, as ever
        kind.__dataclass_params__.frozen = True
