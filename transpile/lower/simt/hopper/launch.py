"""A launch with roles: who does what, in passes; then entry points and launches (the text: `sides.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from math import lcm

from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Const, Expr, Var, const
from tile2c.transpile.ir.forms import Copy, For, Function, Launch, Parallel, Pipelined, Stmt
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.facts import Facts
from tile2c.transpile.lower.plan import (
    Arc,
    Body,
    CStmt,
    Declarator,
    Entry,
    EntryParam,
    LaunchPlan,
    Local,
    Plan,
)
from tile2c.transpile.lower.simt.entry_points import launch_note, multiple_of
from tile2c.transpile.lower.simt.frames import assign_layouts
from tile2c.transpile.lower.simt.gaps import NoPlaceForBarrier
from tile2c.transpile.lower.simt.hopper import memory
from tile2c.transpile.lower.simt.hopper.alternate import with_turns
from tile2c.transpile.lower.simt.hopper.consumer import ConsumerLowering, overwritten_sums
from tile2c.transpile.lower.simt.hopper.early_loads import with_early_loads
from tile2c.transpile.lower.simt.hopper.late_bounds import with_late_bounds
from tile2c.transpile.lower.simt.hopper.multiply import name_groups
from tile2c.transpile.lower.simt.hopper.neighbours import sharing_entries
from tile2c.transpile.lower.simt.hopper.notes import role_notes
from tile2c.transpile.lower.simt.hopper.pairs import (
    grid_of_pairs,
    pairing,
    pairs_note,
    with_a_block_a_tile,
)
from tile2c.transpile.lower.simt.hopper.panels import with_panels_of_waves
from tile2c.transpile.lower.simt.hopper.parts import (
    PARTS_NOTE,
    parts_choice,
    parts_of,
    with_parts,
)
from tile2c.transpile.lower.simt.hopper.policies import policy_lines, with_policies
from tile2c.transpile.lower.simt.hopper.producer import produce
from tile2c.transpile.lower.simt.hopper.rings import Again
from tile2c.transpile.lower.simt.hopper.roles import RING_STAGES, plan_roles
from tile2c.transpile.lower.simt.hopper.sides import GROUP, Sides
from tile2c.transpile.lower.simt.hopper.stay import (
    grid_of_staying,
    may_stay,
    staying_choice,
    staying_note,
)
from tile2c.transpile.lower.simt.hopper.store import Passage, in_own_memory, passage_of
from tile2c.transpile.lower.simt.hopper.two_blocks import BLOCKS_OF_SM, for_two_blocks
from tile2c.transpile.lower.simt.hopper.unfit import Restless, Unfit
from tile2c.transpile.lower.simt.hopper.warpgroups import (
    THREADS,
    accumulator_layout,
    held_plan,
    plan_registers,
    roles_choice,
)
from tile2c.transpile.lower.simt.late_reductions import meet_after_loops
from tile2c.transpile.lower.simt.layouts import Layout
from tile2c.transpile.lower.simt.leading_fills import drop_leading_fills
from tile2c.transpile.lower.simt.outer_statements import gemms, walk
from tile2c.transpile.lower.simt.scalars import lower_scalars
from tile2c.transpile.lower.simt.step_tree import only_accesses_to
from tile2c.transpile.lower.simt.steps import Node
from tile2c.transpile.lower.simt.syncs import place_barriers
from tile2c.transpile.lower.simt.unread import without_unread
from tile2c.transpile.lower.simt.uses import names_in
from tile2c.transpile.lower.simt.values import Place, convert
from tile2c.transpile.record import record
from tile2c.transpile.targets.simt import SimtTarget

OTHERS_STRUCT = frozenset({"Shared"})  # its name is taken for the file's ordinary entry


@record(kw_only=True)
class Given:
    """What a launch is chosen for: pitches that are multiples, dimensions that are not empty."""

    pitches: Mapping[Expr, int] = field(default_factory=dict)  # stride -> elements
    positive: tuple[Expr, ...] = ()


class WithRoles(Sides):
    """The launch lowered for a producer and consumer warpgroups."""

    def __init__(
        self,
        function: Function,
        launch: Launch,
        target: SimtTarget,
        diagnostics: Diagnostics,
        given: Given,
        *,
        stay: bool = False,
        together: bool = False,
    ) -> None:
        """`stay`: a block may take several tiles; raises Restless where only the text shows that none can.

        `together`: also for clusters of two blocks, which load what they have in common for each other.
        """
        self.given, self.stays, self.asked = given, stay, launch
        self.together = together
        super().__init__(function, launch, target, diagnostics, variant=False)

    # ---- passes

    def _lower(self) -> tuple[tuple[Node, ...], tuple[Arc, ...]]:
        ctx = self.ctx
        for name in (
            "ring",
            "full",
            "empty",
            "warpgroup",
            "group_m",
            "group_n",
            "shared",
            "shared_bytes",
            *sorted(OTHERS_STRUCT),
        ):
            ctx.namer.author(name)
        ctx.facts, ctx.whole_words = self._facts_of_launch(), True
        plain, self.body = self.body, meet_after_loops(ctx, self.body)
        self.roles = plan_roles(ctx, self.body, together=self.together)
        products = gemms(self.body)
        sums = {x.c.buffer.name: self.roles.products[id(x)] for x in products}
        held = {
            x.a.buffer.name: held_plan(x, self.roles.products[id(x)])
            for x in products
            if x.a.buffer.name in self.roles.held
        }
        taken = sum(plan.registers for plan in sums.values()) + sum(
            x.sums // 2 for x in held.values()
        )
        half = for_two_blocks(ctx, self.roles, taken)
        self.blocks = 1 if half is None else BLOCKS_OF_SM
        self.registers = half or plan_registers(self.roles.groups, taken)
        ctx.choices.append(roles_choice(self.roles.groups, self.registers))
        layouts = {name: accumulator_layout(ctx, plan) for name, plan in {**sums, **held}.items()}
        for product in products:
            plan = self.roles.products[id(product)]
            if accumulator_layout(ctx, plan) != layouts[product.c.buffer.name]:
                raise Unfit(f"two gemms want {product.c.buffer.name} held by different threads")
            name_groups(ctx, plan, GROUP)
        ways = {
            (p.groups_m, p.groups_n, p.tiles_m, p.n if p.groups_n > 1 else 0) for p in sums.values()
        }
        if len(ways) > 1:
            raise Unfit("the gemms of the loop split their tiles in different ways")
        self._note_positive()
        spare = (self.registers.consumer or 0) - taken
        early = with_early_loads(ctx, self.body, self.roles, layouts, spare)
        self.body = early.body
        self.zeroed, statements = drop_leading_fills(self.body)
        self._assign(layouts)
        loop = self.roles.loop
        self.stop, self.stop_line = self._stop()
        self.parts = parts_of(ctx, self.roles, self.zeroed, statements, self.stop)
        ctx.in_cluster = self.parts is not None
        if self.roles.neighbours is not None:
            ctx.cluster_size = self.roles.neighbours.size
        if self.parts is not None:
            self.roles = with_policies(ctx, self.roles)
        else:
            self.roles = with_turns(ctx, self.roles, self.body, alone=half is None)
        runs = self.parts is None and ctx.facts.at_least(b.sub(loop.stop, loop.start), 1)
        self.overwritten = overwritten_sums(self.roles, self.zeroed, statements, runs)
        self.pairs = pairing(ctx, self.roles)
        paired = self.pairs is not None
        self.stays = self.stays and self.parts is None and self.blocks == 1
        self.stays = self.stays and may_stay(ctx, self.roles, self.body, paired=paired)
        self.passages = self._passages(plain)
        if self.stays:
            ctx.launch = with_panels_of_waves(ctx.launch)
        if self.stays and self.roles.once:
            empty = ctx.namer.ours(self.roles.kept.replace("_full", "_empty"), "kept_empty")
            visit = ctx.namer.ours("visit", "visit_of_tile")
            self.roles = replace(self.roles, again=Again(empty=empty, visit=visit))
        out = with_late_bounds(statements, self.passages, self.frames)
        statements, self.passages = out.body, out.passages
        self.bound = lower_scalars(ctx, self.roles.bound, Place(values={}))
        start, stop = convert(ctx, loop.start, Place(values={})), self.stop
        if self.parts is not None:
            start, stop = b.local(self.parts.first), b.local(self.parts.last)
        loads = produce(ctx, self.roles, start, stop)
        self.producer = (*policy_lines(ctx, self.roles, self.stop), *loads)
        consumers = ConsumerLowering(
            ctx,
            self.frames,
            self.roles,
            start=start,
            stop=stop,
            parts=self.parts,
            overwritten=self.overwritten,
            passages=self.passages,
            stays=self.stays,
            alone=self.blocks == 1,
            early=early.loops,
        )
        nodes = consumers.body(statements)
        self.lambdas, self.opening = consumers.delayed, consumers.opening
        if self.stays:
            ctx.choices.append(staying_choice())
        if self.stays and ctx.arrays:
            raise Restless("what lies in shared memory is used a single time")
        if self.stays and len(self.roles.batches) > 1 and not self.lambdas:
            raise Restless("waits between products, not the ends of tiles, take the time")
        names = self._shared_between_threads()
        try:
            return place_barriers(only_accesses_to(nodes, names))
        except NoPlaceForBarrier as problem:
            raise Unfit(
                f"only some threads get from `{problem.arc.source}` to `{problem.arc.sink}`"
            ) from problem

    def _assign(self, layouts: dict[str, Layout]) -> None:
        ctx, facts = self.ctx, self.ctx.facts
        for stmt in walk(self.body):
            if isinstance(stmt, For | Pipelined):
                ctx.facts = ctx.facts.with_loop(stmt)
        self.frames = assign_layouts(ctx, self.body, layouts)
        ctx.facts = facts

    def _passages(self, plain: Sequence[Stmt]) -> dict[int, Passage]:
        """Copies of sums to tensors that go through shared memory, by the loop they became."""
        ring = sum(memory.tile_bytes(load, self.roles.depth) for load in self.roles.loads)
        found: dict[int, Passage] = {}
        written = without_unread(self.ctx, self.ctx.launch.body)  # what `plain` was made from
        for before, after in zip(written, plain, strict=True):
            if isinstance(before, Copy) and isinstance(after, Parallel):
                passage = passage_of(self.ctx, before, self.roles, ring)
                if passage is not None:
                    found[id(after)] = passage
        self._note_dims([passage.map.dims for passage in found.values()])
        if self.stays:
            once = sum(memory.tile_bytes(load, 1) for load in self.roles.once)
            room = self.ctx.target.max_shared - ring - once - memory.BARRIERS
            own = in_own_memory(self.ctx, list(found.values()), room)
            self.stays = own is not None
            return found if own is None else dict(zip(found, own, strict=True))
        return found

    def _note_positive(self) -> None:
        self.positive = []
        self._note_dims([load.map.dims for load in (*self.roles.once, *self.roles.loads)])

    def _note_dims(self, all_dims: list[tuple[Expr, ...]]) -> None:
        """A tensor map has no empty dimension: known, or a condition of the launch."""
        for dims in all_dims:
            for dim in reversed(dims):
                if dim not in self.positive and not self.ctx.facts.at_least(dim, 1):
                    self.positive.append(dim)

    def _facts_of_launch(self) -> Facts:
        """What holds when the launch is chosen."""
        facts = self.ctx.facts
        for stride, unit in self.given.pitches.items():
            if isinstance(stride, Var):
                known = facts.divisors.get(stride.name, 1)
                facts = facts.with_divisor(stride, lcm(known, unit))
        for dim in self.given.positive:
            facts = facts.with_condition(b.compare(">=", dim, const(1)))
        return facts

    @property
    def conditions(self) -> Given:
        """What the launch has to be chosen for."""
        pitches = {**self.given.pitches, **self.ctx.aligned_pitches}
        return Given(pitches=pitches, positive=(*self.given.positive, *self.positive))

    def _stop(self) -> tuple[Expr, CStmt | None]:
        """The loop's end, named where it is more than a name."""
        loop = self.roles.loop
        stop = convert(self.ctx, loop.stop, Place(values={}))
        if b.known(stop) is not None or isinstance(stop, Var):
            return stop, None
        name = self.ctx.namer.ours(f"{loop.var.author or loop.var.name}_end", "rounds_end")
        line = Local(dtype=INT32, names=(Declarator(name=name, value=stop),))
        return b.local(name), line

    # ---- plan

    def _params(self, body: tuple[CStmt, ...]) -> tuple[EntryParam, ...]:
        names = names_in(body)
        used = [
            param
            for param in super()._params(body)
            if param.kind != "tensor" or param.name in names
        ]
        return (*self._maps(), *used)

    def _entry(self, body: tuple[CStmt, ...], params: tuple[EntryParam, ...]) -> Entry:
        threads = ((self.roles.groups + 1) * THREADS, 1, 1)
        name = self.ctx.function.name
        return Entry(name=name, params=params, threads=threads, body=body, min_blocks=self.blocks)

    def launch_of(self, entry: Entry, when: str | None) -> LaunchPlan:
        return LaunchPlan(
            group=0,
            when=when,
            entry=entry.name,
            grid=self._grid_of_turns() if self.stays else self._grid(),
            block=entry.threads,
            shared_bytes=self.dynamic,
            tiles=self._grid()[: len(self.ctx.launch.grid)] if self.stays else (),
        )

    def _entries(
        self, body: tuple[CStmt, ...], params: tuple[EntryParam, ...]
    ) -> tuple[tuple[Body, ...], tuple[Entry, ...], tuple[LaunchPlan, ...]]:
        entry = self._entry(body, params)
        launches = (self.launch_of(entry, None),)
        shared = self.roles.neighbours
        if shared is None:
            return (), (entry,), launches
        names = {param.name: param for param in self._maps(halves=True)}
        theirs = tuple(names.get(param.name, param) for param in params)
        block, *both = sharing_entries(self.ctx, shared, entry, theirs)
        return (block,), tuple(both), launches

    def plan(self) -> Plan:
        plan = super().plan()
        return replace(
            plan,
            constants=(*plan.constants, *self.own_constants()),
            notes=(
                *role_notes(self.roles, self._maps()),
                *((self._turns_note(),) if self.stays else ()),
                *plan.notes,
            ),
        )

    def _grid_of_turns(self) -> tuple[Expr, Expr, Expr]:
        if self.pairs is None:
            return grid_of_staying(self.ctx)
        return grid_of_pairs(self.ctx, self.pairs)

    def _turns_note(self) -> str:
        return staying_note() if self.pairs is None else pairs_note()

    def in_parts(self, plan: Plan) -> Plan:
        """The plan with launches in which several blocks share the rounds of a tile."""
        if self.stays and self.pairs is not None:
            return with_a_block_a_tile(self.ctx, plan, self.pairs)
        if self.parts is None:
            return plan
        name = self.ctx.function.name
        launches = with_parts(self.ctx, self.roles, name, plan.launches)
        choice = parts_choice(launches)
        notes = (*plan.notes, PARTS_NOTE)
        return replace(plan, launches=launches, choices=(*plan.choices, choice), notes=notes)

    def own_constants(self) -> tuple[Const, ...]:
        """The ring's depth, where it is not the author's number."""
        extent = self.roles.extent
        ours = isinstance(extent, Const) and extent.name == RING_STAGES
        return (extent,) if isinstance(extent, Const) and ours else ()

    @property
    def addresses(self) -> tuple[str, ...]:
        """What the entry asks of where tensors start: those of maps and those it reads by pointer."""
        return super()._requirements()

    def _requirements(self) -> tuple[str, ...]:
        """Pitches, dimensions that are not empty, then addresses."""
        from tile2c.transpile.render.expressions import CPrinter

        printer = CPrinter(self.ctx.target.dialect)
        given = self.conditions
        pitches = [
            multiple_of(printer, stride, unit)
            for stride, unit in given.pitches.items()
            if b.known(stride) is None  # else the entry runs over copies alone
        ]
        sizes = [f"{printer(b.for_host(dim))} > 0" for dim in given.positive]
        return (*pitches, *sizes, *self.addresses)

    def _launch_note(self) -> str:
        plain = self.ctx.launch.threads[0]
        note = super()._launch_note()
        if self.stays:
            note = launch_note(self.ctx, self.dynamic, self._grid_of_turns())
        return note.replace(f"block {plain},", f"block {plain + THREADS},")
