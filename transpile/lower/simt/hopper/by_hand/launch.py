"""A launch that its author schedules: passes in order, then its entry point."""

from __future__ import annotations

from dataclasses import replace
from math import lcm

from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.expr import Buffer, Expr, Var, const
from tile2c.transpile.ir.forms import (
    BulkCopy,
    For,
    Function,
    Launch,
    Pipelined,
    SetRegisters,
)
from tile2c.transpile.ir.walk import statements as all_statements
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.by_hand import named_barriers
from tile2c.transpile.lower.facts import Facts
from tile2c.transpile.lower.plan import (
    Arc,
    Body,
    CStmt,
    Entry,
    EntryParam,
    LaunchPlan,
    Plan,
    Section,
    TensorMap,
)
from tile2c.transpile.lower.rename import rename_reserved
from tile2c.transpile.lower.simt import kernel as ordinary
from tile2c.transpile.lower.simt.divergence import Divergence
from tile2c.transpile.lower.simt.entry_points import multiple_of
from tile2c.transpile.lower.simt.fit_reductions import fit_reductions
from tile2c.transpile.lower.simt.gaps import NoPlaceForBarrier
from tile2c.transpile.lower.simt.hand_over import hand_over
from tile2c.transpile.lower.simt.hopper.by_hand import memory
from tile2c.transpile.lower.simt.hopper.by_hand.copies import Boxes, boxes_of
from tile2c.transpile.lower.simt.hopper.by_hand.fences import fences_of
from tile2c.transpile.lower.simt.hopper.by_hand.products import (
    Product,
    pinned_layouts,
    plan_products,
)
from tile2c.transpile.lower.simt.hopper.by_hand.registers import check_registers
from tile2c.transpile.lower.simt.hopper.by_hand.steps import HandLowering, Schedule
from tile2c.transpile.lower.simt.hopper.by_hand.tiles import columns_apart, tiles_of
from tile2c.transpile.lower.simt.hopper.launch import Given
from tile2c.transpile.lower.simt.hopper.team import unaligned_flag
from tile2c.transpile.lower.simt.late_reductions import meet_after_loops
from tile2c.transpile.lower.simt.leading_fills import drop_leading_fills
from tile2c.transpile.lower.simt.loop_phases import tile_phases
from tile2c.transpile.lower.simt.operands import Gemms
from tile2c.transpile.lower.simt.outer_statements import gemms, walk
from tile2c.transpile.lower.simt.padding import harmless_padding
from tile2c.transpile.lower.simt.scan import scans_on_shared
from tile2c.transpile.lower.simt.scan_registers import in_registers
from tile2c.transpile.lower.simt.shared import spread_loops
from tile2c.transpile.lower.simt.step_tree import flatten, only_accesses_to
from tile2c.transpile.lower.simt.steps import Node
from tile2c.transpile.lower.simt.sum_over_iterations import sum_over_iterations
from tile2c.transpile.lower.simt.syncs import place_barriers
from tile2c.transpile.lower.simt.ties import Apart
from tile2c.transpile.lower.simt.uses import functions_in, names_in
from tile2c.transpile.targets.simt import SimtTarget

_RESERVED = frozenset("warpgroup aligned TensorMap".split())
_MOST_HANDOVERS = 200


def plan_of(
    function: Function,
    launch: Launch,
    target: SimtTarget,
    diagnostics: Diagnostics,
    taken: frozenset[str],
    *,
    only_used: bool,
) -> Plan:
    """The plan: what TMA asks of pitches and sizes is asked of the caller, other rows may be unaligned."""
    if launch.threads[1] * launch.threads[2] != 1:
        raise failure(
            "T2C402",
            f"{' x '.join(map(str, launch.threads))} threads: a kernel that its author schedules has one "
            "row of threads",
            launch.span,
        )
    function = rename_reserved(function, _RESERVED)
    (launch,) = function.launches

    def lowered(given: Given, *, unaligned: bool = False) -> ByHand:
        return ByHand(
            function, launch, target, diagnostics, given, unaligned=unaligned, taken=taken,
            only_used=only_used,
        )  # fmt: skip

    first = lowered(Given())
    given = Given(pitches=first.pitches, positive=tuple(first.positive))
    again = lowered(given) if first.asks else first
    if again.ctx.wants_variant:
        again = lowered(given, unaligned=True)
    return again.plan()


class ByHand(ordinary.LoweredLaunch):
    """The launch lowered statement by statement, as its author has them."""

    def __init__(
        self,
        function: Function,
        launch: Launch,
        target: SimtTarget,
        diagnostics: Diagnostics,
        given: Given,
        *,
        unaligned: bool = False,
        taken: frozenset[str] = frozenset(),
        only_used: bool = False,
    ) -> None:
        self.given, self.unaligned_rows = given, unaligned
        self.pitches: dict[Expr, int] = dict(given.pitches)  # that TMA wants to be multiples
        self.positive: list[Expr] = list(given.positive)  # dimensions that must not be empty
        super().__init__(
            function, launch, target, diagnostics, variant=unaligned, unaligned=unaligned,
            taken=taken, only_used=only_used,
        )  # fmt: skip

    schedule: Schedule

    @property
    def asks(self) -> bool:
        """Whether something was asked for that is not given."""
        known = Given(pitches=self.pitches, positive=tuple(self.positive))
        return known != self.given

    # ---- passes

    def _lower(self) -> tuple[tuple[Node, ...], tuple[Arc, ...]]:
        ctx = self.ctx
        for name in sorted(_RESERVED):
            ctx.namer.author(name)
        ctx.facts = self._facts_of_launch()
        ctx.in_cluster = self._clustered
        ctx.named_barriers = named_barriers(ctx.launch)
        check_registers(ctx, self.body)
        settled = self._settled()
        self.body = settled.body
        self.schedule = self._schedule(settled)
        self.zeroed, rest = drop_leading_fills(self.body)
        frames = self._frames(settled)
        spread_loops(ctx, settled.gemms, tile_phases(ctx, settled.body, frames))
        ctx.harmless = harmless_padding(ctx, settled.body, frames)
        nodes = HandLowering(ctx, frames, self.schedule).whole(rest)
        names = self._shared_between_threads()
        try:
            leaves = Divergence(ctx.launch.body).leaves(ctx.launch.body, ("return",))
            placed = place_barriers(
                only_accesses_to(nodes, names), leaves=leaves, by_hand=ctx.threads
            )
        except NoPlaceForBarrier as problem:
            raise failure(
                "T2C506",
                f"threads must wait for each other between `{problem.arc.source}` and "
                f"`{problem.arc.sink}` (both touch {problem.arc.buffer}), but only some of them get there",
                ctx.launch.span,
                help="move the statements out of the condition, or order them with a barrier",
            ) from problem
        if "threads_sync" in functions_in(placed[0]):
            ctx.need("threads_sync")
        return placed

    def _facts_of_launch(self) -> Facts:
        """What the caller has to keep to."""
        facts = self.ctx.facts
        for stride, unit in self.given.pitches.items():
            if isinstance(stride, Var):
                known = facts.divisors.get(stride.name, 1)
                facts = facts.with_divisor(stride, lcm(known, unit))
        for dim in self.given.positive:
            facts = facts.with_condition(b.compare(">=", dim, const(1)))
        return facts

    def _settled(self) -> Gemms:
        """Products planned, and every fragment held by the threads that use its elements."""
        ctx = self.ctx
        body = scans_on_shared(ctx, sum_over_iterations(ctx, tuple(self.body)), in_registers)
        body = meet_after_loops(ctx, fit_reductions(ctx, body))
        for _ in range(_MOST_HANDOVERS):
            launch, taken, choices = ctx.launch, ctx.namer.state(), len(ctx.choices)
            products = plan_products(ctx, body)
            pinned = pinned_layouts(ctx, list(products.values()))
            settled = Gemms(body=body, gemms=gemms(body), plans={}, pinned=pinned)
            try:
                self._frames(settled)
            except Apart as found:
                ctx.launch = launch
                ctx.namer.restore(taken)
                ctx.layouts.clear()
                del ctx.choices[choices:]
                body = hand_over(ctx, body, found)
                continue
            self.products = products
            return settled
        raise AssertionError("fragments change hands without end")

    products: dict[int, Product]

    def _schedule(self, settled: Gemms) -> Schedule:
        ctx, body = self.ctx, settled.body
        parts = columns_apart(
            [
                (x.gemm, x.plan.n)
                for x in self.products.values()
                if x.plan.groups_n > 1 and not x.gemm.transpose_b
            ]
        )
        facts = ctx.facts
        for stmt in walk(body):
            if isinstance(stmt, For | Pipelined):
                ctx.facts = ctx.facts.with_loop(stmt)
        tiles = tiles_of(ctx, body, parts)
        names: dict[TensorMap, str] = {}
        boxes: dict[int, Boxes] = {}
        wanted = ctx.wants_variant
        for stmt in walk(body):
            if isinstance(stmt, BulkCopy):
                boxes[id(stmt)] = boxes_of(ctx, stmt, tiles, names)
        ctx.wants_variant = wanted
        self.pitches |= ctx.aligned_pitches
        ctx.aligned_pitches.clear()
        ctx.facts = facts
        for part in boxes.values():
            for dim in reversed(part.map.dims):
                if dim not in self.positive and not ctx.facts.at_least(dim, 1):
                    self.positive.append(dim)
        sums: dict[tuple[int, int], list[Buffer]] = {}
        for product in self.products.values():
            if product.gemm.asynchronous:
                sums.setdefault(product.team, []).append(product.gemm.c.buffer)
        return Schedule(
            products=self.products,
            tiles=tiles,
            boxes=boxes,
            single=frozenset(x.buffer.name for x in ctx.launch.barriers if x.single),
            fences=fences_of(ctx, body),
            sums={team: tuple(dict.fromkeys(found)) for team, found in sums.items()},
        )

    # ---- text

    def statements(self) -> tuple[CStmt, ...]:
        """Shared memory, indices, barriers, then the author's statements."""
        ctx = self.ctx
        barriers = ctx.launch.barriers
        arrays, self.placed, self.dynamic = memory.declare(
            ctx, self.schedule.tiles, self._used_tiles(self.nodes), barriers
        )
        steps = flatten(self.nodes)
        if self.schedule.boxes:
            ctx.need("tensor_map")
        if barriers or self.schedule.boxes or self.products:
            ctx.need("shared_addr")
        called = functions_in(steps)
        for name, layout in list(ctx.shared.items()):
            if layout.function not in called:  # TMA and wgmma alone go there
                del ctx.shared[name]
        if ctx.launch.comments:
            steps = (CStmt(comments=ctx.launch.comments), *steps)
        indices = [*self._block_indices(steps), *self._prologue(steps)]
        head: list[CStmt] = [*arrays, Section(body=tuple(indices))] if indices else [*arrays]
        made = memory.initialise(ctx, barriers, cluster=self._clustered)
        body = (*head, *made, *self._fragments(), *self._locals(), *steps)
        asked = self.unaligned_rows and "aligned" in names_in(body)
        return (unaligned_flag(), *body) if asked else body

    @property
    def _clustered(self) -> bool:
        return self.ctx.launch.cluster != (1, 1, 1)

    # ---- plan

    def _maps(self) -> list[EntryParam]:
        found: dict[str, EntryParam] = {}
        for part in self.schedule.boxes.values():
            described = part.map
            box = " x ".join(str(extent) for extent in reversed(described.box))
            found[part.map_name] = EntryParam(
                name=part.map_name,
                kind="tensor_map",
                dtype=described.dtype,
                remark=f"{described.tensor} in boxes of {box}",
                map=described,
            )
        return list(found.values())

    def _params(self, body: tuple[CStmt, ...]) -> tuple[EntryParam, ...]:
        names = names_in(body)
        used = [x for x in super()._params(body) if x.kind != "tensor" or x.name in names]
        return (*self._maps(), *used)

    def _entries(
        self, body: tuple[CStmt, ...], params: tuple[EntryParam, ...]
    ) -> tuple[tuple[Body, ...], tuple[Entry, ...], tuple[LaunchPlan, ...]]:
        launch, name = self.ctx.launch, self.ctx.function.name
        shares = any(isinstance(x, SetRegisters) for x in all_statements(self.body))
        entry = Entry(
            name=name,
            params=params,
            threads=launch.threads,
            body=body,
            min_blocks=1 if shares or self.products else None,
        )
        planned = LaunchPlan(
            group=0,
            when=None,
            entry=name,
            grid=self._grid(),
            block=launch.threads,
            shared_bytes=self.dynamic,
            cluster=launch.cluster if self._clustered else None,
        )
        return (), (entry,), (planned,)

    def plan(self) -> Plan:
        plan = super().plan()
        lines = ["roles    as the author schedules them"]
        for param in self._maps():
            assert param.map is not None
            lines.append(f"map      {param.name}: {param.remark}, {param.map.swizzle} swizzle")
        if self._clustered:
            blocks = " x ".join(map(str, self.ctx.launch.cluster))
            lines.append(f"cluster  {blocks} blocks run together")
        return replace(plan, notes=(*plan.notes, *lines), requires=self._requirements())

    def _requirements(self) -> tuple[str, ...]:
        """Pitches, dimensions that are not empty, then addresses."""
        from tile2c.transpile.render.expressions import CPrinter

        printer = CPrinter(self.ctx.target.dialect)
        pitches = [multiple_of(printer, stride, unit) for stride, unit in self.pitches.items()]
        sizes = [f"{printer(b.for_host(dim))} > 0" for dim in self.positive]
        return (*pitches, *sizes, *super()._requirements())
