"""T.Pipelined with asynchronous copies: loads run some rounds ahead of the steps that use them.

The shape (hopper.md section 8, "The sm_80 path"): a ring of `num_stages` copies of each loaded tile;
prologue: the first loads; each round: wait for its tile, one barrier, start the load of a later tile,
compute. Loads are written once, as a lambda, and called from prologue and loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Const, Expr, Load, Var, const
from tile2c.transpile.ir.forms import (
    Copy,
    Parallel,
    Pipelined,
    Stmt,
)
from tile2c.transpile.ir.walk import reads, statements, writes
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.desugar import copy_loop, stages
from tile2c.transpile.lower.plan import (
    Branch,
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
from tile2c.transpile.lower.simt.context import Context, Ring
from tile2c.transpile.lower.simt.frames import walk
from tile2c.transpile.lower.simt.parallel import ParallelLoop, lower_parallel
from tile2c.transpile.lower.simt.steps import Access, LoopStep, Node, Step

LowerBody = Callable[[Sequence[Stmt]], list[Node]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Staging:
    """What a pipelined loop loads ahead, and how far."""

    loads: tuple[Copy, ...]
    depth: int  # copies of each tile
    ahead: int  # rounds that loads run ahead


def plan_staging(ctx: Context, stmt: Pipelined, body: Sequence[Stmt]) -> Staging | None:
    """The copies that may run ahead, or None when there are none or the chip copies synchronously.

    A copy may if it fills a whole shared tile that only this loop reads, from a tensor the kernel does
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


def movable_loads(ctx: Context, stmt: Pipelined) -> tuple[Copy, ...]:
    """The copies of the loop that may run ahead of their round."""
    stored = written(*ctx.launch.body)
    return tuple(
        copy
        for copy in stmt.body
        if isinstance(copy, Copy) and stages(copy) and movable(ctx, stmt, copy, stored)
    )


def movable(ctx: Context, stmt: Pipelined, copy: Copy, stored: set[str]) -> bool:
    """Whether the copy may run ahead of the loop; `stored` are the names of what the kernel writes."""
    tile = copy.dst.buffer
    whole = all(
        b.literal(part.start, 0) and b.known(part.extent) == b.known(extent)
        for part, extent in zip(copy.dst.ranges, tile.shape, strict=True)
    )
    if not whole or copy.src.buffer.name in stored:
        return False
    if any(isinstance(part, Load) for start in copy.src.starts for part in b.walk(start)):
        return False
    others = [x for x in walk(stmt.body) if x is not copy and tile.name in touches(x)]
    outside = sum(1 for x in walk(ctx.launch.body) if tile.name in touches(x)) - len(others) - 1
    first_use = next(
        (k for k, x in enumerate(stmt.body) if x is not copy and tile.name in touched(x)), None
    )
    own = next(k for k, x in enumerate(stmt.body) if x is copy)
    if outside or first_use is None or first_use < own:
        return False
    return not any(tile.name in written(x) for x in others)


def touched(*body: Stmt) -> set[str]:
    """Names of the buffers that statements read or write, nested ones too."""
    return set().union(*(touches(stmt) for stmt in walk(body)))


def touches(stmt: Stmt) -> set[str]:
    """Names of the buffers that a statement reads or writes; of loops and branches, only their own."""
    inside = statements((stmt,)) if isinstance(stmt, Parallel) else (stmt,)
    return {x.name for part in inside for x in (*reads(part), *writes(part))}


def written(*body: Stmt) -> set[str]:
    """Names of the buffers that statements write, nested ones too."""
    return {buffer.name for stmt in statements(body) for buffer in writes(stmt)}


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
        self.tiles = [copy.dst.buffer.name for copy in staging.loads]
        self.loads = f"loads of {' and '.join(self.tiles)}"  # names them in `--emit plan`

    def _depth_expr(self) -> Const:
        """The author's name for the depth, where it is the same number."""
        return self.stmt.num_stages

    def nodes(self) -> list[Node]:
        ctx, staging = self.ctx, self.staging
        slot = ctx.namer.ours("stage", "slot") if staging.depth > 1 else ""
        for copy in staging.loads:
            ctx.ring[copy.dst.buffer.name] = Ring(
                staging.depth, self.depth, b.local(slot), self.var
            )
        facts = ctx.facts
        ctx.facts = facts.with_range(self.stmt.var, self.stmt.start, self.stmt.stop)
        load = ctx.namer.ours("load_tiles", f"load_{'_'.join(self.tiles)}")
        steps: list[Node] = [self._lambda(load, slot)]
        stop, declared = self._stop()
        if staging.ahead:
            steps.append(self._prologue(load, stop, declared))
        elif declared:
            steps.append(Step(body=(Section(body=(declared,)),)))
        steps.append(self._loop(load, slot, stop))
        ctx.facts = facts
        for name in (slot, self.var):
            ctx.namer.release(name)
        return steps

    # ---- parts

    def _lambda(self, name: str, slot: str) -> Step:
        body: list[CStmt] = []
        if slot:
            body.append(self._slot(slot, self.round))
        for copy in self.staging.loads:
            step = lower_parallel(self.ctx, staged_copy(self.ctx, copy))
            for stmt in step.body:
                assert isinstance(stmt, Section)
                body.append(replace(stmt, blank=False))
        block = Lambda(name=name, params=(f"int {self.var}",), body=tuple(body))
        return Step(body=(Section(body=(block,)),))

    def _slot(self, slot: str, at: Expr) -> Local:
        start = self._from_zero(at)
        return Local(dtype=INT32, names=(Declarator(name=slot, value=b.mod(start, self.depth)),))

    def _from_zero(self, at: Expr) -> Expr:
        return b.sub(at, self.stmt.start) if not b.literal(self.stmt.start, 0) else at

    def _stop(self) -> tuple[Expr, CStmt | None]:
        """The loop's end; named when it is more than a step of arithmetic."""
        from tile2c.transpile.lower.simt.values import Place, convert

        stop = convert(self.ctx, self.stmt.stop, Place(values={}))
        if b.known(stop) is not None or isinstance(stop, Var):
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
        section = Section(body=(declared, loop) if declared else (loop,))
        return Step(
            body=(section,),
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
        if slot:
            body.append(Step(body=(self._slot(slot, self.round),)))
        issue = self._issue(load, stop)
        wait = self._wait(ahead)
        body += [wait, issue] if ahead else [issue, wait]
        loads = {id(copy) for copy in self.staging.loads}
        body += self.lower_body([x for x in self.stmt.body if id(x) not in loads])
        frame = Loop(
            var=self.var,
            start=self._start(),
            stop=stop,
            step=const(1),
            body=(),
            dtype=INT32,
            comments=(*self.stmt.comments, self.stmt.quote),
        )
        runs = self._surely(1)
        return LoopStep(
            frame=Section(body=(frame,), span=self.stmt.span),
            body=tuple(body),
            runs=runs,
            name=self.var,
        )

    def _commit(self, remark: str = "") -> tuple[CStmt, ...]:
        """Closes the group of copies just started; nothing where all of them are synchronous."""
        if self.ctx.unaligned:
            return ()
        self.ctx.need("copies_commit")
        call = CCall(dtype=INT32, function="copies_commit", args=())
        return (Do(call=call, remark=remark),)

    def _wait(self, ahead: int) -> Step:
        pending: Expr = b.sub(self.depth, const(2)) if ahead else const(0)
        call = CCall(dtype=INT32, function="copies_wait", args=(), template=(pending,))
        if not self.ctx.unaligned:
            self.ctx.need("copies_wait")
        done = tuple(
            Access(buffer=name, write=True, version=0, depth=self.staging.depth, ring=self.var)
            for name in self.tiles
        )
        remark = f"this thread's part of tile {self.var} has arrived"
        body = () if self.ctx.unaligned else (Do(call=call, remark=remark),)
        return Step(body=body, completes=done, quote=self.loads)

    def _issue(self, load: str, stop: Expr) -> Step:
        ahead = self.staging.ahead
        if not ahead:
            call: CStmt = Do(call=CCall(dtype=INT32, function=load, args=(self.round,)))
            return Step(body=(call, *self._commit()), accesses=self._writes(0), quote=self.loads)
        later = b.step_back(self.round, self.depth)
        start = Do(call=CCall(dtype=INT32, function=load, args=(later,)))
        guarded = Branch(condition=b.less(later, stop), then=(start,))
        commit = self._commit("empty groups at the end keep the count for copies_wait right")
        return Step(body=(guarded, *commit), accesses=self._writes(ahead), quote=self.loads)


def staged_copy(ctx: Context, copy: Copy) -> ParallelLoop:
    """The copy as a loop over chunks that starts asynchronous copies."""
    taken = frozenset(x.name for x in ctx.launch.blocks) | frozenset(ctx.author_names)
    loop = copy_loop(copy, taken)
    return ParallelLoop(
        loop_vars=loop.loop_vars,
        extents=loop.extents,
        body=loop.body,
        quote=copy.quote,
        comments=copy.comments,
        span=copy.span,
        asynchronous=True,
    )
