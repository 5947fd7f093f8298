"""Comparisons that give one bit for each element, and choices by such bits.

reads   values in local memory        writes  calls of Compare and Select
why     integers are only compared for being equal: a >= b where a is the larger of both, a < b where
        that does not hold. A choice between integers moves their bits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tile2c.transpile.ir.dtypes import DTYPES, DType
from tile2c.transpile.ir.expr import Expr, const
from tile2c.transpile.lower.cores.plan import TileRef, VectorCall, Word
from tile2c.transpile.lower.cores.values import Kind, Value

if TYPE_CHECKING:
    from tile2c.transpile.lower.cores.calls import Calls

_OPPOSITES = {"<": ">=", ">": "<=", "!=": "=="}
_MODES = {"<": "LT", "<=": "LE", ">": "GT", ">=": "GE", "==": "EQ", "!=": "NE"}
_EXTREMES = {">=": "Max", "<=": "Min"}
_FLOAT_LIKE = {2: "float16", 4: "float32"}


def sided(op: str, dtype: DType) -> tuple[str, bool]:
    """The comparison to do, and whether it holds where `op` does not."""
    if dtype.is_integer and op in _OPPOSITES:
        return _OPPOSITES[op], True
    return op, False


def compared(calls: Calls, op: str, left: Value, right: Value, kind: Kind) -> Value:
    """A mask of that shape: where `left op right`, over whole repeats as the unit demands."""
    lanes = calls.tiles.repeat(left.dtype)
    count = -(-calls.shape.most(kind) // lanes) * lanes
    bits = DTYPES["uint8"]
    name = calls.tiles.borrow("mask", bits, count // 8)
    mask = Value(kind=kind, dtype=bits, ref=TileRef(tile=name), pitch=calls.shape.pitch)
    if left.dtype.is_integer and op != "==":
        extreme = _extreme(calls, op, left, right)
        _compare(calls, "==", mask, extreme, left, count)
        calls.tiles.give_back(extreme.at.tile)
    else:
        _compare(calls, op, mask, left, right, count)
    return mask


def _extreme(calls: Calls, op: str, left: Value, right: Value) -> Value:
    """The larger of each two, or the smaller."""
    name = calls.tiles.borrow("extreme", left.dtype, calls.shape.most(left.kind))
    extreme = Value(
        kind=left.kind, dtype=left.dtype, ref=TileRef(tile=name), pitch=calls.shape.pitch
    )
    function = _EXTREMES[op] + ("s" if right.kind == "scalar" else "")
    calls.elementwise(function, extreme, (left, right))
    return extreme


def _compare(calls: Calls, op: str, mask: Value, left: Value, right: Value, count: int) -> None:
    operands: list[TileRef | Expr] = []
    for value in (left, right):
        if value.kind == "scalar":
            operands.append(value.number)
        else:
            operands.append(value.at)
            calls.tiles.whole_repeats.add(value.at.tile)
    function = "CompareScalar" if right.kind == "scalar" else "Compare"
    how = Word(text=f"CMPMODE::{_MODES[op]}")
    remark = "the unit compares integers for being equal only" if left.dtype.is_integer else ""
    arguments = (*operands, how, const(count))
    calls.emit(VectorCall(function=function, dst=mask.at, arguments=arguments, remark=remark))


def choose(calls: Calls, out: Value, mask: Value, a: Value, b: Value) -> None:
    """out = a where the mask says so, else b, which may be a number if it is a float."""
    if out.dtype.is_integer:
        seen = DTYPES[_FLOAT_LIKE[out.dtype.bytes]]
        out, a, b = (_as(value, seen) for value in (out, a, b))
    scalar = b.kind == "scalar"
    word = "VSEL_TENSOR_SCALAR_MODE" if scalar else "VSEL_TENSOR_TENSOR_MODE"
    calls.elementwise("Select", out, (mask, a, b), Word(text=f"SELMODE::{word}"))


def _as(value: Value, dtype: DType) -> Value:
    return replace(value, ref=replace(value.at, view=dtype), dtype=dtype)
