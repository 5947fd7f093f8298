"""What statements and steps mention: tensors, variables, constants, kinds of numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass

from tile2c.transpile.ir.dtypes import DType
from tile2c.transpile.ir.expr import Const, Load, Var
from tile2c.transpile.ir.forms import Atomic, Function, Stmt
from tile2c.transpile.ir.walk import reads, statements, writes
from tile2c.transpile.lower.plan import Arc, CCall, CStmt, Loop, TensorMap


def global_uses(body: Sequence[Stmt]) -> tuple[set[str], set[str]]:
    """Names of the tensors that are read, and of those that are written."""
    found: tuple[set[str], set[str]] = (set(), set())
    for stmt in statements(tuple(body)):
        for names, buffers in zip(found, (reads(stmt), writes(stmt)), strict=True):
            names |= {buffer.name for buffer in buffers if buffer.scope == "global"}
        if isinstance(stmt, Atomic) and stmt.buffer.scope == "global":
            found[0].add(stmt.buffer.name)
    return found


def mentions(value: object, name: str) -> bool:
    """Whether a variable or array occurs anywhere in the steps or statements."""
    if isinstance(value, Var):
        return value.name == name or value.name.startswith(f"{name}.")
    if isinstance(value, Load):
        return value.buffer.name == name
    if hasattr(value, "array") and value.array == name:
        return True
    if is_dataclass(value) and not isinstance(value, type | Arc | DType):
        return any(mentions(getattr(value, item.name), name) for item in fields(value))
    if isinstance(value, tuple | list):
        return any(mentions(part, name) for part in value)
    return False


def names_constant(value: object, name: str) -> bool:
    if isinstance(value, Const):
        return value.name == name
    if is_dataclass(value) and not isinstance(value, type | Arc | DType | TensorMap):
        return any(names_constant(getattr(value, item.name), name) for item in fields(value))
    if isinstance(value, tuple | list):
        return any(names_constant(part, name) for part in value)
    return False


def has_unrolled(value: object) -> bool:
    if isinstance(value, Loop) and value.unroll:
        return True
    if isinstance(value, CStmt):
        return any(has_unrolled(getattr(value, item.name)) for item in fields(value))
    return isinstance(value, tuple) and any(has_unrolled(part) for part in value)


def has_number(value: object, kind: Callable[[float], bool]) -> bool:
    if isinstance(value, Const):
        return isinstance(value.value, float) and kind(value.value)
    if is_dataclass(value) and not isinstance(value, type | Arc | DType):
        return any(has_number(getattr(value, item.name), kind) for item in fields(value))
    if isinstance(value, tuple | list):
        return any(has_number(part, kind) for part in value)
    return False


def with_hidden(
    constants: tuple[Const, ...], helpers: Sequence[object], function: Function
) -> tuple[Const, ...]:
    """Constants that only a helper's text names (dimensions of the shared struct)."""
    texts = " ".join(str(field) for helper in helpers for field in helper.fields)  # type: ignore[attr-defined]

    words = set(re.findall(r"\w+", texts))
    chosen = {c.name for c in constants}
    return tuple(c for c in function.constants if c.name in chosen or c.name in words)


def calls(value: object, function: str) -> bool:
    """Whether the steps call this function."""
    if isinstance(value, CCall) and value.function == function:
        return True
    if is_dataclass(value) and not isinstance(value, type | Arc | DType):
        return any(calls(getattr(value, item.name), function) for item in fields(value))
    return isinstance(value, tuple | list) and any(calls(part, function) for part in value)
