"""Tiles whose rows and columns change places: 16 blocks at a time, in whole blocks.

reads   tile IR, or a tile and a shape        writes  calls of the text's helper `transpose`
why     the instruction takes a block from each of 16 rows and leaves its elements in as many rows of
        the result. So rows of all tiles are a multiple of 16 elements, and a result has a row for
        each element of its source's last block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tile2c.transpile.ir import forms, walk
from tile2c.transpile.ir.dtypes import DTYPES, DType
from tile2c.transpile.ir.expr import Const, Expr, Var, const
from tile2c.transpile.lower.cores.layouts import Layout, times
from tile2c.transpile.lower.cores.packed import Interleave
from tile2c.transpile.lower.cores.plan import Loop, TileRef, VectorCall
from tile2c.transpile.lower.cores.tiles import Tiles
from tile2c.transpile.lower.cores.values import Value

if TYPE_CHECKING:
    from tile2c.transpile.lower.cores.calls import Calls, Emit, Shape

ROWS = 16  # that the instruction takes at a time
CALL = "transpose"


def exchanges(launch: forms.Launch) -> bool:
    """Whether an access of a T.Parallel has its loop variables in another order than the loop, or
    another statement may turn tiles."""
    for stmt in walk.statements(launch.body):
        if isinstance(stmt, forms.Scan | Interleave):
            return True
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


def turned(calls: Calls, value: Value) -> Value:
    """A tile whose rows are the columns of the calls' shape, in a scratch tile of that shape."""
    shape, tiles = calls.shape, calls.tiles
    size = turned_size(tiles, value.dtype, shape.most_rows, shape.pitch)
    ref = TileRef(tile=tiles.borrow("tile", value.dtype, size))
    columns, rows = _extents(shape)
    here = (value.at, _pitch(tiles, value))
    for call in turn(tiles, (ref, shape.width), here, value.dtype, rows, columns):
        calls.emit(call)
    return Value(kind="tile", dtype=value.dtype, ref=ref, pitch=shape.pitch, scratch=True)


def turn_into(calls: Calls, dst: Value, src: Value) -> None:
    """dst, whose rows are the shape's columns, = src, a scratch tile of the shape."""
    shape, tiles = calls.shape, calls.tiles
    rows, columns = _extents(shape)
    source = (src.at, shape.step(src.pitch))
    if dst.whole:
        name = dst.at.tile
        size = turned_size(tiles, dst.dtype, shape.most_columns, dst.pitch)
        tiles.written[name] = max(size, tiles.written.get(name, 0))
        into = (dst.at, _pitch(tiles, dst))
        for call in turn(tiles, into, source, dst.dtype, rows, columns, covers=True):
            calls.emit(call)
        return
    pitch = -(-shape.most_rows // ROWS) * ROWS
    size = turned_size(tiles, dst.dtype, shape.most_columns, pitch)
    ref = TileRef(tile=tiles.borrow("tile", dst.dtype, size))
    for call in turn(tiles, (ref, const(pitch)), source, dst.dtype, rows, columns):
        calls.emit(call)
    part = Value(kind="tile", dtype=dst.dtype, ref=ref, pitch=pitch)
    calls.flipped(pitch).copy(replace(dst, turned=False), part)
    tiles.give_back(ref.tile)


def interleave(
    tiles: Tiles, emit: Emit, planes: Layout, tile: Layout, parts: int, row: Var
) -> None:
    """tile[i, j * parts + r] = planes[r, i, j]: the columns of each plane as rows, which lie between
    those of the others, turned back."""
    dtype, lanes = tile.buffer.dtype, tiles.lanes(tile.buffer.dtype)
    rows, columns = planes.rows // parts, planes.columns
    tall = -(-rows // ROWS) * ROWS
    high = -(-columns // lanes) * lanes * parts
    between = TileRef(tile=tiles.borrow("tile", dtype, high * tall))
    into = (_moved(between, times(row, tall)), const(parts * tall))
    source = TileRef(tile=planes.buffer.name)
    here = (_moved(source, times(row, rows * planes.pitch)), const(planes.pitch))
    size = const(rows), const(columns)
    emit(
        Loop(
            var=row,
            start=const(0),
            stop=const(parts),
            step=const(1),
            body=tuple(turn(tiles, into, here, dtype, *size)),
            own=True,
            independent=True,
            remark=f"columns become rows, {parts} apart",
        )
    )
    name = tile.buffer.name
    tiles.written[name] = max(
        turned_size(tiles, dtype, rows, tile.pitch), tiles.written.get(name, 0)
    )
    back = (TileRef(tile=name), const(tile.pitch)), (between, const(tall))
    for call in turn(tiles, *back, dtype, const(columns * parts), const(rows), covers=True):
        emit(call)
    tiles.give_back(between.tile)


def _extents(shape: Shape) -> tuple[Expr, Expr]:
    """All rows and columns of a shape, under their names where these are those that run."""
    rows, columns = shape.rows, shape.columns
    return (
        rows if isinstance(rows, Const) else const(shape.most_rows),
        columns if isinstance(columns, Const) else const(shape.most_columns),
    )


def _pitch(tiles: Tiles, value: Value) -> Expr:
    """How far the rows of a tile of the author's lie apart."""
    layout = tiles.layouts[value.at.tile]
    if value.pitch == layout.pitch == layout.columns:
        return layout.buffer.shape[layout.kept[-1]]
    return const(value.pitch)


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
    return _moved(ref, const(by))


def _moved(ref: TileRef, by: Expr) -> TileRef:
    from tile2c.transpile.lower.cores.calls import moved

    return moved(ref, by)
