"""The author's statements as steps, in his order: his barriers, copies and products one to one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Buffer, Expr, Var, const
from tile2c.transpile.ir.forms import (
    AuthorSync,
    BarrierArrive,
    BarrierWait,
    BulkCopy,
    Copy,
    ElementCopy,
    For,
    Gemm,
    Hold,
    Order,
    Parallel,
    Pipelined,
    Reduce,
    Scan,
    SetRegisters,
    Stmt,
    Store,
)
from tile2c.transpile.ir.walk import statements, writes
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import (
    Address,
    Branch,
    CCall,
    CStmt,
    Do,
    Element,
    Section,
    Sync,
)
from tile2c.transpile.lower.simt.block import BlockLowering
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.frames import Frames
from tile2c.transpile.lower.simt.hopper.by_hand import copies
from tile2c.transpile.lower.simt.hopper.by_hand.copies import Boxes
from tile2c.transpile.lower.simt.hopper.by_hand.fences import Fences, ordinary_uses
from tile2c.transpile.lower.simt.hopper.by_hand.products import Product, multiply
from tile2c.transpile.lower.simt.hopper.by_hand.registers import at_start
from tile2c.transpile.lower.simt.hopper.by_hand.tiles import Tile
from tile2c.transpile.lower.simt.hopper.calls import do, pin
from tile2c.transpile.lower.simt.steps import Access, Node, Step
from tile2c.transpile.lower.simt.teams import team_of
from tile2c.transpile.lower.simt.values import Place, convert, global_element, shared_element
from tile2c.transpile.record import record


@record(kw_only=True)
class Schedule:
    """What is known of the launch before its statements are lowered."""

    products: dict[int, Product]  # by identity of the gemm
    tiles: dict[str, Tile]
    boxes: dict[int, Boxes]  # by identity of the copy
    single: frozenset[str]  # barriers that are named without an index
    fences: Fences
    sums: dict[tuple[int, int], tuple[Buffer, ...]]  # team -> sums that its waits complete


class HandLowering(BlockLowering):
    """As the block's lowering, with what the author says himself."""

    def __init__(self, ctx: Context, frames: Frames, schedule: Schedule) -> None:
        super().__init__(ctx, frames, {})
        self.schedule = schedule
        self.around: tuple[Stmt, ...] | None = None  # the innermost loop's statements

    def body(self, body: Sequence[Stmt]) -> list[Node]:
        """What one thread starts or waits for stands under one condition."""
        found: list[Node] = []
        waiting: list[BulkCopy | Order] = []
        for place, stmt in enumerate(body):
            if isinstance(stmt, BulkCopy) or _of_stores(stmt):
                assert isinstance(stmt, BulkCopy | Order)
                waiting.append(stmt)
                continue
            found += self._started(waiting)
            waiting = []
            nodes = self.statement(stmt)
            following = body[place + 1] if place + 1 < len(body) else None
            fenced = isinstance(following, Order) and following.kind == "async_fence"
            found += nodes if fenced else self._fenced(stmt, nodes)
        return [*found, *self._started(waiting)]

    def statement(self, stmt: Stmt) -> list[Node]:
        match stmt:
            case Gemm():
                return [self._product(stmt)]
            case ElementCopy():
                return [self._element_copy(stmt)]
            case BarrierArrive():
                return [self._arrive(stmt)]
            case BarrierWait():
                parity = convert(self.ctx, stmt.parity, Place(values={}))
                return [self._call(stmt, "barrier_wait", self._barrier(stmt), parity)]
            case Order():
                return [self._order(stmt)]
            case Hold():
                return [_step(stmt, replace(pin(self.ctx, stmt.buffer), remark=stmt.remark))]
            case SetRegisters():
                return [self._registers(stmt)]
            case Pipelined():
                return self._serial(stmt, stmt.var, stmt.start, stmt.stop, 1, False)
            case AuthorSync() if stmt.barrier is None and self.ctx.divergent:
                return [self._sync_of_team(stmt)]
        return super().statement(stmt)

    # ---- barriers and orders

    def _barrier(self, stmt: BarrierArrive | BarrierWait | BulkCopy) -> Expr:
        assert stmt.barrier is not None and stmt.index is not None
        name = stmt.barrier.name
        if name in self.schedule.single:
            return b.local(name)
        index = convert(self.ctx, stmt.index, Place(values={}))
        return Element(dtype=INT32, array=name, subscripts=(index,))

    def _call(self, stmt: Stmt, function: str, *args: Expr) -> Step:
        self.ctx.need(function)
        return _step(stmt, do(function, *args, remark=stmt.remark))

    def _element_copy(self, stmt: ElementCopy) -> Step:
        """`copy_async<8>(to, from)` of each thread."""
        ctx, place = self.ctx, Place(values={})
        size = stmt.count * stmt.src.dtype.bytes
        function = ctx.copy_name(size, "inside")
        ctx.need("copy_async", name=function, tail=False, variant=False, whole=False, bytes=size)
        ctx.aligned_tensors[stmt.src.name] = max(ctx.aligned_tensors.get(stmt.src.name, 1), size)
        to = shared_element(ctx, stmt.dst, stmt.target, place, whole=True)
        source = global_element(ctx, stmt.src, stmt.source, place)
        call = CCall(
            dtype=INT32,
            function=function,
            template=(const(stmt.count),),
            args=(Address(dtype=to.dtype, element=to), Address(dtype=to.dtype, element=source)),
        )
        accesses = (Access(buffer=stmt.dst.name, write=True, asynchronous=True),)
        made = Do(call=call, remark=stmt.remark)
        return replace(_step(stmt, made), accesses=accesses)

    def _arrive(self, stmt: BarrierArrive) -> Step:
        if stmt.copies:
            return self._copies_arrive(stmt)
        if stmt.bytes is None:
            return self._call(stmt, "barrier_arrive", self._barrier(stmt))
        size = convert(self.ctx, stmt.bytes, Place(values={}))
        function = "barrier_expect" if stmt.arrives else "barrier_bytes"
        return self._call(stmt, function, self._barrier(stmt), size)

    def _copies_arrive(self, stmt: BarrierArrive) -> Step:
        """An arrival when this thread's copies are done; before it, wgmma has to be told of them."""
        if not self.schedule.fences.copied:
            return self._call(stmt, "barrier_arrive_behind", self._barrier(stmt))
        for name in ("copies_wait_all", "publish_to_async", "barrier_arrive"):
            self.ctx.need(name)
        return _step(
            stmt,
            do("copies_wait_all", remark="this thread's copies are done"),
            do("publish_to_async", remark="and wgmma will see them"),
            do("barrier_arrive", self._barrier(stmt), remark=stmt.remark),
        )

    def _order(self, stmt: Order) -> Step:
        ctx, team = self.ctx, self._team()
        if stmt.kind == "products_wait":
            ctx.need("mma_wait")
            pins = self._pins(self.schedule.sums.get(team, ()))
            wait = do("mma_wait", template=(const(stmt.pending),), remark=stmt.remark)
            reads = self.schedule.fences.read_by_products(team)
            return _step(stmt, wait, *pins, completes=_reads(reads, team[1] == 128))
        names = {
            "async_fence": "publish_to_async", "products_begin": "mma_begin",
            "products_commit": "mma_commit", "cluster_arrive": "cluster_arrive",
            "cluster_wait": "cluster_wait",
        }  # fmt: skip
        return self._call(stmt, names[stmt.kind])

    def _registers(self, stmt: SetRegisters) -> Step:
        """setmaxnreg; of more than a thread has, or of fewer."""
        share = at_start(self.ctx.launch.threads[0])
        if stmt.more and stmt.count <= share:
            enough = f"{stmt.quote}: each thread has {share} from the start"
            return Step(body=(CStmt(comments=(*stmt.comments, enough)),), quote=stmt.quote)
        name = "more_registers" if stmt.more else "fewer_registers"
        self.ctx.need(name)
        return _step(stmt, do(name, template=(const(stmt.count),), remark=stmt.remark))

    def _sync_of_team(self, stmt: AuthorSync) -> Step:
        team = team_of(self.ctx, self.active)
        if team is None or team.meet is None:
            raise failure(
                "T2C314",
                "T.sync_threads stands under a condition that some threads of a warp do not meet: they "
                "would never arrive",
                stmt.span,
            )
        sync = Sync(
            kind="author", remark=stmt.remark or "the author's barrier", comments=stmt.comments,
            call=team.meet,
        )  # fmt: skip
        if isinstance(team.meet, CCall) and team.meet.function == "threads_sync":
            self.ctx.need("threads_sync")
        return Step(body=(sync,), quote=stmt.quote, meets=team.count)

    def _team(self) -> tuple[int, int]:
        return self.ctx.team or (0, self.ctx.threads)

    def _by_one(self, *body: CStmt) -> CStmt:
        """By the first thread of those that get here."""
        first, count = self._team()
        if count == 1:
            return body[0] if len(body) == 1 else Section(body=body, blank=False)
        one = b.compare("==", b.local("threadIdx.x"), const(first))
        return Branch(condition=one, then=body)

    # ---- copies

    def _started(self, waiting: Sequence[BulkCopy | Order]) -> list[Node]:
        """Copies, and the groups of stores, by the first thread of those that get here."""
        if not waiting:
            return []
        if self.ctx.divergent and self.ctx.team is None:
            raise failure(
                "T2C563",
                "T.tma_copy is started once by the threads that get here, but which ones do is not known",
                waiting[0].span,
                help="under a condition on the thread index alone, such as `if tx == 0`",
            )
        parts: list[CStmt] = []
        accesses: list[Access] = []
        completes: tuple[Access, ...] = ()
        for stmt in waiting:
            if isinstance(stmt, Order):
                parts.append(self._of_group(stmt))
                if stmt.kind == "stores_wait":
                    completes = _reads(self.schedule.fences.stored_by(self._team()))
                continue
            boxes = self.schedule.boxes[id(stmt)]
            loads = stmt.barrier is not None
            name = boxes.tile.buffer.name
            accesses.append(Access(buffer=name, write=loads, asynchronous=True))
            if loads:
                parts.append(copies.load(self.ctx, boxes, self._barrier(stmt)))
            else:
                parts.append(copies.store(self.ctx, boxes))
        step = Step(
            body=(self._by_one(*parts),),
            accesses=tuple(dict.fromkeys(accesses)),
            quote=waiting[0].quote,
            completes=completes,
        )
        return [step]

    def _of_group(self, stmt: Order) -> CStmt:
        """A group of stores is closed, or waited for."""
        if stmt.kind == "stores_commit":
            self.ctx.need("tma_store_commit")
            return do("tma_store_commit", remark=stmt.remark)
        self.ctx.need("tma_store_wait_read")
        remark = stmt.remark or "shared memory has been read"
        return do("tma_store_wait_read", template=(const(stmt.pending),), remark=remark)

    # ---- products

    def _product(self, stmt: Gemm) -> Step:
        ctx, product = self.ctx, self.schedule.products[id(stmt)]
        if self._team() != product.team:
            raise failure(
                "T2C591",
                "this product stands under a condition that only some threads of its warpgroups meet",
                stmt.span,
            )
        for name in ("mma_begin", "mma_commit"):
            ctx.need(name)
        lone = product.team[1] == 128
        pins = self._pins((stmt.c.buffer,))
        body: list[CStmt] = [*pins, do("mma_begin"), multiply(ctx, product, self.schedule.tiles)]
        body.append(do("mma_commit"))
        if not stmt.asynchronous:
            ctx.need("mma_wait")
            body.append(do("mma_wait", template=(const(0),), remark="the product is complete"))
            body += pins
        section = Section(comments=(*stmt.comments, stmt.quote), body=tuple(body), span=stmt.span)
        reads = tuple(
            Access(
                buffer=region.buffer.name,
                write=False,
                asynchronous=stmt.asynchronous,
                together=lone,
            )
            for region in (stmt.a, stmt.b)
            if region.buffer.scope == "shared"
        )
        return Step(body=(section,), accesses=tuple(dict.fromkeys(reads)), quote=stmt.quote)

    def _pins(self, sums: Sequence[Buffer]) -> list[CStmt]:
        """Sums that ordinary statements of the loop use too stay on their side of what orders them."""
        inside = self.schedule.fences.touched
        if self.around is not None:
            inside = frozenset(ordinary_uses(self.around))
        return [pin(self.ctx, x) for x in sums if x.name in inside]

    def _serial(
        self, stmt: For | Pipelined, var: Var, start: Expr, stop: Expr, step: int, unroll: bool
    ) -> list[Node]:
        outer, self.around = self.around, stmt.body
        found = super()._serial(stmt, var, start, stop, step, unroll)
        self.around = outer
        return found

    def _fenced(self, stmt: Stmt, nodes: list[Node]) -> list[Node]:
        """A fence behind an ordinary write to a tile that products or stores read."""
        kinds = (Parallel, Copy, Reduce, Scan, Store)
        if not isinstance(stmt, kinds) or not nodes or not isinstance(nodes[-1], Step):
            return nodes
        inside = statements((stmt,))
        names = {buffer.name for inner in inside for buffer in writes(inner)}
        if not self.schedule.fences.wanted(names):
            return nodes
        self.ctx.need("publish_to_async")
        remark = "TMA and wgmma will see what this thread wrote"
        fence = do("publish_to_async", remark=remark)
        return [*nodes[:-1], replace(nodes[-1], body=(*nodes[-1].body, fence))]


def _of_stores(stmt: Stmt) -> bool:
    return isinstance(stmt, Order) and stmt.kind in ("stores_commit", "stores_wait")


def _step(stmt: Stmt, *body: CStmt, completes: tuple[Access, ...] = ()) -> Step:
    section = Section(comments=stmt.comments, body=body, blank=False, span=stmt.span)
    return Step(body=(section,), quote=stmt.quote, completes=completes)


def _reads(names: Sequence[str], together: bool = False) -> tuple[Access, ...]:
    return tuple(Access(buffer=name, write=False, together=together) for name in names)
