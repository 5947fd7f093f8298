"""T.cumsum, T.cummax on shared tiles: a group of lanes to a line, or a thread to a line where there are
lines enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.dtypes import INT32, DType
from tile2c.transpile.ir.expr import Binary, Buffer, Cast, Const, Expr, Load, Select, Var, const
from tile2c.transpile.ir.forms import (
    Copy,
    For,
    If,
    Parallel,
    Pipelined,
    Region,
    Scan,
    Stmt,
    Store,
    While,
)
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.desugar import copy_loop, loop_names
from tile2c.transpile.lower.plan import (
    Assign,
    Branch,
    CCall,
    CStmt,
    Declarator,
    Local,
    Loop,
    Scope,
    Section,
)
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hand_over import fresh, whole
from tile2c.transpile.lower.simt.reduce import identity
from tile2c.transpile.lower.simt.steps import Access, Step
from tile2c.transpile.lower.simt.values import Place, shared_element

_WORDS = {"sum": "Sum", "max": "Largest"}


def scans_on_shared(
    ctx: Context, body: tuple[Stmt, ...], stays: Callable[[Scan], bool]
) -> tuple[Stmt, ...]:
    """Every scan that does not stay as it is becomes one of shared tiles, fragments through their own.

    reads   tile IR with copies as loops      writes  the same
    """
    found: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Scan):
            found += [stmt] if stays(stmt) else _on_shared(ctx, stmt)
        elif isinstance(stmt, For | Pipelined | While):
            inner = scans_on_shared(ctx, stmt.body, stays)
            same = all(map(_is, inner, stmt.body)) and len(inner) == len(stmt.body)
            found.append(stmt if same else replace(stmt, body=inner))
        elif isinstance(stmt, If):
            then = scans_on_shared(ctx, stmt.then, stays)
            orelse = scans_on_shared(ctx, stmt.orelse, stays)
            found.append(replace(stmt, then=then, orelse=orelse))
        else:
            found.append(stmt)
    return tuple(found)


def _is(a: Stmt, c: Stmt) -> bool:
    return a is c


def _on_shared(ctx: Context, stmt: Scan) -> list[Stmt]:
    src, dst = stmt.src, stmt.dst
    scopes = {src.buffer.scope, dst.buffer.scope}
    if scopes == {"local"}:
        return [_private(ctx, stmt)]
    if scopes == {"shared"}:
        return [stmt]
    if "local" in scopes:
        raise failure(
            "T2C508",
            f"a scan of {src.buffer.name} into {dst.buffer.name}: one of them is private to each thread",
            stmt.span,
            help="make both fragments, or both T.alloc_local",
        )
    like = Buffer(name="", scope="shared", shape=dst.shape, dtype=dst.buffer.dtype)
    tile = fresh(ctx, like, "shared", f"{dst.buffer.name}_scan", f"{dst.buffer.name}_scanned")
    before: list[Stmt] = []
    if src.buffer.scope == "fragment":
        before.append(_copy(ctx, src, whole(tile)))
        stmt = replace(stmt, src=whole(tile))
    return [*before, replace(stmt, dst=whole(tile)), _copy(ctx, whole(tile), dst)]


def _copy(ctx: Context, src: Region, dst: Region) -> Parallel:
    return copy_loop(Copy(src=src, dst=dst), ctx.author_names)


def _private(ctx: Context, stmt: Scan) -> Stmt:
    """Loops of each thread over its own array; the scanned dimension is the innermost loop."""
    names = loop_names(ctx.author_names)
    ranges = [part for part in stmt.src.ranges if not part.point]
    loop_vars = [Var(dtype=INT32, name=names[k], kind="loop") for k in range(len(ranges))]
    extent = ranges[stmt.dim].extent

    def place(region: Region, back: int) -> tuple[Expr, ...]:
        at: list[Expr] = []
        moving = iter(enumerate(loop_vars))
        for part in region.ranges:
            if part.point:
                at.append(part.start)
                continue
            dim, var = next(moving)
            step: Expr = var
            if dim == stmt.dim:
                step = b.sub(var, const(back)) if back else var
                if stmt.reverse:
                    step = b.sub(b.sub(extent, const(1)), step)
            at.append(b.add(part.start, step))
        return tuple(at)

    dst, dtype = stmt.dst.buffer, stmt.dst.buffer.dtype
    value: Expr = Load(
        dtype=stmt.src.buffer.dtype, buffer=stmt.src.buffer, index=place(stmt.src, 0)
    )
    if value.dtype != dtype:
        value = Cast(dtype=dtype, a=value)
    first = b.compare("==", loop_vars[stmt.dim], const(0))
    before = Load(dtype=dtype, buffer=dst, index=place(stmt.dst, 1))
    both = Select(dtype=dtype, condition=first, a=value, b=pair(stmt, before, value))
    found: Stmt = Store(buffer=dst, index=place(stmt.dst, 0), value=both)
    order = [stmt.dim, *(k for k in reversed(range(len(ranges))) if k != stmt.dim)]
    for dim in order:
        found = For(
            kind="serial",
            var=loop_vars[dim],
            start=const(0),
            stop=ranges[dim].extent,
            body=(found,),
        )
    return replace(found, comments=(*stmt.comments, stmt.quote))


def pair(stmt: Scan, x: Expr, y: Expr) -> Binary:
    """The scan's operation on two values of the result's type."""
    return Binary(dtype=x.dtype, op="+" if stmt.op == "sum" else "max", a=x, b=y)


# ---- shared tiles


def lower_scan(ctx: Context, stmt: Scan) -> Step:
    """The scan of a shared tile as one step; every element is read and written by one thread."""
    body = _Scan(ctx, stmt).statements()
    accesses = (
        Access(buffer=stmt.src.buffer.name, write=False),
        Access(buffer=stmt.dst.buffer.name, write=True),
    )
    comments = (*stmt.comments, stmt.quote)
    section = Section(comments=comments, body=body, span=stmt.span)
    return Step(body=(section,), accesses=accesses, quote=stmt.quote)


class _Scan:
    def __init__(self, ctx: Context, stmt: Scan) -> None:
        self.ctx, self.stmt = ctx, stmt
        self.dtype: DType = stmt.dst.buffer.dtype
        self.extents = [b.known(extent) or 1 for extent in stmt.src.shape]
        self.length = self.extents[stmt.dim]
        self.lines = prod(self.extents) // self.length
        self.word = stmt.op
        width = ctx.threads & -ctx.threads  # groups of lanes tile the block
        self.width = min(width, ctx.target.lanes, 1 << (self.length - 1).bit_length())

    def statements(self) -> tuple[CStmt, ...]:
        names = [self.ctx.namer.ours(*wishes) for wishes in _NAMES]
        self.line, self.first, self.at, self.value, self.before = names
        lanes = self.ctx.target.lanes
        even = self.ctx.threads % lanes == 0 or self.ctx.threads < lanes
        serial = self.width == 1 or self.lines >= self.ctx.threads or not even
        found = self._by_threads() if serial else self._by_groups()
        for name in names:
            self.ctx.namer.release(name)
        return found

    # ---- a thread to a line

    def _by_threads(self) -> tuple[CStmt, ...]:
        total = b.local(self.before, self.dtype)
        step = pair(self.stmt, total, self._element(self.stmt.src, b.local(self.at)))
        update = Assign(target=total, value=step)
        if self.word == "sum":
            update = Assign(target=total, value=step.b, op="+=")
        store = Assign(target=self._element(self.stmt.dst, b.local(self.at)), value=total)
        inner = _loop(self.at, const(0), const(self.length), const(1), (update, store))
        start = Declarator(name=self.before, value=identity(self.word, self.dtype))
        body = (Local(dtype=self.dtype, names=(start,), const=False), inner)
        return self._over_lines(self.ctx.thread(), self.ctx.threads, body)

    # ---- a group of lanes to a line

    def _by_groups(self) -> tuple[CStmt, ...]:
        ctx, width = self.ctx, self.width
        lane = b.mod(ctx.thread(), const(width)) if width < ctx.threads else ctx.thread()
        at, value = b.local(self.at), b.local(self.value, self.dtype)
        before = b.local(self.before, self.dtype)
        groups = ctx.threads // width
        group = b.div(ctx.thread(), const(width))
        inside = b.less(at, const(self.length))
        idle = self.lines % groups != 0
        if idle:  # all lanes of a warp take part in its shuffles, also those without a line
            has_line = b.less(b.local(self.line), const(self.lines))
            inside = b.both([has_line, inside]) if self.length % width else has_line
        element: Expr = self._element(self.stmt.src, at)
        ragged = idle or self.length % width != 0
        if ragged:
            start = identity(self.word, self.dtype)
            element = Select(dtype=self.dtype, condition=inside, a=element, b=start)
            if self.dtype.is_integer and self.dtype.bits < 32:  # C has made an int of it
                element = Cast(dtype=self.dtype, a=element)
        scanned = CCall(
            dtype=self.dtype,
            function=lanes_helper(ctx, self.stmt, self.dtype, width),
            args=(element, lane),
        )
        rounds = -(-self.length // width)
        total: Expr = pair(self.stmt, before, scanned) if rounds > 1 else scanned
        store: CStmt = Assign(target=self._element(self.stmt.dst, at), value=value)
        if ragged:
            store = Branch(condition=inside, then=(store,))
        where = Declarator(name=self.at, value=b.add(b.local(self.first), lane))
        if rounds == 1:
            where = Declarator(name=self.at, value=lane)
        body: list[CStmt] = [
            Local(dtype=INT32, names=(where,)),
            Local(dtype=self.dtype, names=(Declarator(name=self.value, value=total),)),
            store,
        ]
        if rounds > 1:
            last = CCall(
                dtype=self.dtype, function=last_helper(ctx, self.dtype, width), args=(value,)
            )
            body.append(Assign(target=before, value=last, remark="for the rest of the line"))
            start_name = Declarator(name=self.before, value=identity(self.word, self.dtype))
            body = [
                Local(dtype=self.dtype, names=(start_name,), const=False),
                _loop(self.first, const(0), const(self.length), const(width), tuple(body)),
            ]
        if groups >= self.lines:
            line = Local(dtype=INT32, names=(Declarator(name=self.line, value=group),))
            return (Scope(body=(line, *body)),)
        name = self.ctx.namer.ours("lines", "first_line")
        self.ctx.namer.release(name)
        own = Declarator(name=self.line, value=b.add(b.local(name), group))
        inner = (Local(dtype=INT32, names=(own,)), *body)
        return (_loop(name, const(0), const(self.lines), const(groups), inner),)

    def _over_lines(self, own: Expr, count: int, body: tuple[CStmt, ...]) -> tuple[CStmt, ...]:
        return (_loop(self.line, own, const(self.lines), const(count), body),)

    def _element(self, region: Region, at: Expr) -> Expr:
        """The element at `at` of the line, of a region of shared memory."""
        step = b.sub(const(self.length - 1), at) if self.stmt.reverse else at
        coordinates: list[Expr] = []
        rest: Expr = b.local(self.line)
        for dim in range(len(self.extents) - 1, -1, -1):
            if dim == self.stmt.dim:
                coordinates.insert(0, step)
                continue
            left = prod(e for k, e in enumerate(self.extents[:dim]) if k != self.stmt.dim)
            part = rest if left == 1 else b.mod(rest, const(self.extents[dim]))
            coordinates.insert(0, part)
            rest = b.div(rest, const(self.extents[dim]))
        moving = iter(coordinates)
        index = tuple(
            part.start if part.point else b.add(part.start, next(moving)) for part in region.ranges
        )
        element: Expr = shared_element(self.ctx, region.buffer, index, Place(values={}))
        return element if element.dtype == self.dtype else Cast(dtype=self.dtype, a=element)


# ---- helpers


def lanes_fields(ctx: Context, dtype: DType, width: int) -> dict[str, str | int | bool]:
    """What the templates of shuffles among `width` lanes want to know."""
    target = ctx.target
    mask = target.shuffle_mask
    if mask is not None and ctx.threads < target.lanes:
        mask = target.mask(ctx.threads)
    return {
        "type": target.dialect.types[dtype.name],
        "carrier": target.shuffle_as.get(dtype.name, ""),
        "width": width,
        "mask": f"{mask}, " if mask else "",
        "shuffle": target.shuffle,
    }


def lanes_helper(ctx: Context, stmt: Scan, dtype: DType, width: int) -> str:
    """`lanes_scan_sum_32(x, lane)`."""
    from tile2c.transpile.render.expressions import CPrinter

    other, x = b.local("other", dtype), b.local("x", dtype)
    name = f"lanes_scan_{stmt.op}_{width}"
    ctx.need(
        "lanes_scan",
        name=name,
        word=_WORDS[stmt.op],
        combined=CPrinter(ctx.target.dialect)(pair(stmt, other, x)),
        **lanes_fields(ctx, dtype, width),
    )
    return name


def last_helper(ctx: Context, dtype: DType, width: int) -> str:
    """`last_of_32(x)`."""
    name = f"last_of_{width}"
    ctx.need("last_lane", name=name, **lanes_fields(ctx, dtype, width))
    return name


_NAMES = (
    ("line", "scan_line"),
    ("first", "first_of_round"),
    ("at", "place"),
    ("value", "scanned"),
    ("before", "so_far"),
)


def _loop(var: str, start: Expr, stop: Expr, step: Const, body: tuple[CStmt, ...]) -> Loop:
    return Loop(var=var, start=start, stop=stop, step=step, body=body, dtype=INT32)
