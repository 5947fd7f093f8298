"""Elements of a view whose type is another than its base's, said in bits of the base's elements.

wider      float32 over bfloat16: two neighbours, the first in the low half
narrower   uint8 over uint32: a part, which can be read only, as its neighbours have other writers
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile2c.transpile.ir.dtypes import INT32, DType
from tile2c.transpile.ir.expr import Binary, Call, Expr, Load, Reinterpret, Var, const
from tile2c.transpile.ir.forms import Atomic, Let, Stmt, Store

if TYPE_CHECKING:
    from tile2c.transpile.ir.build.context import Builder
    from tile2c.transpile.ir.build.tile_views import TileView


def load(view: TileView, element: Load) -> Expr:
    """The view's element, from one or several of the base's."""
    if view.parts > 1:
        return _part(view, element)
    ones = tuple(
        Load(
            dtype=view.base.dtype,
            buffer=view.base,
            index=_index(view, element.index, at),
            span=element.span,
        )
        for at in range(view.wide)
    )
    if view.wide == 1:
        return _bits(ones[0], view.dtype)
    return Call(dtype=view.dtype, function="joined", args=ones, span=element.span)


def store(b: Builder, view: TileView, stmt: Store | Atomic) -> list[Stmt]:
    """The stores into the base's elements; `stmt` holds its value in terms of bases already."""
    name = stmt.buffer.name
    if isinstance(stmt, Atomic) or view.parts > 1:
        what = "an atomic on" if isinstance(stmt, Atomic) else "a store into"
        b.diagnostics.error(
            "T2C317",
            f"{what} {name}, which is {view.dtype} over {view.base.dtype}, would need more than its "
            "own bits",
            stmt.span,
            help=f"use {view.base.name}, or an array of {view.dtype}",
        )
        return []
    if view.wide == 1:
        return [_into(view, stmt, _bits(stmt.value, view.base.dtype), 0)]
    whole = Var(dtype=view.dtype, name=b.names.made_up(f"{name}_whole"), kind="temporary")
    found: list[Stmt] = [Let(var=whole, value=stmt.value, comments=stmt.comments)]
    for at in range(view.wide):
        part = Call(dtype=view.base.dtype, function="part_of", args=(whole, const(at)))
        found.append(_into(view, stmt, part, at))
    return found


def _into(view: TileView, stmt: Store, value: Expr, at: int) -> Store:
    alone = view.wide == 1
    return Store(
        buffer=view.base,
        index=_index(view, stmt.index, at),
        value=value,
        span=stmt.span,
        quote=stmt.quote,
        comments=stmt.comments if alone else (),
        remark=stmt.remark if at == 0 else "",
    )


def _part(view: TileView, element: Load) -> Expr:
    """A part of a wider element of the base."""
    from tile2c.transpile.ir.build.tile_views import index_in_base

    *rows, last = index_in_base(view, element.index)
    parts = const(view.parts)
    index = (*rows, Binary(dtype=INT32, op="//", a=last, b=parts))
    one = Load(dtype=view.base.dtype, buffer=view.base, index=index, span=element.span)
    which = Binary(dtype=INT32, op="%", a=last, b=parts)
    return Call(dtype=view.dtype, function="part_of", args=(one, which), span=element.span)


def _index(view: TileView, index: tuple[Expr, ...], at: int) -> tuple[Expr, ...]:
    """The base's index of the neighbour `at` of a view's element."""
    from tile2c.transpile.ir.build.tile_views import index_in_base

    if view.wide > 1:
        last: Expr = Binary(dtype=INT32, op="*", a=index[-1], b=const(view.wide))
        last = Binary(dtype=INT32, op="+", a=last, b=const(at)) if at else last
        index = (*index[:-1], last)
    return index_in_base(view, index)


def _bits(expr: Expr, dtype: DType) -> Expr:
    return expr if expr.dtype == dtype else Reinterpret(dtype=dtype, a=expr)
