"""The consumers' steps: products of the pipelined loop, and everything else of the tile program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Expr, const
from tile2c.transpile.ir.forms import Copy, Gemm, Parallel, Pipelined, Stmt
from tile2c.transpile.ir.walk import names_bound
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import Branch, CStmt, Do, Loop, Section
from tile2c.transpile.lower.simt.block import BlockLowering
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.frames import Frames
from tile2c.transpile.lower.simt.hopper.calls import PHASE, STAGE, call, do, pin
from tile2c.transpile.lower.simt.hopper.delayed import DelayedRounds, two_products
from tile2c.transpile.lower.simt.hopper.multiply import multiply
from tile2c.transpile.lower.simt.hopper.neighbours import released
from tile2c.transpile.lower.simt.hopper.parts import Parts, add_up
from tile2c.transpile.lower.simt.hopper.promotion import promoted
from tile2c.transpile.lower.simt.hopper.rings import RING
from tile2c.transpile.lower.simt.hopper.roles import Roles
from tile2c.transpile.lower.simt.hopper.store import Passage, store_through_shared
from tile2c.transpile.lower.simt.outer_statements import walk
from tile2c.transpile.lower.simt.pipeline import rest_of
from tile2c.transpile.lower.simt.step_tree import flatten
from tile2c.transpile.lower.simt.steps import Access, LoopStep, Node, Step
from tile2c.transpile.lower.simt.tile_loads import touched


class ConsumerLowering(BlockLowering):
    """As the block's lowering, but for products, their loop, and copies of sums to tensors."""

    def __init__(
        self,
        ctx: Context,
        frames: Frames,
        roles: Roles,
        *,
        start: Expr,
        stop: Expr,
        parts: Parts | None,
        overwritten: frozenset[str],
        passages: dict[int, Passage],
        stays: bool = False,
        alone: bool = True,
        early: Sequence[Parallel] = (),
    ) -> None:
        """`stays`: the block goes on to other tiles, so that every stage is given back; `alone`: no
        other block covers its waits; `early`: loops that load for what stands behind the rounds."""
        super().__init__(ctx, frames, {})
        self.roles, self.overwritten, self.passages = roles, overwritten, passages
        self.start, self.stop, self.parts, self.stays = start, stop, parts, stays
        self.alone = alone
        self.var: str = ""
        self.delayed = False  # the second product of a round is a round late
        self.early, self.waiting = early, list[Parallel]()  # loops for the first round's opening
        self.opening: Branch | None = None  # what is done while the first products run

    def statement(self, stmt: Stmt) -> list[Node]:
        if stmt is self.roles.loop:
            return self._rounds(self.roles.loop)
        if any(stmt is load.copy for load in self.roles.once):
            return []  # the producer's
        if any(stmt is let for let in self.roles.bound):
            return []  # known to both roles
        if isinstance(stmt, Parallel) and id(stmt) in self.passages:
            ring = tuple(load.tile.name for load in self.roles.loads)
            return [store_through_shared(self.ctx, self.passages[id(stmt)], ring)]
        if any(stmt is loop for loop in self.early) and self._surely_opens():
            self.waiting.append(stmt)  # type: ignore[arg-type]  # one of the loops
            return []
        return super().statement(stmt)

    def _surely_opens(self) -> bool:
        """Whether there is a first round, with one batch of products that is waited for apart."""
        loop, (first, *more) = self.roles.loop, self.roles.batches
        runs = self.parts is None and self.ctx.facts.at_least(b.sub(loop.stop, loop.start), 1)
        return runs and not more and not self._promoted(first[0])

    def _rounds(self, loop: Pipelined) -> list[Node]:
        ctx = self.ctx
        name = ctx.namer.author(loop.var.author or loop.var.name)
        self.var = name
        if name != loop.var.name:
            ctx.values[loop.var.name] = b.local(name)
        facts = ctx.facts
        runs = self.parts is None and facts.at_least(b.sub(loop.stop, loop.start), 1)
        ctx.facts = facts.with_range(loop.var, loop.start, loop.stop)
        loads = [load.copy for load in self.roles.loads]
        statements = rest_of(loop, loads, self.roles.inside, ())
        late, start = self._late(statements), self.start
        ctx.between_products = len(self.roles.batches) > 1
        two = two_products(self.roles, statements) if self.alone else None
        rounds = None if two is None else DelayedRounds(self, two, start).nodes(runs)
        body = self._round(statements, start, late) if rounds is None else []
        ctx.facts, ctx.between_products = facts, False
        ctx.namer.release(name)
        if rounds is not None:
            self.delayed = True
            return [*self._ready(), *rounds]
        frame = Loop(
            var=name,
            start=start,
            stop=self.stop,
            step=const(1),
            body=(),
            dtype=INT32,
            comments=(*loop.comments, loop.quote),
            remark=loop.remark,
        )
        around = LoopStep(
            frame=Section(body=(frame,), span=loop.span),
            body=tuple(body),
            runs=runs,
            name=name,
            var=loop.var.name,
            binds=names_bound((loop,)),
        )
        found: list[Node] = [*self._ready(), around]
        if late:
            last = self.wait(0, "the last product is complete")
            found.append(Step(body=(last,), quote=loop.quote))
        if told := self.read_once():
            found.append(Step(body=tuple(told), quote=loop.quote))
        if pins := self._pins_behind(statements):
            found.append(Step(body=pins, quote=loop.quote))
        if self.parts is not None:
            found += add_up(ctx, self.roles, self.parts)
        return found

    def _ready(self) -> list[Step]:
        """Tiles that are loaded once have to be there before the first product."""
        once = self.roles.once
        if not once:
            return []
        names = " and ".join(load.tile.name for load in once)
        remark = f"{names} {'has' if len(once) == 1 else 'have'} arrived"
        again = self.roles.again
        phase = const(0) if again is None else again.phase
        wait = do("barrier_wait", self.roles.kept_full, phase, remark=remark)
        on = () if again is None else (do(again.advance),)
        return [Step(body=(wait, *on), quote=once[0].copy.quote)]

    def read_once(self) -> list[CStmt]:
        """One arrival a warp for tiles that are loaded once, where a block loads them again."""
        once, again = self.roles.once, self.roles.again
        if again is None:
            return []
        names = " and ".join(load.tile.name for load in once)
        return [released(self.ctx, None, again.is_free, f"{names} may be loaded again")]

    def _late(self, statements: Sequence[Stmt]) -> bool:
        """Whether a round may leave its products running: a lone warpgroup has nobody to cover it."""
        return self.roles.groups == 1 and all(
            isinstance(x, Gemm) and not self._promoted(x) for x in statements
        )

    def _promoted(self, stmt: Stmt) -> bool:
        """Whether its sums leave the matrix unit in the middle of things: it is a batch of its own."""
        return isinstance(stmt, Gemm) and self.roles.products[id(stmt)].part > 0

    def _round(self, statements: Sequence[Stmt], start: Expr, late: bool) -> list[Node]:
        """Wait for tiles, products in batches, other statements between them, release."""
        found: list[Node] = []
        seen: set[str] = set()
        ends = {id(batch[-1]): k for k, batch in enumerate(self.roles.batches)}
        for stmt in statements:
            if not isinstance(stmt, Gemm):
                found += self.statement(stmt)
            elif id(stmt) in ends:
                found.append(self._batch(ends[id(stmt)], statements, start, seen, late))
        found.append(Step(body=(do("ring.advance"),)))
        return found

    def _batch(
        self, number: int, statements: Sequence[Stmt], start: Expr, seen: set[str], late: bool
    ) -> Step:
        ctx, batch = self.ctx, self.roles.batches[number]
        body: list[CStmt] = self.arrived(number)
        if self._promoted(batch[0]):
            (gemm,) = batch
            body += promoted(ctx, gemm, self.roles, self.released(number))
            return self.batch_step(batch, body)
        pinned = [x.c.buffer.name for x in batch if self._touched_between(x, statements)]
        pins = [self.pin(name) for name in dict.fromkeys(pinned)]
        ctx.need("mma_begin")
        ctx.need("mma_commit")
        body += [*pins, do("mma_begin")]
        for gemm in batch:
            name = gemm.c.buffer.name
            opening = name in self.overwritten and name not in seen
            seen.add(name)
            now = b.compare("==", b.local(self.var), start) if opening else None
            body.append(multiply(ctx, gemm, self.roles, now))
        body.append(do("mma_commit"))
        body += self._opening(start)
        body += self._finish(number, start, late)
        body += pins
        return self.batch_step(batch, body)

    def _opening(self, start: Expr) -> list[CStmt]:
        """What would keep the first products waiting in front of them, said beside them."""
        if not self.waiting:
            return []
        nodes: list[Node] = []
        for loop in self.waiting:
            nodes += super().statement(loop)
        first = b.compare("==", b.local(self.var), start)
        self.opening = Branch(
            condition=first, then=flatten(nodes), remark="while the first products run"
        )
        self.waiting = []
        return [self.opening]

    def arrived(self, number: int, at: Expr | None = None) -> list[CStmt]:
        """Waits for the tiles that this batch of products is the first to read, in round `at`."""
        found: list[CStmt] = []
        shown = self.var if at is None else "0" if b.literal(at, 0) else "one"
        for part in self.roles.rings:
            if part.first == number:
                several = len(self.roles.rings) > 1
                which = " and ".join(part.tiles) if several else "the tiles"
                verb = "has" if several and len(part.tiles) == 1 else "have"
                remark = f"{which} of round {shown} {verb} arrived"
                wait = do("barrier_wait", part.has_arrived(STAGE), PHASE, remark=remark)
                found.append(wait)
        return found

    def batch_step(self, batch: Sequence[Gemm], body: Sequence[CStmt]) -> Step:
        """A step that multiplies, with the tiles that it reads."""
        # A wait ends a product for the whole warpgroup that made it; others have to be told.
        lone = self.roles.groups == 1
        reads = tuple(
            Access(buffer=region.buffer.name, write=False, asynchronous=lone)
            for gemm in batch
            for region in (gemm.a, gemm.b)
            if region.buffer.scope == "shared"
        )
        quote = batch[0].quote
        return Step(body=tuple(body), accesses=tuple(dict.fromkeys(reads)), quote=quote)

    def _finish(self, number: int, start: Expr, late: bool) -> list[CStmt]:
        """The end of a batch: wait, then let the producer refill what nobody reads any more."""
        ctx = self.ctx
        if not late:
            free = self.released(number)
            words = "this warp has read the tiles" if free else "the products are complete"
            return [self.wait(0, words), *free]
        (ring,) = self.roles.rings
        wait = self.wait(1, f"this warp has read the tiles of round {self.var} - 1")
        later = b.compare(">", b.local(self.var), start)
        told = "their stage may be refilled"
        ctx.need("stage_before")
        stage = call("stage_before", b.local(RING))
        before = released(ctx, self.roles.neighbours, ring.is_free(stage), told)
        return [wait, replace(before, condition=b.both([later, before.condition]))]

    def released(self, number: int, stage: Expr = STAGE) -> list[CStmt]:
        """One arrival a warp for tiles that this batch was the last to read."""
        found: list[CStmt] = []
        for part in self.roles.rings:
            if part.last == number:
                of = f" of {' and '.join(part.tiles)}" if len(self.roles.rings) > 1 else ""
                free = f"the stage{of} may be refilled"
                empty = part.is_free(stage)
                found.append(released(self.ctx, self.roles.neighbours, empty, free))
        return found

    def wait(self, pending: int, remark: str) -> Do:
        """Until at most so many batches are open."""
        self.ctx.need("mma_wait")
        return do("mma_wait", template=(const(pending),), remark=remark)

    def _touched_between(self, gemm: Gemm, statements: Sequence[Stmt]) -> bool:
        name = gemm.c.buffer.name
        return any(not isinstance(x, Gemm) and name in touched(x) for x in statements)

    def _pins_behind(self, statements: Sequence[Stmt]) -> tuple[Do, ...]:
        """Sums that no round pins: what reads them stays behind the last wait."""
        products = [x for batch in self.roles.batches for x in batch if not self._promoted(x)]
        apart = [x for x in products if not self._touched_between(x, statements)]
        return tuple(self.pin(name) for name in dict.fromkeys(x.c.buffer.name for x in apart))

    def pin(self, name: str) -> Do:
        products = (x for batch in self.roles.batches for x in batch)
        return pin(self.ctx, next(x.c.buffer for x in products if x.c.buffer.name == name))


def overwritten_sums(
    roles: Roles, zeroed: dict[str, str], statements: Sequence[Stmt], surely_runs: bool
) -> frozenset[str]:
    """Cleared sums whose first product may overwrite instead of add: nothing touches them before."""
    if not surely_runs:
        return frozenset()
    before = statements[: next(k for k, x in enumerate(statements) if x is roles.loop)]
    seen = touched(*before)
    first: dict[str, Stmt] = {}
    for stmt in roles.loop.body:
        for inner in walk((stmt,)):
            names = {inner.c.buffer.name} if isinstance(inner, Gemm) else touched(inner)
            if not isinstance(inner, Copy):
                for name in names:
                    first.setdefault(name, inner)
    apart = {
        x.c.buffer.name
        for x in roles.loop.body
        if isinstance(x, Gemm) and roles.products[id(x)].part
    }
    return frozenset(
        name for name in zeroed if name not in seen | apart and isinstance(first.get(name), Gemm)
    )
