"""T.cumsum, T.cummax of fragments whose lines lie along the lanes of a warp: no shared memory, no barrier.

A lane scans the neighbours it holds, the lanes scan their last ones, and each lane adds what is before
its own; where lines are longer, the next stretch goes on from the last lane.
"""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.ir.dtypes import DType
from tile2c.transpile.ir.expr import Cast, Expr, Var, const
from tile2c.transpile.ir.forms import Scan
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import (
    Assign,
    CCall,
    CStmt,
    Declarator,
    Element,
    Local,
    Loop,
    Scope,
    Section,
    counting,
)
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.layouts import Digit, Layout
from tile2c.transpile.lower.simt.reduce import identity
from tile2c.transpile.lower.simt.scan import lanes_fields, lanes_helper, last_helper, pair
from tile2c.transpile.lower.simt.steps import Step
from tile2c.transpile.lower.simt.values import storage_subscripts

_UNROLLED = 16  # values of a thread from which on its loops are unrolled in the text


def in_registers(stmt: Scan) -> bool:
    """Whether the scan may stay in registers, if layouts allow: of whole fragments, forwards."""
    src, dst = stmt.src, stmt.dst
    return (
        src.buffer.scope == dst.buffer.scope == "fragment"
        and src.buffer.shape == dst.buffer.shape
        and not stmt.reverse
        and all(
            not part.point and b.literal(part.start, 0) and b.known(part.extent) == b.known(extent)
            for region in (src, dst)
            for part, extent in zip(region.ranges, region.buffer.shape, strict=True)
        )
    )


def fits(ctx: Context, stmt: Scan) -> bool:
    """Whether each line lies in one thread, or along the lanes of a warp: [vector] [lanes] [stretches]."""
    src, dst = ctx.layouts[stmt.src.buffer.name], ctx.layouts[stmt.dst.buffer.name]
    if src.dims != dst.dims or src.axes != dst.axes or dst.element != "array":
        return False
    holders = "".join(digit.holder[0] for digit in dst.dims[stmt.dim] if digit.extent > 1)
    if holders not in ("", "v", "t", "vt", "tv", "vtv"):
        return False
    lanes = ctx.target.lanes
    whole = ctx.threads % lanes == 0 or (ctx.threads < lanes and not ctx.threads & ctx.threads - 1)
    across = [digit for digit in dst.dims[stmt.dim] if digit.holder == "thread"]
    return all(
        digit.weight == 1
        and digit.extent <= lanes
        and not digit.extent & digit.extent - 1
        and whole
        for digit in across
    )


def lower_register_scan(ctx: Context, stmt: Scan) -> Step:
    """The scan as one step that touches nothing but the thread's own registers."""
    body = _RegisterScan(ctx, stmt).statements()
    comments = (*stmt.comments, *((stmt.quote,) if stmt.quote else ()))
    section = Section(comments=comments, body=body, span=stmt.span)
    return Step(body=(section,), quote=stmt.quote)


class _RegisterScan:
    def __init__(self, ctx: Context, stmt: Scan) -> None:
        self.ctx, self.stmt = ctx, stmt
        self.layout: Layout = ctx.layouts[stmt.dst.buffer.name]
        self.dtype: DType = stmt.dst.buffer.dtype
        self.digits: dict[tuple[int, Digit], Expr] = {}
        own = [digit for digit in self.layout.dims[stmt.dim] if digit.extent > 1]
        lanes = [place for place, digit in enumerate(own) if digit.holder == "thread"]
        at = lanes[0] if lanes else len(own)
        self.vector = own[0] if at > 0 else None
        self.across = own[at] if lanes else None
        self.stretches = own[at + 1] if at + 1 < len(own) else None

    def statements(self) -> tuple[CStmt, ...]:
        namer, taken = self.ctx.namer, []
        frames: list[tuple[str, int]] = []
        for dim, digit in self.layout.value_digits():
            name = namer.ours(digit.name, f"{digit.name}_of_line")
            taken.append(name)
            self.digits[(dim, digit)] = b.local(name)
            if dim != self.stmt.dim:
                frames.append((name, digit.extent))
        words = [("before", "so_far"), ("through", "up_to_here"), ("own", "start")]
        names = [namer.ours(*wishes) for wishes in words]
        self.before, self.through, self.start = (b.local(name, self.dtype) for name in names)
        body = self._line()
        for name in (*taken, *names):
            namer.release(name)
        for name, extent in reversed(frames):
            body = (counting(name, extent, body),)
        if len(body) == 1 and isinstance(body[0], Loop) and self.layout.values >= _UNROLLED:
            return (replace(body[0], unroll=True),)
        return body if frames else (Scope(body=body),)

    def _line(self) -> tuple[CStmt, ...]:
        """One line of the thread: its stretches, each after the other."""
        if self.across is None:
            return self._vector_scan()
        ctx, lanes = self.ctx, self.across.extent
        lane = ctx.thread_digit(1, lanes)
        fields = lanes_fields(ctx, self.dtype, lanes)
        last = self._element(self.vector.extent - 1 if self.vector else None)
        scanned = CCall(
            dtype=self.dtype,
            function=lanes_helper(ctx, self.stmt, self.dtype, lanes),
            args=(last, lane),
        )
        long = self.stretches is not None
        first: Expr = self.before if long else identity(self.stmt.op, self.dtype)
        below = f"lane_below_{lanes}"
        ctx.need("lane_below", name=below, **fields)
        start = CCall(dtype=self.dtype, function=below, args=(self.through, first, lane))
        reached: Expr = self._pair(self.before, scanned) if long else scanned
        shift = self._each(0, lambda element, _: self._pair(self.start, element))
        body: tuple[CStmt, ...] = (
            *self._vector_scan(),
            self._named(self.through, reached),
            self._named(self.start, start),
            shift,
        )
        if not long or self.stretches is None:
            return body
        carry = CCall(
            dtype=self.dtype,
            function=last_helper(ctx, self.dtype, lanes),
            args=(self.through,),
        )
        body = (*body, Assign(target=self.before, value=carry, remark="for the rest of the line"))
        name = self._name(self.stretches)
        head = Declarator(name=_of(self.before), value=identity(self.stmt.op, self.dtype))
        return (
            Local(dtype=self.dtype, names=(head,), const=False),
            counting(name, self.stretches.extent, body, unroll=self.layout.values >= _UNROLLED),
        )

    def _vector_scan(self) -> tuple[CStmt, ...]:
        """The neighbours that the thread holds itself."""
        copied = self.stmt.src.buffer != self.stmt.dst.buffer
        found: list[CStmt] = []
        if copied:
            at = 0 if self.vector else None
            found.append(Assign(target=self._element(at), value=self._source(at)))
        if self.vector is not None:
            found.append(self._each(1, lambda _, before: self._pair(before, self._source(None))))
        return tuple(found)

    def _each(self, first: int, value) -> CStmt:  # type: ignore[no-untyped-def]
        """dst = value(dst, the one before) for the thread's neighbours from `first` on."""
        target = self._element(None)
        if self.vector is None:
            return Assign(target=target, value=value(target, target))
        before = self._element(None, back=1)
        update = Assign(target=target, value=value(target, before))
        return counting(self._name(self.vector), self.vector.extent, (update,), start=first)

    # ---- elements

    def _element(self, at: int | None, back: int = 0) -> Element:
        return self._of_buffer(self.stmt.dst.buffer.name, self.dtype, at, back)

    def _source(self, at: int | None) -> Expr:
        src = self.stmt.src.buffer
        element: Expr = self._of_buffer(src.name, src.dtype, at, 0)
        return element if src.dtype == self.dtype else Cast(dtype=self.dtype, a=element)

    def _of_buffer(self, name: str, dtype: DType, at: int | None, back: int) -> Element:
        """The element at the loops' place, at `at` of the vector, or `back` before it."""
        digits = dict(self.digits)
        if self.vector is not None:
            key = (self.stmt.dim, self.vector)
            digits[key] = const(at) if at is not None else b.sub(digits[key], const(back))
        return Element(dtype=dtype, array=name, subscripts=storage_subscripts(self.layout, digits))

    def _pair(self, x: Expr, y: Expr) -> Expr:
        found = pair(self.stmt, x, y)
        if self.dtype.is_integer and self.dtype.bits < 32:  # C has made an int of it
            return Cast(dtype=self.dtype, a=found)
        return found

    def _name(self, digit: Digit) -> str:
        return _of(self.digits[(self.stmt.dim, digit)])

    def _named(self, name: Expr, value: Expr) -> CStmt:
        return Local(dtype=self.dtype, names=(Declarator(name=_of(name), value=value),))


def _of(expr: Expr) -> str:
    assert isinstance(expr, Var)
    return expr.name
