"""Values in a parallel loop: numbers, and tiles of one of four shapes."""

from __future__ import annotations

from typing import Literal

from tile2c.transpile.ir.dtypes import DType
from tile2c.transpile.ir.expr import Expr
from tile2c.transpile.lower.cores.plan import TileRef
from tile2c.transpile.record import record

Kind = Literal["scalar", "one", "row", "column", "tile"]


@record(kw_only=True)
class Value:
    """scalar: a number that the scalar unit has, `expr`. The others are in local memory, at `ref`:

    one: one element for the whole loop; row: one for each column (`v[j]`); column: one for each row
    (`v[i]`); tile: one for each iteration, rows `pitch` elements apart.
    """

    kind: Kind
    dtype: DType
    expr: Expr | None = None
    ref: TileRef | None = None
    pitch: int = 0
    scratch: bool = False  # a scratch tile, given back after its use
    inside: bool = False  # an intermediate result kept in the destination
    whole: bool = False  # all of its tile
    turned: bool = False  # its rows are the columns of this shape

    @property
    def at(self) -> TileRef:
        assert self.ref is not None
        return self.ref

    @property
    def number(self) -> Expr:
        assert self.expr is not None
        return self.expr


def join(*kinds: Kind) -> Kind:
    """The shape of a result of operands of these shapes."""
    if "tile" in kinds or ("row" in kinds and "column" in kinds):
        return "tile"
    for kind in ("row", "column", "one"):
        if kind in kinds:
            return kind
    return "scalar"
