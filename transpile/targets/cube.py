"""What the planner asks of a matrix core: its memories, products and stores, as data."""

from __future__ import annotations

from collections.abc import Mapping

from tile2c.transpile.record import record


@record(kw_only=True)
class CubeUnit:
    """A core that multiplies tiles of fractals: 512 bytes, 16 rows of one block each.

    Tiles come to L1, parts of them to L0A (left) and L0B (right), sums are made in L0C.
    """

    cores: int  # of the chip
    vector_cores: int  # beside each of them
    l1_bytes: int
    l0_bytes: int  # of L0A, and of L0B
    l0c_bytes: int
    bias_bytes: int  # of the table that sums may start from
    block_bytes: int  # of a row of a fractal
    fractal_rows: int
    products: Mapping[str, str]  # element type of the operands -> of the sums
    squares: frozenset[str]  # element types that turn two fractals at a time, one below the other
    blocks: frozenset[str]  # and those that turn two side by side: such tiles are blocks of rows
    stores: Mapping[tuple[str, str], str]  # sums, tensor -> how they are converted on the way
    adds: frozenset[str]  # element types of tensors that stores can add to
    bias: Mapping[str, str]  # element type of a bias -> of the sums it may start
    queue_buffers: int  # copies of all tiles of one memory: each holds event ids
    small_product: int  # fractals of sums below which a product may overtake the one before it
    cross_flags: int  # ids of flags between the cores of a mix
    most: int  # rows or columns of a product, or of a store
