"""A whole launch: passes in order, then entry points, launches and the plan's tables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import field, replace
from math import isinf, isnan

from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.dtypes import BOOL, INT32
from tile2c.transpile.ir.expr import Buffer, Const, Expr, Var, const
from tile2c.transpile.ir.forms import (
    For,
    Function,
    Launch,
    Let,
    Pipelined,
    Scan,
    Stmt,
)
from tile2c.transpile.ir.walk import statements
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.desugar import copies_as_loops
from tile2c.transpile.lower.facts import Facts
from tile2c.transpile.lower.plan import (
    Arc,
    Body,
    CCall,
    CStmt,
    Declarator,
    Do,
    Entry,
    EntryParam,
    LaunchPlan,
    Local,
    Plan,
    Section,
)
from tile2c.transpile.lower.rename import author_names, rename_reserved
from tile2c.transpile.lower.simt.block import BlockLowering
from tile2c.transpile.lower.simt.context import Context, CopyKind
from tile2c.transpile.lower.simt.divergence import Divergence, check_bounds
from tile2c.transpile.lower.simt.fit_reductions import fit_reductions
from tile2c.transpile.lower.simt.frames import Apart, Frames, walk
from tile2c.transpile.lower.simt.hand_over import hand_over
from tile2c.transpile.lower.simt.helper_order import ordered
from tile2c.transpile.lower.simt.late_reductions import meet_after_loops
from tile2c.transpile.lower.simt.launches import lower_launches
from tile2c.transpile.lower.simt.loop_phases import tile_phases
from tile2c.transpile.lower.simt.names import Namer
from tile2c.transpile.lower.simt.operands import Gemms, settle_gemms
from tile2c.transpile.lower.simt.overlay import overlays
from tile2c.transpile.lower.simt.padding import harmless_padding
from tile2c.transpile.lower.simt.replicas import keep_replicas_apart
from tile2c.transpile.lower.simt.scan import scans_on_shared
from tile2c.transpile.lower.simt.scan_registers import fits, in_registers
from tile2c.transpile.lower.simt.shared import (
    choose_layouts,
    declare,
    shared_sizes,
    spread_loops,
    swizzle_helpers,
)
from tile2c.transpile.lower.simt.signature import (
    argument,
    headers,
    need_conversions,
    size_note,
)
from tile2c.transpile.lower.simt.step_tree import flatten, only_accesses_to
from tile2c.transpile.lower.simt.steps import Node
from tile2c.transpile.lower.simt.sum_over_iterations import sum_over_iterations
from tile2c.transpile.lower.simt.syncs import NoPlaceForBarrier, place_barriers
from tile2c.transpile.lower.simt.teams import team_frames
from tile2c.transpile.lower.simt.unread import without_unread
from tile2c.transpile.lower.simt.uses import (
    constants_in,
    functions_in,
    global_uses,
    has_number,
    has_rolled,
    has_unrolled,
    names_in,
    with_hidden,
)
from tile2c.transpile.lower.simt.values import Place, convert
from tile2c.transpile.record import record
from tile2c.transpile.targets.simt import SimtTarget

_MOST_HANDOVERS = 200


def lower_function(function: Function, target: SimtTarget, diagnostics: Diagnostics) -> Plan:
    """The plan of a function; problems the user can mend are raised as InputError."""
    from tile2c.transpile.render.expressions import CPrinter

    function = rename_reserved(function, target.dialect.reserved)
    names = SharedNames()
    several = len(function.launches) > 1

    def one(single: Function, launch: Launch, before: Sequence[Plan]) -> Plan:
        return _lower_launch(single, launch, target, diagnostics, names, before, several)

    return lower_launches(function, one, CPrinter(target.dialect))


def _lower_launch(
    function: Function,
    launch: Launch,
    target: SimtTarget,
    diagnostics: Diagnostics,
    names: SharedNames,
    before: Sequence[Plan],
    several: bool,
) -> Plan:
    """The plan of a function with this one launch; `before` are those of the text's other launches."""
    if launch.threads[0] * launch.threads[1] * launch.threads[2] > target.max_threads:
        raise failure(
            "T2C402", f"{target.name} has at most {target.max_threads} threads a block", launch.span
        )
    reason = ""
    scratch = any(buffer.scope == "global" for buffer in launch.buffers)
    if target.warpgroup_matrix and not before and not scratch:
        from tile2c.transpile.lower.simt.hopper import lower_with_roles

        found = lower_with_roles(function, launch, target, diagnostics)
        if isinstance(found, Plan):
            return found
        reason = found
    taken = frozenset(
        str(dict(helper.fields)["name"])
        for plan in before
        for helper in plan.helpers
        if helper.template in ("shared_struct", "shared_memory")
    )

    def lowered(pitches: dict[Expr, int] | None = None) -> LoweredLaunch:
        return LoweredLaunch(
            function, launch, target, diagnostics, variant=pitches is not None, pitches=pitches,
            taken=taken, names=names.copy(), only_used=several,
        )  # fmt: skip

    found_one = lowered()
    if found_one.ctx.wants_variant:
        found_one = lowered(found_one.ctx.aligned_pitches)
    plan = found_one.plan()
    names.add(found_one.names)  # an attempt that was given up leaves none
    return replace(plan, notes=(*plan.notes, f"path     mma.sync: {reason}")) if reason else plan


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


def starting_facts(function: Function, launch: Launch) -> Facts:
    """Ranges of block indices; what the author promised of sizes."""
    facts = Facts()
    for condition in function.assumptions:
        facts = _assume(facts, condition)
    for var, extent in zip(launch.blocks, launch.grid, strict=True):
        facts = facts.with_range(var, const(0), extent)
    for var, count in zip(launch.thread_vars, launch.threads, strict=False):
        facts = facts.with_range(var, const(0), const(count))
    for param in function.params:  # tensors have no negative extents
        for extent in param.tensor.shape if param.tensor is not None else ():
            if not isinstance(extent, Const | Var):
                facts = facts.with_condition(b.compare(">=", extent, const(0)))
    for stmt in statements(launch.body):
        if isinstance(stmt, Let):
            facts = facts.with_meaning(stmt.var, stmt.value)
    return facts


def _assume(facts: Facts, condition: Expr) -> Facts:
    from tile2c.transpile.ir.expr import Binary, Compare

    if isinstance(condition, Compare) and condition.op == "==" and b.literal(condition.b, 0):
        inner = condition.a
        if isinstance(inner, Binary) and inner.op in ("%", "truncmod") and isinstance(inner.a, Var):
            by = b.known(inner.b)
            if by:
                return facts.with_divisor(inner.a, by)
    return facts.with_condition(condition)


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
    ) -> None:
        self.names, self.only_used = names or SharedNames(), only_used
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
        settled = self._settled()
        self.body = settled.body
        choose_layouts(ctx, settled.gemms, settled.plans)
        self.zeroed, rest = drop_leading_fills(ctx, self.body)
        frames = self._frames(settled)
        spread_loops(ctx, settled.gemms, tile_phases(ctx, settled.body, frames))
        ctx.harmless = harmless_padding(ctx, settled.body, frames)
        nodes = BlockLowering(ctx, frames, settled.plans).whole(rest)
        shared_names = self._shared_between_threads()
        sizes = shared_sizes(ctx, self._used_tiles(nodes))
        scratch = {array.name for array in ctx.arrays}
        ctx.overlays = overlays(nodes, sizes, scratch, ctx.target.max_shared)
        try:
            leaves = Divergence(ctx.launch.body).leaves(ctx.launch.body, ("return",))
            placed = place_barriers(
                only_accesses_to(nodes, shared_names), leaves=leaves, overlays=ctx.overlays
            )
            called = functions_in(placed[0])
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

    def _used_tiles(self, nodes: Sequence[Node]) -> list[Buffer]:
        names = names_in(nodes)
        return [x for x in self.ctx.launch.buffers if x.scope == "shared" and x.name in names]

    def _settled(self) -> Gemms:
        """Gemms planned, and every fragment held by the threads that use its elements."""
        ctx = self.ctx
        body = scans_on_shared(ctx, sum_over_iterations(ctx, tuple(self.body)), in_registers)
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
        """Buffers whose accesses may need order: shared ones, and tensors both read and written."""
        reads, writes = global_uses(self.ctx.launch.body)
        names = {x.name for x in self.ctx.launch.buffers if x.scope == "shared"}
        names |= {array.name for array in self.ctx.arrays}
        return names | (reads & writes)

    # ---- the text's parts

    def statements(self) -> tuple[CStmt, ...]:
        """The kernel's body: arrays, indices, steps."""
        ctx = self.ctx
        shared, self.placed, self.dynamic = declare(ctx, self._used_tiles(self.nodes))
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
        """The thread's names that the text uses; attempts that were given up may have left others."""
        wanted, used = self.ctx.wanted, names_in(steps)
        for name in reversed(list(wanted)):
            others = tuple(value for other, value in wanted.items() if other != name)
            if name not in used | names_in(others) and not self._in_names(name):
                del wanted[name]
        return self.ctx.prologue()

    def _fragments(self) -> list[CStmt]:
        ctx = self.ctx
        found: list[CStmt] = []
        names = names_in(self.nodes)
        for buffer in ctx.launch.buffers:
            if buffer.scope != "fragment" or buffer.name not in names:
                continue
            layout = ctx.layouts[buffer.name]
            extents = [] if layout.scalar else [axis.extent for axis in layout.axes]
            ctype = None
            if layout.element == "vector":
                ctype = ctx.vector_type(buffer.dtype, extents[-1])
                extents = extents[:-1]
            vector = buffer.name in ctx.aligned_fragments
            quote = self.zeroed.get(buffer.name)
            from tile2c.transpile.render.expressions import CPrinter

            printer = CPrinter(ctx.target.dialect)
            shape = ", ".join(printer(b.in_words(extent)) for extent in buffer.shape)
            where = "each thread's part" if buffer.name in ctx.own_parts else "over the block"
            remark = f"[{shape}] {where}" + (f"; {quote}" if quote else "")
            dims = tuple(const(extent) for extent in extents)
            name = Declarator(name=buffer.name, dims=dims, zero=quote is not None)
            found.append(
                Local(
                    dtype=buffer.dtype,
                    ctype=ctype,
                    names=(name,),
                    const=False,
                    align=extents[-1] * buffer.dtype.bytes if vector else None,
                    remark=remark,
                )
            )
        return found

    def _locals(self) -> list[CStmt]:
        names = names_in(self.nodes)
        return [
            Local(
                dtype=x.dtype,
                names=(Declarator(name=x.name, dims=tuple(map(b.in_words, x.shape))),),
                const=False,
            )
            for x in self.ctx.launch.buffers
            if x.scope == "local" and x.name in names
        ]

    def _block_indices(self, steps: Sequence[CStmt]) -> list[CStmt]:
        launch = self.ctx.launch
        names = names_in(steps)
        used = [var for var in launch.blocks if var.name in names or self._in_names(var.name)]
        if launch.order is not None and len(launch.blocks) > 1 and used:
            beyond = [var for var in used if launch.blocks.index(var) > 1]
            return [*self._panel_order(), *self._plain_indices(beyond)]
        return self._plain_indices(used)

    def _plain_indices(self, used: Sequence[Var]) -> list[CStmt]:
        """`const int bx = blockIdx.x, ...`"""
        blocks = self.ctx.launch.blocks
        names = tuple(
            Declarator(name=var.name, value=b.local(f"blockIdx.{'xyz'[blocks.index(var)]}"))
            for var in used
        )
        return [Local(dtype=INT32, names=names)] if names else []

    def _in_names(self, name: str) -> bool:
        return any(b.mentions(value, name) for value in self.ctx.wanted.values())

    def _panel_order(self) -> list[CStmt]:
        """T.use_swizzle: blocks walk panels of tile rows, so that neighbours in time share operands."""
        ctx, order = self.ctx, self.ctx.launch.order
        assert order is not None
        x, y = ctx.launch.blocks[0], ctx.launch.blocks[1]
        row = order.order == "row"
        across, along = ("y", "x") if row else ("x", "y")
        tile, panel, rows = (
            ctx.namer.ours(n, f"{n}_of_grid") for n in ("tile", "panel", "panel_rows")
        )
        grid_along, grid_across = b.local(f"gridDim.{along}"), b.local(f"gridDim.{across}")
        linear = b.add(b.mul(b.local("blockIdx.y"), b.local("gridDim.x")), b.local("blockIdx.x"))
        size = b.mul(const(order.panel), grid_along)
        first = b.mul(b.local(panel), const(order.panel))
        left = b.sub(grid_across, first)
        rest = b.mod(b.local(tile), size)
        slow, fast = (y, x) if row else (x, y)
        height = CCall(dtype=INT32, function="min", args=(const(order.panel), cast_int(left)))
        within = ctx.namer.ours("within", "in_panel")
        return [
            Local(
                dtype=INT32,
                names=(
                    Declarator(name=tile, value=linear),
                    Declarator(name=panel, value=b.div(b.local(tile), size)),
                ),
                comments=(
                    *order.comments,
                    f"T.use_swizzle({order.panel}): blocks that run together share tiles of both operands",
                ),
            ),
            Local(
                dtype=INT32,
                names=(
                    Declarator(name=rows, value=height),
                    Declarator(name=within, value=rest),
                ),
            ),
            Local(
                dtype=INT32,
                names=(
                    Declarator(name=fast.name, value=b.div(b.local(within), b.local(rows))),
                    Declarator(
                        name=slow.name, value=b.add(first, b.mod(b.local(within), b.local(rows)))
                    ),
                ),
            ),
        ]

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
        ctx = self.ctx
        _, writes = global_uses(ctx.launch.body)
        from tile2c.transpile.render.expressions import CPrinter

        printer = CPrinter(ctx.target.dialect)
        found = []
        for param in ctx.function.params:
            if param.tensor is not None:
                shape = ", ".join(printer(b.in_words(extent)) for extent in param.tensor.shape)
                found.append(
                    EntryParam(
                        name=param.name,
                        kind="tensor",
                        dtype=param.tensor.dtype,
                        written=param.name in writes,
                        remark=f"[{shape}]",
                    )
                )
            elif param.scalar is not None:
                found.append(EntryParam(name=param.name, kind="scalar", dtype=param.scalar.dtype))
        names = names_in(body)
        if self.only_used:
            found = [param for param in found if param.name in names]
        for buffer in ctx.launch.buffers:
            if buffer.scope == "global" and buffer.name in names:
                found.append(
                    EntryParam(
                        name=buffer.name,
                        kind="workspace",
                        dtype=buffer.dtype,
                        remark=f"[{', '.join(printer(b.in_words(e)) for e in buffer.shape)}], scratch",
                    )
                )
        for size in ctx.function.sizes:
            if size.name in names or self._in_names(size.name):
                found.append(EntryParam(name=size.name, kind="size", dtype=size.dtype))
        return tuple(found)

    def _entries(
        self, body: tuple[CStmt, ...], params: tuple[EntryParam, ...]
    ) -> tuple[tuple[Body, ...], tuple[Entry, ...], tuple[LaunchPlan, ...]]:
        ctx, name = self.ctx, self.ctx.function.name
        threads = ctx.launch.threads
        grid = self._grid()

        def launch(entry: str, when: str | None) -> LaunchPlan:
            return LaunchPlan(
                group=0, when=when, entry=entry, grid=grid, block=threads, shared_bytes=self.dynamic
            )

        if not ctx.variant:
            entry = Entry(name=name, params=params, threads=threads, body=body)
            return (), (entry,), (launch(name, None),)
        shared = ctx.namer.ours(f"{name}_block", f"{name}_body")
        from tile2c.transpile.render.header import conditions_in_words

        tensors = {param.name for param in params if param.kind == "tensor"}
        words = conditions_in_words(self._conditions(), tensors)
        entries = []
        for suffix, aligned in (("", True), ("_any", False)):
            call = CCall(
                dtype=INT32,
                function=shared,
                template=(Const(dtype=BOOL, value=aligned),),
                args=tuple(b.local(param.name, param.dtype) for param in params),
            )
            comment = (
                f"Wide accesses stay aligned: {words}."
                if aligned
                else "Any sizes and addresses: element by element where rows may start anywhere."
            )
            entries.append(
                Entry(
                    name=f"{name}{suffix}",
                    params=params,
                    threads=threads,
                    body=(Do(call=call),),
                    comments=(comment,),
                )
            )
        whole = Body(name=shared, template=("bool aligned",), params=params, body=body)
        launches = (launch(name, self._condition()), launch(f"{name}_any", None))
        return (whole,), tuple(entries), launches

    def _condition(self) -> str:
        return " and ".join(self._conditions())

    def _conditions(self) -> tuple[str, ...]:
        """When rows are aligned: on sizes, then on addresses."""
        from tile2c.transpile.render.expressions import CPrinter

        printer = CPrinter(self.ctx.target.dialect)
        parts = [
            f"{printer(b.for_host(stride))} % {width} == 0"
            for stride, width in self.ctx.aligned_pitches.items()
        ]
        return (*parts, *self._requirements())

    def _grid(self) -> tuple[Expr, Expr, Expr]:
        place = Place(values={})
        extents = [convert(self.ctx, b.for_host(extent), place) for extent in self.ctx.launch.grid]
        extents += [const(1)] * (3 - len(extents))
        return extents[0], extents[1], extents[2]

    def _launch_note(self) -> str:
        from tile2c.transpile.render.expressions import CPrinter

        printer = CPrinter(self.ctx.target.dialect)
        grid = ", ".join(printer(b.for_host(e)) for e in self._grid()[: len(self.ctx.launch.grid)])
        x, y, z = self.ctx.launch.threads
        block = str(x) if (y, z) == (1, 1) else f"({x}, {y}, {z})"
        shared = (
            f"{self.dynamic} bytes of dynamic shared memory"
            if self.dynamic
            else "no dynamic shared memory"
        )
        return f"grid ({grid}), block {block}, {shared}"


def _other_than(chosen: Stmt) -> Callable[[Scan], bool]:
    """Scans that stay in registers while this one does not."""
    return lambda stmt: (
        stmt is not chosen
        and (in_registers(stmt) or stmt.dst.buffer.scope == stmt.src.buffer.scope == "shared")
    )


def cast_int(value: Expr) -> Expr:
    """int(value): grid dimensions are unsigned in C."""
    return CCall(dtype=INT32, function="int", args=(value,))


def drop_leading_fills(
    ctx: Context, body: Sequence[Stmt]
) -> tuple[dict[str, str], tuple[Stmt, ...]]:
    """Zero fills of whole fragments before anything touches them become initialisers: name -> quote."""
    from tile2c.transpile.ir.forms import Parallel, Store
    from tile2c.transpile.lower.simt.tile_loads import touched

    zeroed: dict[str, str] = {}
    seen: set[str] = set()
    rest: list[Stmt] = []
    for stmt in body:
        target = None
        if isinstance(stmt, Parallel) and len(stmt.body) == 1 and not stmt.comments:
            (store,) = stmt.body
            if isinstance(store, Store) and store.buffer.scope == "fragment":
                whole = [b.known(e) for e in store.buffer.shape if b.known(e) != 1]
                covered = [b.known(e) for e in stmt.extents if b.known(e) != 1]
                zero = isinstance(store.value, Const) and store.value.value == 0
                starts = all(isinstance(p, Var) or b.literal(p, 0) for p in store.index)
                if zero and starts and whole == covered and store.buffer.name not in seen:
                    target = store.buffer.name
        if target is not None:
            zeroed[target] = stmt.quote
            seen.add(target)
            continue
        seen |= touched(stmt)
        rest.append(stmt)
    return zeroed, tuple(rest)
