"""`T.annotate_layout` on a global tensor: its elements are stored in another order.

The kernel's parameter keeps its shape, as callers pass it. Inside the launch the tensor gets a view
of the shape that the layout stores, and each access goes through the index map:

    dQ_stored = T.reshape(dQ, (batch, seq_len // 8, heads, 8, 2, 32))
    T.atomic_add(dQ_stored[b, l // 8, h, d // 8, d % 2, 4 * (l % 8) + d % 8 // 2], x)
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tile2c.transpile.record import record
from tile2c.transpile.stage import expressions as ex
from tile2c.transpile.stage.buffers import Access, Buffer
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.linear import equal, number
from tile2c.transpile.stage.operands import extents
from tile2c.transpile.stage.values import Closure, LayoutMap

if TYPE_CHECKING:
    from collections.abc import Callable

    from tile2c.transpile.stage.calls import Call
    from tile2c.transpile.stage.language import Language

MOST_POINTS = 1 << 16


@record(eq=False)
class Stored:
    """Where the elements of a tensor are: its view, and the map from an index to one of the view."""

    view: Buffer
    forward: Closure


def annotate(call: Call, buffer: Buffer, layout: LayoutMap) -> None:
    """Gives `buffer` the layout from here to the end of the launch."""
    ev = call.ev
    if buffer.used_in == ev.launches:
        raise ev.fail(
            "T2C325",
            f"{buffer.name} is used before its layout is given",
            call.node,
            help="move T.annotate_layout to the top of the kernel",
        )
    names = [f"i{dim}" for dim in range(len(buffer.shape))]
    variables = tuple(ex.name(name, dtype="int32") for name in names)
    pieces = _mapped(ev, layout.forward, variables, call.node)
    shape = _shape(pieces, dict(zip(names, buffer.shape, strict=True)))
    if shape is None or not _is_bijection(pieces, dict(zip(names, buffer.shape, strict=True))):
        raise ev.fail(
            "T2C325",
            f"this layout of {buffer.name} is not shown to be an order of its elements: tile2c "
            "follows sums of `x // 8`, `x % 8` and their multiples that meet every place once",
            call.node,
        )
    view = Buffer(ev.claim(f"{buffer.name}_stored", "buffer"), "global", shape, buffer.dtype, None)
    args = (buffer.expr(), ex.compound("tuple", "", shape, device=False))
    ev.residual.assign(view.expr(), ex.call("reshape", args, device=True), ev.here)
    buffer.stored = Stored(view, layout.forward)
    ev.stored.append(buffer)


def _mapped(
    ev: Language, forward: Closure, index: Sequence[Expr], node: ast.AST
) -> tuple[Expr, ...]:
    found = ev.invoke(forward, list(index), {}, node)
    parts = list(found) if isinstance(found, tuple | list) else [found]
    return tuple(ev.expression(part, None) for part in parts)


def element(ev: Language, access: Access) -> tuple[Expr, ...]:
    """The buffer and the indices that the normal form has for an element."""
    buffer, index = access.buffer, tuple(piece.lo for piece in access.pieces)
    if not isinstance(buffer.stored, Stored):
        return (buffer.expr(access.span), *index)
    place = _mapped(ev, buffer.stored.forward, index, ev.statement or ast.Pass())
    return (buffer.stored.view.expr(access.span), *place)


# -- shapes ---------------------------------------------------------------------------------------


def _shape(pieces: Sequence[Expr], sizes: dict[str, Expr]) -> tuple[Expr, ...] | None:
    """The extents of the storage; None where a piece is not one that is followed."""
    found = [_extent(piece, sizes) for piece in pieces]
    return None if any(extent is None for extent in found) else tuple(e for e in found if e)


def _extent(expr: Expr, sizes: dict[str, Expr]) -> Expr | None:
    """One more than the largest value, where variables run to the ends of their dimensions."""
    if expr.kind == "name":
        return sizes.get(expr.op)
    if (known := number(expr)) is not None:
        return ex.literal(int(known) + 1) if known >= 0 else None
    if expr.kind != "binary":
        return None
    left, right = expr.args
    if expr.op == "*" and number(left) is not None:
        left, right = right, left
    inner, factor = _extent(left, sizes), number(right)
    if inner is None:
        return None
    count = number(inner)
    if expr.op in ("//", "%", "*") and (not isinstance(factor, int) or factor <= 0):
        return None
    match expr.op:
        case "//":
            assert isinstance(factor, int)
            if count is None:
                return ex.binary("//", inner, ex.literal(factor))
            return ex.literal(-(-int(count) // factor))
        case "%":
            assert isinstance(factor, int)
            return ex.literal(factor if count is None else min(int(count), factor))
        case "*":
            return ex.literal((int(count) - 1) * int(factor or 0) + 1) if count else None
        case "+":
            other = _extent(right, sizes)
            more = None if other is None else number(other)
            return ex.literal(int(count) + int(more) - 1) if count and more else None
        case _:
            return None


def _is_bijection(pieces: Sequence[Expr], shape: dict[str, Expr]) -> bool:
    """Tried on a box of the first two periods of each dimension: digits repeat beyond it."""
    sizes: dict[str, int] = {}
    for name, extent in shape.items():
        period = 2 * math.lcm(1, *(f for piece in pieces for f in _factors(piece, name)))
        known = number(extent)
        if known is not None and int(known) % (period // 2):
            return False
        sizes[name] = period if known is None else min(period, int(known))
    if math.prod(sizes.values()) > MOST_POINTS:
        return False
    box = _shape(pieces, {name: ex.literal(size) for name, size in sizes.items()})
    if box is None:
        return False
    places: set[tuple[int, ...]] = set()
    for point in itertools.product(*(range(size) for size in sizes.values())):
        where = dict(zip(sizes, point, strict=True))
        places.add(tuple(_value(piece, where) for piece in pieces))
    full = math.prod(int(number(extent) or 0) for extent in box)
    return len(places) == math.prod(sizes.values()) == full


def _factors(expr: Expr, name: str) -> list[int]:
    """The divisors of `//` and `%` above a variable."""
    found: list[int] = []
    if name in ex.names_in(expr):
        if expr.kind == "binary" and expr.op in ("//", "%"):
            found.append(int(number(expr.args[1]) or 1))
            inner = _factors(expr.args[0], name)
            return [*found, *(f * found[0] if expr.op == "//" else f for f in inner), *inner]
        for arg in expr.args:
            found += _factors(arg, name)
    return found


def _value(expr: Expr, where: dict[str, int]) -> int:
    if expr.kind == "name":
        return where[expr.op]
    if (known := number(expr)) is not None:
        return int(known)
    a, b = (_value(arg, where) for arg in expr.args)
    return (
        {"+": a + b, "*": a * b}[expr.op]
        if expr.op in "+*"
        else (a // b if expr.op == "//" else a % b)
    )


# -- tile statements ------------------------------------------------------------------------------


def is_stored(*accesses: Access) -> bool:
    return any(access.buffer.stored is not None for access in accesses)


def element_loop(
    call: Call, sides: Sequence[Access], write: Callable[[Sequence[Access]], None]
) -> None:
    """A tile statement as a loop over its elements: `write` gets the element of each side."""
    ev = call.ev
    wide = [[dim for dim, size in enumerate(extents(side)) if number(size) != 1] for side in sides]
    first = sides[0]
    sizes = [extents(first)[dim] for dim in wide[0]]
    for side, dims in zip(sides[1:], wide[1:], strict=True):
        same = len(dims) == len(sizes) and all(
            equal(extents(side)[dim], size) for dim, size in zip(dims, sizes, strict=True)
        )
        if not same:
            raise ev.fail("T2C301", f"the extents of this T.{call.path} differ", call.node)
    lead, origin = ev.residual.take_comments(), ev.here
    with ev.region("for", origin.span), ev.residual.block() as block:
        names = [ev.claim(f"{'ijklmnop'[n]}", "loop") for n in range(len(sizes))]
        variables = [ex.name(name, dtype="int32") for name in names]
        write([_at(side, dims, variables) for side, dims in zip(sides, wide, strict=True)])
    suite = ev.residual.suite(block, None, origin)
    if not names:
        ev.residual.blocks[-1] += block
        return
    iterator = ex.call("Parallel", tuple(sizes), origin.span)
    ev.residual.loop(names, iterator, suite, lead, origin)


def _at(side: Access, dims: Sequence[int], variables: Sequence[Expr]) -> Access:
    from dataclasses import replace

    pieces = [replace(piece, extent=None) for piece in side.pieces]
    for dim, variable in zip(dims, variables, strict=True):
        lo = pieces[dim].lo
        index = variable if ex.is_zero(lo) else ex.binary("+", lo, variable, lo.span)
        pieces[dim] = replace(pieces[dim], lo=index)
    return Access(side.buffer, tuple(pieces), side.span)
