"""Copies of integers to a type that does not hold them all, as loops that drop the bits above.

reads   tile IR        writes  the same
"""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.ir import forms
from tile2c.transpile.ir.dtypes import DType
from tile2c.transpile.ir.forms import Stmt
from tile2c.transpile.lower.cores.narrowed import range_of_type
from tile2c.transpile.lower.desugar import copy_loop


def narrow_copies(launch: forms.Launch, taken: set[str]) -> forms.Launch:
    """The launch with such loops. New names are added to `taken`."""
    return replace(launch, body=tuple(_statement(stmt, taken) for stmt in launch.body))


def _statement(stmt: Stmt, taken: set[str]) -> Stmt:
    if isinstance(stmt, forms.Copy) and _narrows(stmt.src.buffer.dtype, stmt.dst.buffer.dtype):
        loop = copy_loop(stmt, frozenset(taken))
        taken |= {var.name for var in loop.loop_vars}
        return loop
    if isinstance(stmt, forms.For | forms.Pipelined | forms.While):
        return replace(stmt, body=tuple(_statement(inner, taken) for inner in stmt.body))
    if isinstance(stmt, forms.If):
        then, orelse = (
            tuple(_statement(inner, taken) for inner in side) for side in (stmt.then, stmt.orelse)
        )
        return replace(stmt, then=then, orelse=orelse)
    return stmt


def _narrows(source: DType, dtype: DType) -> bool:
    """Whether the type lacks some of the numbers; of 64 bits the unit only has the nearest."""
    if not (source.is_integer and dtype.is_integer) or source.bits > 32 or dtype.bits < 8:
        return False
    (low, high), (least, most) = range_of_type(source), range_of_type(dtype)
    return low < least or high > most
