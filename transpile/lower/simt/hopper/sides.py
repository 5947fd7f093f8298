"""The text of a launch with roles: shared memory, barriers, then what each side does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Expr, const
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import (
    Branch,
    CStmt,
    Declarator,
    EntryParam,
    Escape,
    Local,
    Loop,
    Section,
    Sync,
    TensorMap,
)
from tile2c.transpile.lower.simt import kernel as ordinary
from tile2c.transpile.lower.simt.hopper import memory
from tile2c.transpile.lower.simt.hopper.alternate import first_turn, last_turn
from tile2c.transpile.lower.simt.hopper.calls import call, do, ring_helpers
from tile2c.transpile.lower.simt.hopper.long_first import long_blocks_first
from tile2c.transpile.lower.simt.hopper.neighbours import drained, half_box, meet
from tile2c.transpile.lower.simt.hopper.opening import found_late
from tile2c.transpile.lower.simt.hopper.pairs import (
    Pairs,
)
from tile2c.transpile.lower.simt.hopper.panels import BLOCKS
from tile2c.transpile.lower.simt.hopper.parts import (
    Parts,
)
from tile2c.transpile.lower.simt.hopper.roles import Roles, TileLoad
from tile2c.transpile.lower.simt.hopper.stay import (
    Turns,
    names_bound,
    place_of_tile,
    split_by_tile,
    without_comments,
)
from tile2c.transpile.lower.simt.hopper.store import Passage, all_sent
from tile2c.transpile.lower.simt.hopper.team import for_team
from tile2c.transpile.lower.simt.hopper.warpgroups import (
    THREADS,
    Registers,
)
from tile2c.transpile.lower.simt.step_tree import flatten
from tile2c.transpile.lower.simt.uses import names_in

GROUP = b.local("warpgroup")


class Sides(ordinary.LoweredLaunch):
    """What a producer and consumer warpgroups do, as statements; `launch.py` has found it all out."""

    roles: Roles
    registers: Registers
    passages: dict[int, Passage]
    overwritten: frozenset[str]
    positive: list[Expr]
    stays: bool  # a block takes several tiles
    blocks: int  # of an SM at once
    pairs: int | None  # the index of the block that rounds grow with: tiles make pairs along it
    count_lines: tuple[CStmt, ...] = ()  # how many there are
    parts: Parts | None  # the blocks of a cluster share the rounds
    lambdas: bool  # some steps are written once and called
    opening: Branch | None = None  # what the consumers do while the first products of a tile run

    producer: tuple[CStmt, ...]
    bound: Sequence[CStmt]
    stop_line: CStmt | None

    def statements(self) -> tuple[CStmt, ...]:
        """Barriers, then the roles."""
        ctx = self.ctx
        ring_helpers(ctx)
        names = names_in(self.nodes)
        used = [x for x in ctx.launch.buffers if x.scope == "shared" and x.name in names]
        staged = [passage for passage in self.passages.values() if passage.parts]
        arrays, self.placed, self.dynamic = memory.declare(
            ctx, self.roles, used, staged, captured=self.lambdas
        )
        steps = for_team(ctx, flatten(self.nodes))
        if ctx.launch.comments:
            steps = (CStmt(comments=ctx.launch.comments), *steps)
        if self.stays:
            return (*arrays, *self._in_turn(steps, sent=bool(staged)))
        both = (*self.producer, *steps)
        head: list[CStmt] = [*arrays]
        ends = [self.stop_line] if self.stop_line else []
        if self.parts is not None:
            ends += self.parts.lines
        indices = [*self._indices((*self.bound, *both)), *self.bound, *ends]
        if indices:
            head.append(Section(body=tuple(indices)))
        consumers: list[CStmt] = [*self._share(consumer=True), *self._sums(), *self._locals()]
        prologue = self._prologue(steps)
        return (
            *head, self._barriers(), self._producer(self.producer), *consumers, *prologue,
            *first_turn(self.roles), *steps, *last_turn(self.roles),
        )  # fmt: skip

    def _in_turn(self, steps: tuple[CStmt, ...], *, sent: bool) -> list[CStmt]:
        """Barriers, then both roles, each in a loop over the block's tiles."""
        ctx = self.ctx
        turns = Turns(ctx) if self.pairs is None else Pairs(ctx, self.pairs)
        self.count_lines = tuple(turns.counts)
        ends = [self.stop_line] if self.stop_line else []
        inside = self.pairs is not None or bool(names_in(ends) & names_bound([self.bound]))
        own = [*self.bound, *(ends if inside else ())]
        orders = [
            self._named_order(turns.indices((*own, *part))) for part in (self.producer, steps)
        ]
        found: list[CStmt] = []
        if self.pairs is None:
            found, orders = place_of_tile(ctx, turns.names, orders)
        indices = [[*lines, *own] for lines in orders]
        one_tile = {var.name for var in ctx.launch.blocks} | names_bound(indices) | turns.names
        loads = turns.loop((*indices[0], *self.producer))
        names, own_names = split_by_tile(self._prologue(steps), one_tile)
        fragments = [*own_names, *self._sums(), *self._locals()]
        places = without_comments(indices[1])
        if found and not own and self.opening is not None:
            places, steps = found_late(ctx, self.opening, places, fragments, steps)
        work: list[CStmt] = [turns.loop((*places, *fragments, *steps))]
        work += last_turn(self.roles)
        if sent:
            work.append(all_sent())
        head = [*turns.counts, *(() if inside else ends)]
        return [
            *([Section(body=tuple(head))] if head else []),
            *([Section(body=tuple(found))] if found else []),
            self._barriers(),
            self._producer((loads,)),
            *self._share(consumer=True),
            *names,
            *first_turn(self.roles),
            *(Section(body=(part,)) for part in work),
        ]

    def _indices(self, steps: tuple[CStmt, ...]) -> list[CStmt]:
        """Block indices, those with more rounds first."""
        lines = self._named_order(self._block_indices(steps))
        return long_blocks_first(self.ctx, self.roles, lines)

    def _named_order(self, lines: list[CStmt]) -> list[CStmt]:
        """An order that the author did not ask for is not called by his name for it."""
        order = self.ctx.launch.order
        (theirs,) = self.ctx.function.launches
        if order is None or theirs.order == order:
            return lines
        reason = f"Panels of {order.panel} rows of tiles: blocks that run together share operands"
        words: tuple[str, ...] = (reason,)
        if theirs.order is not None:
            hint = f"T.use_swizzle({theirs.order.panel})"
            reason = (
                f"{hint}: panels of {order.panel} rows, as blocks stay and take {BLOCKS} tiles at a "
                "time, which then read the fewest bytes"
            )
            words = (*order.comments, reason)
        return [replace(line, comments=words if line.comments else ()) for line in lines]

    def _sums(self) -> list[CStmt]:
        """Fragments; sums that the first product overwrites need no zeros."""
        found: list[CStmt] = []
        for line in self._fragments():
            assert isinstance(line, Local)
            (name,) = line.names
            if name.name in self.overwritten:
                remark = f"{line.remark}: the first product overwrites"
                line = replace(line, names=(replace(name, zero=False),), remark=remark)
            found.append(line)
        return found

    def _barriers(self) -> CStmt:
        stage = self.ctx.namer.ours("stage", "slot")
        self.ctx.namer.release(stage)
        at = b.local(stage)
        shared = self.roles.neighbours
        warps: Expr = const(self.roles.groups * 4)
        if shared is not None:
            warps = b.mul(warps, b.local(shared.size))
        free = f"one arrival a consumer warp{' of the cluster' if shared else ''}"
        inits = [
            line
            for ring in self.roles.rings
            for line in (
                do(
                    "barrier_init",
                    ring.has_arrived(at),
                    const(1),
                    remark="the producer, and its bytes",
                ),
                do("barrier_init", ring.is_free(at), warps, remark=free),
            )
        ]
        loop = Loop(
            var=stage,
            start=const(0),
            stop=self.roles.extent,
            step=const(1),
            body=tuple(inits),
            dtype=INT32,
        )
        first = b.compare("==", b.local("threadIdx.x"), const(0))
        made = (*self._prefetches(), loop, *self._once(), do("barriers_visible"))
        ready = Branch(condition=first, then=made)
        met = Sync(kind="barrier", remark="the barriers are ready for everyone")
        if shared is None:
            return Section(body=(ready, met))
        return Section(body=(shared.line(), ready, meet(self.ctx, shared, met)))

    def _prefetches(self) -> tuple[CStmt, ...]:
        """The first load of a block would wait for its map."""
        self.ctx.need("tma_prefetch")
        return tuple(do("tma_prefetch", b.local(param.name)) for param in self._maps())

    def _once(self) -> tuple[CStmt, ...]:
        if not self.roles.once:
            return ()
        made = do(
            "barrier_init", self.roles.kept_full, const(1), remark="the producer, and its bytes"
        )
        again = self.roles.again
        if again is None:
            return (made,)
        warps, told = const(self.roles.groups * 4), "one arrival a consumer warp"
        return (made, do("barrier_init", again.is_free, warps, remark=told))

    def _producer(self, loads: Sequence[CStmt]) -> CStmt:
        """The last warpgroup, so that the consumers' thread indices are the author's."""
        ctx, groups = self.ctx, self.roles.groups
        index = b.div(call("int", b.local("threadIdx.x")), const(THREADS))
        shuffled = call("__shfl_sync", b.local("0xffffffffu"), index, const(0))
        group = Local(
            dtype=INT32,
            names=(Declarator(name="warpgroup", value=shuffled),),
            remark="shuffled: uniform for the compiler",
        )
        ring = Local(
            dtype=INT32,
            ctype="Ring",
            const=False,
            names=(Declarator(name="ring", value=None),),
        )
        from tile2c.transpile.render.expressions import CPrinter

        ring = replace(ring, ctype=f"Ring<{CPrinter(ctx.target.dialect)(self.roles.extent)}>")
        one = b.compare("==", b.local("threadIdx.x"), const(groups * THREADS))
        shared = self.roles.neighbours
        drain = [drained(ctx, self.roles, shared)] if shared is not None else []
        body = (
            *self._share(consumer=False),
            Branch(condition=one, then=(*loads, *drain)),
            Escape(kind="return"),
        )
        last = b.compare("==", GROUP, const(groups))
        role = Branch(condition=last, then=body, remark="the producer: one thread starts the loads")
        visit = (
            [replace(ring, ctype="Ring<1>", names=(Declarator(name=again.visit, value=None),))]
            if (again := self.roles.again) is not None
            else []
        )
        return Section(body=(group, ring, *visit, role))

    def _share(self, *, consumer: bool) -> list[CStmt]:
        count = self.registers.consumer if consumer else self.registers.producer
        if self.registers.producer is None or count is None:
            return []
        name = "more_registers" if consumer else "fewer_registers"
        self.ctx.need(name)
        return [do(name, template=(const(count),))]

    def _maps(self, *, halves: bool = False) -> list[EntryParam]:
        """Tensor maps; `halves`: of tiles that two blocks load for each other, each a half."""
        shared = self.roles.neighbours if halves else None
        found: dict[str, EntryParam] = {}
        moved: list[TileLoad | Passage] = [
            *self.roles.once,
            *self.roles.loads,
            *self.passages.values(),
        ]
        for part in moved:
            kind, described = part.map.dtype, part.map
            if shared is not None and isinstance(part, TileLoad) and part.tile.name in shared.tiles:
                described = half_box(part)
            box = " x ".join(str(extent) for extent in reversed(described.box))
            found[part.map_name] = EntryParam(
                name=part.map_name,
                kind="tensor_map",
                dtype=kind,
                remark=_words_of(described, box),
                map=described,
            )
        return list(found.values())


def _words_of(described: TensorMap, box: str) -> str:
    """What a map moves at once, for the header."""
    if described.corners is None:
        return f"{described.tensor} in boxes of {box}"
    channels, pixels = described.box
    return f"{channels} channels of {pixels} pixels of {described.tensor} (im2col)"
