"""Finds the product at which sums start: it overwrites them, so that nobody has to clear L0C.

reads   tile IR with `Begin`        writes  the same with each gemm as `Product`
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tile2c.transpile.diagnostics.diagnostic import Note, failure
from tile2c.transpile.ir import forms, walk
from tile2c.transpile.ir.dtypes import BOOL, INT32
from tile2c.transpile.ir.expr import Binary, Compare, Const, Expr, Logical, const
from tile2c.transpile.ir.forms import Stmt
from tile2c.transpile.lower.cores.cube.forms import Begin, Product
from tile2c.transpile.lower.cores.cube.roles import touches
from tile2c.transpile.lower.cores.extents import clip_of
from tile2c.transpile.lower.facts import Facts
from tile2c.transpile.lower.rewrite import rewrite

_ALWAYS = Const(dtype=BOOL, value=True)
_NEVER = Const(dtype=BOOL, value=False)


def begin_sums(body: tuple[Stmt, ...], sums: Collection[str], facts: Facts) -> tuple[Stmt, ...]:
    """The body with products that know whether they are the first on each of these `sums`.

    Raises InputError where sums may be read before any product has made them.
    """
    return _Beginner(sums, facts, body).lower(body)


class _Beginner:
    def __init__(self, sums: Collection[str], facts: Facts, body: tuple[Stmt, ...]) -> None:
        self.sums = sums
        self.facts = facts
        self.body = body

    def lower(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Each `Begin` meets the next statement that touches its sums."""
        new: list[Stmt] = []
        waiting: dict[str, Begin] = {}
        for stmt in body:
            if isinstance(stmt, forms.Let):
                self.facts = self.facts.with_meaning(stmt.var, stmt.value)
            if isinstance(stmt, Begin) and stmt.sums.name in self.sums:
                waiting[stmt.sums.name] = stmt
                new.append(stmt)
                continue
            for name in [name for name in waiting if touches(stmt, name)]:
                stmt = self.first(stmt, name, _ALWAYS, waiting.pop(name))
            new.append(self.others(stmt))
        for begun in waiting.values():
            raise self.unmade(begun, begun)
        return tuple(new)

    def others(self, stmt: Stmt) -> Stmt:
        """Products that go on, and lists inside that have starts of their own."""
        if isinstance(stmt, forms.Gemm) and not isinstance(stmt, Product):
            return _product(stmt, stmt.clear)
        if isinstance(stmt, forms.For | forms.Pipelined | forms.While):
            return replace(stmt, body=self.lower(stmt.body))
        if isinstance(stmt, forms.If):
            return replace(stmt, then=self.lower(stmt.then), orelse=self.lower(stmt.orelse))
        return stmt

    def first(self, stmt: Stmt, name: str, when: Expr, begun: Begin) -> Stmt:
        """The statement with its first product on these sums overwriting them where `when` holds."""
        bias = name if begun.bias is not None else ""
        if isinstance(stmt, forms.Gemm) and stmt.c.buffer.name == name:
            return replace(_product(stmt, when), bias=bias)
        if not isinstance(stmt, forms.For | forms.Pipelined):
            raise self.unmade(stmt, begun)
        step = stmt.step if isinstance(stmt, forms.For) else 1
        if step < 1:
            raise self.unmade(stmt, begun)
        place = next(place for place, inner in enumerate(stmt.body) if touches(inner, name))
        round_one = Compare(dtype=BOOL, op="==", a=stmt.var, b=stmt.start)
        here: Expr = round_one
        if when != _ALWAYS:
            here = Logical(dtype=BOOL, op="and", a=when, b=round_one)
        inner = self.first(stmt.body[place], name, here, begun)
        stmt = replace(stmt, body=(*stmt.body[:place], inner, *stmt.body[place + 1 :]))
        return self.at_least_once(stmt, name, begun)

    def at_least_once(
        self, loop: forms.For | forms.Pipelined, name: str, begun: Begin
    ) -> forms.For | forms.Pipelined:
        """A loop that may run no round runs one of nothing but zeros, which makes the sums."""
        if self.facts.less(loop.start, loop.stop):
            return loop
        if not self.only_zeros(loop, name):
            raise self.unmade(loop, begun)
        one = Binary(dtype=INT32, op="+", a=loop.start, b=const(1))
        least: Expr = const(1) if loop.start == const(0) else one
        return replace(loop, stop=Binary(dtype=INT32, op="max", a=loop.stop, b=least))

    def only_zeros(self, loop: forms.For | forms.Pipelined, name: str) -> bool:
        """Whether the first round would multiply what lies outside of the tensors, were there none.

        Then a copy of an operand finds nothing along K, and nothing else may happen.
        """
        none = Compare(dtype=BOOL, op="<=", a=loop.stop, b=loop.start)
        facts = self.facts.with_condition(none)

        def at_first(part: Expr) -> Expr | None:
            return loop.start if part == loop.var else None

        empty: set[str] = set()
        for stmt in loop.body:
            if isinstance(stmt, Product) and stmt.c.buffer.name == name:
                if not {stmt.a.buffer.name, stmt.b.buffer.name} & empty:
                    return False
                continue
            if isinstance(stmt, forms.Gemm) and _adds_zeros(stmt, empty):
                continue
            if not isinstance(stmt, forms.Let) and not self.stays_inside(stmt, loop):
                return False
            empty -= {b.name for inner in walk.statements((stmt,)) for b in walk.writes(inner)}
            if not isinstance(stmt, forms.Copy) or stmt.src.buffer.scope != "global":
                continue
            for part, bound in zip(stmt.src.ranges, stmt.src.buffer.shape, strict=True):
                start = rewrite(part.start, at_first)
                if clip_of(part.start, part.extent, bound, self.facts) is None:
                    continue
                rest = Binary(dtype=INT32, op="-", a=start, b=bound)
                nothing = Binary(dtype=INT32, op="-", a=const(0), b=bound)
                if facts.at_least(nothing, 0) or facts.at_least(rest, 0):
                    empty.add(stmt.dst.buffer.name)
        return True

    def stays_inside(self, stmt: Stmt, loop: Stmt) -> bool:
        """Whether a round more changes nothing that anything outside of the loop reads."""
        written = {b for part in walk.statements((stmt,)) for b in walk.writes(part)}
        if any(buffer.scope == "global" for buffer in written):
            return False
        return all(
            _readers(self.body, buffer.name) == _readers((loop,), buffer.name) for buffer in written
        )

    def unmade(self, stmt: Stmt, begun: Begin) -> Exception:
        return failure(
            "T2C571",
            f"{begun.sums.name} is cleared here, but what follows may leave it without any "
            "product, and the cube core has no other way to set its sums",
            begun.span or stmt.span,
            notes=() if stmt is begun else (Note(_doubt(stmt, begun.sums.name), stmt.span),),
            help="let T.clear be followed by T.gemm, or by a loop over tiles of K with it inside",
        )


def _adds_zeros(gemm: forms.Gemm, empty: Collection[str]) -> bool:
    """Whether a product of two operands that are zeros everywhere leaves its sums as they are."""
    return gemm.clear == _NEVER and gemm.a.buffer.name in empty and gemm.b.buffer.name in empty


def _doubt(stmt: Stmt, name: str) -> str:
    if isinstance(stmt, forms.For | forms.Pipelined):
        return f"this loop may run no round, and a round too many would not leave {name} at zeros"
    return f"this is the next statement that uses {name}, and it may do so without a product"


def _readers(body: tuple[Stmt, ...], name: str) -> int:
    """How many statements read a buffer."""
    return sum(
        any(used.name == name for used in walk.reads(stmt)) for stmt in walk.statements(body)
    )


def _product(stmt: forms.Gemm, first: Expr) -> Product:
    if stmt.clear != _NEVER and first != stmt.clear:
        first = Logical(dtype=BOOL, op="or", a=stmt.clear, b=first)
    return Product(
        a=stmt.a,
        b=stmt.b,
        c=stmt.c,
        transpose_a=stmt.transpose_a,
        transpose_b=stmt.transpose_b,
        policy=stmt.policy,
        clear=stmt.clear,
        first=first,
        span=stmt.span,
        quote=stmt.quote,
        comments=stmt.comments,
        remark=stmt.remark,
    )
