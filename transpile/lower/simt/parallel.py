"""T.Parallel loops, and the copies and fills that are such loops: who runs which iteration, and how.

A loop over fragments runs where their elements are held; one without runs over coalesced chunks.
Neighbouring memory accesses become vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Binary, Buffer, Expr, Load, Var, const
from tile2c.transpile.ir.forms import Atomic, For, If, Let, Print, Stmt, Store
from tile2c.transpile.ir.walk import statements, writes
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.facts import linear
from tile2c.transpile.lower.plan import (
    Address,
    Assign,
    Branch,
    CCall,
    CStmt,
    Declarator,
    Do,
    Element,
    Escape,
    Local,
    Loop,
    Scope,
    Section,
    Wide,
)
from tile2c.transpile.lower.simt.access import (
    alignment,
    all_stores,
    grouped,
    neighbours,
    plain_load,
    steady,
)
from tile2c.transpile.lower.simt.coalescing import warn_of_scattered
from tile2c.transpile.lower.simt.context import Context, CopyKind
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
from tile2c.transpile.lower.simt.named_values import alike_along, named_inside
from tile2c.transpile.lower.simt.running import step_of
from tile2c.transpile.lower.simt.scalars import lower_scalars
from tile2c.transpile.lower.simt.steps import Access, Step
from tile2c.transpile.lower.simt.values import Place, convert, guards, offset, shared_element


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
    if loop.layout is None or not only_fragments(loop):
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
        self.arrays: dict[Load, str] = {}
        self.before: list[CStmt] = []
        self.after: list[CStmt] = []
        self.stored: set[str] = set()  # arrays that `after` stores
        self.names: list[str] = []
        self.varying: frozenset[str] = frozenset()  # named values that differ along a vector
        self.mask: Expr | None = None  # a condition (IR) on a whole vector that is loaded

    def statements(self) -> tuple[CStmt, ...]:
        rows = self._skip_condition()
        guarded = tuple(rows)
        place = self.it.place
        place.guarded = guarded
        if not _only_memory(self.loop):
            place.once = tuple(self.it.once)
        named = self._name_parts()
        if self.it.width > 1 and all(isinstance(stmt, Store | Let) for stmt in self.loop.body):
            body = self._vector()
        else:
            body = self._elements()
        head: list[CStmt] = []
        used: list[Declarator] = []
        for name, value in reversed(self.it.coordinates):
            if (
                _uses((*named, *body), name)
                or any(b.mentions(m, name) for m in self._conditions(rows))
                or any(b.mentions(later.value, name) for later in used if later.value is not None)
            ):
                used.insert(0, Declarator(name=name, value=value))
        if used:
            head.append(Local(dtype=INT32, names=tuple(used)))
        for name in self.names:
            self.ctx.namer.release(name)
        kept = tuple(
            stmt.names[0]
            for stmt in named
            if isinstance(stmt, Local)
            and (
                _uses(body, stmt.names[0].name)
                or any(b.mentions(c, stmt.names[0].name) for c in self._conditions(rows))
            )
        )
        loaded = tuple(name for name in kept if _reads(name.value))
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
                wishes.setdefault(part, _wishes(buffer, position))
        found: list[CStmt] = []
        for part, count in counts.items():
            if count < 2 or (self.it.width == 1 and self._elementwise_only(part)):
                continue
            value = convert(self.ctx, part, self.it.place)
            name = self.ctx.namer.ours(*wishes[part])
            self.names.append(name)
            self.it.place.loads = dict(self.it.place.loads)
            self._parts[part] = b.local(name)
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

    @property
    def _parts(self) -> dict[Expr, Expr]:
        if not hasattr(self, "_part_table"):
            self._part_table: dict[Expr, Expr] = {}
            self.it.place.parts = self._part_table
        return self._part_table

    def _elementwise_only(self, part: Expr) -> bool:
        return False

    # ---- single elements

    def _elements(self) -> tuple[CStmt, ...]:
        body = lower_scalars(self.ctx, self.loop.body, self._element_place())
        if self.it.vector is None:
            return body
        return (changed(loop_over(_name(self.it.vector), const(self.it.width)), body=body),)

    def _element_place(self) -> Place:
        """The place of one element of the vector."""
        place = self.it.place
        if self.it.vector is None:
            return place
        base = place.values[self.last]
        moved = b.add(base, self.it.vector)
        return replace(
            place,
            values={**place.values, self.last: moved},
            parts={
                part: value
                for part, value in place.parts.items()
                if not b.mentions(part, self.last)
            },
        )

    # ---- vectors

    def _vector(self) -> tuple[CStmt, ...]:
        alike, rest = alike_along(self.loop.body, self.last)
        self.varying = named_inside(rest)
        self.before += lower_scalars(self.ctx, alike, self.it.place)
        direct = self._direct(rest)
        if direct is not None:
            return direct
        place = self._element_place()
        for stmt in rest:
            value = stmt.value if isinstance(stmt, Store | Let) else None
            assert value is not None
            for part in b.walk(value):
                if isinstance(part, Load):
                    self._read(part, place)
            if isinstance(stmt, Store):
                self._write(stmt, place)
        inner = lower_scalars(self.ctx, rest, place)
        loop = changed(loop_over(_name(self.it.vector), const(self.it.width)), body=inner)
        return (*self.before, loop, *self.after)

    def _moves_as_vector(self, buffer: Buffer, index: tuple[Expr, ...]) -> bool:
        return (
            buffer.scope in ("global", "shared")
            and not grouped(self.ctx, buffer)
            and neighbours(self.ctx, index, self.last, self.it.width)
            and not any(b.mentions(part, name) for part in index for name in self.varying)
            and alignment(self.ctx, buffer, index, self.last, self.it.width) != "never"
        )

    def _array(self, load: Load) -> str:
        """The array that holds a vector of this access, declared once."""
        if load not in self.arrays:
            name = self.ctx.namer.ours(f"{load.buffer.name}_part", f"{load.buffer.name}_piece")
            self.names.append(name)
            self.arrays[load] = name
            self.before.append(
                Local(
                    dtype=load.dtype,
                    const=False,
                    align=self.it.width * load.dtype.bytes,
                    names=(Declarator(name=name, dims=(const(self.it.width),)),),
                )
            )
        return self.arrays[load]

    def _read(self, load: Load, place: Place) -> None:
        if load in self.arrays or not self._moves_as_vector(load.buffer, load.index):
            return
        name = self._array(load)
        whole = Element(dtype=load.dtype, array=name, subscripts=())
        self.before.append(Do(call=self._load_call(whole, load.buffer, load.index)))
        place.loads[load] = Element(dtype=load.dtype, array=name, subscripts=(self._v(),))

    def _write(self, stmt: Store, place: Place) -> None:
        if not self._moves_as_vector(stmt.buffer, stmt.index):
            return
        load = Load(dtype=stmt.buffer.dtype, buffer=stmt.buffer, index=stmt.index)
        name = self._array(load)
        place.loads[load] = Element(dtype=load.dtype, array=name, subscripts=(self._v(),))
        if name not in self.stored:
            self.stored.add(name)
            whole = Element(dtype=load.dtype, array=name, subscripts=())
            store: CStmt = Do(call=self._store_call(whole, stmt.buffer, stmt.index))
            if place.once:
                reason = "several threads hold the same: one writes"
                store = Branch(condition=b.both(list(place.once)), then=(store,), remark=reason)
            self.after.append(store)

    def _v(self) -> Expr:
        assert self.it.vector is not None
        return self.it.vector

    def _direct(self, body: tuple[Stmt, ...]) -> tuple[CStmt, ...] | None:
        """A plain copy needs no loop over the vector's elements; nor does one that leaves zeros where
        a condition says so of the whole vector."""
        found = plain_load(body)
        if found is None:
            return None
        lets, stmt, condition, source = found
        if any(let.var.name not in self.ctx.facts.meanings for let in lets):
            return None
        if condition is not None and not self.ctx.facts.holds(condition):
            if stmt.buffer.scope == "global":
                return None
            if not steady(self.ctx, condition, self.last, self.it.width):
                return None
            self.mask = condition
        varying, self.varying = self.varying, frozenset()  # here all names mean arithmetic
        known = len(self.before)
        calls = self._direct_calls(stmt, source)
        if calls is None:
            self.mask, self.varying = None, varying
            return None
        for let in reversed(lets):  # said of the vector's first element
            if _uses((*self.before, *calls), let.var.name):
                self.before[known:known] = lower_scalars(self.ctx, (let,), self.it.place)
        return (*self.before, *calls)

    def _direct_calls(self, stmt: Store, source: Load) -> tuple[CStmt, ...] | None:
        buffer = stmt.buffer
        into = self._row_of(buffer, stmt.index)
        out_of = self._row_of(source.buffer, source.index)
        if into is not None and self._moves_as_vector(source.buffer, source.index):
            return (Do(call=self._load_call(into, source.buffer, source.index)),)
        if out_of is not None and self._moves_as_vector(buffer, stmt.index):
            return (Do(call=self._store_call(out_of, buffer, stmt.index)),)
        if self._moves_as_vector(buffer, stmt.index) and self._moves_as_vector(
            source.buffer, source.index
        ):
            if self._can_start(source.dtype.bytes, buffer):
                return (Do(call=self._start_call(buffer, stmt.index, source)),)
            whole = Element(dtype=source.dtype, array=self._array(source), subscripts=())
            load = Do(call=self._load_call(whole, source.buffer, source.index))
            store = Do(call=self._store_call(whole, buffer, stmt.index))
            return (load, store)
        return None

    def _can_start(self, element_bytes: int, buffer: Buffer) -> bool:
        size = element_bytes * self.it.width
        return (
            self.loop.asynchronous
            and buffer.scope == "shared"
            and size in self.ctx.target.async_copy
        )

    def _start_call(self, buffer: Buffer, index: tuple[Expr, ...], source: Load) -> CCall:
        """`copy_async<8>(shared, global)`: the copy is started, a wait ends it."""
        to, where = self._address(buffer, index), self._source(source)
        valid = self._valid(source.buffer, source.index)
        self.ctx.require_alignment(source.buffer, source.index, self.last, self.it.width)
        size = self.it.width * source.dtype.bytes
        template: tuple[Expr, ...] = (const(self.it.width),)
        if self.ctx.variant:
            template = (*template, b.local("aligned"))
        whole = valid is not None and self._all_or_nothing(source.buffer)
        kind: CopyKind = "inside" if valid is None else "whole" if whole else "part"
        function = self.ctx.copy_name(size, kind)
        self.ctx.need(
            "copy_async",
            name=function,
            tail=valid is not None,
            variant=self.ctx.variant,
            whole=whole,
            bytes=size,
        )
        args = (to, where) if valid is None else (to, where, valid)
        return CCall(dtype=INT32, function=function, args=args, template=template)

    def _source(self, source: Load) -> Expr:
        """Where a copy reads: a pointer that is found once, and the rows that turns lie apart.

        An address that is worked out anew in every turn costs instructions between a barrier and the
        products that wait behind the copies.
        """
        found = self._rows_apart(source)
        if found is None:
            return self._address(source.buffer, source.index)
        turn, rows, stride, first = found
        base = source.buffer.name
        name = self.ctx.namer.ours(f"{base}_src", f"{base}_source")
        ctype = f"const {self.ctx.target.dialect.types[source.dtype.name]}*"
        step = self._step(source)
        if step is not None and self.ctx.running is not None:
            self.ctx.running.add(name, source.dtype, ctype, first, step)
        else:
            pointer = Declarator(name=name, value=first)
            declared = Local(dtype=source.dtype, ctype=ctype, const=False, names=(pointer,))
            self.it.outside.append(declared)
        steps: Expr = b.mul(turn, const(rows))
        if self.ctx.wide(source.buffer):
            steps = Wide(dtype=INT32, a=steps)
        return b.add(b.local(name), b.times(steps, stride))

    def _step(self, source: Load) -> Expr | None:
        """How far the place moves in a round of the loop that loads ahead, where that is constant."""
        running = self.ctx.running
        if running is None:
            return None
        index = running.spelled(source.index)
        return step_of(self.ctx, running.var, source.buffer, index)

    def _rows_apart(self, source: Load) -> tuple[Expr, int, Expr, Expr] | None:
        """The turn, rows a turn, their pitch and the first address, where turns take whole rows."""
        it, loop = self.it, self.loop
        if len(it.frames) != 1 or len(it.coordinates) != 2 or len(loop.loop_vars) != 2:
            return None
        (frame,), ((_, row), (_, column)) = it.frames, it.coordinates
        if not isinstance(frame, Loop) or b.mentions(column, frame.var):
            return None
        turn = b.local(frame.var)
        if not isinstance(row, Binary) or row.op != "+" or b.mentions(row.b, frame.var):
            return None
        moved, start = row.a, row.b
        if not isinstance(moved, Binary) or moved.op != "*" or moved.a != turn:
            return None
        rows = b.known(moved.b)
        own = loop.loop_vars[0].name
        dims = [dim for dim, part in enumerate(source.index) if b.mentions(part, own)]
        if rows is None or len(dims) != 1 or not neighbours_in(source.index, dims[0], own):
            return None
        values = {**it.place.values, own: start, loop.loop_vars[1].name: column}
        if self.ctx.running is not None and self._step(source) is not None:
            values[self.ctx.running.var.name] = self.ctx.running.start
            source = replace(source, index=self.ctx.running.spelled(source.index))
        place = Place(values=values)
        where = offset(self.ctx, source.buffer, source.index, place)
        element = Element(dtype=source.dtype, array=source.buffer.name, subscripts=(where,))
        first = Address(dtype=source.dtype, element=element)
        return turn, rows, b.in_words(self.ctx.pitch(source.buffer)[dims[0]]), first

    def _all_or_nothing(self, buffer: Buffer) -> bool:
        """Whether a vector of the last dimension cannot straddle its end: the extent is a multiple."""
        extent = buffer.shape[-1]
        if self.ctx.facts.divisible(extent, self.it.width):
            return True
        if any(
            extent == pitch and size % self.it.width == 0
            for pitch, size in self.ctx.known_pitches.items()
        ):
            return True  # the launch is chosen by it
        # In the aligned variant the pitch is a multiple; without gaps it is the extent.
        return self.ctx.variant and buffer.strides is None and len(buffer.shape) > 1

    def _row_of(self, buffer: Buffer, index: tuple[Expr, ...]) -> Element | None:
        """The fragment's storage row that is exactly this vector, if it is one."""
        if buffer.scope != "fragment":
            return None
        layout = self.ctx.layouts[buffer.name]
        if layout.axes[-1].extent != self.it.width or layout.element != "array" or layout.scalar:
            return None
        element = convert(
            self.ctx, Load(dtype=buffer.dtype, buffer=buffer, index=index), self.it.place
        )
        assert isinstance(element, Element)
        if element.subscripts[-1] != self.it.vector:
            return None
        self.ctx.aligned_fragments.add(buffer.name)
        return Element(dtype=buffer.dtype, array=element.array, subscripts=element.subscripts[:-1])

    def _valid(self, buffer: Buffer, index: tuple[Expr, ...]) -> Expr | None:
        """How many of the vector's elements are inside, or None if all are, always."""
        place = self.it.place
        lead = replace(buffer, shape=buffer.shape[:-1])
        rows = [*([self.mask] if self.mask is not None else ())]
        rows += guards(self.ctx, lead, index[:-1], place)
        tail = not self.ctx.facts.less(index[-1], buffer.shape[-1])
        if not rows and not tail:
            return None
        inside: Expr = const(self.it.width)
        if tail:
            inside = b.sub(
                convert(self.ctx, buffer.shape[-1], place), convert(self.ctx, index[-1], place)
            )
        if not rows:
            return inside
        from tile2c.transpile.ir.expr import Select

        condition = b.both([convert(self.ctx, row, place) for row in rows])
        count = Select(dtype=INT32, condition=condition, a=inside, b=const(0))
        name = self.ctx.namer.ours("valid", f"valid_{buffer.name}")
        self.names.append(name)
        self.before.append(Local(dtype=INT32, names=(Declarator(name=name, value=count),)))
        return b.local(name)

    def _address(self, buffer: Buffer, index: tuple[Expr, ...]) -> Expr:
        if buffer.scope == "shared":
            layout = self.ctx.shared.get(buffer.name)
            whole = layout is not None and self.it.width % layout.chunk == 0
            element = shared_element(self.ctx, buffer, index, self.it.place, whole=whole)
        else:
            where = offset(self.ctx, buffer, index, self.it.place)
            element = Element(dtype=buffer.dtype, array=buffer.name, subscripts=(where,))
        return Address(dtype=buffer.dtype, element=element)

    def _load_call(self, into: Expr, buffer: Buffer, index: tuple[Expr, ...]) -> CCall:
        return self._call("load_vector", (into, self._address(buffer, index)), buffer, index)

    def _store_call(self, source: Expr, buffer: Buffer, index: tuple[Expr, ...]) -> CCall:
        return self._call("store_vector", (self._address(buffer, index), source), buffer, index)

    def _call(
        self, helper: str, args: tuple[Expr, ...], buffer: Buffer, index: tuple[Expr, ...]
    ) -> CCall:
        """A vector helper; on global memory it may stop early, and may meet unaligned rows."""
        valid = self._valid(buffer, index) if buffer.scope == "global" else None
        template: tuple[Expr, ...] = ()
        if buffer.scope == "global":
            self.ctx.require_alignment(buffer, index, self.last, self.it.width)
            if self.ctx.variant:
                template = (b.local("aligned"),)
        self.ctx.need("pack")
        if valid is not None and self._all_or_nothing(buffer):
            helper = helper.replace("_vector", "_whole_vector")
            self.ctx.need(helper, variant=bool(template))
        else:
            self.ctx.need(helper, tail=valid is not None, variant=bool(template))
        if valid is not None:
            args = (*args, valid)
        return CCall(dtype=INT32, function=helper, args=args, template=template)


def _wishes(buffer: Buffer, position: int) -> tuple[str, ...]:
    """Names for a coordinate: by its place in the tensor, then with the tensor's name."""
    rank = len(buffer.shape)
    word = "at" if rank == 1 else {1: "col", 2: "row"}.get(rank - position, "plane")
    return (word, f"{word}_{buffer.name}")


def neighbours_in(index: tuple[Expr, ...], dim: int, var: str) -> bool:
    """Whether steps of `var` are steps of one in dimension `dim`."""
    found = [c for atom, c in linear(index[dim]).terms if b.mentions(atom, var)]
    plain = [a for a, _ in linear(index[dim]).terms if isinstance(a, Var) and a.name == var]
    return found == [1] and bool(plain)


def _name(expr: Expr | None) -> str:
    assert isinstance(expr, Var)
    return expr.name


def _reads(value: Expr | None) -> bool:
    """Whether the C expression reads an array or a tensor."""
    return value is not None and any(isinstance(part, Element) for part in b.walk(value))


def _uses(statements: Sequence[CStmt], name: str) -> bool:
    """Whether the C variable occurs in the statements."""
    return any(_occurs(statement, name) for statement in statements)


def _occurs(value: object, name: str) -> bool:
    if isinstance(value, Expr):
        return any(
            (isinstance(part, Var) and part.name == name)
            or (isinstance(part, Element) and part.array == name)
            for part in b.walk(value)
        )
    if isinstance(value, CStmt | Declarator):
        return any(_occurs(getattr(value, item.name), name) for item in fields(value))
    if isinstance(value, tuple):
        return any(_occurs(part, name) for part in value)
    return False


def _wrap(iteration: Iteration, body: tuple[CStmt, ...]) -> tuple[CStmt, ...]:
    """The body inside the loops, innermost first."""
    for frame in reversed(iteration.frames):
        assert isinstance(frame, Loop)
        body = (changed(frame, body=body),)
    body = (*iteration.outside, *body)
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
        position = tuple(b.substitute(part, _canonical(loop)) for part in index)
        owner: tuple[object, ...] = (iteration.owner, position)
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
                atomic=(id(buffer), index) in atomics,
            )
        )
    return tuple(dict.fromkeys(found))


def _canonical(loop: ParallelLoop) -> dict[str, Expr]:
    """Loop variables by position, so that loops with other names compare."""
    return {
        var.name: Var(dtype=INT32, name=f"#{position}", kind="loop")
        for position, var in enumerate(loop.loop_vars)
    }


__all__ = ["Assign", "ParallelLoop", "coordinate", "lower_parallel"]
