"""Bounds of sums on their way out: a rounded pair is bounded at once, in half the instructions.

Rounding keeps order, so max(x, 0) may be taken before it or after; a bound has to be a number of the narrow
type. Neither way gives anything but the bound for NaN.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tile2c.transpile.ir.dtypes import DType
from tile2c.transpile.ir.expr import Binary, Buffer, Cast, Const, Expr
from tile2c.transpile.ir.forms import Parallel, Stmt, Store
from tile2c.transpile.ir.walk import reads, statements, writes
from tile2c.transpile.lower.simt.frames import Frames
from tile2c.transpile.lower.simt.hopper.store import Bound, Passage
from tile2c.transpile.record import record


@record(kw_only=True)
class Bounded:
    """Statements of a block, and the passages of its sums by the loop each stands for."""

    body: tuple[Stmt, ...]
    passages: dict[int, Passage]


def with_late_bounds(
    body: Sequence[Stmt], passages: Mapping[int, Passage], frames: Frames
) -> Bounded:
    """Moves bounds from the loop before a passage into it, where nothing else sees the sums after that loop.

    reads   tile IR with copies as loops      writes  the same; the changed loop has the old one's layout
    """
    found, moved = list(body), dict(passages)
    for at, stmt in enumerate(body):
        passage = passages.get(id(stmt))
        if passage is None or at == 0:
            continue
        sums, loop = passage.copy.src.buffer, body[at - 1]
        if sums in _touched(body[at + 1 :]) or not isinstance(loop, Parallel):
            continue
        store = loop.body[0]
        if len(loop.body) > 1 or not isinstance(store, Store) or store.buffer != sums:
            continue
        if store.index != loop.loop_vars or loop.extents != sums.shape:
            continue
        value, bounds = _taken_off(store.value, passage.copy.dst.buffer.dtype)
        if not bounds:
            continue
        changed = replace(loop, body=(replace(store, value=value),))
        layout = frames.of(loop)
        if layout is not None:
            frames.loops[id(changed)] = layout
        found[at - 1] = changed
        moved[id(stmt)] = replace(passage, bounds=bounds)
    return Bounded(body=tuple(found), passages=moved)


def _touched(body: Sequence[Stmt]) -> set[Buffer]:
    """Buffers that statements read or write, nested ones too."""
    return {x for stmt in statements(tuple(body)) for x in (*reads(stmt), *writes(stmt))}


def _taken_off(value: Expr, dtype: DType) -> tuple[Expr, tuple[Bound, ...]]:
    """What is bounded, and the bounds in the order they hold in."""
    if not isinstance(value, Binary) or value.op not in ("max", "min"):
        return value, ()
    bound = value.b if _number(value.b) is not None else value.a
    inner = value.a if bound is value.b else value.b
    number = _number(bound)
    if number is None or _number(inner) is not None or not _holds(dtype, number):
        return value, ()
    rest, bounds = _taken_off(inner, dtype)
    return rest, (*bounds, Bound(op=value.op, value=bound))


def _number(value: Expr) -> float | None:
    """The float that the expression is known to be."""
    if isinstance(value, Cast) and value.dtype.name == "float32":
        value = value.a
    return float(value.value) if isinstance(value, Const) else None


def _holds(dtype: DType, value: float) -> bool:
    """Whether the number is one of the type."""
    if dtype.name == "bfloat16":  # the upper half of a float
        form, mask = "<f", 0xFFFF
    else:
        form, mask = "<e", 0
    try:
        bits = struct.pack(form, value)
    except OverflowError:
        return False
    (back,) = struct.unpack(form, bits)
    return bool(back == value) and not int.from_bytes(bits, "little") & mask
