"""Runs the passes, and cuts tiles until they fit into local memory.

reads   tile IR, checked        writes  `plan.CoresPlan`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Literal

from tile2c.transpile.diagnostics import InputError, Note
from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir import forms, walk
from tile2c.transpile.ir.dtypes import BOOL, INT32
from tile2c.transpile.ir.expr import Binary, Compare, Const, Expr, Select, Var, const
from tile2c.transpile.lower.cores.context import Context, Scope
from tile2c.transpile.lower.cores.extents import Edges, find_edges
from tile2c.transpile.lower.cores.flags import flags_used, place_flags
from tile2c.transpile.lower.cores.grid import grid_of
from tile2c.transpile.lower.cores.kept import KEPT, keep_tiles, waits
from tile2c.transpile.lower.cores.layouts import Layout, layouts, plus
from tile2c.transpile.lower.cores.memory import Fit, capacity, fit, fit_stages, used
from tile2c.transpile.lower.cores.names import Names
from tile2c.transpile.lower.cores.narrow_copies import narrow_copies
from tile2c.transpile.lower.cores.packed import unpack_loops
from tile2c.transpile.lower.cores.plan import (
    Choice,
    CoresPlan,
    ElementOf,
    Local,
    Loop,
    ScalarParam,
    Step,
    TensorParam,
    Tile,
    TileRef,
    VectorCall,
    WhileLoop,
    bodies,
)
from tile2c.transpile.lower.cores.queues import accesses, place_tiles
from tile2c.transpile.lower.cores.scalars import Scalars
from tile2c.transpile.lower.cores.scoped_names import scoped_names
from tile2c.transpile.lower.cores.split_tiles import Cut, cuts, split
from tile2c.transpile.lower.cores.squares import CALL, ROWS, exchanges
from tile2c.transpile.lower.cores.stage_globals import stage_globals
from tile2c.transpile.lower.cores.stages import Rounds, stage_loops, staged
from tile2c.transpile.lower.cores.statements import lower_statements
from tile2c.transpile.lower.cores.strip_loops import strip_loops
from tile2c.transpile.lower.cores.tiles import Tiles
from tile2c.transpile.lower.cores.verify import verify
from tile2c.transpile.lower.cores.versions import split_versions
from tile2c.transpile.lower.facts import Facts
from tile2c.transpile.targets.cores import CoresTarget


def make_plan(function: forms.Function, target: CoresTarget) -> CoresPlan:
    """The plan of a function with one launch. Raises InputError for what has no whole-tile form."""
    taken = taken_names(function, target)
    whole_tiles = strip_loops(narrow_copies(function.launches[0], taken), taken)
    if target.can("Interleave", "float32"):
        whole_tiles = unpack_loops(whole_tiles, taken)
    staged = stage_globals(whole_tiles, target, taken)
    launch = split_versions(staged, taken)
    whole = Attempt(function, launch, target, Names(set(taken)))
    if whole.fit is not None and whole.fit.roomy:
        return whole.plan(None)
    for cut in cuts(launch, whole.layouts, whole.edges):
        names = Names(set(taken))
        smaller = split(launch, cut, whole.layouts, whole.edges, names)
        try:
            attempt = Attempt(function, smaller, target, names)
        except InputError:  # a statement that takes whole tiles only
            continue
        if attempt.fit is not None and attempt.fit.roomy:
            return attempt.plan(cut)
    if whole.fit is None:
        whole = Attempt(function, staged, target, Names(set(taken)))
    if whole.fit is None:
        raise too_large(whole)
    return whole.plan(None)


class Attempt:
    """One lowering of the whole launch, with the tiles as they are."""

    def __init__(
        self, function: forms.Function, launch: forms.Launch, target: CoresTarget, names: Names
    ) -> None:
        self.function = function
        self.launch = launch
        self.target = target
        self.names = names
        tiles = tuple(b for b in launch.buffers if b.scope in ("shared", "fragment"))
        sizes = _element_bytes(launch)
        if target.can(CALL, "int16") and exchanges(launch):
            sizes = tuple(sorted({*sizes, target.block_bytes // ROWS}))
        self.layouts: dict[str, Layout] = layouts(tiles, target, sizes)
        facts = launch_facts(function, launch)
        everywhere = frozenset(var.name for var in (*launch.blocks, *function.sizes)) | {
            param.name for param in function.params
        }
        self.edges: Edges = find_edges(
            launch.body,
            self.layouts,
            facts,
            everywhere,
            whole_products=target.weights is not None,
        )
        handles = {
            param.name: tensor_handle(param.name, target, names)
            for param in function.params
            if param.tensor is not None
        }
        scalars = Scalars(self.layouts, names, handles, target.words)
        self.context = Context(
            target=target,
            layouts=self.layouts,
            edges=self.edges,
            tiles=Tiles(target, self.layouts, names),
            names=names,
            scalars=scalars,
            facts=facts,
            element_bytes=sizes,
        )
        self.grid = grid_of(launch, self.context, target.cores)
        lower_statements(launch.body, self.context)
        scope: Scope = self.context.scopes[0]
        raw = self.context.body(scope)
        known = {tile.name: tile for tile in self.context.tiles.all()}
        used_here = {name: tile for name, tile in known.items() if _is_used(raw, name)}
        self.selects = _has_call(raw, "Select")
        self.setup = self._setup()
        self.staged = False
        room = capacity(target, self.selects)
        self.fit: Fit | None
        if target.order == "stages":
            self.fit = self._stages(raw, used_here, room)
            return
        kept: tuple[Step, ...] = ()
        if self.grid.persistent:
            kept, raw = keep_tiles(raw, frozenset(names_outside(function)))
            self.setup = (*self.setup, *kept)
        steps, self.placed = place_tiles(
            raw, used_here, target.max_queue_buffers - 1, setup=self.setup
        )
        repeats = self.grid.persistent or _has_loop(raw)
        told = (KEPT,) if kept else ()
        self.body = place_flags((*self.setup, *told), steps, self.placed)
        if kept and waits(self.body, kept, self.placed):
            self.setup = (*self.setup, *told)
        flags = flags_used(self.body)
        self.fit = fit(self.placed, target, room, flags, repeats=repeats)

    def _stages(self, raw: tuple[Step, ...], tiles: dict[str, Tile], room: int) -> Fit | None:
        """Copies ahead across blocks and in the author's loops, if they fit; else in these alone;
        else nowhere."""
        found: Fit | None = None
        for level in ("blocks", "loops", "nowhere"):
            self.body, self.placed, self.staged = raw, dict(tiles), False
            if level != "nowhere":
                self.body, self.placed = stage_loops(raw, tiles, self.names)
            if level == "blocks" and self.grid.persistent:
                self._stage_blocks()
            found = fit_stages(self.placed, room, level == "blocks")
            if found is not None:
                break
        return found

    def _stage_blocks(self) -> None:
        words = self.target.words
        task = Var(dtype=INT32, name=words.task, kind="temporary")
        step = Var(dtype=INT32, name=words.stride, kind="temporary")
        top = plus(Binary(dtype=INT32, op="-", a=self.grid.last, b=task), step)
        count = Binary(
            dtype=INT32,
            op="truncdiv",
            a=Binary(dtype=INT32, op="-", a=top, b=const(1)),
            b=step,
        )
        rounds = Rounds(var=self.grid.tile, first=task, step=step, count=count, blocks=True)
        body = (*self.grid.locals, *self.body)
        found = staged(body, rounds, self.body, self.placed, self.names)
        if found is not None:
            self.body, self.staged = found, True

    def plan(self, cut: Cut | None) -> CoresPlan:
        assert self.fit is not None
        tiles = self.fit.tiles
        setup, body = self.setup, self.body
        outside = {*tiles, *self.grid_names(), *names_outside(self.function)}
        body = scoped_names(body, frozenset(outside))
        blocks = self.grid.blocks
        limit = const(self.target.cores)
        few = Compare(dtype=BOOL, op="<", a=blocks, b=limit)
        grid: Expr = Select(dtype=INT32, condition=few, a=blocks, b=limit)
        plan = CoresPlan(
            name=self.function.name,
            summary=self.function.summary,
            comments=self.function.docstring,
            constants=named_constants(self.function, (*setup, *body), blocks, self.grid.locals),
            params=parameters(self.function, self.launch, self.context.scalars),
            blocks=blocks,
            last_block=self.grid.last,
            tile=self.grid.tile,
            persistent=self.grid.persistent,
            extents=self.grid.extents,
            staged=self.staged,
            grid=grid if self.grid.persistent else blocks,
            grid_locals=self.grid.sizes,
            block_locals=() if self.staged else self.grid.locals,
            launch_comments=self._launch_comments(),
            tiles=tuple(tiles.values()),
            setup=setup,
            body=body,
            local_bytes=used(tiles),
            choices=self._choices(cut),
            sizes=tuple(size.name for size in self.function.sizes),
        )
        verify(plan, self.target)
        return plan

    def _launch_comments(self) -> tuple[str, ...]:
        quote = (self.launch.quote,) if self.launch.quote else ()
        return (*self.launch.comments, *quote)

    def grid_names(self) -> set[str]:
        found = {local.name for local in (*self.grid.sizes, *self.grid.locals)}
        return found | {self.grid.tile.name}

    def _setup(self) -> tuple[Step, ...]:
        steps: list[Step] = []
        for tile in self.context.tiles.lasting.values():
            first = Const(dtype=tile.dtype, value=0)
            steps.append(
                VectorCall(
                    function="CreateVecIndex",
                    dst=TileRef(tile=tile.name),
                    arguments=(first, const(tile.columns)),
                )
            )
        return tuple(steps)

    def _choices(self, cut: Cut | None) -> tuple[Choice, ...]:
        assert self.fit is not None
        queued = self.target.order == "queues"
        copies = "copies of queued tiles" if queued else "copies of tiles loaded or stored ahead"
        found = [
            Choice(
                name="blocks",
                value="each core takes block after block" if self.grid.persistent else "one a core",
                reason=f"{self.target.cores} cores; set-up once a core, loads ahead across blocks"
                if self.grid.persistent
                else "no more blocks than cores",
            ),
            Choice(name=copies, value=self.fit.depth, reason=self.fit.reason),
        ]
        if cut is not None:
            what = "rows" if cut.rows else "columns"
            found.append(
                Choice(
                    name="strips",
                    value=f"{cut.size} of {cut.extent} {what}",
                    reason="two copies of the whole tiles do not fit",
                )
            )
        return tuple(found)


def tensor_handle(name: str, target: CoresTarget, names: Names) -> str:
    """What a tensor is called in the body."""
    handle = target.words.handle.format(name=name)
    return name if handle == name else names.fresh(handle)


def too_large(attempt: Attempt) -> Exception:
    room = capacity(attempt.target, attempt.selects)
    needed = used(attempt.placed)
    largest = max(attempt.placed.values(), key=lambda tile: tile.bytes)
    owner = attempt.layouts.get(largest.name)
    span = owner.buffer.span if owner is not None else attempt.launch.span
    notes = tuple(
        Note(f"{tile.name} takes {tile.bytes} bytes")
        for tile in sorted(attempt.placed.values(), key=lambda tile: -tile.bytes)[:4]
    )
    return failure(
        "T2C556",
        f"the tiles of {attempt.function.name} take {needed} bytes, but local memory has {room}, "
        "and no dimension of theirs can be taken a part at a time",
        span or attempt.launch.span,
        notes=notes,
        help="make the tiles smaller, or walk over them in a T.serial loop of smaller tiles",
    )


def taken_names(function: forms.Function, target: CoresTarget) -> set[str]:
    launch = function.launches[0]
    names = set(target.dialect.reserved) | {function.name}
    names |= {param.name for param in function.params} | {size.name for size in function.sizes}
    names |= {constant.name for constant in function.constants if constant.name}
    names |= {buffer.name for buffer in launch.buffers}
    names |= {var.name for var in (*launch.blocks, *launch.thread_vars)}
    for stmt in walk.statements(launch.body):
        if isinstance(stmt, forms.For | forms.Pipelined | forms.Let):
            names.add(stmt.var.name)
        if isinstance(stmt, forms.Parallel):
            names |= {var.name for var in stmt.loop_vars}
        if isinstance(stmt, forms.Declare):
            names.add(stmt.buffer.name)
    return names


def names_outside(function: forms.Function) -> set[str]:
    """Names of the whole kernel."""
    names = {param.name for param in function.params} | {size.name for size in function.sizes}
    return names | {constant.name for constant in function.constants if constant.name}


def launch_facts(function: forms.Function, launch: forms.Launch) -> Facts:
    facts = Facts()
    for condition in function.assumptions:
        facts = facts.with_condition(condition)
    for var, extent in zip(launch.blocks, launch.grid, strict=True):
        facts = facts.with_range(var, const(0), extent)
    bound = [stmt.var.name for stmt in walk.statements(launch.body) if isinstance(stmt, forms.Let)]
    for promise in launch.promises:
        names = {var.name for var in walk.variables(promise) if var.kind == "temporary"}
        if all(bound.count(name) == 1 for name in names):  # else it is not said of all of them
            facts = facts.with_condition(promise)
    return facts


def _element_bytes(launch: forms.Launch) -> tuple[int, ...]:
    """Bytes of the element types that tiles and intermediate results may have."""
    found = {b.dtype.bytes for b in launch.buffers if b.scope in ("shared", "fragment")}
    for stmt in walk.statements(launch.body):
        if isinstance(stmt, forms.Parallel):
            for inner in walk.statements(stmt.body):
                for expr in walk.expressions(inner):
                    found |= {
                        part.dtype.bytes
                        for part in walk.parts(expr)
                        if part.dtype.is_float and part.dtype.bits >= 16
                    }
    return tuple(sorted(found)) or (4,)


def parameters(
    function: forms.Function, launch: forms.Launch, scalars: Scalars
) -> tuple[TensorParam | ScalarParam, ...]:
    read: set[str] = set()
    written: set[str] = set()
    for stmt in walk.statements(launch.body):
        read |= {buffer.name for buffer in walk.reads(stmt) if buffer.scope == "global"}
        written |= {buffer.name for buffer in walk.writes(stmt) if buffer.scope == "global"}
    found: list[TensorParam | ScalarParam] = []
    for param in function.params:
        if param.tensor is not None:
            tensor = param.tensor
            role: Literal["in", "out", "inout"] = "in"
            if tensor.name in written:
                role = "inout" if tensor.name in read else "out"
            found.append(
                TensorParam(
                    name=param.name,
                    handle=scalars.handles[param.name],
                    dtype=tensor.dtype,
                    shape=tuple(scalars.extent(extent) for extent in tensor.shape),
                    role=role,
                    used=tensor.name in read | written,
                )
            )
        elif param.scalar is not None:
            scalar = param.scalar
            found.append(ScalarParam(name=scalar.name, dtype=scalar.dtype, kind="scalar"))
    for size in function.sizes:
        found.append(ScalarParam(name=size.name, dtype=size.dtype, kind="size"))
    return tuple(found)


def named_constants(
    function: forms.Function,
    steps: tuple[Step, ...],
    blocks: Expr,
    locals: tuple[Local, ...],
) -> tuple[Const, ...]:
    """Named constants that the text mentions: the author's in order, then those of strips."""
    found: dict[str, Const] = {}
    for part in (*(_consts(step) for step in steps), _consts(blocks), *map(_consts, locals)):
        for constant in part:
            if constant.name:
                found.setdefault(constant.name, constant)
    order = [constant.name for constant in function.constants]
    ranked = sorted(found.values(), key=lambda c: order.index(c.name) if c.name in order else 999)
    return tuple(ranked)


def _consts(node: object) -> Iterator[Const]:
    if isinstance(node, Const):
        yield node
    elif isinstance(node, Step | Expr | TileRef | ElementOf):
        for item in fields(node):
            yield from _consts(getattr(node, item.name))
    elif isinstance(node, tuple):
        for part in node:
            yield from _consts(part)


def _is_used(steps: Iterable[Step], tile: str) -> bool:
    return any(accesses(step, tile) for step in steps)


def _has_loop(steps: tuple[Step, ...]) -> bool:
    """Whether a loop of the author's repeats copies."""
    return any(
        (isinstance(step, Loop) and not step.independent)
        or isinstance(step, WhileLoop)
        or any(_has_loop(body) for body in bodies(step))
        for step in steps
    )


def _has_call(steps: tuple[Step, ...], function: str) -> bool:
    return any(
        (isinstance(step, VectorCall) and step.function == function)
        or any(_has_call(body, function) for body in bodies(step))
        for step in steps
    )
