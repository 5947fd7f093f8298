"""T.Parallel loops, and the copies and fills that are such loops: who runs which iteration, and how.

A loop over fragments runs where their elements are held; one without runs over coalesced chunks.
Neighbouring memory accesses become vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Buffer, Expr, Load, Var, const
from tile2c.transpile.ir.forms import Atomic, For, If, Let, Print, Store
from tile2c.transpile.ir.walk import statements, writes
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.occurs import reads_memory, uses
from tile2c.transpile.lower.plan import (
    Assign,
    Branch,
    CStmt,
    Declarator,
    Escape,
    Local,
    Loop,
    Scope,
    Section,
)
from tile2c.transpile.lower.simt.access import (
    all_stores,
)
from tile2c.transpile.lower.simt.coalescing import warn_of_scattered
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.iteration import (
    Iteration,
    ParallelLoop,
    changed,
    coordinate,
    iterate,
    loop_over,
    memory_accesses,
    only_fragments,
)
from tile2c.transpile.lower.simt.named_values import named_inside
from tile2c.transpile.lower.simt.one_thread import Element, changing_among, mentioned, ranges_of
from tile2c.transpile.lower.simt.outer_loads import nested
from tile2c.transpile.lower.simt.scalars import lower_scalars
from tile2c.transpile.lower.simt.steps import Access, Step
from tile2c.transpile.lower.simt.values import convert, guards
from tile2c.transpile.lower.simt.vector_moves import VectorMoves, element_place


def lower_parallel(ctx: Context, loop: ParallelLoop) -> Step:
    """The loop as one step, with its accesses to shared and global memory."""
    facts = ctx.facts
    for var, extent in zip(loop.loop_vars, _reach(loop), strict=True):
        ctx.facts = ctx.facts.with_range(var, const(0), extent)
    held = [ctx.namer.author(var.author or var.name) for var in loop.loop_vars]
    iteration = iterate(ctx, loop, held)
    warn_of_scattered(ctx, loop, iteration)
    body = _Body(ctx, loop, iteration).statements()
    for name in held:
        ctx.namer.release(name)
    ctx.facts = facts
    return Step(
        body=(
            Section(
                comments=(*loop.comments, *_mark(loop.quote)),
                body=_wrap(iteration, body),
                span=loop.span,
            ),
        ),
        accesses=_accesses(ctx, loop, iteration),
        quote=loop.quote,
    )


def _reach(loop: ParallelLoop) -> tuple[Expr, ...]:
    """How far the loop variables go: into a layout's padding, where nothing but fragments is written.

    Padded elements are then computed like all others, from zeros where a load would leave its tensor:
    nothing reads them but who asks for their coordinate, so no mask is needed.
    """
    if loop.layout is None or loop.exact or not only_fragments(loop):
        return loop.extents
    return tuple(
        const(loop.layout.reach(dim)) if loop.layout.padded(dim) else extent
        for dim, extent in enumerate(loop.extents)
    )


def _mark(quote: str) -> tuple[str, ...]:
    return (quote,) if quote else ()


# ---- what an iteration does


class _Body:
    """Statements of one iteration (or one vector of iterations)."""

    def __init__(self, ctx: Context, loop: ParallelLoop, iteration: Iteration) -> None:
        self.ctx, self.loop, self.it = ctx, loop, iteration
        self.last = loop.loop_vars[-1].name
        self.names: list[str] = []

    def statements(self) -> tuple[CStmt, ...]:
        rows = self._skip_condition()
        guarded = tuple(rows)
        place = self.it.place
        place.guarded = guarded
        if not _only_memory(self.loop):
            place.once = tuple(self.it.once)
        named = self._name_parts()
        if self.it.width > 1 and all(isinstance(stmt, Store | Let) for stmt in self.loop.body):
            moves = VectorMoves(self.ctx, self.loop, self.it)
            body = moves.statements()
            self.names += moves.names
        else:
            body = self._elements()
        head: list[CStmt] = []
        used: list[Declarator] = []
        for name, value in reversed(self.it.coordinates):
            if (
                uses((*named, *body), name)
                or any(b.mentions(m, name) for m in self._conditions(rows))
                or any(b.mentions(later.value, name) for later in used if later.value is not None)
            ):
                used.insert(0, Declarator(name=name, value=value))
        if used:
            head.append(Local(dtype=INT32, names=tuple(used)))
        for name in self.names:
            self.ctx.namer.release(name)
        kept: list[Declarator] = []
        for stmt in reversed(named):
            if not isinstance(stmt, Local):
                continue
            (part,) = stmt.names
            values = [later.value for later in kept if later.value is not None]
            asked = any(b.mentions(x, part.name) for x in (*self._conditions(rows), *values))
            if asked or uses(body, part.name):
                kept.insert(0, part)
        loaded = tuple(name for name in kept if reads_memory(name.value))
        plain = tuple(name for name in kept if name not in loaded)
        if plain:
            head.append(Local(dtype=INT32, names=plain))
        first = self._conditions(rows if not loaded else [])
        rest = [convert(self.ctx, row, self.it.place) for row in rows] if loaded else []
        inner = self._under(rest, self._reason(rows), tuple(body))
        if loaded:  # an index read from memory: only where this thread has an iteration
            inner = (Local(dtype=INT32, names=loaded), *inner)
        return (*head, *self._under(first, self._reason([] if loaded else rows), inner))

    def _under(
        self, conditions: list[Expr], remark: str, body: tuple[CStmt, ...]
    ) -> tuple[CStmt, ...]:
        """The body under conditions: the rest of a loop's round, or inside an `if`."""
        if not conditions:
            return body
        if self.it.frames:
            skip = Escape(kind="continue", condition=b.negate(b.both(conditions)), remark=remark)
            return (skip, *body)
        return (Branch(condition=b.both(conditions), then=body, remark=remark),)

    def _conditions(self, rows: Sequence[Expr]) -> list[Expr]:
        """C conditions for the whole iteration: padding, replicas, rows outside the tensors."""
        found = list(self.it.masks)
        if self.it.once and _only_memory(self.loop):
            found += self.it.once
        return [*found, *(convert(self.ctx, row, self.it.place) for row in rows)]

    def _reason(self, rows: Sequence[Expr]) -> str:
        if rows and self.it.once and _only_memory(self.loop):
            return (
                "several threads hold the same: one writes; the last tile may reach past the edge"
            )
        if rows:
            return "the last tile may reach past the edge"
        if self.it.masks:
            return "the rest of the threads have nothing here"
        return "several threads hold the same: one writes"

    def _skip_condition(self) -> list[Expr]:
        """Guards (IR) that all effects share: without them nothing is left to do."""
        common: list[Expr] | None = None
        named = {stmt.var.name for stmt in self.loop.body if isinstance(stmt, Let)}
        for stmt in self.loop.body:
            if isinstance(stmt, Let):  # nothing without the effects that use it
                continue
            if not isinstance(stmt, Store | Atomic) or stmt.buffer.scope != "global":
                return []
            if isinstance(stmt, Atomic) and stmt.result is not None:
                return []
            own = guards(self.ctx, stmt.buffer, stmt.index, self.it.place)
            if self.it.width > 1:  # the last dimension is the vector's own affair
                own = [check for check in own if not b.mentions(check, self.last)]
            own = [check for check in own if not any(b.mentions(check, name) for name in named)]
            common = own if common is None else [check for check in common if check in own]
        inner = named_inside(self.loop.body)
        return [
            check for check in common or [] if not any(b.mentions(check, name) for name in inner)
        ]

    def _name_parts(self) -> list[CStmt]:
        """Names for coordinates that are used more than once: guards and addresses share them."""
        counts: dict[Expr, int] = {}
        wishes: dict[Expr, tuple[str, ...]] = {}
        for buffer, index in memory_accesses(self.loop):
            if buffer.scope != "global":
                continue
            for position, part in enumerate(index):
                if isinstance(part, Var) or b.known(part) is not None:
                    continue
                if not any(b.mentions(part, var.name) for var in self.loop.loop_vars):
                    continue
                if not self._fixed(part):
                    continue
                checked = not self.ctx.facts.less(part, buffer.shape[position])
                counts[part] = counts.get(part, 0) + (2 if checked else 1)
                if part not in wishes or wishes[part][0] == "at":  # a row or column says more
                    wishes[part] = _wishes(buffer, position)
        found: list[CStmt] = []
        for part, count in counts.items():
            if count < 2:
                continue
            value = convert(self.ctx, part, self.it.place)
            name = self.ctx.namer.ours(*wishes[part])
            self.names.append(name)
            self.it.place.parts = {**self.it.place.parts, part: b.local(name)}
            found.append(Local(dtype=INT32, names=(Declarator(name=name, value=value),)))
        return found

    def _fixed(self, part: Expr) -> bool:
        """Whether the part has one value all through an iteration, and may be had at its start."""
        inside: set[str] = set()
        plain = all(isinstance(stmt, Store | Let | Atomic) for stmt in self.loop.body)
        for stmt in statements(tuple(self.loop.body)):
            inside |= {buffer.name for buffer in writes(stmt)}
            if isinstance(stmt, Let | For):
                inside.add(stmt.var.name)
            if isinstance(stmt, Atomic) and stmt.result is not None:
                inside.add(stmt.result.name)
        for inner in b.walk(part):
            if isinstance(inner, Var) and inner.name in inside:
                return False
            if isinstance(inner, Load) and (inner.buffer.name in inside or not plain):
                return False
        return True

    # ---- single elements

    def _elements(self) -> tuple[CStmt, ...]:
        place = element_place(self.it, self.last)
        body = lower_scalars(self.ctx, self.loop.body, place)
        if self.it.vector is None:
            return body
        assert isinstance(self.it.vector, Var)
        return (changed(loop_over(self.it.vector.name, const(self.it.width)), body=body),)


def _wishes(buffer: Buffer, position: int) -> tuple[str, ...]:
    """Names for a coordinate: by its place in the tensor, then with the tensor's name."""
    rank = len(buffer.shape)
    word = "at" if rank == 1 else {1: "col", 2: "row"}.get(rank - position, "plane")
    return (word, f"{word}_{buffer.name}")


def _wrap(iteration: Iteration, body: tuple[CStmt, ...]) -> tuple[CStmt, ...]:
    """The body inside the loops, innermost first."""
    frames = [frame for frame in iteration.frames if isinstance(frame, Loop)]
    body = (*iteration.outside, *nested(frames, body))
    if not iteration.frames and any(isinstance(stmt, Local) for stmt in body):
        return (Scope(body=body),)  # no loop ends the life of these names
    return body


def _only_memory(loop: ParallelLoop) -> bool:
    """Whether the body does nothing but store to memory that threads share."""
    return all(
        isinstance(stmt, Let | If | For | Atomic | Print)
        or (isinstance(stmt, Store) and stmt.buffer.scope in ("global", "shared"))
        for stmt in statements(tuple(loop.body))
    )


def _accesses(ctx: Context, loop: ParallelLoop, iteration: Iteration) -> tuple[Access, ...]:
    """What the loop touches of memory that threads share."""
    found: list[Access] = []
    stores = {(id(buffer), index) for buffer, index in all_stores(loop.body)}
    atomics = {
        (id(stmt.buffer), stmt.index)
        for stmt in statements(tuple(loop.body))
        if isinstance(stmt, Atomic)
    }
    alone = _only_memory(loop)  # then one of several replicas does the whole iteration
    for buffer, index in memory_accesses(loop):
        if buffer.scope not in ("shared", "global"):
            continue
        element = _element(ctx, loop, buffer, index)
        owner: tuple[object, ...] = (iteration.owner, element.index)
        if iteration.once:
            writes = (id(buffer), index) in stores or (id(buffer), index) in atomics
            owner = (*owner, "one" if alone or writes else "each")
        if ctx.team is not None:
            owner = (ctx.team, *owner)
        found.append(
            Access(
                buffer=buffer.name,
                write=(id(buffer), index) in stores,
                owner=owner,
                element=element,
                atomic=(id(buffer), index) in atomics,
            )
        )
    return tuple(dict.fromkeys(found))


def _element(ctx: Context, loop: ParallelLoop, buffer: Buffer, index: tuple[Expr, ...]) -> Element:
    """Which element the iterations of the loop mean by the index."""
    facts, inside = ctx.facts, set[str]()
    for stmt in statements(tuple(loop.body)):
        if isinstance(stmt, Let):
            facts = facts.with_meaning(stmt.var, stmt.value)
            inside.add(stmt.var.name)
        elif isinstance(stmt, For):
            facts = facts.with_loop(stmt)
            inside.add(stmt.var.name)
    index = tuple(b.substitute(facts.spelled(part), _canonical(loop)) for part in index)
    counts = {f"#{dim}": b.known(extent) for dim, extent in enumerate(loop.extents)}
    several = {name for name, count in counts.items() if count != 1}
    chosen = {f"#{dim}" for dim in range(len(counts)) if _chooses(loop, dim)} & several
    inside &= mentioned(index)
    return Element(
        index=index,
        of_threads=frozenset(chosen),
        inside=frozenset(inside | several - chosen),
        ranges=(
            *((name, 0, count) for name, count in counts.items() if count is not None),
            *ranges_of(index, facts.ranges),
        ),
        mapping=loop.extents if loop.layout is None and len(counts) > 1 else (),
        changing=changing_among(index, ctx.launch),
        of_tensor=buffer.scope == "global",
    )


def _chooses(loop: ParallelLoop, dim: int) -> bool:
    """Whether an iteration's thread depends on this loop variable."""
    layout = loop.layout
    return layout is None or any(holder == "thread" for holder, _, _ in layout.owners(dim))


def _canonical(loop: ParallelLoop) -> dict[str, Expr]:
    """Loop variables by position, so that loops with other names compare."""
    return {
        var.name: Var(dtype=INT32, name=f"#{position}", kind="loop")
        for position, var in enumerate(loop.loop_vars)
    }


__all__ = ["Assign", "ParallelLoop", "coordinate", "lower_parallel"]
