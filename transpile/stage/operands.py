"""What a tile statement is applied to: buffers and regions, spelled with all their extents."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from tile2c.transpile.stage import expressions as ex
from tile2c.transpile.stage.buffers import Access, Buffer, Piece, Region, whole
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.invoke import Argument
from tile2c.transpile.stage.linear import number

if TYPE_CHECKING:
    from tile2c.transpile.stage.calls import Call


def access_of(call: Call, argument: Argument, role: str) -> Access:
    """The buffer, region or element that an argument names."""
    value = call.ev.known(argument.value, argument.node, f"T.{call.path}")
    if isinstance(value, Buffer):
        value.used_in = call.ev.launches
        return whole(value, call.ev.span(argument.node))
    if isinstance(value, Region):
        return replace(value.access, span=call.ev.span(argument.node) or value.access.span)
    if isinstance(value, Expr) and value.access is not None:
        return value.access
    shown = repr(value)
    if isinstance(value, Expr):  # under its author's name, not the one it has in the normal form
        shown = (
            ex.text(value) if argument.node is None else f"the value {ast.unparse(argument.node)}"
        )
    raise call.ev.fail(
        "T2C246",
        f"the {role} of T.{call.path} is a buffer or region, not {shown}",
        _at(call, argument),
    )


def is_whole(argument: Argument) -> bool:
    return isinstance(argument.value, Buffer)


def is_address(argument: Argument) -> bool:
    """Plain indices only: the first element of a tile whose extents the other side has."""
    value = argument.value
    return isinstance(value, Expr) and value.access is not None


def region_expr(access: Access) -> Expr:
    """The access as the normal form writes it."""
    if access.buffer.scope == "var" or not access.pieces:
        return access.buffer.expr(access.span)
    parts = [
        piece.lo if piece.extent is None else ex.region_slice(piece.lo, piece.extent, piece.span)
        for piece in access.pieces
    ]
    args = (access.buffer.expr(access.span), *parts)
    return ex.compound("index", "", args, access.span, device=True)


def extents(access: Access) -> tuple[Expr, ...]:
    """The extent of each dimension; 1 for a plain index."""
    return tuple(ex.literal(1) if p.extent is None else p.extent for p in access.pieces)


def with_extents(access: Access, sizes: tuple[Expr, ...]) -> Access:
    """An address widened to a tile; a dimension of extent 1 stays a plain index."""
    pieces = tuple(
        piece if number(size) == 1 else Piece(piece.lo, size, piece.span)
        for piece, size in zip(access.pieces, sizes, strict=True)
    )
    return replace(access, pieces=pieces)


def shown(sizes: tuple[Expr, ...]) -> str:
    """Extents for a message: `[block_M, 32]`, numbers for named ones behind them."""
    parts = []
    for size in sizes:
        known = number(size)
        text = ex.text(size)
        parts.append(f"{text} = {known}" if known is not None and text != str(known) else text)
    return f"[{', '.join(parts)}]"


def _at(call: Call, argument: Argument) -> ast.AST:
    return argument.node or call.node
