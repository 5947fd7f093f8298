"""The order in which blocks are taken, where the author left it open."""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.ir.expr import Var
from tile2c.transpile.ir.forms import BlockOrder, Gemm, Launch
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.simt.matrix import gemm_extents
from tile2c.transpile.lower.simt.outer_statements import gemms

BLOCKS = 132  # that run at once, one an SM
_PANELS = (4, 8, 16)


def with_panels(launch: Launch) -> Launch:
    """Blocks in panels of tile rows: what runs together then reads the fewest bytes of both operands.

    Blocks may run in any order, so this changes nothing but speed. For two-dimensional grids only.
    """
    products = gemms(launch.body)
    if launch.order is not None or len(launch.blocks) != 2 or not products:
        return launch
    if any(b.known(b.for_host(extent)) == 1 for extent in launch.grid):
        return launch
    m, n, _ = gemm_extents(products[0])
    high, wide = (m, n) if _rows_follow(products[0], launch, launch.blocks[1]) else (n, m)
    panel = min(_PANELS, key=lambda size: size * high + -(-BLOCKS // size) * wide)
    return replace(launch, order=BlockOrder(panel=panel, order="row"))


def _rows_follow(gemm: Gemm, launch: Launch, slow: Var) -> bool:
    """Whether the grid's second dimension counts tiles of M: A's loads depend on it."""
    from tile2c.transpile.ir.forms import Copy
    from tile2c.transpile.ir.walk import statements

    for stmt in statements(launch.body):
        if isinstance(stmt, Copy) and stmt.dst.buffer.name == gemm.a.buffer.name:
            return any(b.mentions(start, slow.name) for start in stmt.src.starts)
    return True
