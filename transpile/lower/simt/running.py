"""Pointers that run along with a pipelined loop: each call of its loads leaves them at the next tile.

An address that is worked out from the round's number costs a chain of multiplications behind the
barrier, where the products wait for it; an addition at the end of the loads does not.
"""

from __future__ import annotations

from dataclasses import field

from tile2c.transpile.ir.dtypes import INT32, DType
from tile2c.transpile.ir.expr import Binary, Buffer, Const, Expr, Var, const
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.facts import linear
from tile2c.transpile.lower.plan import Assign, CStmt, Declarator, Local, Wide
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.record import record


@record(frozen=False)
class Running:
    """The pointers of one loop: what declares them in front of the loads, and what moves them on."""

    var: Var
    start: Expr  # of the loop, as the text has it
    names: dict[str, Expr] = field(default_factory=dict)  # bound in each round: what they mean
    declared: list[CStmt] = field(default_factory=list)
    advanced: list[CStmt] = field(default_factory=list)

    def add(self, name: str, dtype: DType, ctype: str, first: Expr, step: Expr) -> None:
        """A pointer that starts at `first` and moves by `step` elements a round."""
        pointer = Declarator(name=name, value=first)
        self.declared.append(Local(dtype=dtype, ctype=ctype, const=False, names=(pointer,)))
        self.advanced.append(Assign(target=b.local(name), value=step, op="+="))

    def bind(self, var: Var, value: Expr) -> None:
        """A name that is bound in each round, known to pointers by what it means."""
        self.names[var.name] = b.substitute(value, self.names)

    def spelled(self, index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The index without names that only exist inside a round."""
        return tuple(b.substitute(part, self.names) for part in index)


def step_of(ctx: Context, var: Var, buffer: Buffer, index: tuple[Expr, ...]) -> Expr | None:
    """Elements by which the place moves in a round; None where it does not move by the same each."""
    total: Expr = const(0)
    pitches = ctx.pitch(buffer)
    for dim, (part, pitch) in enumerate(zip(index, pitches, strict=True)):
        factor = 0
        for atom, coefficient in linear(part).terms:
            if isinstance(atom, Var) and atom.name == var.name:
                factor += coefficient
            elif b.mentions(atom, var.name):
                return None
        if not factor:
            continue
        count: Expr = _named(part, var, factor)
        if ctx.wide(buffer) and dim < len(pitches) - 1:
            count = Wide(dtype=INT32, a=count)
        total = b.add(total, b.times(count, b.in_words(pitch)))
    return None if b.literal(total, 0) else total


def _named(part: Expr, var: Var, factor: int) -> Const:
    """The factor as the author wrote it: `block_K` in `ko * block_K`."""
    for found in b.walk(part):
        if isinstance(found, Binary) and found.op == "*":
            for one, other in ((found.a, found.b), (found.b, found.a)):
                moves = b.mentions(one, var.name) and (var, 1) in linear(one).terms
                if moves and isinstance(other, Const) and other.value == factor:
                    return other
    return const(factor)
