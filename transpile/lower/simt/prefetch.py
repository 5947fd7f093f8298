"""T.Pipelined where copies to shared memory are synchronous: the next tile waits in registers.

The shape: before the loop the first tile is loaded and stored; each round: one barrier, start the global
loads of the next tile, compute, store what arrived into the other of two shared tiles. Where two do
not fit, one is stored at the start of its round, between two barriers. A register tile is a fragment
as any other, so loading and storing it are ordinary copies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Buffer, Expr, Load, const
from tile2c.transpile.ir.forms import Parallel, Pipelined, Stmt, Store
from tile2c.transpile.ir.walk import names_bound
from tile2c.transpile.lower import build as b
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
from tile2c.transpile.lower.simt.access import plain_load, vector_width
from tile2c.transpile.lower.simt.context import Context, Ring
from tile2c.transpile.lower.simt.layouts import default_layout, grouped_layout
from tile2c.transpile.lower.simt.parallel import ParallelLoop, lower_parallel
from tile2c.transpile.lower.simt.pipeline import fixed_ones, fixed_step, is_short, rest_of
from tile2c.transpile.lower.simt.scalars import lower_scalars
from tile2c.transpile.lower.simt.steps import Access, LoopStep, Node, Step
from tile2c.transpile.lower.simt.tile_loads import TileLoad, bound_for, loop_of, tile_of
from tile2c.transpile.lower.simt.values import Place, convert
from tile2c.transpile.record import record

LowerBody = Callable[[Sequence[Stmt]], list[Node]]


@record(kw_only=True)
class _Halves:
    """One copy in two: a tensor's tile to registers, registers to the shared tile."""

    fetch: ParallelLoop
    put: ParallelLoop


_ADDRESSES = 40  # registers for indices and addresses, by a look at compiled kernels


def prefetch_depth(ctx: Context, loads: Sequence[TileLoad], operands: int) -> int:
    """Shared tiles of each load: two where they fit, else one; none where registers would spill.

    `operands`: registers that matrix operands take in the loop.
    """
    tiles = {tile.name: tile for tile in map(tile_of, loads)}
    # Where a row may end inside a vector its elements come one by one: a register each.
    coming = sum(_elements(tile) for tile in tiles.values()) // ctx.threads
    held = sum(
        ctx.layouts[x.name].values * max(1, x.dtype.bytes // 4)
        for x in ctx.launch.buffers
        if x.scope == "fragment"
    )
    needed = held + coming + operands + _ADDRESSES
    if needed > ctx.target.registers:
        ctx.choices.append(
            Choice(
                name="tiles ahead",
                value="0",
                reason=f"a tile on its way takes {coming} registers a thread; with all others that is "
                f"about {needed}, and {ctx.target.name} has {ctx.target.registers}",
            )
        )
        return 0
    shared = sum(_bytes(x) for x in ctx.launch.buffers if x.scope == "shared")
    ahead = sum(_bytes(tile) for tile in tiles.values())
    return 2 if shared + ahead <= ctx.target.max_shared else 1


def _elements(buffer: Buffer) -> int:
    return prod(b.known(extent) or 1 for extent in buffer.shape)


def _bytes(buffer: Buffer) -> int:
    return _elements(buffer) * buffer.dtype.bytes


def lower_prefetch(
    ctx: Context, stmt: Pipelined, loads: Sequence[TileLoad], depth: int, lower_body: LowerBody
) -> list[Node]:
    """The loop with loads one round ahead; `depth` shared tiles of each load."""
    where = "into the other shared tile" if depth == 2 else "into the one shared tile that fits"
    ctx.choices.append(
        Choice(
            name=f"stages of {stmt.var.name}",
            value=str(depth),
            reason=f"{ctx.target.name} copies to shared memory through registers: the next tile is "
            f"loaded while one is used, then stored {where}",
        )
    )
    return _Prefetch(ctx, stmt, loads, depth, lower_body).nodes()


class _Prefetch:
    def __init__(
        self,
        ctx: Context,
        stmt: Pipelined,
        loads: Sequence[TileLoad],
        depth: int,
        lower_body: LowerBody,
    ) -> None:
        self.ctx, self.stmt, self.loads, self.depth = ctx, stmt, loads, depth
        self.lower_body = lower_body
        self.tiles = [tile_of(load).name for load in loads]
        self.bound = bound_for(stmt, loads) or ()
        self.fixed = fixed_ones(stmt, self.bound)

    def nodes(self) -> list[Node]:
        ctx, stmt = self.ctx, self.stmt
        self.var = ctx.namer.author(stmt.var.name)
        self.round: Expr = b.local(self.var)
        self.start = convert(ctx, stmt.start, Place(values={}))
        self.slot = ctx.namer.ours("stage", "slot") if self.depth > 1 else ""
        for name in self.tiles:
            ctx.ring[name] = Ring(self.depth, const(self.depth), b.local(self.slot), self.var)
        facts = ctx.facts
        ctx.facts = facts.with_loop(stmt)
        halves = [self._halves(load) for load in self.loads]
        tiles = "_".join(self.tiles)
        self.load = ctx.namer.ours("load_tiles", f"load_{tiles}")
        self.store = ctx.namer.ours("store_tiles", f"store_{tiles}")
        slot = [self._slot()] if self.slot else []
        inside = [let for let in self.bound if let not in self.fixed]
        names = lower_scalars(ctx, inside, Place(values={}))
        nodes: list[Node] = [
            *fixed_step(ctx, self.fixed),
            self._lambda(self.load, names, [half.fetch for half in halves]),
            self._lambda(self.store, slot, [half.put for half in halves]),
        ]
        self.stop, declared = self._stop()
        nodes.append(self._first(declared))
        nodes.append(self._loop())
        ctx.facts = facts
        for name in (self.slot, self.var):
            ctx.namer.release(name)
        return nodes

    # ---- the two halves of a copy

    def _halves(self, load: TileLoad) -> _Halves:
        ctx = self.ctx
        loop = loop_of(ctx, load)
        store = loop.body[-1]
        assert isinstance(store, Store)
        registers = self._registers(loop, store)
        at = tuple(loop.loop_vars)
        layout = ctx.layouts[registers.name]
        fetch = ParallelLoop(
            loop_vars=loop.loop_vars,
            extents=loop.extents,
            body=(*loop.body[:-1], replace(store, buffer=registers, index=at)),
            quote=load.quote,
            comments=load.comments,
            layout=layout,
            exact=True,  # what is not stored later need not be loaded
        )
        held = Load(dtype=registers.dtype, buffer=registers, index=at)
        put = replace(fetch, body=(replace(store, value=held),), quote="", comments=())
        shared = ctx.shared.get(store.buffer.name)
        if (
            shared is not None and shared.group > 1
        ):  # a thread holds its rows: they are neighbours there
            put = replace(
                put,
                loop_vars=put.loop_vars[::-1],
                extents=put.extents[::-1],
                layout=layout.turned(),
            )
        return _Halves(fetch=fetch, put=put)

    def _registers(self, loop: Parallel, store: Store) -> Buffer:
        """The fragment that holds a tile on its way, distributed for wide accesses of both sides."""
        ctx, tile = self.ctx, store.buffer
        base = tile.name.removesuffix("_shared").removesuffix("_smem").removesuffix("_s")
        name = ctx.namer.ours(f"{base}_next", f"{tile.name}_next")
        shape = tuple(b.known(extent) or 1 for extent in loop.extents)
        facts = ctx.facts
        for var, extent in zip(loop.loop_vars, loop.extents, strict=True):
            ctx.facts = ctx.facts.with_range(var, const(0), extent)
        found = plain_load(loop.body)
        assert found is not None
        source = found[3]
        accesses = [(source.buffer, source.index), (store.buffer, store.index)]
        width = vector_width(ctx, accesses, loop.loop_vars[-1].name, shape[-1])
        ctx.facts = facts
        registers = Buffer(name=name, scope="fragment", shape=loop.extents, dtype=tile.dtype)
        layout = ctx.shared.get(tile.name)
        if layout is not None and layout.group > 1:
            rows, columns = shape
            ctx.layouts[name] = grouped_layout((rows, columns), ctx.threads, width, layout.group)
        else:
            lanes = ctx.target.lanes
            ctx.layouts[name] = default_layout(shape, ctx.threads, lanes, width, frozenset())
        ctx.launch = replace(ctx.launch, buffers=(*ctx.launch.buffers, registers))
        return registers

    # ---- parts of the text

    def _lambda(self, name: str, head: Sequence[CStmt], loops: Sequence[ParallelLoop]) -> Step:
        body: list[CStmt] = list(head)
        for loop in loops:
            for part in lower_parallel(self.ctx, loop).body:
                assert isinstance(part, Section)
                body.append(replace(part, blank=False))
        block = Lambda(name=name, params=(f"int {self.var}",), body=tuple(body))
        return Step(body=(Section(body=(block,)),))

    def _slot(self) -> Local:
        start = self.stmt.start
        at = self.round if b.literal(start, 0) else b.sub(self.round, self.start)
        value = b.mod(at, const(self.depth))
        return Local(dtype=INT32, names=(Declarator(name=self.slot, value=value),))

    def _stop(self) -> tuple[Expr, CStmt | None]:
        """The loop's end; named when it is more than a step of arithmetic."""
        stop = convert(self.ctx, self.stmt.stop, Place(values={}))
        if is_short(stop):
            return stop, None
        name = self.ctx.namer.ours(f"{self.var}_end", f"{self.var}_stop")
        declared = Local(dtype=INT32, names=(Declarator(name=name, value=stop),))
        return b.local(name), declared

    def _runs(self) -> bool:
        return self.ctx.facts.at_least(b.sub(self.stmt.stop, self.stmt.start), 1)

    def _first(self, declared: CStmt | None) -> Step:
        """The first tile: loaded, and stored where the loop itself stores only later ones."""
        calls: list[CStmt] = [Do(call=self._call(self.load, self.start))]
        if self.depth > 1:
            calls.append(Do(call=self._call(self.store, self.start)))
        if not self._runs():
            calls = [Branch(condition=b.less(self.start, self.stop), then=tuple(calls))]
        body = (declared, *calls) if declared else tuple(calls)
        accesses = self._writes(0) if self.depth > 1 else ()
        return Step(body=(Section(body=body),), accesses=accesses, quote=self.stmt.quote)

    def _call(self, name: str, at: Expr) -> CCall:
        return CCall(dtype=INT32, function=name, args=(at,))

    def _next_load(self) -> CStmt:
        """The load for the next round, if there is one."""
        later = b.add(self.round, const(1))
        call = Do(call=self._call(self.load, later))
        return Branch(condition=b.less(later, self.stop), then=(call,))

    def _writes(self, version: int) -> tuple[Access, ...]:
        return tuple(
            Access(buffer=name, write=True, version=version, depth=self.depth, ring=self.var)
            for name in self.tiles
        )

    def _loop(self) -> LoopStep:
        stmt = self.stmt
        ahead = Step(body=(self._next_load(),), quote=stmt.quote)
        work = self.lower_body(rest_of(stmt, self.loads, self.bound, self.fixed))
        body: list[Node] = []
        if self.depth > 1:
            later = self._call(self.store, b.add(self.round, const(1)))
            put = Do(call=later, remark="what the last round stores, nobody reads")
            store = Step(
                body=(Section(body=(put,)),),
                accesses=self._writes(1),
                quote=stmt.quote,
            )
            body = [Step(body=(self._slot(),)), ahead, *work, store]
        else:
            here = Do(call=self._call(self.store, self.round))
            store = Step(body=(here,), accesses=self._writes(0), quote=stmt.quote)
            body = [store, ahead, *work]
        frame = Loop(
            var=self.var,
            start=self.start,
            stop=self.stop,
            step=const(1),
            body=(),
            dtype=INT32,
            comments=(*stmt.comments, stmt.quote),
        )
        whole = Section(body=(frame,))
        return LoopStep(
            frame=whole,
            body=tuple(body),
            runs=self._runs(),
            name=self.var,
            var=stmt.var.name,
            binds=names_bound((stmt,)),
        )
