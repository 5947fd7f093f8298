"""Where the elements of a tile lie: row-major, each row padded to whole blocks.

Dimensions of extent 1 are left out, so a (block_M, 1) tile is one row of block_M elements.
"""

from __future__ import annotations

from dataclasses import fields

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Binary, Buffer, Const, Expr, const
from tile2c.transpile.record import record
from tile2c.transpile.targets.cores import CoresTarget


@record
class Layout:
    """`kept` are the buffer's dimensions longer than 1; all but the last of them count as rows."""

    buffer: Buffer
    kept: tuple[int, ...]
    extents: tuple[int, ...]  # of the kept dimensions
    pitch: int  # elements from one row to the next

    @property
    def rows(self) -> int:
        total = 1
        for extent in self.extents[:-1]:
            total *= extent
        return total

    @property
    def columns(self) -> int:
        return self.extents[-1] if self.extents else 1

    @property
    def size(self) -> int:
        """Elements, padding included."""
        return self.rows * self.pitch

    def weight(self, dim: int) -> int:
        """Elements between neighbours along a kept dimension."""
        place = self.kept.index(dim)
        if place == len(self.kept) - 1:
            return 1
        total = self.pitch
        for extent in self.extents[place + 1 : -1]:
            total *= extent
        return total

    def offset(self, index: tuple[Expr, ...]) -> Expr | None:
        """The flat offset of an element; None for 0."""
        total: Expr | None = None
        for dim in self.kept:
            term = times(index[dim], self.weight(dim))
            if not is_zero(term):
                total = term if total is None else plus(total, term)
        return total

    def rest_of(self, offset: Expr | None, fixed: set[int]) -> int | None:
        """Elements from `offset` to the end of the rows that the tile's first dimensions choose, of which
        those in `fixed` are the same all the time; None without such, or without knowing."""
        chosen: int | None = None
        for dim in self.kept[:-1]:
            if dim not in fixed:
                break
            chosen = self.weight(dim)
        place = 0 if offset is None else constant_of(offset)
        return None if chosen is None or place is None else chosen - place % chosen


def layouts(
    buffers: tuple[Buffer, ...], target: CoresTarget, sizes: tuple[int, ...]
) -> dict[str, Layout]:
    """The layout of each tile by name. Rows of all of them are padded to as many elements, those
    that a block holds of the narrowest type (`sizes`: bytes of the types in the kernel)."""
    lanes = target.lanes(min(sizes))
    found = {}
    for buffer in buffers:
        shape = [int(extent.value) for extent in buffer.shape if isinstance(extent, Const)]
        kept = tuple(dim for dim, extent in enumerate(shape) if extent != 1)
        extents = tuple(shape[dim] for dim in kept)
        columns = extents[-1] if extents else 1
        found[buffer.name] = Layout(buffer, kept, extents, -(-columns // lanes) * lanes)
    return found


def is_zero(expr: Expr) -> bool:
    return isinstance(expr, Const) and expr.value == 0


def constant_of(expr: Expr) -> int | None:
    """The number that an integer expression of constants stands for."""
    if isinstance(expr, Const):
        return int(expr.value)
    if not isinstance(expr, Binary):
        return None
    a, b = constant_of(expr.a), constant_of(expr.b)
    if a is None or b is None:
        return None
    if expr.op in ("//", "truncdiv", "ceildiv") and b > 0 and a >= 0:
        return -(-a // b) if expr.op == "ceildiv" else a // b
    return {"+": a + b, "-": a - b, "*": a * b}.get(expr.op)


def long_offset(expr: Expr) -> bool:
    """Whether an offset is too long to stand in a call."""

    def count(part: object) -> int:
        if isinstance(part, tuple):
            return sum(count(inner) for inner in part)
        if not isinstance(part, Expr):
            return 0
        return 1 + sum(count(getattr(part, item.name)) for item in fields(part))

    return count(expr) > 12


def plus(a: Expr, b: Expr) -> Expr:
    """a + b, without additions of 0."""
    if is_zero(a):
        return b
    if is_zero(b):
        return a
    if isinstance(a, Const) and isinstance(b, Const):
        return const(int(a.value) + int(b.value))
    return Binary(dtype=a.dtype, op="+", a=a, b=b)


def times(a: Expr, factor: int | Expr) -> Expr:
    """a * factor, without multiplications by 0 and 1."""
    by = const(factor) if isinstance(factor, int) else factor
    if is_zero(a) or is_zero(by):
        return const(0)
    if isinstance(a, Const) and a.value == 1:
        return by
    if isinstance(by, Const) and by.value == 1:
        return a
    if isinstance(a, Const) and isinstance(by, Const) and not (a.name or by.name):
        return const(int(a.value) * int(by.value))
    return Binary(dtype=INT32, op="*", a=a, b=by)
