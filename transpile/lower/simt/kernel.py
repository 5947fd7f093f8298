"""One launch the ordinary way: passes in order, then entry points, launches and the plan's tables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import field
from functools import cached_property
from math import isinf, isnan

from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.expr import Buffer, Expr
from tile2c.transpile.ir.forms import (
    For,
    Function,
    Launch,
    Pipelined,
    Scan,
    Stmt,
)
from tile2c.transpile.ir.walk import statements
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.by_hand import keeps_order, named_barriers
from tile2c.transpile.lower.desugar import copies_as_loops
from tile2c.transpile.lower.plan import (
    Arc,
    Body,
    CStmt,
    Entry,
    EntryParam,
    LaunchPlan,
    Plan,
    Section,
)
from tile2c.transpile.lower.rename import author_names
from tile2c.transpile.lower.simt.block import BlockLowering
from tile2c.transpile.lower.simt.context import Context, CopyKind
from tile2c.transpile.lower.simt.divergence import Divergence, check_bounds
from tile2c.transpile.lower.simt.entry_points import (
    aligned_pitches,
    entries,
    entry_params,
    grid,
    launch_note,
)
from tile2c.transpile.lower.simt.fit_reductions import fit_reductions
from tile2c.transpile.lower.simt.frames import Frames
from tile2c.transpile.lower.simt.gaps import NoPlaceForBarrier
from tile2c.transpile.lower.simt.hand_over import hand_over
from tile2c.transpile.lower.simt.helper_order import ordered
from tile2c.transpile.lower.simt.kernel_head import (
    block_indices,
    fragments,
    local_arrays,
    prologue,
)
from tile2c.transpile.lower.simt.late_reductions import meet_after_loops
from tile2c.transpile.lower.simt.leading_fills import drop_leading_fills
from tile2c.transpile.lower.simt.loop_phases import tile_phases
from tile2c.transpile.lower.simt.names import Namer
from tile2c.transpile.lower.simt.operands import Gemms, settle_gemms
from tile2c.transpile.lower.simt.outer_statements import walk
from tile2c.transpile.lower.simt.overlay import Group, in_place_of_dead, overlays
from tile2c.transpile.lower.simt.padding import harmless_padding
from tile2c.transpile.lower.simt.replicas import keep_replicas_apart
from tile2c.transpile.lower.simt.result_rows import through_rows
from tile2c.transpile.lower.simt.scan import scans_on_shared
from tile2c.transpile.lower.simt.scan_registers import fits, in_registers
from tile2c.transpile.lower.simt.shared import (
    choose_layouts,
    share_functions,
    spread_loops,
    swizzle_helpers,
)
from tile2c.transpile.lower.simt.shared_memory import declare, shared_sizes
from tile2c.transpile.lower.simt.shifted_loops import count_from_shifts
from tile2c.transpile.lower.simt.signature import (
    argument,
    headers,
    need_conversions,
    size_note,
)
from tile2c.transpile.lower.simt.starting_facts import starting_facts
from tile2c.transpile.lower.simt.step_tree import flatten, only_accesses_to
from tile2c.transpile.lower.simt.steps import Node
from tile2c.transpile.lower.simt.sum_over_iterations import sum_over_iterations
from tile2c.transpile.lower.simt.syncs import place_barriers
from tile2c.transpile.lower.simt.teams import team_frames
from tile2c.transpile.lower.simt.ties import Apart
from tile2c.transpile.lower.simt.unread import without_unread
from tile2c.transpile.lower.simt.uses import (
    constants_in,
    functions_in,
    global_uses,
    has_number,
    has_rolled,
    has_rolled_unaligned,
    has_unrolled,
    names_in,
    with_hidden,
)
from tile2c.transpile.record import record
from tile2c.transpile.targets.simt import SimtTarget

_MOST_HANDOVERS = 200


class NoRoomForRows(Exception):
    """No dead tiles are as large as those that results would leave through."""


@record(frozen=False)
class SharedNames:
    """Names of helpers that depend on what was asked for before, in any launch of the text."""

    reducers: dict[str, tuple[str, str]] = field(default_factory=dict)
    copies: dict[tuple[int, CopyKind], str] = field(default_factory=dict)
    kinds: dict[Hashable, str] = field(default_factory=dict)

    def copy(self) -> SharedNames:
        return SharedNames(dict(self.reducers), dict(self.copies), dict(self.kinds))

    def add(self, other: SharedNames) -> None:
        self.reducers.update(other.reducers)
        self.copies.update(other.copies)
        self.kinds.update(other.kinds)


class LoweredLaunch:
    """One launch lowered, ready to become a plan."""

    def __init__(
        self,
        function: Function,
        launch: Launch,
        target: SimtTarget,
        diagnostics: Diagnostics,
        *,
        variant: bool,
        pitches: dict[Expr, int] | None = None,
        unaligned: bool = False,
        taken: frozenset[str] = frozenset(),
        names: SharedNames | None = None,
        only_used: bool = False,
        in_rows: bool = False,
    ) -> None:
        """`in_rows`: results may leave through shared tiles; raises NoRoomForRows where these do not fit."""
        self.names, self.only_used, self.in_rows = names or SharedNames(), only_used, in_rows
        known = author_names(function)
        namer = Namer(target.dialect.reserved | taken)
        ours = known - {
            var.name for stmt in walk(launch.body) for var in getattr(stmt, "loop_vars", ())
        }
        inside = statements(launch.body)
        loops = {stmt.var.name for stmt in inside if isinstance(stmt, For | Pipelined)}
        for name in sorted(ours - loops):
            namer.author(name)
        x, y, z = launch.threads
        self.ctx = Context(
            target=target,
            function=function,
            launch=launch,
            diagnostics=diagnostics,
            facts=starting_facts(function, launch),
            namer=namer,
            threads=x * y * z,
            variant=variant,
            known_pitches=dict(pitches or {}),
            unaligned=unaligned,
            author_names=known,
            reducers=self.names.reducers,
            copies=self.names.copies,
            kinds=self.names.kinds,
        )
        for var, name in zip(launch.thread_vars, "xyz", strict=False):
            # Under the author's name it is an int: threadIdx is unsigned, and `tx - 5` never negative.
            self.ctx.wanted[var.name] = b.local(f"threadIdx.{name}")
            self.ctx.values[var.name] = b.local(var.name)
        check_bounds(launch.body)
        self.body = copies_as_loops(without_unread(self.ctx, launch.body), ours)
        self.ctx.author_names = frozenset(ours)
        self.nodes, self.arcs = self._lower()

    # ---- passes

    def _lower(self) -> tuple[tuple[Node, ...], tuple[Arc, ...]]:
        ctx = self.ctx
        ctx.named_barriers = named_barriers(ctx.launch)
        settled = self._settled()
        if self.in_rows:
            settled = through_rows(ctx, settled)
        self.body = settled.body
        choose_layouts(ctx, settled.gemms, settled.plans)
        self.zeroed, rest = drop_leading_fills(self.body)
        frames = self._frames(settled)
        spread_loops(ctx, settled.gemms, tile_phases(ctx, settled.body, frames))
        share_functions(ctx)
        ctx.harmless = harmless_padding(ctx, settled.body, frames)
        nodes = BlockLowering(ctx, frames, settled.plans).whole(rest)
        shared_names = self._shared_between_threads()
        sizes = shared_sizes(ctx, self._tiles_among(names_in(nodes)))
        ctx.overlays = self._overlays(nodes, sizes)
        try:
            leaves = Divergence(ctx.launch.body).leaves(ctx.launch.body, ("return",))
            placed = place_barriers(
                only_accesses_to(nodes, shared_names),
                leaves=leaves,
                overlays=ctx.overlays,
                by_hand=ctx.threads if keeps_order(ctx.launch) else 0,
            )
            called = functions_in(flatten(placed[0]))
            for name in ("threads_sync", "wave_sync"):
                if name in called:
                    ctx.need(name)
            return placed
        except NoPlaceForBarrier as problem:
            raise failure(
                "T2C506",
                f"threads must wait for each other between `{problem.arc.source}` and "
                f"`{problem.arc.sink}` (both touch {problem.arc.buffer}), but only some of them get there",
                ctx.launch.span,
                help="move the statements out of the condition on the thread index",
            ) from problem

    def _overlays(self, nodes: Sequence[Node], sizes: dict[str, int]) -> tuple[Group, ...]:
        """Tiles in the same bytes: results on their way out in those of dead operands."""
        ctx = self.ctx
        if not ctx.leaving:
            scratch = {array.name for array in ctx.arrays}
            return overlays(nodes, sizes, scratch, ctx.target.max_shared)
        found = in_place_of_dead(nodes, sizes, sorted(ctx.leaving))
        total = sum(sizes[name] for name in sizes if name not in ctx.leaving)
        if found is None or total > ctx.target.max_shared:
            raise NoRoomForRows
        return found

    def _used_tiles(self, nodes: Sequence[Node]) -> list[Buffer]:
        return self._tiles_among(names_in(nodes))

    def _tiles_among(self, names: set[str]) -> list[Buffer]:
        return [x for x in self.ctx.launch.buffers if x.scope == "shared" and x.name in names]

    def _settled(self) -> Gemms:
        """Gemms planned, and every fragment held by the threads that use its elements."""
        ctx = self.ctx
        body = count_from_shifts(sum_over_iterations(ctx, tuple(self.body)))
        body = scans_on_shared(ctx, body, in_registers)
        body = meet_after_loops(ctx, fit_reductions(ctx, body))
        for _ in range(_MOST_HANDOVERS):
            launch, taken = ctx.launch, ctx.namer.state()
            try:
                settled = settle_gemms(ctx, body)
                self._frames(settled)
                for stmt in walk(settled.body):
                    if isinstance(stmt, Scan) and in_registers(stmt) and not fits(ctx, stmt):
                        raise Apart(stmt, stmt.dst.buffer)
                return settled
            except Apart as found:
                ctx.launch = launch
                ctx.namer.restore(taken)
                ctx.layouts.clear()
                if isinstance(found.stmt, Scan):
                    body = scans_on_shared(ctx, body, _other_than(found.stmt))
                else:
                    body = hand_over(ctx, body, found)
        raise AssertionError("fragments change hands without end")

    def _frames(self, settled: Gemms) -> Frames:
        """Layouts of all fragments, and of the loops over them."""
        ctx = self.ctx
        facts = ctx.facts
        for stmt in walk(settled.body):
            if isinstance(stmt, For | Pipelined):
                ctx.facts = ctx.facts.with_loop(stmt)
        try:
            frames = team_frames(ctx, settled.body, settled.pinned)
            keep_replicas_apart(settled.body, frames)
            return frames
        finally:
            ctx.facts = facts

    def _shared_between_threads(self) -> set[str]:
        """Buffers whose accesses may need order: shared ones, and tensors that are written."""
        _, writes = global_uses(self.ctx.launch.body)
        names = {x.name for x in self.ctx.launch.buffers if x.scope == "shared"}
        names |= {array.name for array in self.ctx.arrays}
        return names | writes

    # ---- the text's parts

    @cached_property
    def _named(self) -> set[str]:
        """Variables and arrays of the kernel's steps."""
        return names_in(self.nodes)

    def statements(self) -> tuple[CStmt, ...]:
        """The kernel's body: arrays, indices, steps."""
        ctx = self.ctx
        shared, self.placed, self.dynamic = declare(ctx, self._tiles_among(self._named))
        arrays = [*shared, *self._fragments(), *self._locals()]
        steps = flatten(self.nodes)
        if self.ctx.launch.comments:
            steps = (CStmt(comments=self.ctx.launch.comments), *steps)
        indices = [*self._block_indices(steps), *self._prologue(steps)]
        parts: list[CStmt] = [*arrays]
        if indices:
            parts.append(Section(body=tuple(indices)))
        return (*parts, *steps)

    def _prologue(self, steps: Sequence[CStmt]) -> tuple[CStmt, ...]:
        return prologue(self.ctx, steps)

    def _fragments(self) -> list[CStmt]:
        return fragments(self.ctx, self._named, self.zeroed)

    def _locals(self) -> list[CStmt]:
        return local_arrays(self.ctx, self._named)

    def _block_indices(self, steps: Sequence[CStmt]) -> list[CStmt]:
        return block_indices(self.ctx, steps)

    # ---- plan

    def plan(self) -> Plan:
        ctx, function = self.ctx, self.ctx.function
        body = self.statements()
        swizzle_helpers(ctx)
        if has_number(body, isinf):
            ctx.need("infinity")
        if has_number(body, isnan):
            ctx.need("not_a_number")
        if has_unrolled(body):
            ctx.need("unroll")
        if has_rolled(body):
            ctx.need("rolled")
        if has_rolled_unaligned(body):
            ctx.need("rolled_unaligned")
        need_conversions(ctx, body)
        helpers = ordered(list(ctx.helpers.values()))
        params = self._params(body)
        bodies, entries, launches = self._entries(body, params)
        reads, writes = global_uses(ctx.launch.body)
        args = tuple(argument(p, reads, writes, self.only_used) for p in function.params)
        mentioned = constants_in((bodies, entries))
        constants = tuple(c for c in function.constants if c.name in mentioned)
        constants = with_hidden(constants, helpers, function)
        return Plan(
            name=function.name,
            summary=function.summary,
            comments=function.docstring,
            args=args,
            sizes=function.sizes,
            constants=constants,
            headers=headers(ctx, function),
            helpers=tuple(helpers),
            sources=function.sources,
            bodies=bodies,
            entries=entries,
            launches=launches,
            launch_note=self._launch_note(),
            size_note=size_note(function),
            placed=tuple(self.placed),
            layouts=tuple((name, layout.words()) for name, layout in ctx.layouts.items()),
            choices=tuple(ctx.choices),
            arcs=self.arcs,
            unproven=sum(not arc.proven for arc in self.arcs),
            requires=self._requirements() if not ctx.variant else (),
            notes=tuple(f"numbers  {note}" for note in ctx.notes),
        )

    def _requirements(self) -> tuple[str, ...]:
        return tuple(f"{name} % {size} == 0" for name, size in self.ctx.aligned_tensors.items())

    def _params(self, body: tuple[CStmt, ...]) -> tuple[EntryParam, ...]:
        return entry_params(self.ctx, body, self.only_used)

    def _entries(
        self, body: tuple[CStmt, ...], params: tuple[EntryParam, ...]
    ) -> tuple[tuple[Body, ...], tuple[Entry, ...], tuple[LaunchPlan, ...]]:
        return entries(self.ctx, body, params, self.dynamic, self._conditions())

    def _conditions(self) -> tuple[str, ...]:
        """When rows are aligned: on sizes, then on addresses."""
        return (*aligned_pitches(self.ctx), *self._requirements())

    def _grid(self) -> tuple[Expr, Expr, Expr]:
        return grid(self.ctx)

    def _launch_note(self) -> str:
        return launch_note(self.ctx, self.dynamic)


def _other_than(chosen: Stmt) -> Callable[[Scan], bool]:
    """Scans that stay in registers while this one does not."""
    return lambda stmt: (
        stmt is not chosen
        and (in_registers(stmt) or stmt.dst.buffer.scope == stmt.src.buffer.scope == "shared")
    )
