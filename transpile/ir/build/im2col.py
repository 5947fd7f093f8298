"""`T.im2col`: the rows of a convolution as a matrix product, gathered from an image (language.md 9.2)."""

from __future__ import annotations

import libcst as cst
from tile2c.transpile.ir.build import arithmetic, conversions
from tile2c.transpile.ir.build.arguments import Arguments
from tile2c.transpile.ir.build.context import Builder, Value, allocated_here
from tile2c.transpile.ir.build.regions import region, shape_text
from tile2c.transpile.ir.constants import constant_int
from tile2c.transpile.ir.dtypes import BOOL, INT32
from tile2c.transpile.ir.expr import (
    Binary,
    BinaryOp,
    Compare,
    Const,
    Expr,
    Load,
    Select,
    Var,
    const,
)
from tile2c.transpile.ir.forms import Im2col, Let, Parallel, Region, Stmt, Store


def build_im2col(b: Builder, node: cst.Call) -> Stmt:
    """`T.im2col(image, tile, row step, column step, kernel, stride, dilation, padding)`.

    image [N, H, W, C], tile [rows, columns]. Row m of the matrix is the output pixel (n, oh, ow) that m
    counts, its column k the element (kh, kw, c) of what the kernel covers there. 0 past both ends.
    """
    args = Arguments(b, node, "T.im2col")
    nodes = (args.node_of("img", 0), args.node_of("col", 1))
    names = ("nhw_step", "c_step", "kernel", "stride", "dilation", "pad")
    given = [args.node_of(name, place) for place, name in enumerate(names, 2)]
    args.ignore("eviction_policy")
    args.finish()
    image, tile = region(b, nodes[0]), region(b, nodes[1])
    _check(b, image, tile, node)
    from tile2c.transpile.ir.build.expressions import expressions

    values = [
        arithmetic.whole(b, value, at, f"`{name}` of T.im2col")
        for value, at, name in zip(expressions(b, given), given, names, strict=True)
    ]
    i, j = (Var(dtype=INT32, name=b.names.made_up(word), kind="loop") for word in "ij")
    matrix = _Matrix(b, image, values[2:])
    bound = [
        matrix.name("pixel", _add(_mul(values[0], tile.ranges[0].extent), i)),
        matrix.name("tap", _add(_mul(values[1], tile.ranges[1].extent), j)),
    ]
    row, column = (let.var for let in bound)
    places = [matrix.name(*found) for found in matrix.places(row, column)]
    element = Load(
        dtype=image.buffer.dtype, buffer=image.buffer, index=tuple(let.var for let in places)
    )
    value = conversions.convert(b, Value(element), tile.buffer.dtype, node)
    if not isinstance(value, Load):
        b.fail("T2C240", f"T.im2col from {element.dtype} to {tile.buffer.dtype}", node)
    zero = Const(dtype=value.dtype, value=0.0 if value.dtype.is_float else 0)
    inside = Compare(dtype=BOOL, op="<", a=column, b=matrix.columns)
    chosen = Select(dtype=value.dtype, condition=inside, a=value, b=zero)
    index = tuple(_add(part.start, var) for part, var in zip(tile.ranges, (i, j), strict=True))
    store = Store(buffer=tile.buffer, index=index, value=chosen, span=b.span(node))
    b.pending += matrix.sizes
    starts = tuple(_mul(at, part.extent) for at, part in zip(values, tile.ranges, strict=False))
    return Parallel(
        loop_vars=(i, j),
        extents=tile.shape,
        body=(*bound, *places, store),
        im2col=matrix.described(starts),
    )


def _check(b: Builder, image: Region, tile: Region, node: cst.Call) -> None:
    whole = not any(part.point for part in image.ranges)
    if image.buffer.scope != "global" or len(image.ranges) != 4 or not whole:
        b.fail(
            "T2C301",
            f"T.im2col takes a global tensor [N, H, W, C], and {image.buffer.name} is "
            f"{shape_text(image.buffer.shape)}",
            node,
            notes=allocated_here(image.buffer),
        )
    if len(tile.shape) != 2 or len(tile.ranges) != 2:
        b.fail(
            "T2C301",
            f"T.im2col fills a tile of two dimensions, and {tile.buffer.name} is "
            f"{shape_text(tile.shape)} here",
            node,
            notes=allocated_here(tile.buffer),
        )


class _Matrix:
    """The matrix that stands for an image: rows are pixels of the output, columns what is covered."""

    def __init__(self, b: Builder, image: Region, values: list[Expr]) -> None:
        self.b, self.image = b, image
        self.kernel, self.stride, self.dilation, self.pad = values
        _, height, width, self.channels = (part.extent for part in image.ranges)
        self.sizes: list[Let] = []
        self.height, self.width = self._outputs("out_h", height), self._outputs("out_w", width)
        self.across = _mul(self.kernel, self.channels)
        self.columns = _mul(self.kernel, self.across)

    def _outputs(self, name: str, size: Expr) -> Expr:
        """How often the kernel fits, under a name where that is known at run time only."""
        padded = _add(size, _binary("*", const(2), self.pad)) if constant_int(self.pad) else size
        places = _sub(padded, _mul(self.dilation, _sub(self.kernel, const(1))))
        if constant_int(self.stride) == 1:
            count = places
        else:
            count = _binary("//", _sub(_add(places, self.stride), const(1)), self.stride)
        fixed = constant_int(count)
        if fixed is not None:
            return const(fixed)
        self.sizes.append(self.name(name, count))
        return self.sizes[-1].var

    def name(self, word: str, value: Expr) -> Let:
        unique = self.b.names.made_up(word)
        return Let(var=Var(dtype=INT32, name=unique, kind="temporary"), value=value)

    def described(self, starts: tuple[Expr, ...]) -> Im2col | None:
        """The matrix in one word, where the image is whole and the kernel's numbers are known."""
        whole = all(
            constant_int(part.start) == 0 and part.extent == extent
            for part, extent in zip(self.image.ranges, self.image.buffer.shape, strict=True)
        )
        numbers = (self.kernel, self.stride, self.dilation, self.pad)
        if not whole or any(constant_int(x) is None for x in numbers):
            return None
        return Im2col(
            image=self.image.buffer,
            pixel=starts[0],
            tap=starts[1],
            height=self.height,
            width=self.width,
            kernel=self.kernel,
            stride=self.stride,
            dilation=self.dilation,
            padding=self.pad,
        )

    def places(self, row: Expr, column: Expr) -> list[tuple[str, Expr]]:
        """The element of the image at a place of the matrix, with words for its coordinates."""
        n = _binary("//", row, _mul(self.height, self.width))
        y = _binary("%", _binary("//", row, self.width), self.height)
        x = _binary("%", row, self.width)
        down = _binary("//", column, self.across)
        right = _binary("%", _binary("//", column, self.channels), self.kernel)
        found = [
            n,
            _sub(_add(_mul(y, self.stride), _mul(down, self.dilation)), self.pad),
            _sub(_add(_mul(x, self.stride), _mul(right, self.dilation)), self.pad),
            _binary("%", column, self.channels),
        ]
        starts = [part.start for part in self.image.ranges]
        words = ("image", "y", "x", "channel")
        return [
            (word, _add(at, start)) for word, at, start in zip(words, found, starts, strict=True)
        ]


def _binary(op: BinaryOp, a: Expr, c: Expr) -> Expr:
    return Binary(dtype=a.dtype, op=op, a=a, b=c)


def _add(a: Expr, c: Expr) -> Expr:
    return c if constant_int(a) == 0 else a if constant_int(c) == 0 else _binary("+", a, c)


def _sub(a: Expr, c: Expr) -> Expr:
    return a if constant_int(c) == 0 else _binary("-", a, c)


def _mul(a: Expr, c: Expr) -> Expr:
    return c if constant_int(a) == 1 else a if constant_int(c) == 1 else _binary("*", a, c)
