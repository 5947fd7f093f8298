"""The consumers' steps: products of the pipelined loop, and everything else of the tile program."""

from __future__ import annotations

from collections.abc import Sequence

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Expr, const
from tile2c.transpile.ir.forms import Copy, Gemm, Parallel, Pipelined, Stmt
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import Branch, CStmt, Do, Loop, Section
from tile2c.transpile.lower.simt.block import BlockLowering
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.frames import Frames
from tile2c.transpile.lower.simt.hopper.calls import PHASE, READY, STAGE, barrier, call, do
from tile2c.transpile.lower.simt.hopper.multiply import multiply
from tile2c.transpile.lower.simt.hopper.promotion import promoted
from tile2c.transpile.lower.simt.hopper.roles import Roles
from tile2c.transpile.lower.simt.hopper.store import Passage, store_through_shared
from tile2c.transpile.lower.simt.outer_statements import walk
from tile2c.transpile.lower.simt.pipeline import rest_of
from tile2c.transpile.lower.simt.steps import Access, LoopStep, Node, Step
from tile2c.transpile.lower.simt.tile_loads import touched
from tile2c.transpile.lower.simt.values import Place, convert


class ConsumerLowering(BlockLowering):
    """As the block's lowering, but for products, their loop, and copies of sums to tensors."""

    def __init__(
        self,
        ctx: Context,
        frames: Frames,
        roles: Roles,
        *,
        stop: Expr,
        overwritten: frozenset[str],
        passages: dict[int, Passage],
    ) -> None:
        super().__init__(ctx, frames, {})
        self.roles, self.stop, self.overwritten, self.passages = roles, stop, overwritten, passages
        self.var: str = ""

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
        return super().statement(stmt)

    def _rounds(self, loop: Pipelined) -> list[Node]:
        ctx, place = self.ctx, Place(values={})
        name = ctx.namer.author(loop.var.author or loop.var.name)
        self.var = name
        if name != loop.var.name:
            ctx.values[loop.var.name] = b.local(name)
        facts = ctx.facts
        runs = facts.at_least(b.sub(loop.stop, loop.start), 1)
        ctx.facts = facts.with_range(loop.var, loop.start, loop.stop)
        loads = [load.copy for load in self.roles.loads]
        statements = rest_of(loop, loads, self.roles.inside, ())
        late = self._late(statements)
        start = convert(ctx, loop.start, place)
        body = self._round(statements, start, late)
        ctx.facts = facts
        ctx.namer.release(name)
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
            frame=Section(body=(frame,), span=loop.span), body=tuple(body), runs=runs, name=name
        )
        found: list[Node] = [*self._ready(), around]
        if late:
            last = self._wait(0, "the last product is complete")
            found.append(Step(body=(last,), quote=loop.quote))
        return found

    def _ready(self) -> list[Step]:
        """Tiles that are loaded once have to be there before the first product."""
        once = self.roles.once
        if not once:
            return []
        names = " and ".join(load.tile.name for load in once)
        remark = f"{names} {'has' if len(once) == 1 else 'have'} arrived"
        wait = do("barrier_wait", READY, const(0), remark=remark)
        return [Step(body=(wait,), quote=once[0].copy.quote)]

    def _late(self, statements: Sequence[Stmt]) -> bool:
        """Whether a round may leave its products running: a lone warpgroup has nobody to cover it."""
        return self.roles.groups == 1 and all(
            isinstance(x, Gemm) and not self._promoted(x) for x in statements
        )

    def _promoted(self, stmt: Stmt) -> bool:
        """Whether its sums leave the matrix unit in the middle of things: it is a batch of its own."""
        return isinstance(stmt, Gemm) and self.roles.products[id(stmt)].part > 0

    def _round(self, statements: Sequence[Stmt], start: Expr, late: bool) -> list[Node]:
        """Wait for the tiles, products in batches, other statements between them, release."""
        last = max(k for k, x in enumerate(statements) if isinstance(x, Gemm))
        found: list[Node] = []
        seen: set[str] = set()
        batch: list[Gemm] = []
        first = True
        for k, stmt in enumerate(statements):
            if not isinstance(stmt, Gemm):
                found += self.statement(stmt)
                continue
            batch.append(stmt)
            following = statements[k + 1] if k + 1 < len(statements) else None
            if isinstance(following, Gemm) and not any(map(self._promoted, (stmt, following))):
                continue
            found.append(
                self._batch(batch, statements, start, seen, late, first=first, last=k == last)
            )
            batch, first = [], False
        found.append(Step(body=(do("ring.advance"),)))
        return found

    def _batch(
        self,
        batch: list[Gemm],
        statements: Sequence[Stmt],
        start: Expr,
        seen: set[str],
        late: bool,
        *,
        first: bool,
        last: bool,
    ) -> Step:
        ctx, body = self.ctx, list[CStmt]()
        if first:
            arrived = f"the tiles of round {self.var} have arrived"
            body.append(do("barrier_wait", barrier("full", STAGE), PHASE, remark=arrived))
        if self._promoted(batch[0]):
            (gemm,) = batch
            body += promoted(ctx, gemm, self.roles, self._finish(start, False)[1:] if last else ())
            return self._batch_step(batch, body)
        pinned = [x.c.buffer.name for x in batch if self._touched_between(x, statements)]
        pins = [self._pin(name) for name in dict.fromkeys(pinned)]
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
        body += self._finish(start, late) if last else [self._wait(0, "the products are complete")]
        body += pins
        return self._batch_step(batch, body)

    def _batch_step(self, batch: Sequence[Gemm], body: Sequence[CStmt]) -> Step:
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

    def _finish(self, start: Expr, late: bool) -> list[CStmt]:
        """The end of a round's last batch: wait, then let the producer refill the stage."""
        ctx = self.ctx
        one = b.compare("==", ctx.lane(), const(0))
        if not late:
            free = "the stage may be refilled"
            arrive = do("barrier_arrive", barrier("empty", STAGE), remark=free)
            wait = self._wait(0, "this warp has read the tiles")
            return [wait, Branch(condition=one, then=(arrive,))]
        wait = self._wait(1, f"this warp has read the tiles of round {self.var} - 1")
        later = b.compare(">", b.local(self.var), start)
        free = "their stage may be refilled"
        ctx.need("stage_before")
        stage = call("stage_before", b.local("ring"))
        before = do("barrier_arrive", barrier("empty", stage), remark=free)
        return [wait, Branch(condition=b.both([later, one]), then=(before,))]

    def _wait(self, pending: int, remark: str) -> Do:
        self.ctx.need("mma_wait")
        return do("mma_wait", template=(const(pending),), remark=remark)

    def _touched_between(self, gemm: Gemm, statements: Sequence[Stmt]) -> bool:
        name = gemm.c.buffer.name
        return any(not isinstance(x, Gemm) and name in touched(x) for x in statements)

    def _pin(self, name: str) -> Do:
        self.ctx.need("pin")
        return do("pin", b.local(name))


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
