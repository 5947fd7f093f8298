"""Operands of matrix instructions that stay in registers: whether a fragment's layout is the operand's.

A result's map can be an operand's (hopper.md 4.6): then the product of one gemm feeds the next without
a move. Layouts need not be equal: value digits may be split or stored otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from typing import Literal

from tile2c.transpile.ir.expr import Binary, Expr, const
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.simt.layouts import Digit, Layout
from tile2c.transpile.lower.simt.values import storage_subscripts
from tile2c.transpile.record import record

Part = Literal["fragment", "tile", "step"]


@record
class _Term:
    """What a value digit of the operand adds to a digit of the fragment: (part / by % extent) * times."""

    part: Part
    by: int
    extent: int
    times: int
    last: bool  # nothing of the part is left above


@record
class Held:
    """Where a thread keeps the elements of an operand."""

    layout: Layout
    terms: tuple[tuple[int, Digit, tuple[_Term, ...]], ...]

    def subscripts(self, parts: Mapping[Part, Expr]) -> tuple[Expr, ...]:
        """Subscripts of an element: of `fragment` (its value index), `tile` and `step` (of k)."""
        digits: dict[tuple[int, Digit], Expr] = {}
        for dim, digit, terms in self.terms:
            values = [_said(parts[term.part], term) for term in terms]
            digits[(dim, digit)] = b.add(*reversed(values)) if values else const(0)
        return storage_subscripts(self.layout, digits)


def _said(value: Expr, term: _Term) -> Expr:
    """value / by % extent * times, in as few words as the value's own factor or divisor allows.

    A value is `i`, `i * factor`, or `i / divisor` for a multiple i of the divisor.
    """
    factor = divisor = 1
    if isinstance(value, Binary) and value.op in ("*", "truncdiv"):
        number = b.known(value.b)
        if number is not None:
            factor, divisor = (number, 1) if value.op == "*" else (1, number)
            value = value.a
    whole = term.by == 1  # the division leaves no rest
    common = gcd(factor, divisor * term.by)
    factor, divisor = factor // common, divisor * term.by // common
    if not term.last:
        if divisor == 1 and factor % term.extent == 0:
            return const(0)
        part = b.div(b.mul(value, const(factor)), const(divisor))
        return b.mul(b.mod(part, const(term.extent)), const(term.times))
    if whole and divisor % term.times == 0:
        return b.div(b.mul(value, const(factor)), const(divisor // term.times))
    return b.mul(b.div(b.mul(value, const(factor)), const(divisor)), const(term.times))


def held(layout: Layout, operand: Layout, neighbours: int) -> Held | None:
    """How `layout` serves as `operand`, whose axes are steps of k, tiles and one fragment's values.

    `neighbours`: values that one register (or vector) takes; they have to be neighbours in storage.
    """
    if layout.shape != operand.shape:
        return None
    steps, tiles, _ = operand.axes
    found: list[tuple[int, Digit, tuple[_Term, ...]]] = []
    for dim in range(len(layout.dims)):
        if _threads(layout, dim) != _threads(operand, dim):
            return None
        if layout.reach(dim) != operand.reach(dim):
            return None
        for digit in layout.dims[dim]:
            if digit.holder == "value":
                terms = _terms(layout, operand, dim, digit, tiles.weight, steps.weight)
                if terms is None:
                    return None
                found.append((dim, digit, terms))
    if neighbours > 1 and not _neighbours(found, neighbours):
        return None
    return Held(layout, tuple(found))


def _threads(layout: Layout, dim: int) -> list[tuple[int, int, int]]:
    return [
        (layout.place(dim, digit), digit.extent, digit.weight)
        for digit in layout.dims[dim]
        if digit.holder == "thread" and digit.extent > 1
    ]


def _terms(
    layout: Layout, operand: Layout, dim: int, digit: Digit, tile: int, step: int
) -> tuple[_Term, ...] | None:
    """How the operand's value digits make up one of the fragment's; None where they straddle it."""
    low = layout.place(dim, digit)
    high = low * digit.extent
    found: list[_Term] = []
    for other in operand.dims[dim]:
        start = operand.place(dim, other)
        stop = start * other.extent
        if other.holder != "value" or stop <= low or start >= high:
            continue
        if start % low and low % start:
            return None
        part: Part = (
            "step" if other.weight >= step else "tile" if other.weight >= tile else "fragment"
        )
        unit = {"step": step, "tile": tile, "fragment": 1}[part]
        by, times = other.weight // unit, 1
        first, last = max(start, low), min(stop, high)
        by *= first // start
        times = first // low
        top = last == stop
        if part == "fragment":
            top = by * (last // first) >= operand.axes[2].extent
        found.append(_Term(part, by, last // first, times, top))
    return tuple(found)


def _neighbours(found: list[tuple[int, Digit, tuple[_Term, ...]]], count: int) -> bool:
    """Whether values 0 .. count of a fragment are consecutive in storage."""
    for value in range(count):
        at = 0
        for _, digit, terms in found:
            for term in terms:
                if term.part == "fragment":
                    at += value // term.by % term.extent * term.times * digit.weight
        if at != value:
            return False
    return True
