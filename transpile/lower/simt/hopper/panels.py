"""The order in which blocks are taken: where the author left it open, or gave a hint for other hardware."""

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
    panel = None if launch.order is not None else _best_panel(launch)
    return launch if panel is None else replace(launch, order=BlockOrder(panel=panel, order="row"))


def with_panels_of_waves(launch: Launch) -> Launch:
    """As above, also where the author gave panels.

    Blocks that stay run in step, 132 tiles at once; `T.use_swizzle` is a hint and leaves the choice.
    """
    panel = None if launch.order is None else _best_panel(launch)
    if launch.order is None or panel is None:
        return launch
    return replace(launch, order=replace(launch.order, panel=panel, order="row"))


def _best_panel(launch: Launch) -> int | None:
    """Rows of tiles in a panel, for the fewest bytes of both operands; None where there is no choice."""
    products = gemms(launch.body)
    if len(launch.blocks) != 2 or not products:
        return None
    if any(b.known(b.for_host(extent)) == 1 for extent in launch.grid):
        return None
    m, n, _ = gemm_extents(products[0])
    high, wide = (m, n) if _rows_follow(products[0], launch, launch.blocks[1]) else (n, m)
    return min(_PANELS, key=lambda size: size * high + -(-BLOCKS // size) * wide)


def _rows_follow(gemm: Gemm, launch: Launch, slow: Var) -> bool:
    """Whether the grid's second dimension counts tiles of M: A's loads depend on it."""
    from tile2c.transpile.ir.forms import Copy
    from tile2c.transpile.ir.walk import statements

    for stmt in statements(launch.body):
        if isinstance(stmt, Copy) and stmt.dst.buffer.name == gemm.a.buffer.name:
            return any(b.mentions(start, slow.name) for start in stmt.src.starts)
    return True
