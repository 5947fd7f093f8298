"""Integers in a type that may not hold them: the bits above are dropped, where the unit's conversions
would give the nearest number that the type has.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tile2c.transpile.ir.dtypes import DTYPES, FLOAT32, DType
from tile2c.transpile.ir.expr import Binary, Call, Cast, Const, Expr, Select, Unary
from tile2c.transpile.lower.cores.calls import number_of
from tile2c.transpile.lower.cores.shifts import wrapped
from tile2c.transpile.lower.cores.values import Value

if TYPE_CHECKING:
    from tile2c.transpile.lower.cores.expressions import Vectors

Range = tuple[int, int]


class Narrowed:
    """Conversions of one parallel loop's expressions."""

    def __init__(self, vectors: Vectors) -> None:
        self.v = vectors

    def value(self, expr: Cast) -> Value | None:
        """What is converted, brought into the range of the type; None where it is there anyway."""
        source, dtype = expr.a.dtype, expr.dtype
        if not (source.is_integer and dtype.is_integer) or source.bits > 32:
            return None
        low, high = range_of(expr.a)
        least, most = range_of_type(dtype)
        if (least <= low and high <= most) or (source.name, dtype.name) not in self._conversions:
            return None
        if self.v.tiles.target.can("ShiftLeft", source.name):
            return self._by_shifts(expr)
        if source.bits <= 16 and (source.name, "float32") in self._conversions:
            a = self.v.cast(self.v.evaluate(expr.a), FLOAT32, None, expr.span)
            return wrapped(a, dtype, self.v)
        return None

    @property
    def _conversions(self) -> set[tuple[str, str]]:
        return set(self.v.tiles.target.conversions)

    def _by_shifts(self, expr: Cast) -> Value:
        """Up until the bits above are gone, and down again."""
        source, dtype = expr.a.dtype, expr.dtype
        spare = source.bits - dtype.bits
        value = self.v.evaluate(
            Binary(dtype=source, op="<<", a=expr.a, b=number_of(spare, source), span=expr.span)
        )
        down = source if dtype.kind == "int" else DTYPES[f"uint{source.bits}"]
        seen = replace(value, ref=replace(value.at, view=None if down == source else down))
        number = Value(kind="scalar", dtype=down, expr=number_of(spare, down))
        self.v.calls.elementwise("ShiftRight", seen, (seen, number))
        return value


def range_of(expr: Expr) -> Range:
    """The least and the largest number that an integer expression may be."""
    whole = range_of_type(expr.dtype)
    found = _range(expr)
    if found is None or found[0] < whole[0] or found[1] > whole[1]:
        return whole
    return found


def _range(expr: Expr) -> Range | None:
    match expr:
        case Const():
            return int(expr.value), int(expr.value)
        case Cast() if expr.a.dtype.is_integer:
            return range_of(expr.a)
        case Cast() if expr.a.dtype.kind == "bool":
            return 0, 1
        case Select():
            a, b = range_of(expr.a), range_of(expr.b)
            return min(a[0], b[0]), max(a[1], b[1])
        case Unary() if expr.op == "-":
            low, high = range_of(expr.a)
            return -high, -low
        case Call() if expr.function == "clamp":
            lower, upper = range_of(expr.args[1]), range_of(expr.args[2])
            return min(lower[0], upper[0]), upper[1]
        case Binary():
            return _of_two(expr)
    return None


def _of_two(expr: Binary) -> Range | None:
    a, b = range_of(expr.a), range_of(expr.b)
    match expr.op:
        case "+":
            return a[0] + b[0], a[1] + b[1]
        case "-":
            return a[0] - b[1], a[1] - b[0]
        case "*":
            ends = [x * y for x in a for y in b]
            return min(ends), max(ends)
        case "min":
            return min(a[0], b[0]), min(a[1], b[1])
        case "max":
            return max(a[0], b[0]), max(a[1], b[1])
        case "&" if b[0] >= 0:
            return 0, b[1]
        case "&" if a[0] >= 0:
            return 0, a[1]
        case "%" if b[0] > 0:
            return 0, b[1] - 1
        case ">>" if b[0] >= 0:
            ends = [x >> y for x in a for y in b]
            return min(ends), max(ends)
        case "//" if b[0] > 0:
            ends = [x // y for x in a for y in b]
            return min(ends), max(ends)
    return None


def range_of_type(dtype: DType) -> Range:
    """The least and the largest number of an integer type."""
    if dtype.kind == "int":
        return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1
    return 0, 2**dtype.bits - 1
