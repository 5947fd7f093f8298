"""T.Pipelined with asynchronous copies: loads run some rounds ahead of the steps that use them.

The shape (hopper.md section 8, "The sm_80 path"): a ring of `num_stages` copies of each loaded tile;
prologue: the first loads; each round: wait for its tile, one barrier, start the load of a later tile,
compute. Loads are written once, as a lambda, and called from prologue and loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tile2c.transpile.ir.dtypes import BOOL, INT32
from tile2c.transpile.ir.expr import Binary, Const, Expr, Select, Var, const
from tile2c.transpile.ir.forms import If, Jump, Let, Pipelined, Stmt
from tile2c.transpile.ir.walk import names_bound, statements
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import (
    Assign,
    Branch,
    CCall,
    Choice,
    CStmt,
    Declarator,
    Do,
    Escape,
    Lambda,
    Local,
    Loop,
    Section,
)
from tile2c.transpile.lower.simt.context import Context, Ring
from tile2c.transpile.lower.simt.parallel import ParallelLoop, lower_parallel
from tile2c.transpile.lower.simt.running import Running
from tile2c.transpile.lower.simt.scalars import lower_scalars
from tile2c.transpile.lower.simt.steps import Access, LoopStep, Node, Step
from tile2c.transpile.lower.simt.tile_loads import (
    TileLoad,
    bound_for,
    loop_of,
    movable_loads,
    tile_of,
)
from tile2c.transpile.lower.simt.uses import functions_in, names_in
from tile2c.transpile.lower.simt.values import Place
from tile2c.transpile.record import record

LowerBody = Callable[[Sequence[Stmt]], list[Node]]


@record(kw_only=True)
class Staging:
    """What a pipelined loop loads ahead, and how far."""

    loads: tuple[TileLoad, ...]
    depth: int  # copies of each tile
    ahead: int  # rounds that loads run ahead


def plan_staging(ctx: Context, stmt: Pipelined) -> Staging | None:
    """The loads that may run ahead, or None when there are none or the chip copies synchronously.

    A load may if it fills a whole shared tile that only this loop reads, from a tensor the kernel does
    not write, at a place known from loop variables.
    """
    if not ctx.target.async_copy or int(stmt.num_stages.value) < 1:
        return None
    loads = movable_loads(ctx, stmt)
    if not loads:
        return None
    depth = max(1, int(stmt.num_stages.value))
    ctx.choices.append(
        Choice(
            name=f"stages of {stmt.var.name}",
            value=str(depth),
            reason="as the author asked (num_stages); loads run "
            f"{depth - 1} rounds ahead of their use",
        )
    )
    return Staging(loads=loads, depth=depth, ahead=depth - 1)


def lower_pipeline(
    ctx: Context, stmt: Pipelined, staging: Staging, lower_body: LowerBody
) -> list[Node]:
    """Prologue, loop, and the lambda that both call."""
    return _Pipeline(ctx, stmt, staging, lower_body).nodes()


class _Pipeline:
    def __init__(
        self, ctx: Context, stmt: Pipelined, staging: Staging, lower_body: LowerBody
    ) -> None:
        self.ctx, self.stmt, self.staging, self.lower_body = ctx, stmt, staging, lower_body
        self.var = ctx.namer.author(stmt.var.author or stmt.var.name)
        self.round = b.local(self.var)
        if self.var != stmt.var.name:
            ctx.values[stmt.var.name] = self.round
        self.depth = self._depth_expr()
        self.tiles = [tile_of(load).name for load in staging.loads]
        self.bound = bound_for(stmt, staging.loads) or ()
        self.fixed = fixed_ones(stmt, self.bound)
        self.counted = staging.depth & (staging.depth - 1) != 0 and not _skips(stmt.body)
        self.waits = not ctx.unaligned  # copies are started and have to be waited for
        self.loads = f"loads of {' and '.join(self.tiles)}"  # names them in `--emit plan`

    def _depth_expr(self) -> Const:
        """The author's name for the depth, where it is the same number."""
        return self.stmt.num_stages

    def nodes(self) -> list[Node]:
        ctx, staging = self.ctx, self.staging
        slot = ctx.namer.ours("stage", "slot") if staging.depth > 1 else ""
        for name in self.tiles:
            ctx.ring[name] = Ring(staging.depth, self.depth, b.local(slot), self.var)
        facts = ctx.facts
        ctx.facts = facts.with_range(self.stmt.var, self.stmt.start, self.stmt.stop)
        load = ctx.namer.ours("load_tiles", f"load_{'_'.join(self.tiles)}")
        steps: list[Node] = [*fixed_step(ctx, self.fixed), self._lambda(load, slot)]
        stop, declared = self._stop()
        if staging.ahead:
            steps.append(self._prologue(load, stop, declared))
        elif declared:
            steps.append(Step(body=(Section(body=(declared,)),)))
        steps.append(self._loop(load, slot, stop))
        if staging.ahead and self.waits and _breaks(self.stmt.body):
            steps.append(self._wait(0, "the loop may have ended with loads on their way"))
        ctx.facts = facts
        for name in (() if self.counted else (slot,)) + (self.var,):  # counters outlive the loop
            ctx.namer.release(name)
        return steps

    # ---- parts

    def _lambda(self, name: str, slot: str) -> Step:
        """The loads of one round, called for one round after the other."""
        ctx = self.ctx
        body: list[CStmt] = []
        inside = [let for let in self.bound if let not in self.fixed]
        running = Running(self.stmt.var, self._start())
        for let in inside:
            running.bind(let.var, let.value)
        fill = ctx.namer.ours("fill", "fill_stage") if self.counted else slot
        if self.counted:
            self._use(fill)
        elif slot:
            body.append(self._slot(slot, self.round))
        body += lower_scalars(ctx, inside, Place(values={}))
        ctx.running = running
        for load in self.staging.loads:
            step = lower_parallel(ctx, staged_load(ctx, load))
            for stmt in step.body:
                assert isinstance(stmt, Section)
                body.append(replace(stmt, blank=False))
        ctx.running = None
        started = functions_in(tuple(body)) & set(ctx.copies.values())
        self.waits = bool(started) and not ctx.unaligned
        declared: list[CStmt] = list(running.declared)
        body += running.advanced
        if self.counted:
            declared.append(_counters(fill, slot))
            body.append(self._next(fill))
            self._use(slot)
        block = Lambda(name=name, params=(f"int {self.var}",), body=tuple(body))
        return Step(body=(Section(body=(*declared, block)),))

    def _use(self, slot: str) -> None:
        """What is lowered next means the tiles of this stage."""
        for name in self.tiles:
            self.ctx.ring[name] = replace(self.ctx.ring[name], slot=b.local(slot))

    def _slot(self, slot: str, at: Expr) -> Local:
        start = self._from_zero(at)
        return Local(dtype=INT32, names=(Declarator(name=slot, value=b.mod(start, self.depth)),))

    def _next(self, slot: str) -> Assign:
        """The following stage. A counter: the remainder by three is a chain of multiplications that
        the first products after the barrier would wait for."""
        later = b.add(b.local(slot), const(1))
        value = Select(
            dtype=INT32, condition=b.less(later, self.depth), a=later, b=const(0), lazy=False
        )
        return Assign(target=b.local(slot), value=value)

    def _from_zero(self, at: Expr) -> Expr:
        return b.sub(at, self.stmt.start) if not b.literal(self.stmt.start, 0) else at

    def _stop(self) -> tuple[Expr, CStmt | None]:
        """The loop's end; named when it is more than a step of arithmetic."""
        from tile2c.transpile.lower.simt.values import Place, convert

        stop = convert(self.ctx, self.stmt.stop, Place(values={}))
        if is_short(stop):
            return stop, None
        name = self.ctx.namer.ours(f"{self.var}_end", f"{self.var}_stop")
        declared = Local(dtype=INT32, names=(Declarator(name=name, value=stop),))
        return b.local(name), declared

    def _prologue(self, load: str, stop: Expr, declared: CStmt | None) -> Step:
        ahead = b.sub(self.depth, const(1))
        call: CStmt = Do(call=CCall(dtype=INT32, function=load, args=(self.round,)))
        enough = self._surely(self.staging.ahead)
        if not enough:
            call = Branch(condition=b.less(self.round, stop), then=(call,))
        start = self._start()
        loop = Loop(
            var=self.var,
            start=start,
            stop=b.add(start, ahead) if not b.literal(start, 0) else ahead,
            step=const(1),
            body=(call, *self._commit()),
            rolled=b.known(ahead) != 1,
            dtype=INT32,
        )
        started: tuple[CStmt, ...] = (loop,)
        if self.ctx.unaligned:
            started = ()
        elif self.ctx.variant:
            remark = "copies that run ahead of their use"
            started = (Branch(condition=_aligned(), then=(loop,), remark=remark),)
        section = Section(body=(declared, *started) if declared else started)
        return Step(
            body=(section,) if section.body else (),
            accesses=self._writes(0),
            quote=self.loads,
        )

    def _start(self) -> Expr:
        from tile2c.transpile.lower.simt.values import Place, convert

        return convert(self.ctx, self.stmt.start, Place(values={}))

    def _surely(self, rounds: int) -> bool:
        trips = b.sub(self.stmt.stop, self.stmt.start)
        return self.ctx.facts.at_least(trips, rounds)

    def _writes(self, version: int) -> tuple[Access, ...]:
        return tuple(
            Access(
                buffer=name,
                write=True,
                version=version,
                depth=self.staging.depth,
                ring=self.var,
                asynchronous=True,
            )
            for name in self.tiles
        )

    def _loop(self, load: str, slot: str, stop: Expr) -> LoopStep:
        ahead = self.staging.ahead
        body: list[Node] = []
        if slot and not self.counted:
            body.append(Step(body=(self._slot(slot, self.round),)))
        start, remark = self._start(), ""
        only_loads = bool(ahead) and self.ctx.variant
        issue = self._issue(load, stop, (self._early(start),) if only_loads else ())
        wait = self._wait(ahead)
        body += [wait, issue] if ahead else [issue, wait]
        if only_loads:
            remark = "rounds before the first one only load"
            # Ordinary loads would make the text long: they stand once, in the loop.
            first = b.sub(b.add(start, const(1)), self.depth)
            if not self.ctx.unaligned:
                remark = f"where nothing runs ahead, {remark}"
                first = Select(dtype=INT32, condition=_aligned(), a=start, b=first, lazy=False)
            start = first
        body += self.lower_body(rest_of(self.stmt, self.staging.loads, self.bound, self.fixed))
        if self.counted:
            body.append(Step(body=(self._next(slot),)))
        frame = Loop(
            var=self.var,
            start=start,
            stop=stop,
            step=const(1),
            body=(),
            dtype=INT32,
            comments=(*self.stmt.comments, self.stmt.quote),
            remark=remark,
        )
        runs = self._surely(1)
        return LoopStep(
            frame=Section(body=(frame,), span=self.stmt.span),
            body=tuple(body),
            runs=runs,
            name=self.var,
            var=self.stmt.var.name,
            binds=names_bound((self.stmt,)),
        )

    def _early(self, start: Expr) -> Escape:
        """The end of a round before the first one, which has only loaded."""
        before = b.less(self.round, start)
        if not self.ctx.unaligned:
            before = b.both([b.negate(_aligned()), before])
        return Escape(
            kind="continue", condition=before, remark="so far there is nothing to multiply"
        )

    def _commit(self, remark: str = "") -> tuple[CStmt, ...]:
        """Closes the group of copies just started; nothing where all of them are synchronous."""
        if not self.waits:
            return ()
        self.ctx.need("copies_commit")
        call = CCall(dtype=INT32, function="copies_commit", args=())
        return (Do(call=call, remark=remark),)

    def _wait(self, ahead: int, remark: str = "") -> Step:
        pending: Expr = b.sub(self.depth, const(2)) if ahead else const(0)
        call = CCall(dtype=INT32, function="copies_wait", args=(), template=(pending,))
        if self.waits:
            self.ctx.need("copies_wait")
        done = tuple(
            Access(buffer=name, write=True, version=0, depth=self.staging.depth, ring=self.var)
            for name in self.tiles
        )
        remark = remark or f"this thread's part of tile {self.var} has arrived"
        body = (Do(call=call, remark=remark),) if self.waits else ()
        return Step(body=body, completes=done, quote=self.loads)

    def _issue(self, load: str, stop: Expr, early: tuple[CStmt, ...]) -> Step:
        """The loads of a later round; `early` leaves a round that has nothing else to do."""
        ahead = self.staging.ahead
        if not ahead:
            call: CStmt = Do(call=CCall(dtype=INT32, function=load, args=(self.round,)))
            return Step(body=(call, *self._commit()), accesses=self._writes(0), quote=self.loads)
        later = b.step_back(self.round, self.depth)
        start = Do(call=CCall(dtype=INT32, function=load, args=(later,)))
        guarded = Branch(condition=b.less(later, stop), then=(start,))
        commit = self._commit("empty groups at the end keep the count for copies_wait right")
        body = (guarded, *early, *commit)
        return Step(body=body, accesses=self._writes(ahead), quote=self.loads)


def _aligned() -> Expr:
    """Whether this variant of the text knows that rows start where wide accesses may."""
    return b.local("aligned", BOOL)


def _counters(fill: str, use: str) -> Local:
    names = tuple(Declarator(name=name, value=const(0)) for name in (fill, use))
    return Local(dtype=INT32, const=False, names=names, remark="stages: loaded next, in use")


def _skips(body: Sequence[Stmt]) -> bool:
    """Whether a round may end early: what stands at its end is left out then."""
    return any(isinstance(stmt, Jump) for stmt in statements(tuple(body)))


def _breaks(body: Sequence[Stmt]) -> bool:
    """Whether the loop of these statements may end before its last round."""
    for stmt in body:
        if isinstance(stmt, Jump) and stmt.kind == "break":
            return True
        if isinstance(stmt, If) and (_breaks(stmt.then) or _breaks(stmt.orelse)):
            return True
    return False


def is_short(stop: Expr) -> bool:
    """Whether a loop's end can be said twice: a name, a number, or one operation on numbers."""
    if isinstance(stop, Binary) and b.known(stop) is not None:
        return all(isinstance(side, Const) for side in (stop.a, stop.b))
    return isinstance(stop, Const | Var)


def fixed_ones(stmt: Pipelined, bound: Sequence[Let]) -> tuple[Let, ...]:
    """Those of the names that mean the same in every round."""
    changing = {stmt.var.name}
    for let in bound:
        if any(b.mentions(let.value, name) for name in changing):
            changing.add(let.var.name)
    return tuple(let for let in bound if let.var.name not in changing)


def fixed_step(ctx: Context, fixed: Sequence[Let]) -> list[Node]:
    """Names that are bound once, in front of the loop."""
    body = lower_scalars(ctx, fixed, Place(values={}))
    return [Step(body=(Section(body=body),))] if body else []


def rest_of(
    stmt: Pipelined, loads: Sequence[TileLoad], bound: Sequence[Let], fixed: Sequence[Let]
) -> list[Stmt]:
    """The round without its loads, and without names that only they need or that stand before it."""
    moved = {id(x) for x in (*loads, *fixed)}
    rest = [x for x in stmt.body if id(x) not in moved]
    for let in reversed(bound):
        if let.var.name not in names_in([x for x in rest if x is not let]):
            rest = [x for x in rest if x is not let]
    return rest


def staged_load(ctx: Context, load: TileLoad) -> ParallelLoop:
    """The load as a loop over chunks that starts asynchronous copies."""
    loop = loop_of(ctx, load)
    return ParallelLoop(
        loop_vars=loop.loop_vars,
        extents=loop.extents,
        body=loop.body,
        quote=load.quote,
        comments=load.comments,
        span=load.span,
        asynchronous=True,
    )
