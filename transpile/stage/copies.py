"""`T.copy`: which extents each side has, by the rules of the language."""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.diagnostics import InputError
from tile2c.transpile.stage import expressions as ex
from tile2c.transpile.stage.buffers import Access, Piece
from tile2c.transpile.stage.calls import Call
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.invoke import Argument
from tile2c.transpile.stage.linear import equal, number
from tile2c.transpile.stage.operands import (
    access_of,
    extents,
    is_address,
    is_whole,
    shown,
    with_extents,
)


def resolve(call: Call, src: Argument, dst: Argument) -> tuple[Access, Access] | None:
    """Both sides as regions of the same extents; None when both are single elements."""
    source, target = access_of(call, src, "source"), access_of(call, dst, "destination")
    if is_address(src) and is_address(dst):
        return None
    if is_address(src):
        return _right_aligned(call, source, extents(target), src), target
    if is_address(dst):
        return source, _right_aligned(call, target, extents(source), dst)
    if is_whole(src) and is_whole(dst):
        _require_same_shape(call, source, target, src)
        return source, target
    return _matched(call, source, target, src)


def _right_aligned(
    call: Call, address: Access, other: tuple[Expr, ...], argument: Argument
) -> Access:
    """The other side's extents on the trailing dimensions, ones in front."""
    rank = len(address.pieces)
    if rank < len(other):
        name = address.buffer.name
        raise call.ev.fail(
            "T2C302",
            f"{name} is addressed by {rank} ind{'ex' if rank == 1 else 'ices'}, but the other side "
            f"of this copy has the shape {shown(other)}",
            argument.node or call.node,
            help=f"give the region of {name} with slices",
        )
    ones = (ex.literal(1),) * (rank - len(other))
    return with_extents(address, (*ones, *other))


def _require_same_shape(call: Call, source: Access, target: Access, src: Argument) -> None:
    one, two = source.buffer.shape, target.buffer.shape
    if len(one) != len(two) or not all(map(equal, one, two)):
        raise _mismatch(call, source, target, src)


def _mismatch(call: Call, source: Access, target: Access, src: Argument) -> InputError:
    return call.ev.fail(
        "T2C301",
        f"{source.buffer.name} gives {shown(extents(source))} but {target.buffer.name} takes "
        f"{shown(extents(target))}",
        src.node or call.node,
        help="make both extents equal, by slices such as A[i:i + n, :]",
    )


def _matched(call: Call, source: Access, target: Access, src: Argument) -> tuple[Access, Access]:
    """Regions: dimensions of extent 1 are dropped, the others are matched in order."""
    sides = [source, target]
    kept = [[dim for dim, size in enumerate(extents(side)) if number(size) != 1] for side in sides]
    if len(kept[0]) != len(kept[1]):
        return _widened_from_the_right(call, source, target, src)
    for one, two in zip(*kept, strict=True):
        sizes = extents(sides[0])[one], extents(sides[1])[two]
        if equal(*sizes):
            continue
        base = _base(sides[0], sides[1])
        if base is None or _provably_larger(sizes[1 - base], sizes[base]):
            raise _mismatch(call, source, target, src)
        other = 1 - base
        dim = (one, two)[other]
        sides[other] = _widened(sides[other], dim, sizes[base])
    return sides[0], sides[1]


def _widened_from_the_right(
    call: Call, source: Access, target: Access, src: Argument
) -> tuple[Access, Access]:
    """A dimension of extent 1 of a global side takes its partner's extent."""
    sides = [source, target]
    ranks = len(source.pieces), len(target.pieces)
    for back in range(1, max(ranks) + 1):
        dims = ranks[0] - back, ranks[1] - back
        sizes = [
            extents(side)[dim] if dim >= 0 else ex.literal(1)
            for side, dim in zip(sides, dims, strict=True)
        ]
        if equal(*sizes):
            continue
        one = next((n for n in (0, 1) if number(sizes[n]) == 1), None)
        if one is None or dims[one] < 0 or sides[one].buffer.on_chip:
            raise _mismatch(call, source, target, src)
        sides[one] = _widened(sides[one], dims[one], sizes[1 - one])
    return sides[0], sides[1]


def _base(source: Access, target: Access) -> int | None:
    """The on-chip side, whose extents win; None where both or neither are on chip."""
    chips = source.buffer.on_chip, target.buffer.on_chip
    if chips[0] == chips[1]:
        return None
    return 0 if chips[0] else 1


def _provably_larger(other: Expr, base: Expr) -> bool:
    known = number(other), number(base)
    return known[0] is not None and known[1] is not None and known[0] > known[1]


def _widened(access: Access, dim: int, size: Expr) -> Access:
    pieces = list(access.pieces)
    pieces[dim] = Piece(pieces[dim].lo, size, pieces[dim].span)
    return replace(access, pieces=tuple(pieces))
