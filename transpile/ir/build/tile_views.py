"""`T.reshape` and `T.view` of arrays of the block: another shape, said in the storage's own indices.

Nothing behind this folder knows views: an element of one is an element of its base; a part of one that
is no rectangle of the base is copied by a loop, or goes through an array of its own. Of another type,
it is the bits of the base's element, or of several neighbours (`typed_views.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from math import prod
from typing import Literal, TypeVar, cast

import libcst as cst
from tile2c.transpile.ir import forms
from tile2c.transpile.ir.build import typed_views
from tile2c.transpile.ir.build.arguments import static_shape
from tile2c.transpile.ir.build.context import Builder, allocated_here
from tile2c.transpile.ir.constants import constant_int
from tile2c.transpile.ir.dtypes import INT32, DType
from tile2c.transpile.ir.expr import Binary, Buffer, Cast, Expr, Load, Scope, Var, const
from tile2c.transpile.ir.forms import Parallel, Range, Region, Stmt, Store
from tile2c.transpile.record import record

T = TypeVar("T")


@record
class TileView:
    """Runs of dimensions of the view and of its base with as many elements: (view's, base's).

    Elements are counted in the narrower of both types: of the view's `wide` are one of its own, of
    the base's `parts` are one of the base's. `shape` and `under` are the shapes in that count.
    """

    base: Buffer
    groups: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    shape: tuple[int, ...]
    under: tuple[int, ...]
    dtype: DType
    wide: int = 1
    parts: int = 1

    @property
    def typed(self) -> bool:
        """Whether elements are bits of the base's."""
        return self.dtype != self.base.dtype


def bind_tile_view(
    b: Builder,
    name: str,
    node: cst.Call,
    base: Buffer,
    items: Sequence[cst.BaseExpression] | None,
    dtype: DType | None = None,
) -> None:
    """`name = T.reshape(base, shape)`, or `T.view`; `items` are the extents, those of the base if None."""
    shape = base.shape
    if items is not None:
        extents = static_shape(b, items, name)
        shape = tuple(const(size) for value in extents if (size := constant_int(value.expr)))
    outer = b.tile_views.get(base.name)
    root = outer.base if outer is not None else base
    dtype = dtype or base.dtype
    wide, parts = max(1, dtype.bits // root.dtype.bits), max(1, root.dtype.bits // dtype.bits)
    own, under = (
        (*(_size(x) for x in extents[:-1]), _size(extents[-1]) * scale) if extents else ()
        for extents, scale in ((shape, wide), (root.shape, parts))
    )
    groups = _groups(list(own), list(under))
    if groups is None:
        held = "" if dtype == root.dtype else f" of {root.dtype}"
        seen = "" if dtype == root.dtype else f" of {dtype}"
        b.fail(
            "T2C317",
            f"{base.name} has {prod(map(_size, root.shape))} elements{held}, and this view of it "
            f"{prod(map(_size, shape))}{seen}",
            node,
            notes=allocated_here(root),
        )
    view = replace(root, name=b.names.unique(name), shape=shape, dtype=dtype, span=b.span(node))
    b.tile_views[view.name] = TileView(root, groups, own, under, dtype, wide, parts)
    b.scopes.bind(name, view)


def _size(extent: Expr) -> int:
    return constant_int(extent) or 1


def _groups(
    view: list[int], base: list[int]
) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] | None:
    """Shortest runs of dimensions with as many elements; None where the totals differ."""
    if prod(view) != prod(base):
        return None
    found: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    i = k = 0
    while i < len(view) or k < len(base):
        first, second = i, k
        own = other = 1
        while True:
            if own <= other and i < len(view):
                own, i = own * view[i], i + 1
            elif k < len(base):
                other, k = other * base[k], k + 1
            else:
                own, i = own * view[i], i + 1
            if own == other and k > second and i > first:
                break
            if i == len(view) and k == len(base):
                break
        found.append((tuple(range(first, i)), tuple(range(second, k))))
    return tuple(found)


# ---- rewriting


def without_views(b: Builder, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements of a launch in terms of the views' bases."""
    return tuple(part for stmt in body for part in _stmt(b, stmt)) if b.tile_views else body


def _stmt(b: Builder, stmt: Stmt) -> list[Stmt]:
    match stmt:
        case forms.Copy() | forms.AtomicTile():
            src, dst = _rectangle(b, stmt.src), _rectangle(b, stmt.dst)
            if src is not None and dst is not None:
                return [replace(stmt, src=src, dst=dst)]
            return _stmt(b, _element_wise(b, stmt))
        case forms.Fill():
            dst = _rectangle(b, stmt.dst)
            if dst is not None:
                return [_in_base(b, replace(stmt, dst=dst))]
            return _stmt(b, _filling(b, stmt))
        case forms.Reduce() | forms.Scan() | forms.Gemm():
            return _whole_tile(b, stmt)
        case Store() | forms.Atomic() if _typed(b, stmt.buffer):
            return typed_views.store(b, b.tile_views[stmt.buffer.name], _in_base(b, stmt))
        case forms.If():
            then, orelse = without_views(b, stmt.then), without_views(b, stmt.orelse)
            return [
                replace(_in_base(b, replace(stmt, then=(), orelse=())), then=then, orelse=orelse)
            ]
        case Parallel() | forms.For() | forms.Pipelined() | forms.While():
            body = without_views(b, stmt.body)
            return [replace(_in_base(b, replace(stmt, body=())), body=body)]
        case _:
            return [_in_base(b, stmt)]


def _in_base(b: Builder, node: T) -> T:
    """Elements of views become elements of their bases, everywhere inside."""
    if isinstance(node, tuple):
        return cast(T, tuple(_in_base(b, part) for part in node))
    if not is_dataclass(node) or isinstance(node, type | Buffer):
        return node
    changes: dict[str, object] = {}
    for item in fields(node):
        old = getattr(node, item.name)
        if isinstance(old, tuple | Expr | Stmt):
            new = _in_base(b, old)
            if new is not old and new != old:
                changes[item.name] = new
    found = replace(node, **changes) if changes else node
    buffer = getattr(found, "buffer", None)
    if isinstance(buffer, Buffer) and buffer.name in b.tile_views and hasattr(found, "index"):
        view = b.tile_views[buffer.name]
        if view.typed:
            return cast(T, typed_views.load(view, found) if isinstance(found, Load) else found)
        found = replace(found, buffer=view.base, index=index_in_base(view, found.index))
    return cast(T, found)


def _typed(b: Builder, buffer: Buffer) -> bool:
    view = b.tile_views.get(buffer.name)
    return view is not None and view.typed


def index_in_base(view: TileView, index: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The base's index of the view's element at `index`, both in the view's count."""
    found: list[Expr] = []
    for own, other in view.groups:
        digits: list[_Digit] = []
        weight = 1
        for dim in reversed(own):
            if view.shape[dim] > 1:
                digits.insert(0, _Digit(index[dim], view.shape[dim], weight))
            weight *= view.shape[dim]
        rest = weight
        for dim in other:
            whole, rest = rest, rest // view.under[dim]
            found.append(_digit_of(digits, whole, rest) if view.under[dim] > 1 else const(0))
    return tuple(found)


@record
class _Digit:
    """`value * weight` of a place in a run of elements; 0 <= value < size."""

    value: Expr
    size: int
    weight: int


def _digit_of(digits: Sequence[_Digit], whole: int, rest: int) -> Expr:
    """place % whole // rest of the place that the digits add up to."""
    inside = [digit for digit in digits if digit.weight % whole]
    exact = [digit for digit in inside if digit.weight % rest == 0]
    below = [digit for digit in inside if digit.weight % rest]
    if not _fits(inside, whole):
        return _by("//", _by("%", _added(inside, 1), whole), rest)
    total = _added(exact, rest)
    if not _fits(below, rest):
        total = _sum(total, _by("//", _added(below, 1), rest))
    return total


def _fits(digits: Sequence[_Digit], limit: int) -> bool:
    """Whether what the digits add up to is always less than the limit."""
    return sum((digit.size - 1) * digit.weight for digit in digits) < limit


def _added(digits: Sequence[_Digit], unit: int) -> Expr:
    total: Expr = const(0)
    for digit in digits:
        total = _sum(total, _times(digit.value, digit.weight // unit))
    return total


def _sum(a: Expr, b: Expr) -> Expr:
    if constant_int(b) == 0:
        return a
    return b if constant_int(a) == 0 else Binary(dtype=INT32, op="+", a=a, b=b)


def _times(a: Expr, size: int) -> Expr:
    if size == 1 or constant_int(a) == 0:
        return a
    return Binary(dtype=INT32, op="*", a=a, b=const(size))


def _by(op: Literal["//", "%"], a: Expr, size: int) -> Expr:
    if constant_int(a) == 0 or (op == "//" and size == 1):
        return a
    return Binary(dtype=INT32, op=op, a=a, b=const(size))


# ---- parts of views


def _rectangle(b: Builder, region: Region) -> Region | None:
    """The same part of the base, if it is a rectangle with the same dimensions, 1s aside."""
    view = b.tile_views.get(region.buffer.name)
    if view is None:
        return region
    if view.typed:
        return None
    ranges: list[Range] = []
    for own, other in view.groups:
        long = [dim for dim in own if _size(region.buffer.shape[dim]) > 1]
        theirs = [dim for dim in other if _size(view.base.shape[dim]) > 1]
        if len(long) > 1 or len(theirs) > 1:
            return None
        for dim in other:
            one = Range(start=const(0), extent=const(1))
            ranges.append(region.ranges[long[0]] if dim in theirs else one)
    return replace(region, buffer=view.base, ranges=tuple(ranges))


def _loop(
    b: Builder, stmt: Stmt, extents: list[Expr], body: Callable[[list[Var]], Stmt]
) -> Parallel:
    """A loop over so many elements, with what is told of the statement."""
    names = [b.names.made_up("ijklmn"[at]) for at in range(len(extents))]
    loop_vars = [Var(dtype=INT32, name=name, kind="loop") for name in names]
    return Parallel(
        loop_vars=tuple(loop_vars), extents=tuple(extents), body=(body(loop_vars),),
        span=stmt.span, quote=stmt.quote, comments=stmt.comments, remark=stmt.remark,
    )  # fmt: skip


def _moving(region: Region) -> list[int]:
    return [dim for dim, part in enumerate(region.ranges) if constant_int(part.extent) != 1]


def _at(region: Region, loop_vars: list[Var]) -> tuple[Expr, ...]:
    """The element of a region for the loop's variables."""
    place = dict(zip(_moving(region), loop_vars, strict=True))
    return tuple(
        _sum(part.start, place[dim]) if dim in place else part.start
        for dim, part in enumerate(region.ranges)
    )


def _element_wise(b: Builder, stmt: forms.Copy | forms.AtomicTile) -> Parallel:
    src, dst = stmt.src, stmt.dst

    def body(loop_vars: list[Var]) -> Stmt:
        value: Expr = Load(dtype=src.buffer.dtype, buffer=src.buffer, index=_at(src, loop_vars))
        if src.buffer.dtype != dst.buffer.dtype:
            value = Cast(dtype=dst.buffer.dtype, a=value)
        at = _at(dst, loop_vars)
        if isinstance(stmt, forms.AtomicTile):
            return forms.Atomic(op=stmt.op, buffer=dst.buffer, index=at, value=value)
        return Store(buffer=dst.buffer, index=at, value=value)

    return _loop(b, stmt, [dst.ranges[dim].extent for dim in _moving(dst)] or [const(1)], body)


def _filling(b: Builder, stmt: forms.Fill) -> Parallel:
    def body(loop_vars: list[Var]) -> Stmt:
        return Store(buffer=stmt.dst.buffer, index=_at(stmt.dst, loop_vars), value=stmt.value)

    return _loop(b, stmt, [stmt.dst.ranges[dim].extent for dim in _moving(stmt.dst)], body)


def _whole_tile(b: Builder, stmt: forms.Reduce | forms.Scan | forms.Gemm) -> list[Stmt]:
    """The statement with arrays of their own in place of views, which are copied there and back."""
    names = ("a", "b", "c") if isinstance(stmt, forms.Gemm) else ("src", "dst")
    before: list[Stmt] = []
    after: list[Stmt] = []
    changes: dict[str, Region] = {}
    for name in names:
        region: Region = getattr(stmt, name)
        view = b.tile_views.get(region.buffer.name)
        if view is None:
            continue
        found = _rectangle(b, region)
        if found is not None and len(found.shape) == len(region.shape):
            changes[name] = found
            continue
        scope: Scope = "shared" if name in ("a", "b") else "fragment"
        own = Buffer(
            name=b.names.made_up(f"{region.buffer.name}_held"), scope=scope, shape=region.shape,
            dtype=region.buffer.dtype, span=region.span,
        )  # fmt: skip
        b.buffers.append(own)
        whole = Region(buffer=own, ranges=tuple(Range(start=const(0), extent=x) for x in own.shape))
        changes[name] = whole
        cleared = isinstance(stmt, forms.Reduce) and stmt.clear
        if name not in ("dst",) or not (cleared or isinstance(stmt, forms.Scan)):
            before += _stmt(b, _element_wise(b, forms.Copy(src=region, dst=whole)))
        if name in ("dst", "c"):
            after += _stmt(b, _element_wise(b, forms.Copy(src=whole, dst=region)))
    return [*before, _in_base(b, replace(stmt, **changes)), *after]  # type: ignore[arg-type]
