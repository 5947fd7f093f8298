"""Makes the classes of libcst quick to define, in a process that is the command's own.

They are some 200 dataclasses, and the standard decorator compiles up to six methods for each, which
is more than half of libcst's import and would be a third of a run of the command. While libcst is
imported here, `dataclass` is replaced in the whole process, and the classes of libcst get the
methods of our own records instead. These differ from the standard ones:

- no `__setattr__` and `__delattr__` that raise `FrozenInstanceError`: that nothing assigns to a
  node is for the type checker to say;
- `__init__` has the parameters `(self, *values, **named)` until the class is first used and no
  annotations ever: `inspect.signature` and `get_type_hints` tell nothing of it;
- a class without a docstring has its name there, not its signature;
- `__repr__` does not stop at a value that contains itself, and a value equals itself whatever its
  fields are.

So nothing is done unless the command asked for it (`choose`): where tile2c is a library, libcst may
have other users, who get the classes that they know. Modules that kept the replaced decorator get
the standard one back, and what derives from a node later is a dataclass as ever.
"""

from __future__ import annotations

import sys
from typing import Any

_chosen = False


def choose() -> None:
    """Says that this process is the command's own; to be called before libcst is imported."""
    global _chosen
    _chosen = True


def import_libcst() -> None:
    """Imports libcst, with quick classes if that was chosen and no one has imported it yet."""
    if not _chosen or "libcst" in sys.modules:
        return
    import dataclasses

    standard, frozen = dataclasses.dataclass, list[Any]()
    quick = _decorator(standard, frozen)
    dataclasses.dataclass = quick
    try:
        import libcst as libcst
    finally:
        dataclasses.dataclass = standard
        _put_back(quick, standard)
    for kind in frozen:  # what derives from one later has to be frozen, as ever
        kind.__dataclass_params__.frozen = True


def _decorator(standard: Any, frozen: list[Any]) -> Any:
    """`dataclass`, as libcst's modules see it. `frozen` receives the classes that should be."""
    from dataclasses import fields

    from tile2c.transpile.record import methods_of

    def quick(cls: type | None = None, /, **options: Any) -> Any:
        def made(plain: Any) -> Any:
            if not plain.__module__.startswith("libcst.") or options.keys() - {"frozen"}:
                return standard(plain, **options)
            plain.__doc__ = plain.__doc__ or plain.__name__  # or its signature is worked out
            standard(plain, init=False, repr=False, eq=False)
            is_frozen = options.get("frozen", False)
            last = "self.__post_init__()" if hasattr(plain, "__post_init__") else ""
            methods = methods_of(fields(plain), eq=True, frozen=is_frozen, last=last)
            for name, method in methods.items():
                if name not in vars(plain):
                    setattr(plain, name, method)
            if is_frozen:
                frozen.append(plain)
            return plain

        return made if cls is None else made(cls)

    return quick


def _put_back(quick: Any, standard: Any) -> None:
    """In the modules that took the decorator by name."""
    for module in list(sys.modules.values()):
        kept = getattr(module, "__dict__", {})
        for name in [name for name, value in kept.items() if value is quick]:
            kept[name] = standard
