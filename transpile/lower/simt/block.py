"""The statements of a block as steps: each kind of statement goes to its own lowering."""

from __future__ import annotations

from collections.abc import Sequence

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Expr, Var, const
from tile2c.transpile.ir.forms import (
    Atomic,
    AuthorSync,
    Copy,
    Declare,
    For,
    Gemm,
    If,
    Jump,
    Let,
    Parallel,
    Pipelined,
    Reduce,
    Scan,
    Stmt,
    Store,
    While,
)
from tile2c.transpile.ir.walk import reads, writes
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.desugar import copy_loop
from tile2c.transpile.lower.plan import CStmt, Loop, Repeat, Section, Sync
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.frames import Frames
from tile2c.transpile.lower.simt.gemm import lower_gemm, operand_registers
from tile2c.transpile.lower.simt.matrix import GemmPlan
from tile2c.transpile.lower.simt.parallel import ParallelLoop, lower_parallel
from tile2c.transpile.lower.simt.pipeline import lower_pipeline, movable_loads, plan_staging
from tile2c.transpile.lower.simt.prefetch import lower_prefetch, prefetch_depth
from tile2c.transpile.lower.simt.reduce import lower_reduce
from tile2c.transpile.lower.simt.scalars import lower_scalars
from tile2c.transpile.lower.simt.scan import lower_scan
from tile2c.transpile.lower.simt.steps import Access, BranchStep, LoopStep, Node, Step
from tile2c.transpile.lower.simt.values import Place, convert


class BlockLowering:
    """Lowers statement after statement; `matrices` holds the plan of each gemm, by identity."""

    def __init__(self, ctx: Context, frames: Frames, matrices: dict[int, GemmPlan]) -> None:
        self.ctx, self.frames, self.matrices = ctx, frames, matrices

    def body(self, statements: Sequence[Stmt]) -> list[Node]:
        found: list[Node] = []
        for stmt in statements:
            found += self.statement(stmt)
        return found

    def statement(self, stmt: Stmt) -> list[Node]:
        if isinstance(stmt, Parallel):
            return [lower_parallel(self.ctx, self._loop(stmt))]
        if isinstance(stmt, Copy):
            return [lower_parallel(self.ctx, self._loop(copy_loop(stmt, self.ctx.author_names)))]
        if isinstance(stmt, Gemm):
            return [lower_gemm(self.ctx, stmt, self.matrices[id(stmt)])]
        if isinstance(stmt, Reduce):
            return lower_reduce(self.ctx, stmt)
        if isinstance(stmt, Scan):
            return [lower_scan(self.ctx, stmt)]
        if isinstance(stmt, Pipelined):
            return self._pipelined(stmt)
        if isinstance(stmt, For):
            return [self._for(stmt)]
        if isinstance(stmt, While):
            return [self._while(stmt)]
        if isinstance(stmt, If):
            return [self._if(stmt)]
        if isinstance(stmt, AuthorSync):
            sync = Sync(
                kind="author", remark=stmt.remark or "the author's barrier", comments=stmt.comments
            )
            return [Step(body=(sync,), quote=stmt.quote)]
        if isinstance(stmt, Store | Let | Declare | Jump | Atomic):
            return [self._scalar(stmt)]
        raise failure(
            "T2C502",
            f"`{stmt.quote or type(stmt).__name__}` is not lowered for {self.ctx.target.name} yet",
            stmt.span,
        )

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
        staging = plan_staging(self.ctx, stmt, stmt.body)
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
        return [self._serial(stmt, stmt.var, stmt.start, stmt.stop, 1, False)]

    def _for(self, stmt: For) -> Node:
        return self._serial(stmt, stmt.var, stmt.start, stmt.stop, stmt.step, stmt.kind == "unroll")

    def _serial(
        self, stmt: For | Pipelined, var: Var, start: Expr, stop: Expr, step: int, unroll: bool
    ) -> Node:
        ctx, place = self.ctx, Place(values={})
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
            start=convert(ctx, start, place),
            stop=convert(ctx, stop, place),
            step=const(step),
            body=(),
            unroll=unroll,
            dtype=INT32,
            comments=(*stmt.comments, *((stmt.quote,) if stmt.quote else ())),
            remark=stmt.remark,
        )
        way = b.sub(stop, start) if step > 0 else b.sub(start, stop)
        runs = facts.at_least(way, 1)
        return LoopStep(
            frame=Section(body=(frame,), span=stmt.span), body=tuple(body), runs=runs, name=name
        )

    def _while(self, stmt: While) -> Node:
        self._uniform(stmt.condition, stmt)
        condition = convert(self.ctx, stmt.condition, Place(values={}))
        frame = Repeat(condition=condition, body=(), comments=(*stmt.comments, stmt.quote))
        return LoopStep(frame=Section(body=(frame,)), body=tuple(self.body(stmt.body)), runs=False)

    def _uniform(self, condition: Expr, stmt: Stmt) -> None:
        if self._divergent(condition):
            raise failure(
                "T2C502", "a `while` that only some threads run is not lowered yet", stmt.span
            )

    def _divergent(self, condition: Expr) -> bool:
        return any(isinstance(part, Var) and part.kind == "thread" for part in b.walk(condition))

    def _if(self, stmt: If) -> Node:
        ctx = self.ctx
        condition = convert(ctx, stmt.condition, Place(values={}))
        facts, outer = ctx.facts, ctx.divergent
        ctx.divergent = outer or self._divergent(stmt.condition)
        ctx.facts = facts.with_condition(stmt.condition)
        then = self.body(stmt.then)
        ctx.facts = facts.with_condition(b.negate(stmt.condition))
        orelse = self.body(stmt.orelse)
        ctx.facts, ctx.divergent = facts, outer
        return BranchStep(
            condition=condition,
            then=tuple(then),
            orelse=tuple(orelse),
            uniform=not self._divergent(stmt.condition),
            comments=stmt.comments,
        )

    def _scalar(self, stmt: Stmt) -> Step:
        body: tuple[CStmt, ...] = lower_scalars(self.ctx, (stmt,), Place(values={}))
        accesses = [
            Access(buffer=buffer.name, write=write, atomic=write and isinstance(stmt, Atomic))
            for write, buffers in ((False, reads(stmt)), (True, writes(stmt)))
            for buffer in buffers
            if buffer.scope in ("shared", "global")
        ]
        return Step(body=body, accesses=tuple(dict.fromkeys(accesses)), quote=stmt.quote)
