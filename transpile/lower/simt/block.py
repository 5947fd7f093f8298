"""The statements of a block as steps: each kind of statement goes to its own lowering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Buffer, Expr, Var, const
from tile2c.transpile.ir.forms import (
    Assert,
    Atomic,
    AuthorSync,
    Copy,
    Declare,
    For,
    Foreign,
    Gemm,
    If,
    Jump,
    Let,
    Parallel,
    Pipelined,
    Print,
    Reduce,
    Scan,
    Stmt,
    Store,
    While,
)
from tile2c.transpile.ir.walk import (
    expressions,
    loads,
    names_bound,
    pointers,
    statements,
    variables,
    writes,
)
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.desugar import copy_loop
from tile2c.transpile.lower.plan import CCall, CStmt, Declarator, Local, Loop, Repeat, Section, Sync
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.divergence import Divergence, lasts
from tile2c.transpile.lower.simt.frames import Frames
from tile2c.transpile.lower.simt.gemm import lower_gemm, operand_registers
from tile2c.transpile.lower.simt.matrix import GemmPlan
from tile2c.transpile.lower.simt.one_thread import Element, changing_among, ranges_of
from tile2c.transpile.lower.simt.parallel import ParallelLoop, lower_parallel
from tile2c.transpile.lower.simt.per_thread import Cells, PerThread
from tile2c.transpile.lower.simt.pipeline import lower_pipeline, plan_staging
from tile2c.transpile.lower.simt.prefetch import lower_prefetch, prefetch_depth
from tile2c.transpile.lower.simt.reduce import lower_reduce
from tile2c.transpile.lower.simt.scalars import lower_scalars
from tile2c.transpile.lower.simt.scan import lower_scan
from tile2c.transpile.lower.simt.scan_registers import lower_register_scan
from tile2c.transpile.lower.simt.steps import Access, BranchStep, LoopStep, Node, Step, Team
from tile2c.transpile.lower.simt.teams import TILE_STATEMENTS, team_of, team_range
from tile2c.transpile.lower.simt.tile_loads import movable_loads
from tile2c.transpile.lower.simt.values import Place, convert


class BlockLowering:
    """Lowers statement after statement; `matrices` holds the plan of each gemm, by identity."""

    def __init__(self, ctx: Context, frames: Frames, matrices: dict[int, GemmPlan]) -> None:
        self.ctx, self.frames, self.matrices = ctx, frames, matrices
        self.divergence = Divergence(ctx.launch.body)
        self.changing: set[str] = set()
        names = {var.name: dim for dim, var in enumerate(ctx.launch.thread_vars)}
        self.threads = PerThread(ctx.launch.threads, names)
        self.active: tuple[bool, ...] = (True,) * ctx.threads  # threads that may get here

    def whole(self, body: Sequence[Stmt]) -> list[Node]:
        """All statements of the block."""
        inside = statements(tuple(body))
        self.changing = {buffer.name for stmt in inside for buffer in writes(stmt)}
        return self.body(body)

    def body(self, statements: Sequence[Stmt]) -> list[Node]:
        found: list[Node] = []
        for stmt in statements:
            found += self.statement(stmt)
        return found

    def statement(self, stmt: Stmt) -> list[Node]:
        alone = self.ctx.divergent and self.ctx.team is None
        if (alone and isinstance(stmt, TILE_STATEMENTS)) or (
            self.ctx.divergent and isinstance(stmt, Gemm)
        ):
            raise failure(
                "T2C563",
                "a statement of the whole block stands under a condition on the thread index",
                stmt.span,
                help="move it out of the condition, or write it with the thread index",
            )
        if isinstance(stmt, Parallel):
            return [lower_parallel(self.ctx, self._loop(stmt))]
        if isinstance(stmt, Copy):
            return [lower_parallel(self.ctx, self._loop(copy_loop(stmt, self.ctx.author_names)))]
        if isinstance(stmt, Gemm):
            return [lower_gemm(self.ctx, stmt, self.matrices[id(stmt)])]
        if isinstance(stmt, Reduce):
            return lower_reduce(self.ctx, stmt)
        if isinstance(stmt, Scan):
            private = stmt.dst.buffer.scope == "fragment"
            return [(lower_register_scan if private else lower_scan)(self.ctx, stmt)]
        if isinstance(stmt, Pipelined):
            return self._pipelined(stmt)
        if isinstance(stmt, For):
            return self._for(stmt)
        if isinstance(stmt, While):
            return self._while(stmt)
        if isinstance(stmt, If):
            return self._if(stmt)
        if isinstance(stmt, AuthorSync):
            return [self._author_sync(stmt)]
        if isinstance(stmt, Store | Let | Declare | Jump | Atomic | Assert | Print | Foreign):
            return [self._scalar(stmt)]
        raise failure(
            "T2C502",
            f"`{stmt.quote or type(stmt).__name__}` is not lowered for {self.ctx.target.name} yet",
            stmt.span,
        )

    def _author_sync(self, stmt: AuthorSync) -> Step:
        """The author's barrier, kept; a named one by its number."""
        call: Expr | None = None
        meets = self.ctx.launch.threads[0]
        if stmt.barrier is not None:
            if not self.ctx.target.named_barriers:
                raise failure(
                    "T2C590",
                    f"named barriers of some threads, which {self.ctx.target.name} does not have",
                    stmt.span,
                )
            function = "threads_sync" if stmt.waits else "threads_arrive"
            self.ctx.need(function)
            template = (const(stmt.barrier), const(stmt.count))
            call = CCall(dtype=INT32, function=function, args=(), template=template)
            meets = stmt.count if stmt.waits else 0
        sync = Sync(
            kind="author",
            remark=stmt.remark or ("" if stmt.barrier is not None else "the author's barrier"),
            comments=stmt.comments,
            call=call,
        )
        return Step(body=(sync,), quote=stmt.quote, meets=meets)

    def _loop(self, stmt: Parallel) -> ParallelLoop:
        return ParallelLoop(
            loop_vars=stmt.loop_vars,
            extents=stmt.extents,
            body=stmt.body,
            quote=stmt.quote,
            comments=(*stmt.comments, *((stmt.remark,) if stmt.remark else ())),
            span=stmt.span,
            layout=self.frames.of(stmt),
        )

    def _pipelined(self, stmt: Pipelined) -> list[Node]:
        if self.ctx.team is not None:
            return self._serial(stmt, stmt.var, stmt.start, stmt.stop, 1, False)
        staging = plan_staging(self.ctx, stmt)
        if staging is not None:
            return lower_pipeline(self.ctx, stmt, staging, self.body)
        if not self.ctx.target.async_copy and int(stmt.num_stages.value) > 1:
            loads = movable_loads(self.ctx, stmt)
            operands = [
                operand_registers(x.a.buffer.dtype.bytes, self.matrices[id(x)])
                for x in stmt.body
                if isinstance(x, Gemm)
            ]
            depth = prefetch_depth(self.ctx, loads, max(operands, default=0)) if loads else 0
            if depth:
                return lower_prefetch(self.ctx, stmt, loads, depth, self.body)
        return self._serial(stmt, stmt.var, stmt.start, stmt.stop, 1, False)

    def _for(self, stmt: For) -> list[Node]:
        return self._serial(stmt, stmt.var, stmt.start, stmt.stop, stmt.step, stmt.kind == "unroll")

    def _serial(
        self, stmt: For | Pipelined, var: Var, start: Expr, stop: Expr, step: int, unroll: bool
    ) -> list[Node]:
        ctx = self.ctx
        before, first = self._held(start, (), "begin", f"{var.name}_begin")
        more, last = self._held(stop, stmt.body, "end", f"{var.name}_end")
        name = ctx.namer.author(var.author or var.name)
        facts = ctx.facts
        ctx.facts = facts.with_loop(stmt)
        if name != var.name:
            ctx.values[var.name] = b.local(name, var.dtype)
        body = self.body(stmt.body)
        ctx.facts = facts
        ctx.namer.release(name)
        frame = Loop(
            var=name,
            start=first,
            stop=last,
            step=const(step),
            body=(),
            unroll=unroll,
            dtype=INT32,
            comments=(*stmt.comments, *((stmt.quote,) if stmt.quote else ())),
            remark=stmt.remark,
        )
        way = b.sub(stop, start) if step > 0 else b.sub(start, stop)
        runs = facts.at_least(way, 1)
        uniform = not (self._divergent(start) or self._divergent(stop))
        loop = LoopStep(
            frame=Section(body=(frame,), span=stmt.span),
            body=tuple(body),
            runs=runs,
            name=name,
            uniform=uniform and not self.divergence.leaves(stmt.body),
            var=var.name,
            binds=names_bound((stmt,)),
        )
        return [*before, *more, loop]

    def _while(self, stmt: While) -> list[Node]:
        """The condition is read before every round: at the end of the last one, and after it."""
        condition = convert(self.ctx, stmt.condition, Place(values={}))
        body = self.body(stmt.body)
        reads = self._reads(stmt.condition)
        first: list[Node] = []
        if reads:
            look = Step(body=(), accesses=reads, quote=stmt.quote)
            body, first = [look, *body, look], [look]
        frame = Repeat(condition=condition, body=(), comments=(*stmt.comments, stmt.quote))
        uniform = not (self.divergence.differs(stmt.condition) or self.divergence.leaves(stmt.body))
        loop = LoopStep(
            frame=Section(body=(frame,)),
            body=tuple(body),
            runs=False,
            uniform=uniform,
            binds=names_bound((stmt,)),
        )
        return [*first, loop]

    def _reads(self, expr: Expr) -> tuple[Access, ...]:
        """Accesses of memory that threads share, in an expression."""
        found = [
            Access(buffer=load.buffer.name, write=False, cells=self._cells(load.index))
            for load in loads(expr)
            if load.buffer.scope in ("shared", "global")
        ]
        return tuple(dict.fromkeys(found))

    def _divergent(self, condition: Expr) -> bool:
        return self.divergence.differs(condition)

    def _held(self, expr: Expr, changes: Sequence[Stmt], *wishes: str) -> tuple[list[Node], Expr]:
        """The C form of an expression that is evaluated once; under a name if what it reads may change."""
        value = convert(self.ctx, expr, Place(values={}))
        reads = self._reads(expr)
        written = {buffer.name for stmt in statements(tuple(changes)) for buffer in writes(stmt)}
        private = any(load.buffer.name in written for load in loads(expr))
        written_at_all = {name for name in (access.buffer for access in reads)} & self.changing
        if not private and not written_at_all:
            return [], value
        name = self.ctx.namer.ours(*wishes)
        local = Local(dtype=expr.dtype, names=(Declarator(name=name, value=value),))
        return [Step(body=(local,), accesses=reads)], b.local(name, expr.dtype)

    def _if(self, stmt: If) -> list[Node]:
        ctx = self.ctx
        first, condition = self._held(stmt.condition, (), "holds", "test", "chosen", "taken")
        facts, outer = ctx.facts, ctx.divergent
        active, chosen = self.active, self.threads.values(stmt.condition)
        parted = self._divergent(stmt.condition)
        if chosen is not None:  # all that get here may take the same side
            parted = len({bool(c) for a, c in zip(active, chosen, strict=True) if a}) > 1
        ctx.divergent = outer or parted
        if lasts(stmt.condition, stmt.then):
            ctx.facts = facts.with_condition(stmt.condition)
        sides: list[list[Node]] = []
        teams: list[Team | None] = []
        for side, body in enumerate((stmt.then, stmt.orelse)):
            if chosen is not None:
                pairs = zip(active, chosen, strict=True)
                self.active = tuple(a and bool(c) != bool(side) for a, c in pairs)
            ctx.facts = facts
            condition_here = b.negate(stmt.condition) if side else stmt.condition
            if lasts(stmt.condition, body):
                ctx.facts = facts.with_condition(condition_here)
            sides.append(self._side(body))
            teams.append(team_of(ctx, self.active) if ctx.divergent else None)
        ctx.facts, ctx.divergent, self.active = facts, outer, active
        then, orelse = sides
        branch = BranchStep(
            condition=condition,
            then=tuple(then),
            orelse=tuple(orelse),
            uniform=not parted,
            comments=stmt.comments,
            teams=(teams[0], teams[1]),
        )
        return [*first, branch]

    def _side(self, body: Sequence[Stmt]) -> list[Node]:
        """One side of a branch; tile statements in it are shared by the threads that get there."""
        ctx = self.ctx
        outer, threads = ctx.team, ctx.threads
        if ctx.divergent and any(
            isinstance(stmt, TILE_STATEMENTS) for stmt in statements(tuple(body))
        ):
            ctx.team = team_range(ctx, self.active)
            if ctx.team is not None:
                ctx.threads = ctx.team[1]
        found = self.body(body)
        ctx.team, ctx.threads = outer, threads
        return found

    def _cells(self, index: tuple[Expr, ...]) -> Cells:
        """The elements that each of the threads which get here touches."""
        found: list[tuple[int | None, ...] | None] = []
        for part in index:
            values = self.threads.values(part)
            if values is None:
                found.append(None)
                continue
            pairs = zip(values, self.active, strict=True)
            found.append(tuple(value if here else None for value, here in pairs))
        return tuple(found)

    def _once(self, stmt: Stmt) -> tuple[Expr, ...]:
        """A fragment's only element goes to global memory once (language.md 5.4)."""
        if not isinstance(stmt, Store) or stmt.buffer.scope != "global" or self.ctx.divergent:
            return ()
        held = any(load.buffer.scope == "fragment" for load in loads(stmt.value))
        if not held or any(map(self.divergence.differs, (*stmt.index, stmt.value))):
            return ()
        return (b.compare("==", self.ctx.thread(), const(0)),)

    def _scalar(self, stmt: Stmt) -> Step:
        once = self._once(stmt)
        place = Place(values={}, once=once)
        body: tuple[CStmt, ...] = lower_scalars(self.ctx, (stmt,), place)
        accesses = [
            self._access(load.buffer, load.index)
            for expr in expressions(stmt)
            for load in loads(expr)
            if load.buffer.scope in ("shared", "global")
        ]
        if isinstance(stmt, Store | Atomic) and stmt.buffer.scope in ("shared", "global"):
            made = self._access(stmt.buffer, stmt.index, once=bool(once))
            accesses.append(replace(made, write=True, atomic=isinstance(stmt, Atomic)))
        accesses += [
            Access(buffer=x.buffer.name, write="w" in x.access)
            for x in pointers(stmt)
            if x.buffer.scope == "global"
        ]
        if isinstance(stmt, Let) and self.threads.values(stmt.value) is not None:
            self.threads.known[stmt.var.name] = stmt.value
        return Step(body=body, accesses=tuple(dict.fromkeys(accesses)), quote=stmt.quote)

    def _access(self, buffer: Buffer, index: tuple[Expr, ...], once: bool = False) -> Access:
        """What each thread that gets here reads; `once`: the first of them alone."""
        index = tuple(self.ctx.facts.spelled(part) for part in index)
        extents = {name: self.threads.extents[dim] for name, dim in self.threads.names.items()}
        chosen = {name for name, count in extents.items() if count > 1}
        if prod(extents.values()) < self.threads.count:
            chosen.add("threadIdx")  # some threads have all names in common
        own = {x.name for part in index for x in variables(part) if self.divergence.differs(x)}
        element = Element(
            index=index,
            of_threads=frozenset(() if once else chosen),
            inside=frozenset(own - chosen),
            ranges=(
                *((name, 0, count) for name, count in extents.items()),
                *ranges_of(index, self.ctx.facts.ranges),
            ),
            changing=changing_among(index, self.ctx.launch),
            of_tensor=buffer.scope == "global",
        )
        owner = "the first thread" if once else "each thread"
        cells = self._cells(index) if not once else ()
        return Access(buffer=buffer.name, write=False, owner=owner, element=element, cells=cells)
