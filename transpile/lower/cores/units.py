"""Which way of writing vector calls a target has: the one place that looks.

reads   `CoresTarget.vectors`        writes  a `Calls` of that kind
"""

from __future__ import annotations

from tile2c.transpile.ir.dtypes import DType
from tile2c.transpile.ir.expr import Const, Expr
from tile2c.transpile.lower.cores.calls import Calls, Emit, Shape
from tile2c.transpile.lower.cores.counted_calls import CountedCalls
from tile2c.transpile.lower.cores.plan import TileRef, VectorCall
from tile2c.transpile.lower.cores.tiles import Tiles
from tile2c.transpile.targets.cores import CoresTarget


def calls_of(tiles: Tiles, shape: Shape, emit: Emit) -> Calls:
    """What emits the vector calls of one shape."""
    kind = CountedCalls if tiles.target.vectors == "counts" else Calls
    return kind(tiles, shape, emit)


def zeros(target: CoresTarget, ref: TileRef, dtype: DType, count: Expr) -> VectorCall:
    """The call that makes `count` elements 0."""
    if target.vectors == "counts":
        return VectorCall(function="Zeros", dst=ref, arguments=(count,))
    zero = Const(dtype=dtype, value=0)
    return VectorCall(function="Duplicate", dst=ref, arguments=(zero, count))
