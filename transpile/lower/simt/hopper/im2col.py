"""Tiles of T.im2col by TMA: the map walks pixels between two corners, a load moves it by a tap.

A tile's rows are `pixels` outputs from the first one on, whatever rows and images they lie in; its slabs are
channels of one tap of the kernel each. Padding, and what lies past the last image, arrives as zeros.
"""

from __future__ import annotations

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Buffer, Expr, Select, const
from tile2c.transpile.ir.forms import Im2col
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import CStmt, Declarator, Local, TensorMap
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper.slabs import Slabs, align, slabs_for
from tile2c.transpile.lower.simt.hopper.unfit import Unfit
from tile2c.transpile.lower.simt.values import Place, convert

_MOST_PIXELS = 1024
_WIDTHS = (128, 64, 32)  # bytes of a slab's row


def pixel_slabs(ctx: Context, tile: Buffer, found: Im2col) -> Slabs:
    """Slabs that lie within one tap of the kernel; raises Unfit where channels are no multiple of any."""
    rows, columns = (b.known(extent) or 0 for extent in tile.shape)
    channels, size = found.image.shape[3], tile.dtype.bytes
    part = next(
        (x // size for x in _WIDTHS if ctx.facts.divisible(channels, x // size)),
        None,
    )
    if part is None:
        raise Unfit(f"channels of {found.image.name} are no multiple of {_WIDTHS[-1] // size}")
    slabs = slabs_for(columns, size, tile.shape[0], part)
    if slabs is None:
        raise Unfit(f"rows of {tile.name} are no multiples of {_WIDTHS[-1]} bytes")
    if rows > _MOST_PIXELS or rows % 8:
        raise Unfit(
            f"{tile.name} has {rows} rows, and TMA takes eights of up to {_MOST_PIXELS} pixels"
        )
    return slabs


def pixel_map(ctx: Context, tile: Buffer, found: Im2col, slabs: Slabs) -> TensorMap:
    """The map that loads a slab; raises Unfit where the hardware's numbers are too small for it."""
    kernel, stride, dilation, padding = (
        b.known(x) or 0 for x in (found.kernel, found.stride, found.dilation, found.padding)
    )
    reach = dilation * (kernel - 1)
    upper = padding - reach
    if not 1 <= stride <= 8 or padding > 128 or not -128 <= upper <= 127 or reach > 255:
        raise Unfit("stride, padding or reach of the kernel are more than an im2col map can say")
    image = found.image
    strides = ctx.pitch(image)
    if not b.literal(strides[-1], 1):
        raise Unfit(f"channels of {image.name} are not contiguous in memory")
    align(ctx, image, strides[:-1])
    return TensorMap(
        tensor=image.name,
        dtype=image.dtype,
        dims=tuple(reversed(image.shape)),
        strides=tuple(b.mul(x, const(image.dtype.bytes)) for x in reversed(strides[:-1])),
        box=(slabs.width, b.known(tile.shape[0]) or 0),
        swizzle={128: "128B", 64: "64B", 32: "32B"}[slabs.row_bytes],  # type: ignore[arg-type]
        element_strides=(1, stride, stride, 1),
        corners=((-padding, -padding), (upper, upper)),
    )


def first_pixel(ctx: Context, found: Im2col) -> tuple[list[CStmt], tuple[Expr, Expr, Expr]]:
    """Lines that name where the tile's first pixel starts, and those names: x, y, image."""
    names = [ctx.namer.ours(word, f"{word}_of_tile") for word in ("pixel", "image", "y", "x")]
    pixel, image, y, x = (b.local(name) for name in names)

    def start(place: Expr) -> Expr:
        return b.sub(b.mul(place, found.stride), found.padding)

    height, width = (
        convert(ctx, extent, Place(values={})) for extent in (found.height, found.width)
    )
    values = (
        b.div(pixel, b.mul(height, width)),
        start(b.mod(b.div(pixel, width), height)),
        start(b.mod(pixel, width)),
    )
    first = Declarator(name=names[0], value=convert(ctx, found.pixel, Place(values={})))
    rest = zip(names[1:], values, strict=True)
    lines: list[CStmt] = [
        Local(dtype=INT32, names=(first,), remark="the tile's first one"),
        Local(dtype=INT32, names=tuple(Declarator(name=name, value=value) for name, value in rest)),
    ]
    return lines, (x, y, image)


def tap_of(
    ctx: Context, found: Im2col, columns: int, slab: Expr, place: tuple[Expr, Expr, Expr]
) -> tuple[CStmt, tuple[Expr, ...]]:
    """The line that names a slab's first tap; then its coordinates, innermost first, and its offsets."""
    name = ctx.namer.ours("tap", "tap_of_slab")
    ctx.namer.release(name)
    tap = b.local(name)
    start = b.add(convert(ctx, found.tap, Place(values={})), slab)
    channels, kernel = (
        convert(ctx, extent, Place(values={})) for extent in (found.image.shape[3], found.kernel)
    )
    across = b.mul(kernel, channels)
    x, y, image = place
    if not ctx.facts.divisible(
        b.mul(found.kernel, b.mul(found.kernel, found.image.shape[3])), columns
    ):
        whole = b.less(tap, b.mul(kernel, across))
        past = convert(ctx, found.image.shape[0], Place(values={}))
        image = Select(dtype=INT32, condition=whole, a=image, b=past)
    line = Local(dtype=INT32, names=(Declarator(name=name, value=start),))
    right = b.mul(b.mod(b.div(tap, channels), kernel), found.dilation)
    down = b.mul(b.div(tap, across), found.dilation)
    return line, (b.mod(tap, channels), x, y, image, right, down)
