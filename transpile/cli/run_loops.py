"""By what the loops of a tile program divide run-time extents: how far one round of each gets."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

from tile2c.transpile.record import record

if TYPE_CHECKING:
    from tile2c.transpile.ir.expr import Expr
    from tile2c.transpile.ir.forms import Function

ROUNDS = 3  # enough to carry something over twice, the second time from a round that did so too
DIVISIONS = ("ceildiv", "//", "truncdiv", "/")


@record
class Step:
    """A round of a loop: elements of the size that it takes; rounds that show all of the loop."""

    elements: int
    rounds: int = ROUNDS


def loop_steps(function: Function) -> dict[str, tuple[Step, ...]]:
    """For each size or scalar, the steps of the loops over tiles of it: 192 of `ceildiv(N, 192)`.

    A loop over single elements has none: any size gives it rounds.
    """
    from tile2c.transpile.ir import forms
    from tile2c.transpile.ir.walk import statements

    found: dict[str, set[Step]] = {}
    for launch in function.launches:
        lets: dict[str, Expr] = {}
        for stmt in statements(launch.body):
            if isinstance(stmt, forms.Let):
                lets[stmt.var.name] = stmt.value
            if not isinstance(stmt, forms.For | forms.Pipelined):
                continue
            ahead = int(stmt.num_stages.value) if isinstance(stmt, forms.Pipelined) else 0
            each = stmt.step if isinstance(stmt, forms.For) else 1
            for name, elements in _divided(stmt.stop, Fraction(each), lets):
                if elements > 1:
                    rounds = max(ROUNDS, ahead + 1)
                    found.setdefault(name, set()).add(Step(ceil(elements), rounds))
    return {
        name: tuple(sorted(steps, key=lambda step: (step.elements, step.rounds)))
        for name, steps in found.items()
    }


def _divided(expr: Expr, by: Fraction, lets: dict[str, Expr]) -> Iterator[tuple[str, Fraction]]:
    """The names in a bound, each with how much of it makes the bound larger by one round."""
    from tile2c.transpile.ir.expr import Binary, Cast, Const, Select, Var

    match expr:
        case Var() if expr.name in lets:
            yield from _divided(
                lets[expr.name], by, {k: v for k, v in lets.items() if k != expr.name}
            )
        case Var():
            yield expr.name, by
        case Cast():
            yield from _divided(expr.a, by, lets)
        case Select():
            yield from _divided(expr.a, by, lets)
            yield from _divided(expr.b, by, lets)
        case Binary(op="+" | "-" | "min" | "max"):
            yield from _divided(expr.a, by, lets)
            yield from _divided(expr.b, by, lets)
        case Binary(b=Const(value=int(value))) if value > 0 and expr.op in DIVISIONS:
            yield from _divided(expr.a, by * value, lets)
        case Binary(op=">>", b=Const(value=int(value))) if 0 <= value < 32:
            yield from _divided(expr.a, by * 2**value, lets)
        case Binary(op="*", b=Const(value=int(value))) if value > 0:
            yield from _divided(expr.a, by / value, lets)
        case Binary(op="*", a=Const(value=int(value))) if value > 0:
            yield from _divided(expr.b, by / value, lets)
        case _:
            return
