"""T.reduce_*: in the thread, then across the lanes of a warp, then across warps through shared memory."""

from __future__ import annotations

from math import prod

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.dtypes import BOOL, INT32, DType
from tile2c.transpile.ir.expr import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Logical,
    Select,
    Var,
    const,
)
from tile2c.transpile.ir.forms import Reduce
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import (
    Assign,
    Branch,
    CCall,
    CStmt,
    Declarator,
    Element,
    Local,
    Loop,
    Section,
    counting,
)
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.gathered import Gather, Meet
from tile2c.transpile.lower.simt.layouts import Digit
from tile2c.transpile.lower.simt.parallel import coordinate
from tile2c.transpile.lower.simt.steps import Access, Node, SharedUse, Step
from tile2c.transpile.lower.simt.values import storage_subscripts
from tile2c.transpile.record import record

_WORDS = {"sum": "sum", "max": "max", "min": "min", "abssum": "sum", "absmax": "max"}


@record(kw_only=True)
class _Crossing:
    """How the parts of one result, spread over threads, come together."""

    shuffled: tuple[Digit, ...]  # lane digits summed by shuffles
    through: tuple[Digit, ...]  # thread digits summed through shared memory


def lower_reduce(ctx: Context, stmt: Reduce) -> list[Node]:
    """The reduction as steps; between the last two stands the barrier that the arcs ask for."""
    return _Reduction(ctx, stmt).steps()


class _Reduction:
    def __init__(self, ctx: Context, stmt: Reduce) -> None:
        self.ctx, self.stmt = ctx, stmt
        src, dst = stmt.src.buffer, stmt.dst.buffer
        for region in (stmt.src, stmt.dst):
            _check_whole(ctx, stmt, region.buffer.scope == "fragment", region)
        self.src, self.dst = ctx.layouts[src.name], ctx.layouts[dst.name]
        self.dim = stmt.dim
        self.keep = [d for d in range(len(self.src.shape)) if d != self.dim]
        self.kept_dims = len(self.dst.shape) == len(self.src.shape)
        self.word = _WORDS.get(stmt.op, stmt.op)
        self.dtype: DType = dst.dtype
        self.crossing = self._crossing()
        self.digit_names: dict[tuple[int, Digit], Expr] = {}

    # ---- structure

    def steps(self) -> list[Node]:
        stmt = self.stmt
        part = self.ctx.namer.ours(f"{stmt.dst.buffer.name}_part", f"{stmt.dst.buffer.name}_new")
        self.part: Expr = b.local(part, self.dtype)
        comments = (*stmt.comments, *((stmt.quote,) if stmt.quote else ()))
        if isinstance(stmt, Gather):
            body = self._over_results(self._in_thread)
            section = Section(comments=comments, body=tuple(body), span=stmt.span)
            return [Step(body=(section,), quote=stmt.quote)]
        if not self.crossing.through:
            body = self._over_results(lambda: [*self._in_thread(), *self._take(self._whole())])
            self._release(part)
            section = Section(comments=comments, body=tuple(body), span=stmt.span)
            return [Step(body=(section,), quote=stmt.quote)]
        parts = self._parts_array()
        head = Section(
            comments=comments,
            body=tuple(self._over_results(lambda: [*self._in_thread(), self._write_part(parts)])),
            span=stmt.span,
        )
        self._release(part)
        finish = self._over_results(lambda: self._read_parts(parts))
        write = Access(buffer=parts, write=True, owner=None)
        read = Access(buffer=parts, write=False, owner=None)
        return [
            Step(body=(head,), accesses=(write,), quote=stmt.quote),
            Step(
                body=(Section(body=tuple(finish), blank=False, span=stmt.span),),
                accesses=(read,),
                quote=stmt.quote,
            ),
        ]

    def _release(self, part: str) -> None:
        """The part's name is free again, unless it was declared in the block's own scope."""
        if self.stmt.clear or self.dst.value_digits():
            self.ctx.namer.release(part)

    def _crossing(self) -> _Crossing:
        lanes = self.ctx.target.lanes
        shuffled, through = [], []
        for digit in self.src.dims[self.dim]:
            if digit.holder != "thread" or digit.extent == 1:
                continue
            whole = self.ctx.threads % lanes == 0 or self.ctx.threads & (self.ctx.threads - 1) == 0
            span = min(lanes, self.ctx.threads)
            inside = min(digit.extent, max(1, span // digit.weight))
            fits = digit.weight < span and span % digit.weight == 0 and whole
            if fits and inside & (inside - 1) == 0 and digit.extent % inside == 0:
                shuffled.append(Digit("thread", inside, digit.weight))
                if digit.extent > inside:
                    through.append(Digit("thread", digit.extent // inside, digit.weight * inside))
            else:
                through.append(digit)
        return _Crossing(shuffled=tuple(shuffled), through=tuple(through))

    # ---- loops over the results a thread holds

    def _over_results(self, body) -> list[CStmt]:  # type: ignore[no-untyped-def]
        """Statements for each result of the thread, inside loops over dst's value digits."""
        self.digit_names = {}
        names: list[str] = []
        frames: list[tuple[str, int]] = []
        for dim, digit in self.dst.value_digits():
            name = self.ctx.namer.ours(digit.name, f"{digit.name}_of_result")
            names.append(name)
            frames.append((name, digit.extent))
            self.digit_names[(dim, digit)] = b.local(name)
        inner = tuple(body())
        for name in names:
            self.ctx.namer.release(name)
        for name, extent in reversed(frames):
            inner = (counting(name, extent, inner),)
        return list(inner)

    def _result(self) -> Element:
        return Element(
            dtype=self.dtype,
            array=self.stmt.dst.buffer.name,
            subscripts=storage_subscripts(self.dst, self.digit_names),
        )

    def _in_thread(self) -> list[CStmt]:
        """The thread's own elements of one result."""
        start: CStmt | None = None
        if isinstance(self.stmt, Meet):  # they have been gathered
            array = self.stmt.part.name
            subscripts = storage_subscripts(self.dst, self.digit_names)
            self.part = Element(dtype=self.dtype, array=array, subscripts=subscripts)
            return []
        if isinstance(self.stmt, Gather):
            self.part = self._result()
        elif self.stmt.clear:  # the result itself gathers
            self.part = self._result()
            start = Assign(target=self.part, value=identity(self.stmt.op, self.dtype))
        else:
            assert isinstance(self.part, Var)
            part = Declarator(name=self.part.name, value=identity(self.stmt.op, self.dtype))
            start = Local(dtype=self.dtype, names=(part,), const=False)
        digits: dict[tuple[int, Digit], Expr] = {}
        for position, dim in enumerate(self.keep):
            other = position if not self.kept_dims else dim
            theirs = [d for d in self.dst.dims[other] if d.holder == "value" and d.extent > 1]
            mine = [d for d in self.src.dims[dim] if d.holder == "value" and d.extent > 1]
            for own, found in zip(mine, theirs, strict=True):
                digits[(dim, own)] = self.digit_names[(other, found)]
        names: list[str] = []
        frames: list[tuple[str, int]] = []
        for dim, digit in self.src.value_digits():
            if dim != self.dim:
                continue
            name = self.ctx.namer.ours(digit.name, f"{digit.name}_of_row")
            names.append(name)
            frames.append((name, digit.extent))
            digits[(dim, digit)] = b.local(name)
        element: Expr = Element(
            dtype=self.stmt.src.buffer.dtype,
            array=self.stmt.src.buffer.name,
            subscripts=storage_subscripts(self.src, digits),
        )
        if self.stmt.src.buffer.dtype != self.dtype:
            element = Cast(dtype=self.dtype, a=element)
        if self.stmt.op in ("abssum", "absmax"):
            element = Call(dtype=self.dtype, function="abs", args=(element,))
        update: CStmt = _combine(self.ctx, self.stmt, self.part, element)
        if self.src.padded(self.dim) and id(self.stmt) not in self.ctx.harmless:
            place = coordinate(self.ctx, self.src, self.dim, digits)
            inside = b.less(place, self.stmt.src.shape[self.dim])
            update = Branch(condition=inside, then=(update,), remark="the layout is padded")
        inner: tuple[CStmt, ...] = (update,)
        for name, extent in reversed(frames):
            inner = (counting(name, extent, inner),)
        for name in names:
            self.ctx.namer.release(name)
        if frames and self.src.values >= 16 and isinstance(inner[0], Loop):
            from dataclasses import replace

            inner = (replace(inner[0], unroll=True),)
        return [start, *inner] if start is not None else list(inner)

    def _whole(self) -> Expr:
        """The thread's part, then those of the other lanes of its group."""
        value: Expr = self.part
        for digit in self.crossing.shuffled:
            value = CCall(dtype=self.dtype, function=self._lanes_helper(digit), args=(value,))
        return value

    def _take(self, value: Expr) -> list[CStmt]:
        """dst = value, or its old value takes part once."""
        if not self.stmt.clear:
            return [_combine(self.ctx, self.stmt, self._result(), value)]
        return [Assign(target=self._result(), value=value)] if value != self._result() else []

    def _lanes_helper(self, digit: Digit) -> str:
        """`warp_max`: over lanes that differ in this digit."""
        lanes = self.ctx.target.lanes
        whole = digit.weight == 1 and digit.extent == lanes
        name = (
            f"{self.ctx.target.group}_{self.word}" if whole else f"lanes_{self.word}_{digit.extent}"
        )
        if not whole and digit.weight > 1:
            name += f"_by_{digit.weight}"
        fields = {"name": name, "type": self.ctx.target.dialect.types[self.dtype.name]}
        from tile2c.transpile.render.expressions import CPrinter

        x = b.local("x", self.dtype)
        other = b.local("other", self.dtype)
        combined = CPrinter(self.ctx.target.dialect)(_together(self.ctx, self.stmt, x, other))
        if name in self.ctx.reducers and self.ctx.reducers[name] != (fields["type"], combined):
            name = f"{name}_{self.dtype.name}"
            fields["name"] = name
        self.ctx.reducers[name] = (fields["type"], combined)
        mask = self.ctx.target.shuffle_mask
        if mask is not None and self.ctx.threads < lanes:
            mask = self.ctx.target.mask(self.ctx.threads)
        first, last = digit.weight * digit.extent // 2, digit.weight
        at = str(first) if first == last else "offset"
        carrier = self.ctx.target.shuffle_as.get(self.dtype.name)
        value = f"{carrier}(x)" if carrier else "x"
        moved = f"{self.ctx.target.shuffle}({f'{mask}, ' if mask else ''}{value}, {at})"
        self.ctx.need(
            "lanes_reduce",
            **fields,
            word={"sum": "Sum", "max": "Largest", "min": "Smallest"}.get(self.word, self.word),
            lanes=lanes,
            group=self.ctx.target.group,
            first=first,
            last=last,
            whole=whole,
            count=digit.extent,
            combined=combined,
            moved=f"{fields['type']}({moved})" if carrier else moved,
        )
        return name

    # ---- across warps

    def _parts_array(self) -> str:
        """One row of results for each part: [part][result]."""
        name = self.ctx.namer.ours(
            f"{self.stmt.dst.buffer.name}_parts", f"{self.stmt.dst.buffer.name}_{self.word}_parts"
        )
        parts = prod(digit.extent for digit in self.crossing.through)
        count = prod(prod(d.extent for d in dims) if dims else 1 for dims in self.dst.dims)
        self.rows = count
        size = parts * count * self.dtype.bytes
        dims = (const(parts),) if count == 1 else (const(parts), const(count))
        self.ctx.arrays.append(
            SharedUse(name=name, dims=dims, bytes=size, words="parts of the result")
        )
        self.ctx.array_types[name] = self.dtype
        return name

    def _part(self, array: str, part: Expr) -> Element:
        """parts[part][which result]."""
        where: Expr | None = None
        for dim, digits in enumerate(self.dst.dims):
            place = coordinate(self.ctx, self.dst, dim, self.digit_names)
            extent = prod(d.extent for d in digits)
            where = place if where is None else b.add(b.mul(where, const(extent)), place)
        subscripts = (part,) if self.rows == 1 else (part, where or const(0))
        return Element(dtype=self.dtype, array=array, subscripts=subscripts)

    def _write_part(self, parts: str) -> CStmt:
        """One lane of each group leaves its group's part where every thread can read it."""
        part: Expr = const(0)
        for digit in reversed(self.crossing.through):
            part = b.add(
                b.mul(part, const(digit.extent)), self.ctx.thread_digit(digit.weight, digit.extent)
            )
        ones: list[Expr] = [
            b.compare("==", self.ctx.thread_digit(digit.weight, digit.extent), const(0))
            for digit in self.crossing.shuffled
        ]
        ones += [
            b.compare("==", self.ctx.thread_digit(weight, extent), const(0))
            for weight, extent in self.src.replicas()
        ]
        target = self._part(parts, part)
        if not self.crossing.shuffled:
            store: CStmt = Assign(target=target, value=self.part)
            return Branch(condition=b.both(ones), then=(store,)) if ones else store
        whole = Assign(target=self.part, value=self._whole())
        store = Assign(target=target, value=self.part)
        return Section(body=(whole, Branch(condition=b.both(ones), then=(store,))), blank=False)

    def _read_parts(self, parts: str) -> list[CStmt]:
        count = prod(digit.extent for digit in self.crossing.through)
        part = self.ctx.namer.ours("p", "piece")
        self.ctx.namer.release(part)
        found: list[CStmt] = []
        first = 0
        if self.stmt.clear:
            found.append(Assign(target=self._result(), value=self._part(parts, const(0))))
            first = 1
        update = _combine(self.ctx, self.stmt, self._result(), self._part(parts, b.local(part)))
        found.append(
            Loop(
                var=part,
                start=const(first),
                stop=const(count),
                step=const(1),
                body=(update,),
                dtype=INT32,
            )
        )
        return found


def _check_whole(ctx: Context, stmt: Reduce, fragment: bool, region) -> None:  # type: ignore[no-untyped-def]
    whole = all(
        b.literal(part.start, 0) and b.known(part.extent) == b.known(extent)
        for part, extent in zip(region.ranges, region.buffer.shape, strict=True)
    )
    if not fragment or not whole:
        raise failure(
            "T2C505",
            f"this reduction reads or writes {region.buffer.name}, which is not a whole fragment; "
            f"that is not lowered for {ctx.target.name} yet",
            region.span or stmt.span,
            help="copy it to a fragment first",
        )


def identity(op: str, dtype: DType) -> Const:
    """The value that changes nothing."""
    if op in ("sum", "abssum", "bitor", "bitxor", "absmax"):
        return Const(dtype=dtype, value=0.0 if dtype.is_float else 0)
    if op == "bitand":
        return Const(dtype=dtype, value=-1 if dtype.kind == "int" else (1 << dtype.bits) - 1)
    low, high = float("-inf"), float("inf")
    if dtype.is_integer:
        half = 1 << (dtype.bits - 1)
        low, high = (-half, half - 1) if dtype.kind == "int" else (0, 2 * half - 1)
    return Const(dtype=dtype, value=low if op == "max" else high)


def pair(stmt: Reduce, x: Expr, y: Expr) -> Expr:
    """op of two values of the result's type, as tile IR."""
    if _keeps_nan(stmt, x.dtype):
        unequal: Expr = Compare(dtype=BOOL, op="!=", a=x, b=x)
        beyond = Compare(dtype=BOOL, op="<" if stmt.op == "min" else ">", a=x, b=y)
        first = Logical(dtype=BOOL, op="or", a=unequal, b=beyond)
        return Select(dtype=x.dtype, condition=first, a=x, b=y)
    op = {"sum": "+", "abssum": "+", "max": "max", "absmax": "max", "min": "min"}.get(stmt.op)
    op = op or {"bitand": "&", "bitor": "|", "bitxor": "^"}[stmt.op]
    return Binary(dtype=x.dtype, op=op, a=x, b=y)  # type: ignore[arg-type]


def _keeps_nan(stmt: Reduce, dtype: DType) -> bool:
    return stmt.nan_propagate and dtype.is_float and stmt.op in ("max", "min", "absmax")


def _together(ctx: Context, stmt: Reduce, x: Expr, y: Expr) -> Expr:
    """The same as C: where NaN has to survive, by a helper."""
    if not _keeps_nan(stmt, x.dtype):
        return pair(stmt, x, y)
    word = "min" if stmt.op == "min" else "max"
    ctx.need("keeps_nan", word=word, sign="<" if word == "min" else ">")
    return CCall(dtype=x.dtype, function=f"{word}_or_nan", args=(x, y))


def _combine(ctx: Context, stmt: Reduce, result: Expr, value: Expr) -> CStmt:
    both = _together(ctx, stmt, result, value)
    if isinstance(both, Binary) and both.op in ("+", "&", "|", "^"):
        return Assign(target=result, value=value, op=f"{both.op}=")  # type: ignore[arg-type]
    return Assign(target=result, value=both)
