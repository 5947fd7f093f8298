"""Tiles whose rows and columns change places: 16 blocks at a time, in whole blocks.

reads   tile IR, or a tile and a shape        writes  calls of the text's helper `transpose`
why     the instruction takes a block from each of 16 rows and leaves its elements in as many rows of
        the result. So rows of all tiles are a multiple of 16 elements, and a result has a row for
        each element of its source's last block.
"""

from __future__ import annotations

from collections.abc import Iterator

from tile2c.transpile.ir import forms, walk
from tile2c.transpile.ir.dtypes import DTYPES, DType
from tile2c.transpile.ir.expr import Const, Expr, Var, const
from tile2c.transpile.lower.cores.plan import TileRef, VectorCall
from tile2c.transpile.lower.cores.tiles import Tiles

ROWS = 16  # that the instruction takes at a time
CALL = "transpose"


def exchanges(launch: forms.Launch) -> bool:
    """Whether an access of a T.Parallel has its loop variables in another order than the loop."""
    for stmt in walk.statements(launch.body):
        if not isinstance(stmt, forms.Parallel):
            continue
        place = {var: number for number, var in enumerate(stmt.loop_vars)}
        for index in _indices(stmt):
            found = [place[part] for part in index if isinstance(part, Var) and part in place]
            if found != sorted(found):
                return True
    return False


def _indices(loop: forms.Parallel) -> Iterator[tuple[Expr, ...]]:
    for stmt in walk.statements(loop.body):
        for expr in walk.expressions(stmt):
            yield from (load.index for load in walk.loads(expr))
        if isinstance(stmt, forms.Store):
            yield stmt.index


def turns(tiles: Tiles, dtype: DType) -> bool:
    """Whether the unit exchanges rows and columns of such elements."""
    return tiles.target.can(CALL, _moved_as(tiles, dtype).name)


def turned_size(tiles: Tiles, dtype: DType, columns: int, pitch: int) -> int:
    """Elements of a tile that takes `columns` columns as its rows, `pitch` elements apart."""
    lanes = tiles.lanes(dtype)
    return -(-columns // lanes) * lanes * pitch


def turn(
    tiles: Tiles,
    dst: tuple[TileRef, Expr],
    src: tuple[TileRef, Expr],
    dtype: DType,
    rows: Expr,
    columns: Expr,
    *,
    covers: bool = False,
) -> Iterator[VectorCall]:
    """dst = src with its `rows` rows as columns; both with their pitch in elements. All of these
    are constants."""
    seen = _moved_as(tiles, dtype)
    (to, to_pitch), (at, pitch) = dst, src
    if seen != dtype:  # by its bits
        to, at = _seen(to, seen), _seen(at, seen)
    lanes = tiles.lanes(dtype)
    most = tiles.target.max_repeats * lanes
    total = _number(columns)
    for first in range(0, total, most):
        count = columns if total <= most else const(min(most, total - first))
        yield VectorCall(
            function=CALL,
            dst=_further(to, first * _number(to_pitch)),
            arguments=(_further(at, first), rows, count, to_pitch, pitch),
            goes_on=first > 0,
            covers=covers,
        )


def _number(expr: Expr) -> int:
    assert isinstance(expr, Const)
    return int(expr.value)


def _moved_as(tiles: Tiles, dtype: DType) -> DType:
    return DTYPES["int16"] if dtype.name in tiles.target.widen else dtype


def _seen(ref: TileRef, dtype: DType) -> TileRef:
    return TileRef(tile=ref.tile, offset=ref.offset, view=dtype)


def _further(ref: TileRef, by: int) -> TileRef:
    from tile2c.transpile.lower.cores.calls import moved

    return moved(ref, const(by))
