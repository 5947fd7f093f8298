"""What statements and steps mention: tensors, variables, constants, kinds of numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import is_dataclass
from functools import cache

from tile2c.transpile.diagnostics import Span
from tile2c.transpile.ir.dtypes import DType
from tile2c.transpile.ir.expr import Const, Load, Var
from tile2c.transpile.ir.forms import Atomic, Function, Stmt
from tile2c.transpile.ir.walk import reads, statements, writes
from tile2c.transpile.lower.plan import Arc, CCall, Loop, TensorMap
from tile2c.transpile.record import inner_names


def global_uses(body: Sequence[Stmt]) -> tuple[set[str], set[str]]:
    """Names of the tensors that are read, and of those that are written."""
    found: tuple[set[str], set[str]] = (set(), set())
    for stmt in statements(tuple(body)):
        for names, buffers in zip(found, (reads(stmt), writes(stmt)), strict=True):
            names |= {buffer.name for buffer in buffers if buffer.scope == "global"}
        if isinstance(stmt, Atomic) and stmt.buffer.scope == "global":
            found[0].add(stmt.buffer.name)
    return found


def names_in(value: object) -> set[str]:
    """Variables and arrays that occur in the steps or statements; of `a.b` also `a`."""
    found: set[str] = set()
    for part in parts(value):
        if isinstance(part, Var):
            found |= {part.name, part.name.partition(".")[0]}
        elif isinstance(part, Load):
            found.add(part.buffer.name)
        elif hasattr(part, "array"):
            found.add(part.array)
    return found


def constants_in(value: object) -> set[str]:
    """Names of the constants that occur."""
    return {part.name for part in parts(value) if isinstance(part, Const) and part.name}


def has_unrolled(value: object) -> bool:
    """Whether a loop asks to be unrolled."""
    return any(isinstance(part, Loop) and part.unroll for part in parts(value))


def has_rolled(value: object) -> bool:
    """Whether a loop asks not to be unrolled."""
    return any(isinstance(part, Loop) and part.rolled for part in parts(value))


def has_rolled_unaligned(value: object) -> bool:
    """Whether a loop asks not to be unrolled where rows start anywhere."""
    return any(isinstance(part, Loop) and part.rolled_unaligned for part in parts(value))


def has_number(value: object, kind: Callable[[float], bool]) -> bool:
    """Whether a floating constant of this kind occurs."""
    return any(
        isinstance(part, Const) and isinstance(part.value, float) and kind(part.value)
        for part in parts(value)
    )


def functions_in(value: object) -> set[str]:
    """The functions that are called."""
    return {part.function for part in parts(value) if isinstance(part, CCall)}


def parts(value: object) -> Iterator[object]:
    """Statements, expressions and other forms below `value`, in no particular order.

    What a load reads is not looked into, nor are types, arcs and tensor maps.
    """
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, tuple | list):
            waiting.extend(part)
            continue
        kind = type(part)
        if _is_form(kind):  # type: ignore[arg-type]  # a type has a hash
            yield part
            if not isinstance(part, Load):
                waiting += [getattr(part, name) for name in inner_names(kind)]  # type: ignore[arg-type]


@cache
def _is_form(kind: type) -> bool:
    return is_dataclass(kind) and not issubclass(kind, Arc | DType | Span | TensorMap)


def with_hidden(
    constants: tuple[Const, ...], helpers: Sequence[object], function: Function
) -> tuple[Const, ...]:
    """Constants that only a helper's text names (dimensions of the shared struct)."""
    texts = " ".join(str(field) for helper in helpers for field in helper.fields)  # type: ignore[attr-defined]

    words = set(re.findall(r"\w+", texts))
    chosen = {c.name for c in constants}
    return tuple(c for c in function.constants if c.name in chosen or c.name in words)
