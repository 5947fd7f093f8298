"""Tile statements, each done whole."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tile2c.transpile.ir import forms
from tile2c.transpile.ir.dtypes import DType
from tile2c.transpile.ir.expr import Expr
from tile2c.transpile.ir.interpret import operations
from tile2c.transpile.ir.interpret.evaluate import evaluate, whole
from tile2c.transpile.ir.interpret.numbers import Array, Numbers
from tile2c.transpile.ir.interpret.state import State

TileStmt = forms.Copy | forms.Fill | forms.Gemm | forms.Reduce | forms.Scan | forms.AtomicTile
ONE_THREAD = 1 << 18  # multiply-adds
Whole = Callable[[Expr], int]


class Tile:
    """A region of a buffer at known places, in the storage of one thread where it is private."""

    def __init__(self, state: State, region: forms.Region, thread: int | None, at: Whole) -> None:
        self.region = region
        self.state = state
        buffer = region.buffer
        if buffer.scope == "local":
            data = state.arrays[buffer.name]
            self.data = data[0 if thread is None or data.shape[0] == 1 else thread]
        else:
            self.data = state.storage(buffer)
        self.starts = [at(part.start) for part in region.ranges]
        self.extents = [at(part.extent) for part in region.ranges]

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the dimensions that are not plain indices."""
        pairs = zip(self.extents, self.region.ranges, strict=True)
        return tuple(extent for extent, part in pairs if not part.point)

    def _parts(self) -> tuple[tuple[slice, ...], tuple[slice, ...], bool]:
        """Slices of the buffer and of the tile that lie inside the buffer, and if that is all."""
        outer: list[slice] = []
        inner: list[slice] = []
        all_inside = True
        for start, extent, size in zip(self.starts, self.extents, self.data.shape, strict=True):
            low, high = max(start, 0), min(start + extent, size)
            high = max(low, high)
            all_inside = all_inside and low == start and high == start + extent
            outer.append(slice(low, high))
            inner.append(slice(low - start, high - start))
        return tuple(outer), tuple(inner), all_inside

    def read(self) -> Array:
        """The elements, 0 where they are outside; shape `self.shape`. May be a view."""
        outer, inner, all_inside = self._parts()
        if all_inside:
            return np.reshape(self.data[outer], self.shape)
        found = np.zeros(self.extents, self.data.dtype)
        found[inner] = self.data[outer]
        return found.reshape(self.shape)

    def write(self, value: Array) -> None:
        """Stores elements of the buffer's storage type; dropped outside."""
        outer, inner, all_inside = self._parts()
        full = np.broadcast_to(value, self.shape).reshape(self.extents)
        self.data[outer] = full if all_inside else full[inner]


def tile_statement(state: State, stmt: TileStmt) -> None:
    """Once for the block; once for each active thread where private memory differs."""
    private = [region for region in _regions(stmt) if region.buffer.scope == "local"]
    if not private:
        _perform(state, stmt, None, lambda expr: whole(state, expr))
        return
    values: dict[int, Array] = {}

    def at_thread(thread: int) -> Whole:
        def pick(expr: Expr) -> int:
            if id(expr) not in values:
                values[id(expr)] = np.asarray(evaluate(state, expr))
            value = values[id(expr)]
            return int(value.item() if value.size == 1 else value[thread])

        return pick

    if _same_for_all(state, stmt, private):
        _perform(state, stmt, None, at_thread(0))
        return
    for region in private:
        data = state.arrays[region.buffer.name]
        if data.shape[0] == 1:
            state.arrays[region.buffer.name] = np.repeat(data, state.count, axis=0)
    for thread in state.active():
        _perform(state, stmt, thread, at_thread(thread))


def _same_for_all(state: State, stmt: TileStmt, private: list[forms.Region]) -> bool:
    if not isinstance(state.mask, bool):
        return False
    if any(state.arrays[region.buffer.name].shape[0] > 1 for region in private):
        return False
    bounds = [part.start for region in _regions(stmt) for part in region.ranges]
    if isinstance(stmt, forms.Fill):
        bounds.append(stmt.value)
    return all(np.size(evaluate(state, bound)) == 1 for bound in bounds)


def _regions(stmt: TileStmt) -> tuple[forms.Region, ...]:
    match stmt:
        case forms.Fill():
            return (stmt.dst,)
        case forms.Gemm():
            return (stmt.a, stmt.b, stmt.c)
        case _:
            return (stmt.src, stmt.dst)


def _perform(state: State, stmt: TileStmt, thread: int | None, at: Whole) -> None:
    tiles = [Tile(state, region, thread, at) for region in _regions(stmt)]
    match stmt:
        case forms.Copy():
            _copy(state, tiles[0], tiles[1])
        case forms.Fill():
            tiles[0].write(_fill_value(state, stmt, thread))
        case forms.Gemm():
            _gemm(state, stmt, tiles)
        case forms.Reduce():
            _reduce(state.numbers, stmt, tiles[0], tiles[1])
        case forms.Scan():
            _scan(state.numbers, stmt, tiles[0], tiles[1])
        case forms.AtomicTile():
            _atomic(state, stmt, tiles[0], tiles[1])


def _fill_value(state: State, stmt: forms.Fill, thread: int | None) -> Array:
    value = np.asarray(evaluate(state, stmt.value))
    if value.size == 1:
        return value.reshape(())
    lane = thread if thread is not None else state.active()[0]
    return np.asarray(value[lane])


def _matching(state: State, source: Tile, target: Tile) -> Array:
    """Elements of the source in the target's type and shape; extents of 1 do not count."""
    value = source.read()
    left = [extent for extent in source.shape if extent != 1]
    if left != [extent for extent in target.shape if extent != 1]:
        raise state.fail(f"regions of shapes {source.shape} and {target.shape}")
    types = source.region.buffer.dtype, target.region.buffer.dtype
    return state.numbers.cast(value, *types).reshape(target.shape)


def _copy(state: State, source: Tile, target: Tile) -> None:
    value = _matching(state, source, target)
    target.write(value.copy() if np.shares_memory(value, target.data) else value)


def _gemm(state: State, stmt: forms.Gemm, tiles: list[Tile]) -> None:
    numbers = state.numbers
    kind = stmt.a.buffer.dtype
    sums = stmt.c.buffer.dtype
    a, b = (_matrix(tile.read()) for tile in tiles[:2])
    a = a.T if stmt.transpose_a else a
    b = b.T if stmt.transpose_b else b
    # Products of small integers are exact in float64, and BLAS has no integer product.
    wide = np.float32 if kind.is_float and kind.bits < 64 and not numbers.float64 else np.float64
    product = _product(a.astype(wide, copy=False), b.astype(wide, copy=False))
    target = tiles[2]
    if kind.is_integer:
        product = product.astype(np.int64)
    if not bool(np.all(evaluate(state, stmt.clear))):
        old = _matrix(target.read())
        product = product + old.astype(product.dtype, copy=False)
    target.write(product.astype(numbers.storage(sums), copy=False).reshape(target.shape))


def _product(a: Array, b: Array) -> Array:
    """a @ b in pieces that BLAS does on one thread: waking others costs more than a tile."""
    rows = max(1, ONE_THREAD // max(1, a.shape[1] * b.shape[1]))
    if rows >= a.shape[0]:
        return np.asarray(np.matmul(a, b))
    pieces = [np.matmul(a[first : first + rows], b) for first in range(0, a.shape[0], rows)]
    return np.concatenate(pieces)


def _matrix(value: Array) -> Array:
    return value.reshape(value.shape[-2:])


# ---- reductions


def _reduce(numbers: Numbers, stmt: forms.Reduce, source: Tile, target: Tile) -> None:
    dtype = target.region.buffer.dtype
    value = numbers.cast(source.read(), source.region.buffer.dtype, dtype)
    value = numbers.widen(value, dtype)
    found = _reduced(stmt, dtype, value)
    if not stmt.clear:
        old = numbers.widen(target.read(), dtype).reshape(found.shape)
        found = _reduced(stmt, dtype, np.stack([old, found]), dim=0)
    target.write(numbers.rounded(found, dtype).reshape(target.shape))


def _reduced(stmt: forms.Reduce, dtype: DType, value: Array, dim: int | None = None) -> Array:
    axis = stmt.dim if dim is None else dim
    largest = np.maximum if stmt.nan_propagate else np.fmax
    smallest = np.minimum if stmt.nan_propagate else np.fmin
    match stmt.op:
        case "sum":
            return np.asarray(np.add.reduce(value, axis=axis, dtype=value.dtype))
        case "abssum":
            return np.asarray(np.add.reduce(np.abs(value), axis=axis, dtype=value.dtype))
        case "absmax":
            return np.asarray(largest.reduce(np.abs(value), axis=axis, initial=value.dtype.type(0)))
        case "max":
            return np.asarray(largest.reduce(value, axis=axis, initial=_limit(value, -1)))
        case "min":
            return np.asarray(smallest.reduce(value, axis=axis, initial=_limit(value, 1)))
        case "bitand":
            return np.asarray(np.bitwise_and.reduce(value, axis=axis))
        case "bitor":
            return np.asarray(np.bitwise_or.reduce(value, axis=axis))
        case "bitxor":
            return np.asarray(np.bitwise_xor.reduce(value, axis=axis))


def _limit(value: Array, sign: int) -> float | int:
    """What `max` (sign -1) or `min` (+1) starts from."""
    if value.dtype.kind == "f":
        return sign * float("inf")
    limits = np.iinfo(value.dtype)
    return limits.max if sign > 0 else limits.min


def _scan(numbers: Numbers, stmt: forms.Scan, source: Tile, target: Tile) -> None:
    dtype = target.region.buffer.dtype
    value = numbers.widen(numbers.cast(source.read(), source.region.buffer.dtype, dtype), dtype)
    value = np.flip(value, stmt.dim) if stmt.reverse else value
    if stmt.op == "sum":
        found = np.add.accumulate(value, axis=stmt.dim, dtype=value.dtype)
    else:
        found = np.fmax.accumulate(value, axis=stmt.dim)
    found = np.flip(found, stmt.dim) if stmt.reverse else found
    target.write(numbers.rounded(found, dtype).reshape(target.shape))


def _atomic(state: State, stmt: forms.AtomicTile, source: Tile, target: Tile) -> None:
    value = _matching(state, source, target)
    dtype = target.region.buffer.dtype
    old = target.read()
    target.write(combined(state.numbers, stmt.op, dtype, old, value))


def combined(numbers: Numbers, op: forms.AtomicOp, dtype: DType, old: Array, new: Array) -> Array:
    """One atomic's result."""
    match op:
        case "add":
            return operations.binary(numbers, "+", dtype, old, new)
        case "max":
            return operations.binary(numbers, "max", dtype, old, new)
        case "min":
            return operations.binary(numbers, "min", dtype, old, new)
        case "or":
            return operations.binary(numbers, "|", dtype, old, new)
        case "exchange":
            return new
