"""Neighbouring accesses of a parallel loop as vectors: loads, stores and copies that are started."""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Buffer, Cast, Expr, Load, Select, Var, const
from tile2c.transpile.ir.forms import Let, Stmt, Store
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.occurs import uses
from tile2c.transpile.lower.plan import (
    Address,
    Branch,
    CCall,
    CStmt,
    Declarator,
    Do,
    Element,
    Local,
)
from tile2c.transpile.lower.simt.access import (
    alignment,
    in_memory,
    neighbours,
    neighbours_in,
    plain_load,
    steady,
    steps_an_element,
)
from tile2c.transpile.lower.simt.context import Context, CopyKind
from tile2c.transpile.lower.simt.copy_sources import source_pointer
from tile2c.transpile.lower.simt.iteration import Iteration, ParallelLoop, changed, loop_over
from tile2c.transpile.lower.simt.named_values import alike_along, named_inside
from tile2c.transpile.lower.simt.scalars import lower_scalars
from tile2c.transpile.lower.simt.values import Place, convert, guards, offset, shared_element

# Of what the sums are, and of what they become: float32 is kept, halves are rounded two at once.
_PAIRS = frozenset(("float32", kind) for kind in ("float16", "bfloat16", "float32"))


class VectorMoves:
    """The statements of one vector of iterations."""

    def __init__(self, ctx: Context, loop: ParallelLoop, iteration: Iteration) -> None:
        self.ctx, self.loop, self.it = ctx, loop, iteration
        self.last = loop.loop_vars[-1].name
        self.arrays: dict[Load, str] = {}
        self.before: list[CStmt] = []
        self.after: list[CStmt] = []
        self.stored: set[str] = set()  # arrays that `after` stores
        self.names: list[str] = []  # taken from the namer, for whoever wrote the loop to give back
        self.varying: frozenset[str] = frozenset()  # named values that differ along a vector
        self.mask: Expr | None = None  # a condition (IR) on a whole vector that is loaded

    def statements(self) -> tuple[CStmt, ...]:
        """The loop's body for one vector of iterations."""
        alike, rest = alike_along(self.loop.body, self.last)
        self.varying = named_inside(rest)
        self.before += lower_scalars(self.ctx, alike, self.it.place)
        direct = self._direct(rest) or self._pair(rest)
        if direct is not None:
            return direct
        place = element_place(self.it, self.last)
        for stmt in rest:
            value = stmt.value if isinstance(stmt, Store | Let) else None
            assert value is not None
            for part in b.walk(value):
                if isinstance(part, Load):
                    self._read(part, place)
            if isinstance(stmt, Store):
                self._write(stmt, place)
        inner = lower_scalars(self.ctx, rest, place)
        loop = changed(loop_over(self._v().name, const(self.it.width)), body=inner)
        return (*self.before, loop, *self.after)

    def _moves_as_vector(self, buffer: Buffer, index: tuple[Expr, ...]) -> bool:
        if buffer.scope not in ("global", "shared"):
            return False
        if any(b.mentions(part, name) for part in index for name in self.varying):
            return False
        buffer, index = in_memory(self.ctx, buffer, index)
        return (
            neighbours(self.ctx, index, self.last, self.it.width)
            and alignment(self.ctx, buffer, index, self.last, self.it.width) != "never"
        )

    def _array(self, load: Load, count: int = 0) -> str:
        """The array that holds a vector of this access, of `count` elements if not of all, declared once."""
        count = count or self.it.width
        if load not in self.arrays:
            name = self.ctx.namer.ours(f"{load.buffer.name}_part", f"{load.buffer.name}_piece")
            self.names.append(name)
            self.arrays[load] = name
            self.before.append(
                Local(
                    dtype=load.dtype,
                    const=False,
                    align=count * load.dtype.bytes,
                    names=(Declarator(name=name, dims=(const(count),)),),
                )
            )
        return self.arrays[load]

    def _read(self, load: Load, place: Place) -> None:
        if load in self.arrays:
            return
        if not self._moves_as_vector(load.buffer, load.index):
            self._read_slower(load, place)
            return
        name = self._array(load)
        whole = Element(dtype=load.dtype, array=name, subscripts=())
        self.before.append(Do(call=self._load_call(whole, load.buffer, load.index)))
        place.loads[load] = Element(dtype=load.dtype, array=name, subscripts=(self._v(),))

    def _read_slower(self, load: Load, place: Place) -> None:
        """Elements of shared memory that several neighbouring iterations ask for each: `B[i, j // 2]`."""
        ctx, width, buffer = self.ctx, self.it.width, load.buffer
        if buffer.scope != "shared" or buffer.dtype.name in ctx.target.lone_types:
            return
        own, index = in_memory(ctx, buffer, load.index)
        steps = steps_an_element(ctx, index, self.last, width)
        count = width // steps
        if steps == 1 or count == 1 or any(b.mentions(x, y) for x in index for y in self.varying):
            return
        if alignment(ctx, own, index, self.last, count) != "always":
            return
        name = self._array(load, count)
        whole = Element(dtype=load.dtype, array=name, subscripts=())
        address = self._address(buffer, load.index, count)
        ctx.need("pack")
        ctx.need("load_vector", tail=False, variant=False)
        self.before.append(
            Do(call=CCall(dtype=INT32, function="load_vector", args=(whole, address)))
        )
        at = b.div(self._v(), const(steps))
        place.loads[load] = Element(dtype=load.dtype, array=name, subscripts=(at,))

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

    def _v(self) -> Var:
        assert isinstance(self.it.vector, Var)
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
            if uses((*self.before, *calls), let.var.name):
                self.before[known:known] = lower_scalars(self.ctx, (let,), self.it.place)
        return (*self.before, *calls)

    def _pair(self, body: tuple[Stmt, ...]) -> tuple[CStmt, ...] | None:
        """Two sums on their way out are rounded by one instruction, which needs no array in between."""
        if len(body) != 1 or not isinstance(store := body[0], Store) or self.it.width != 2:
            return None
        value = store.value
        held = value.a if isinstance(value, Cast) else value
        if store.buffer.name not in self.ctx.leaving or not isinstance(held, Load):
            return None
        kinds = (held.dtype.name, store.buffer.dtype.name)
        if kinds not in _PAIRS or not self._moves_as_vector(store.buffer, store.index):
            return None
        where = next(key for key, digit in self.it.place.digits.items() if digit == self._v())
        values: list[Expr] = []
        for number in (0, 1):
            digits = {**self.it.place.digits, where: const(number)}
            place = replace(self.it.place, digits=digits)
            one = replace(self.it, place=place, vector=const(number))
            values.append(convert(self.ctx, held, element_place(one, self.last)))
        self.ctx.need("store_pair", type=kinds[1])
        args = (self._address(store.buffer, store.index), *values)
        return (*self.before, Do(call=CCall(dtype=INT32, function="store_pair", args=args)))

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
        to = self._address(buffer, index)
        where = source_pointer(self.ctx, self.loop, self.it, source)
        if where is None:
            where = self._address(source.buffer, source.index)
        valid = self._valid(source.buffer, source.index)
        args = (to, where) if valid is None else (to, where, valid)
        template: tuple[Expr, ...] = (const(self.it.width),)
        if self.ctx.unaligned:
            self.ctx.need("copy_elements", tail=valid is not None)
            return CCall(dtype=INT32, function="copy_elements", args=args, template=template)
        self.ctx.require_alignment(source.buffer, source.index, self.last, self.it.width)
        size = self.it.width * source.dtype.bytes
        if self.ctx.variant:
            template = (*template, b.local("aligned"))
            self.ctx.need("pack")
            if valid is not None:
                kinds = self.ctx.target.dialect.types
                name, size_of_one = kinds[source.dtype.name], source.dtype.bytes
                self.ctx.need("load_below", type=name, bytes=size_of_one)
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
        return CCall(dtype=INT32, function=function, args=args, template=template)

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
        condition = b.both([convert(self.ctx, row, place) for row in rows])
        count = Select(dtype=INT32, condition=condition, a=inside, b=const(0))
        name = self.ctx.namer.ours("valid", f"valid_{buffer.name}")
        self.names.append(name)
        self.before.append(Local(dtype=INT32, names=(Declarator(name=name, value=count),)))
        return b.local(name)

    def _address(self, buffer: Buffer, index: tuple[Expr, ...], count: int = 0) -> Expr:
        """Where a vector of all iterations' elements starts, or one of `count` elements."""
        if buffer.scope == "shared":
            layout = self.ctx.shared.get(buffer.name)
            unit = 1 if layout is None else layout.group if layout.group > 1 else layout.chunk
            whole = layout is not None and (count or self.it.width) % unit == 0
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
            if self.ctx.unaligned:
                helper = helper.replace("_vector", "_elements")
                self.ctx.need(helper, tail=valid is not None)
                args = args if valid is None else (*args, valid)
                return CCall(dtype=INT32, function=helper, args=args)
            if self.ctx.variant:
                template = (b.local("aligned"),)
        self.ctx.need("pack")
        if valid is not None and self._all_or_nothing(buffer):
            if helper == "load_vector" and not template and self._in_words(buffer):
                helper = "load_words"
                self.ctx.need(helper)
            else:
                helper = helper.replace("_vector", "_whole_vector")
                self.ctx.need(helper, variant=bool(template))
        else:
            self.ctx.need(helper, tail=valid is not None, variant=bool(template))
        if valid is not None:
            args = (*args, valid)
        return CCall(dtype=INT32, function=helper, args=args, template=template)

    def _in_words(self, buffer: Buffer) -> bool:
        """Whether small elements are to stay together in the registers that a vector is loaded to."""
        size = buffer.dtype.bytes
        return self.ctx.whole_words and size < 4 and self.it.width * size % 4 == 0


def element_place(it: Iteration, last: str) -> Place:
    """The place of one element of the vector along the loop variable `last`."""
    place = it.place
    if it.vector is None:
        return place
    base = place.values[last]
    moved = b.add(base, it.vector)
    return replace(
        place,
        values={**place.values, last: moved},
        parts={
            part: b.add(value, it.vector) if b.mentions(part, last) else value
            for part, value in place.parts.items()
            if not b.mentions(part, last) or neighbours_in((part,), 0, last)
        },
    )
