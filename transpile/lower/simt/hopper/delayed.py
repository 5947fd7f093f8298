"""Loops whose rounds multiply twice: the second product of a round runs beside the work of the next.

A round of attention is: start S = Q K^T, wait, make P of S, start O += P V, wait. The matrix unit idles
while a warpgroup makes P. But O += P V of one round and everything up to P of the next do not touch each
other, so the former is started behind the next S = Q K^T and waited for when the next P is made
(hopper.md 4.2; FlashAttention-3 calls it overlap within a warpgroup). What is computed, and in which
order each sum grows, stays the author's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Expr, const
from tile2c.transpile.ir.forms import Gemm, Jump, Let, Stmt
from tile2c.transpile.ir.walk import names_bound, reads, statements, writes
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import (
    CCall,
    Choice,
    CStmt,
    Declarator,
    Do,
    Lambda,
    Local,
    Loop,
    Section,
)
from tile2c.transpile.lower.simt.hopper.calls import call, do
from tile2c.transpile.lower.simt.hopper.multiply import multiply
from tile2c.transpile.lower.simt.hopper.rings import RING
from tile2c.transpile.lower.simt.hopper.roles import Roles
from tile2c.transpile.lower.simt.hopper.unscaled import where_it_scales
from tile2c.transpile.lower.simt.hopper.warpgroups import consumer_registers
from tile2c.transpile.lower.simt.step_tree import flatten
from tile2c.transpile.lower.simt.steps import BranchStep, LoopStep, Node, Step
from tile2c.transpile.lower.simt.uses import names_in
from tile2c.transpile.record import record

if TYPE_CHECKING:
    from tile2c.transpile.lower.simt.hopper.consumer import ConsumerLowering

# Registers beside sums and operands that the longer lives of values take; with less to spare they spill.
_SPARE = 32


@record(kw_only=True)
class TwoProducts:
    """A round's statements: `ahead` of the first product, `between` the products, and of those the
    ones that the second product's operand or sums need (`closing`), which wait for the product before."""

    first: Gemm
    second: Gemm
    ahead: tuple[Stmt, ...]
    between: tuple[Stmt, ...]
    closing: tuple[Stmt, ...]


def two_products(roles: Roles, body: Sequence[Stmt]) -> TwoProducts | None:
    """The parts of a round whose second product may be late, or None where one of these does not hold.

    Two products, the second one last and with its first operand in registers; its sums and that operand
    are touched between the products only, by statements that nothing else there depends on; registers
    to spare.
    """
    if len(roles.batches) != 2 or any(len(batch) != 1 for batch in roles.batches):
        return None
    if all(ring.first == 0 for ring in roles.rings):
        return None  # nothing to wait for between the products, which keeps the waits apart
    (first,), (second,) = roles.batches
    if any(roles.products[id(x)].part for x in (first, second)):
        return None
    if second is not body[-1] or second.a.buffer.name not in roles.held:
        return None
    if any(isinstance(x, Let) for x in body):
        return None  # a name that several parts may need
    if any(isinstance(x, Jump) for x in statements(tuple(body))):
        return None
    late = {second.a.buffer.name, second.c.buffer.name}
    at = next(k for k, x in enumerate(body) if x is first)
    ahead, middle = tuple(body[:at]), tuple(body[at + 1 : -1])
    if late & (_reads(first, *ahead) | _writes(first, *ahead)):
        return None
    between, closing = _split(middle, late)
    taken = sum(plan.registers for plan in (roles.products[id(x)] for x in (first, second)))
    taken += roles.products[id(second)].k // 4
    if not closing or taken + _SPARE > consumer_registers(roles.groups):
        return None
    return TwoProducts(first=first, second=second, ahead=ahead, between=between, closing=closing)


def _split(middle: Sequence[Stmt], late: set[str]) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...]]:
    """Those that need not wait for the product before, and those that do or come after one that does."""
    between, closing = list[Stmt](), list[Stmt]()
    for stmt in middle:
        after = any(
            _writes(stmt) & (_reads(x) | _writes(x)) or _reads(stmt) & _writes(x) for x in closing
        )
        waits = after or bool(late & (_reads(stmt) | _writes(stmt)))
        (closing if waits else between).append(stmt)
    return tuple(between), tuple(closing)


def _reads(*body: Stmt) -> set[str]:
    return {x.name for stmt in statements(tuple(body)) for x in reads(stmt)}


def _writes(*body: Stmt) -> set[str]:
    return {x.name for stmt in statements(tuple(body)) for x in writes(stmt)}


class DelayedRounds:
    """First round, loop and last product of such a loop; what they share stands in lambdas before them."""

    def __init__(self, consumer: ConsumerLowering, parts: TwoProducts, start: Expr) -> None:
        self.consumer, self.parts, self.start = consumer, parts, start
        self.ctx, self.roles = consumer.ctx, consumer.roles
        self.var = b.local(consumer.var)
        self.s, self.o = parts.first.c.buffer.name, parts.second.c.buffer.name
        self.names_before = self.ctx.namer.state()  # given back where the loop stays as it is
        self.arrays_before = len(self.ctx.arrays)
        ours = self.ctx.namer.ours
        self.before = ours("before", "stage_of_before")
        self.ctx.namer.release(self.before)
        self.start_s = ours(f"start_{self.s}", f"start_product_{self.s}")
        self.use_s = ours(f"use_{self.s}", f"use_sums_{self.s}")
        self.prepare_o = ours(f"prepare_{self.o}", f"prepare_sums_{self.o}")
        self.start_o = ours(f"start_{self.o}", f"start_product_{self.o}")
        self.takes_round: set[str] = set()  # lambdas that need to know the round

    def nodes(self, runs: bool) -> list[Node] | None:
        """The loop, or None where warps meet between the products."""
        parts = self.parts
        lowered = [
            [node for stmt in part for node in self._nodes_of(stmt)]
            for part in (parts.ahead, parts.between, parts.closing)
        ]
        if any(_meets(nodes) for nodes in lowered):
            self.ctx.namer.restore(self.names_before)
            self.ctx.arrays[self.arrays_before :] = []
            return None
        ahead, between, closing = (flatten(nodes) for nodes in lowered)
        self._note()
        shared = (
            self._lambda(self.start_s, (*ahead, *self._product(parts.first, self.roles))),
            self._lambda(self.use_s, between),
            self._lambda(self.prepare_o, closing),
            self._lambda(self.start_o, self._second()),
        )
        for name in (self.start_s, self.use_s, self.prepare_o, self.start_o):
            self.ctx.namer.release(name)
        comment = (
            f"The product into {self.o} runs while the next round works on {self.s}: it is started "
            f"behind the next product into {self.s}, and waited for when the round is done with {self.s}."
        )
        head = Step(body=(Section(comments=(comment,), body=shared),))
        rounds: list[Node] = [self._first_round(), self._loop(), self._last_product()]
        if runs:
            return [head, *rounds]
        some = b.compare("<", self.start, self.consumer.stop)
        none = tuple(self.consumer.read_once())
        orelse = (Step(body=none, quote=self.roles.loop.quote),) if none else ()
        return [head, BranchStep(condition=some, then=tuple(rounds), orelse=orelse)]

    def _nodes_of(self, stmt: Stmt) -> list[Node]:
        """The statement's steps; sums of the second product are scaled only where that changes them."""
        nodes = self.consumer.statement(stmt)
        late = self.parts.second.c.buffer.name in _writes(stmt)
        return where_it_scales(self.ctx, stmt, nodes) if late else nodes

    # ---- what the rounds share

    def _lambda(self, name: str, body: tuple[CStmt, ...]) -> Lambda:
        knows = self.var.name in names_in(body)
        if knows:
            self.takes_round.add(name)
        return Lambda(name=name, params=(f"int {self.var.name}",) if knows else (), body=body)

    def _call(self, name: str, number: Expr) -> Do:
        args = (number,) if name in self.takes_round else ()
        return Do(call=CCall(dtype=INT32, function=name, args=args))

    def _product(self, gemm: Gemm, roles: Roles, overwrites: Expr | None = None) -> list[CStmt]:
        """Starts it, as a batch of its own."""
        for name in ("mma_begin", "mma_commit"):
            self.ctx.need(name)
        pin = self.consumer.pin(gemm.c.buffer.name)
        product = multiply(self.ctx, gemm, roles, overwrites)
        return [pin, do("mma_begin"), product, do("mma_commit")]

    def _second(self) -> tuple[CStmt, ...]:
        """The product of the round before the one that `ring` stands at."""
        self.ctx.need("stage_before")
        stage = call("stage_before", b.local(RING))
        line = Local(dtype=INT32, names=(Declarator(name=self.before, value=stage),))
        opening = self.o in self.consumer.overwritten
        now = b.compare("==", self.var, self.start) if opening else None
        roles = replace(self.roles, at=b.local(self.before))
        return (line, *self._product(self.parts.second, roles, now))

    # ---- rounds

    def _first_round(self) -> Step:
        c, at = self.consumer, self.start
        body = (
            *c.arrived(0, self.start),
            self._call(self.start_s, at),
            c.wait(0, f"{self.s} is complete"),
            c.pin(self.s),
            *c.released(0),
            self._call(self.use_s, at),
            *c.arrived(1, self.start),
            self._call(self.prepare_o, at),
            do("ring.advance"),
        )
        return c.batch_step([self.parts.first], (Section(body=body),))

    def _loop(self) -> LoopStep:
        c, loop, at = self.consumer, self.roles.loop, self.var
        behind = call("stage_before", b.local(RING))
        late = (
            f"{self.o} of the round before is complete; the wait above, a loop, keeps ptxas from "
            f"moving this one up to that for {self.s}"
        )
        body = (
            *c.arrived(0),
            self._call(self.start_s, at),
            self._call(self.start_o, b.sub(at, const(1))),
            c.wait(1, f"{self.s} is complete"),
            c.pin(self.s),
            *c.released(0),
            self._call(self.use_s, at),
            *c.arrived(1),
            c.wait(0, late),
            c.pin(self.o),
            *c.released(1, behind),
            self._call(self.prepare_o, at),
            do("ring.advance"),
        )
        frame = Loop(
            var=self.var.name,
            start=b.add(self.start, const(1)),
            stop=c.stop,
            step=const(1),
            body=(),
            dtype=INT32,
            comments=(*loop.comments, loop.quote),
            remark=loop.remark,
        )
        both = [self.parts.first, self.parts.second]
        return LoopStep(
            frame=Section(body=(frame,), span=loop.span),
            body=(c.batch_step(both, body),),
            runs=False,
            name=self.var.name,
            binds=names_bound((loop,)),
        )

    def _last_product(self) -> Step:
        c = self.consumer
        last = b.sub(c.stop, const(1))
        behind = call("stage_before", b.local(RING))
        body = (
            *c.read_once(),
            self._call(self.start_o, last),
            c.wait(0, f"{self.o} is complete"),
            c.pin(self.o),
            *(c.released(1, behind) if self.consumer.stays else ()),
        )
        return c.batch_step([self.parts.second], (Section(body=body),))

    def _note(self) -> None:
        self.ctx.choices.append(
            Choice(
                name=f"products of {self.roles.loop.var.name}",
                value=f"{self.o} a round late",
                reason=f"the matrix unit computes it while the next round works on {self.s}",
            )
        )


def _meets(nodes: Sequence[Node]) -> bool:
    """Whether threads exchange anything through shared memory there."""
    for node in nodes:
        if isinstance(node, Step):
            if node.accesses or node.completes or node.meets:
                return True
        elif isinstance(node, LoopStep):
            if _meets(node.body):
                return True
        elif _meets((*node.then, *node.orelse)):
            return True
    return False
