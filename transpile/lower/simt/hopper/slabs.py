"""Shared tiles as TMA writes and wgmma reads them: slabs of swizzled rows, and their tensor maps."""

from __future__ import annotations

from math import gcd
from typing import Literal

from tile2c.transpile.ir.expr import Buffer, Expr, const
from tile2c.transpile.ir.forms import Region
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import Element, TensorMap
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper.unfit import Unfit
from tile2c.transpile.record import record

_MOST_ROWS = 256  # of a box


@record(kw_only=True)
class Slabs:
    """A tile of `rows` rows cut into `count` slabs, each `width` elements (`row_bytes` bytes) wide.

    Within a slab, 16-byte chunk c of row r lies at c ^ (r / divide % modulus): the hardware's swizzle.
    """

    rows: Expr
    width: int
    count: int
    row_bytes: int

    @property
    def exchange(self) -> tuple[int, int]:
        """(divide, modulus) of the row's part in the swizzle."""
        return {128: (1, 8), 64: (2, 4), 32: (4, 2)}[self.row_bytes]

    @property
    def dims(self) -> tuple[Expr, ...]:
        """The C array's dimensions: slab, row, column; one slab needs no dimension of its own."""
        inner = (self.rows, const(self.width))
        return inner if self.count == 1 else (const(self.count), *inner)

    def element(self, tile: Buffer, stage: tuple[Expr, ...], row: Expr, column: Expr) -> Element:
        """The element before the swizzle, as a descriptor names it."""
        if self.count == 1:
            return Element(dtype=tile.dtype, array=tile.name, subscripts=(*stage, row, column))
        width = const(self.width)
        place = (_over(column, self.width), row, b.mod(column, width))
        return Element(dtype=tile.dtype, array=tile.name, subscripts=(*stage, *place))

    def start(self, tile: Buffer, stage: tuple[Expr, ...], slab: Expr, row: Expr) -> Element:
        """The first element of a row of a slab."""
        place = (row, const(0)) if self.count == 1 else (slab, row, const(0))
        return Element(dtype=tile.dtype, array=tile.name, subscripts=(*stage, *place))


def _over(value: Expr, width: int) -> Expr:
    """value / width, with whole multiples taken out."""
    known = b.known(value)
    return const(known // width) if known is not None else b.div(value, const(width))


def slabs_of(tile: Buffer, part: int | None = None) -> Slabs:
    """The widest swizzle whose rows the tile's rows, or parts of so many columns, are made of.

    Raises Unfit without one.
    """
    if len(tile.shape) != 2:
        raise Unfit(f"{tile.name} has {len(tile.shape)} dimensions, and wgmma reads tiles of two")
    rows, columns = (b.known(extent) or 0 for extent in tile.shape)
    found = slabs_for(columns, tile.dtype.bytes, tile.shape[0], part)
    if found is None:
        raise Unfit(
            f"rows of {tile.name} have {columns * tile.dtype.bytes} bytes, and wgmma reads multiples of 32"
        )
    if rows > _MOST_ROWS:
        raise Unfit(f"{tile.name} has {rows} rows, and a TMA box at most {_MOST_ROWS}")
    if rows % 8:
        raise Unfit(f"{tile.name} has {rows} rows, and the swizzle works on groups of 8")
    return found


def slabs_for(
    columns: int, element_bytes: int, rows: Expr, part: int | None = None
) -> Slabs | None:
    """Slabs of a tile with so many columns, `part` of which are whole slabs too."""
    for row_bytes in (128, 64, 32):
        if columns and gcd(columns, part or columns) * element_bytes % row_bytes == 0:
            width = row_bytes // element_bytes
            return Slabs(rows=rows, width=width, count=columns // width, row_bytes=row_bytes)
    return None


def box_of(
    ctx: Context, region: Region, slabs: Slabs, rows: int, *, may_copy: bool = False
) -> TensorMap:
    """The map that moves `rows` rows of one slab between the region's tensor and shared memory.

    Notes in the context what addresses and pitches have to be multiples of; with `may_copy` also pitches
    that are known not to be: the map is then that of a copy. Raises Unfit where no such map exists.
    """
    tensor = region.buffer
    moving = [k for k, part in enumerate(region.ranges) if b.known(part.extent) != 1]
    last = len(region.ranges) - 1
    if len(moving) != 2 or moving[1] != last:
        raise Unfit(f"the copied part of {tensor.name} is not made of contiguous rows")
    if len(region.ranges) > 5:
        raise Unfit(f"{tensor.name} has {last + 1} dimensions, and a tensor map at most 5")
    strides = ctx.pitch(tensor)
    if not b.literal(strides[-1], 1):
        raise Unfit(f"neighbours in a row of {tensor.name} are not contiguous in memory")
    align(ctx, tensor, strides[:-1], may_copy=may_copy)
    box = [1] * (last + 1)
    box[moving[0]], box[last] = rows, slabs.width
    return TensorMap(
        tensor=tensor.name,
        dtype=tensor.dtype,
        dims=tuple(reversed(tensor.shape)),
        strides=tuple(
            b.mul(stride, const(tensor.dtype.bytes)) for stride in reversed(strides[:-1])
        ),
        box=tuple(reversed(box)),
        swizzle=swizzle_of(slabs),
    )


def swizzle_of(slabs: Slabs) -> Literal["128B", "64B", "32B"]:
    """The hardware's name of the slabs' swizzle."""
    found: dict[int, Literal["128B", "64B", "32B"]] = {128: "128B", 64: "64B", 32: "32B"}
    return found[slabs.row_bytes]


def align(
    ctx: Context, tensor: Buffer, strides: tuple[Expr, ...], *, may_copy: bool = False
) -> None:
    """TMA wants 16-byte addresses and pitches: proven, or a condition of the launch."""
    ctx.aligned_tensors[tensor.name] = 16
    unit = 16 // tensor.dtype.bytes
    for stride in reversed(strides):
        if ctx.facts.divisible(stride, unit) or _follows(ctx, stride, unit):
            continue
        if b.known(stride) is not None and not may_copy:
            raise Unfit(far_apart(tensor, stride, unit))
        ctx.wants_variant = True
        ctx.aligned_pitches[stride] = max(ctx.aligned_pitches.get(stride, 1), unit)


def far_apart(tensor: Buffer, stride: Expr, unit: int) -> str:
    """Why there is no map of the tensor as it lies."""
    return (
        f"rows of {tensor.name} are {b.known(stride)} elements apart, "
        f"and TMA wants multiples of {unit}"
    )


def _follows(ctx: Context, stride: Expr, unit: int) -> bool:
    """Whether the stride is a multiple of another one that is asked for already."""
    from tile2c.transpile.ir.expr import Binary

    if not isinstance(stride, Binary) or stride.op != "*":
        return False
    return any(
        ctx.aligned_pitches.get(side, 1) % unit == 0 or _follows(ctx, side, unit)
        for side in (stride.a, stride.b)
    )
