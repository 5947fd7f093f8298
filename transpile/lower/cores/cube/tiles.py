"""Sizes of the tiles of the cube core: rows and columns in whole fractals.

reads   buffers with roles        writes  `Matrix`, `Parts`
"""

from __future__ import annotations

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir import forms
from tile2c.transpile.ir.dtypes import DType
from tile2c.transpile.ir.expr import Buffer, Const, Expr, const
from tile2c.transpile.record import record
from tile2c.transpile.targets.cube import CubeUnit


@record
class Matrix:
    """A tile as a matrix: its last two dimensions. `tall` and `wide` are whole fractals."""

    buffer: Buffer
    rows: int
    columns: int
    tall: int
    wide: int

    @property
    def bytes(self) -> int:
        return self.tall * self.wide * self.buffer.dtype.bytes

    @property
    def row_dim(self) -> int:
        return len(self.buffer.shape) - 2

    @property
    def column_dim(self) -> int:
        return len(self.buffer.shape) - 1

    def tall_expr(self) -> Expr:
        """`tall`, under the author's name where the tile has no rows to spare."""
        extent = self.buffer.shape[self.row_dim]
        return extent if self.tall == self.rows else const(self.tall)

    def wide_expr(self) -> Expr:
        """`wide`, under the author's name where the tile has no columns to spare."""
        extent = self.buffer.shape[self.column_dim]
        return extent if self.wide == self.columns else const(self.wide)


def up(value: int, unit: int) -> int:
    """`value` rounded up to a multiple of `unit`, at least one."""
    return max(1, -(-value // unit)) * unit


def lanes(dtype: DType, unit: CubeUnit) -> int:
    """Elements in a row of a fractal."""
    return unit.block_bytes // dtype.bytes


def matrix(buffer: Buffer, unit: CubeUnit) -> Matrix:
    """A tile of constant size as a matrix. Raises InputError where it is none."""
    shape = [int(extent.value) for extent in buffer.shape if isinstance(extent, Const)]
    if len(shape) != len(buffer.shape) or len(shape) < 2 or any(n != 1 for n in shape[:-2]):
        raise failure(
            "T2C570",
            f"{buffer.name} is no matrix: a tile of the cube core has two dimensions",
            buffer.span,
            help="give each product a tile of rows and columns of its own",
        )
    rows, columns = shape[-2:]
    # A tile whose fractals turn in pairs has whole pairs both ways.
    side = unit.fractal_rows
    if buffer.dtype.name in unit.squares:
        side = max(side, lanes(buffer.dtype, unit))
    wide = lanes(buffer.dtype, unit) if buffer.dtype.bytes != 4 else unit.fractal_rows
    return Matrix(buffer, rows, columns, up(rows, side), up(columns, wide))


@record
class Parts:
    """How much of K the products take at a time, the bytes of the parts in L0A and L0B, and how
    many copies of each fit."""

    depth: int
    left_bytes: int
    right_bytes: int
    copies: int


def parts_of(gemm: forms.Gemm, unit: CubeUnit) -> tuple[int, int, int, int]:
    """M, N and K of a gemm in whole fractals, and the bytes of an element."""
    a, b = matrix(gemm.a.buffer, unit), matrix(gemm.b.buffer, unit)
    m, k = (a.wide, a.tall) if gemm.transpose_a else (a.tall, a.wide)
    n = b.tall if gemm.transpose_b else b.wide
    return m, n, k, gemm.a.buffer.dtype.bytes


def split_depth(gemm: forms.Gemm, unit: CubeUnit) -> Parts:
    """K in equal parts of which two fit into each of L0A and L0B, or one where it is that tall.

    One always fits: the sums of more rows would not fit into L0C.
    """
    m, n, k, size = parts_of(gemm, unit)
    step = max(lanes(gemm.a.buffer.dtype, unit), unit.fractal_rows)
    copies = 2
    most = unit.l0_bytes // copies // (max(m, n) * size) // step * step
    if most < step:
        copies, most = 1, step
    count = -(-k // most)
    depth = up(-(-k // count), step)
    return Parts(depth, m * depth * size, n * depth * size, copies)
