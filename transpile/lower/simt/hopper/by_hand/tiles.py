"""Shared tiles that TMA or wgmma touch: slabs of swizzled rows, also for everything else that reads them."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.expr import Buffer, Expr, const
from tile2c.transpile.ir.forms import BulkCopy, Gemm, Region, Stmt
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.simt.context import Context, SharedLayout
from tile2c.transpile.lower.simt.hopper.slabs import Slabs, slabs_for
from tile2c.transpile.lower.simt.matrix import matrix_dims
from tile2c.transpile.lower.simt.outer_statements import walk
from tile2c.transpile.lower.simt.values import Place, convert
from tile2c.transpile.record import record

_ROWS = 8  # of a group that the swizzle works on


@record(kw_only=True)
class Tile:
    """A shared array; with slabs, its last two dimensions lie as wgmma reads them."""

    buffer: Buffer
    slabs: Slabs | None

    @property
    def bytes(self) -> int:
        return prod(b.known(extent) or 1 for extent in self.buffer.shape) * self.buffer.dtype.bytes

    @property
    def dims(self) -> tuple[Expr, ...]:
        """The C array's dimensions."""
        if self.slabs is None:
            return tuple(map(b.in_words, self.buffer.shape))
        return (*map(b.in_words, self.buffer.shape[:-2]), *self.slabs.dims)

    def starts(self, ctx: Context, region: Region) -> tuple[tuple[Expr, ...], Expr, Expr]:
        """Subscripts in front of the matrix, and the row and column where the region starts."""
        found = [convert(ctx, start, Place(values={})) for start in region.starts]
        return tuple(found[:-2]), found[-2], found[-1]


def tiles_of(ctx: Context, body: Sequence[Stmt], parts: dict[str, int]) -> dict[str, Tile]:
    """Tiles by name, those that wgmma reads or TMA moves; the context learns how their elements lie.

    `parts`: columns of a warpgroup, of tiles whose columns are split between warpgroups.
    """
    found: dict[str, Tile] = {}
    for stmt in walk(body):
        regions: tuple[Region, ...] = ()
        if isinstance(stmt, Gemm):
            regions = (stmt.a, stmt.b)
        elif isinstance(stmt, BulkCopy):
            regions = (stmt.src, stmt.dst)
        for region in regions:
            if region.buffer.scope != "shared":
                continue
            name = region.buffer.name
            if name not in found:
                slabs = _slabs(region.buffer, parts.get(name))
                found[name] = Tile(buffer=region.buffer, slabs=slabs)
            if isinstance(stmt, Gemm):
                _check_operand(ctx, found[name], region, stmt)
    for name, tile in found.items():
        plain = SharedLayout()  # rows as they are: boxes come so
        ctx.shared[name] = plain if tile.slabs is None else _layout(ctx, tile.buffer, tile.slabs)
    return found


def _slabs(buffer: Buffer, part: int | None) -> Slabs | None:
    if len(buffer.shape) < 2:
        return None
    rows, columns = (b.known(extent) or 0 for extent in buffer.shape[-2:])
    if rows % _ROWS:
        return None
    return slabs_for(columns, buffer.dtype.bytes, buffer.shape[-2], part)


def _layout(ctx: Context, buffer: Buffer, slabs: Slabs) -> SharedLayout:
    base = buffer.name.removesuffix("_shared").removesuffix("_smem").removesuffix("_s")
    divide, modulus = slabs.exchange
    return SharedLayout(
        function=ctx.namer.ours(f"{base}_col", f"{buffer.name}_col"),
        chunk=16 // buffer.dtype.bytes,
        divide=divide,
        modulus=modulus,
        slab=slabs.width if slabs.count > 1 else 0,
    )


def _check_operand(ctx: Context, tile: Tile, region: Region, gemm: Gemm) -> None:
    """wgmma reads whole groups of rows, and whole slabs across."""
    name, span = tile.buffer.name, region.span or gemm.span
    if tile.slabs is None:
        rows, columns = (const(1), *tile.buffer.shape)[-2:]
        raise failure(
            "T2C591",
            f"{name} has {b.known(rows)} rows of {(b.known(columns) or 0) * tile.buffer.dtype.bytes} bytes: "
            "wgmma reads groups of 8 rows of multiples of 32 bytes",
            span,
        )
    dims = matrix_dims(region)
    if dims != (len(region.ranges) - 2, len(region.ranges) - 1):
        raise failure(
            "T2C591", f"the matrix in {name} is not made of its last two dimensions", span
        )
    along_k = gemm.transpose_b if region is gemm.b else not gemm.transpose_a
    unit = 32 // tile.buffer.dtype.bytes if along_k else tile.slabs.width
    row, column = region.ranges[-2].start, region.ranges[-1].start
    if not ctx.facts.divisible(row, _ROWS):
        raise failure(
            "T2C591", f"rows of {name} are read from a row that is no multiple of 8", span
        )
    if not ctx.facts.divisible(column, unit):
        raise failure(
            "T2C591", f"columns of {name} are read from one that is no multiple of {unit}", span
        )


def columns_apart(products: Sequence[tuple[Gemm, int]]) -> dict[str, int]:
    """Of tiles whose columns several warpgroups share: how many each has; (gemm, columns) in turn."""
    found: dict[str, int] = {}
    for gemm, columns in products:
        name = gemm.b.buffer.name
        found[name] = gcd(found.get(name, columns), columns)
    return found
