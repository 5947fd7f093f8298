"""Shared tiles: their layout for the accesses they get."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from tile2c.transpile.ir.expr import Buffer
from tile2c.transpile.ir.forms import Gemm
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.simt.banks import Phase, extra_turns
from tile2c.transpile.lower.simt.context import Context, SharedLayout
from tile2c.transpile.lower.simt.matrix import GemmPlan, MatrixPlan, matrix_dims
from tile2c.transpile.lower.simt.phases import operand_phases
from tile2c.transpile.wording import listed

_CHUNK_BYTES = 16


def choose_layouts(ctx: Context, gemms: list[Gemm], plans: dict[int, GemmPlan]) -> None:
    """Layouts of the tiles that gemms read, so that the lanes of a warp meet different banks.

    Tiles that an instruction wants column by column, as vectors, get rows together; others exchange
    chunks of their rows, or have longer rows.
    """
    vectors = [gemm for gemm in gemms if _takes_vectors(plans[id(gemm)])]
    matrices = {
        id(gemm): plan for gemm in vectors if isinstance(plan := plans[id(gemm)], MatrixPlan)
    }
    for buffer, group in _rows_together(ctx, vectors, matrices).items():
        name = _function_name(ctx, buffer)
        ctx.shared[buffer.name] = SharedLayout(function=name, group=group)
    _exchange_chunks(ctx, vectors, matrices)
    reads: dict[Buffer, list[Phase]] = {}
    for gemm in gemms:
        if gemm not in vectors:
            for buffer, phases in operand_phases(ctx, gemm, plans[id(gemm)]):
                reads.setdefault(buffer, []).extend(phases)
    for buffer, found in reads.items():
        if buffer.name not in ctx.shared:
            _spread_over_banks(ctx, buffer, found)


def spread_loops(
    ctx: Context, gemms: list[Gemm], accesses: Iterable[tuple[Buffer, tuple[Phase, ...]]]
) -> None:
    """Layouts of the tiles that only parallel loops use, where rows as they are meet in their banks."""
    operands = {region.buffer for gemm in gemms for region in (gemm.a, gemm.b, gemm.c)}
    found: dict[Buffer, list[Phase]] = {}
    for buffer, own in accesses:
        if buffer not in operands and buffer.name not in ctx.shared:
            found.setdefault(buffer, []).extend(own)
    for buffer, own_phases in found.items():
        _spread_over_banks(ctx, buffer, own_phases, tolerated=len(own_phases))


def _takes_vectors(plan: GemmPlan) -> bool:
    return isinstance(plan, MatrixPlan) and plan.instruction.load == "plain"


def _function_name(ctx: Context, buffer: Buffer) -> str:
    base = buffer.name.removesuffix("_shared").removesuffix("_smem").removesuffix("_s")
    base = base.removesuffix("_tile") if buffer.name in ctx.leaving else base
    return ctx.namer.ours(f"{base}_col", f"{buffer.name}_col")


# (bytes of a chunk, rows that keep it in place, places it changes among): the first clean one is taken.
_EXCHANGES = tuple(
    (chunk, divide, modulus)
    for chunk in (16, 32)
    for divide, modulus in (
        (1, 8),
        (2, 4),
        (4, 2),
        (1, 4),
        (4, 8),
        (2, 8),
        (1, 2),
        (4, 4),
        (2, 2),
        (8, 8),
        (8, 4),
        (16, 8),
    )
    if chunk * modulus <= 128
)
_EXCHANGED = 32  # bytes of two chunks, the fewest that can change places
_PADS = (16, 32, 8, 4)  # bytes after each row


def _spread_over_banks(
    ctx: Context, buffer: Buffer, reads: list[Phase], tolerated: int = 0
) -> None:
    """The first layout of a fixed list without bank conflicts, else the one with the fewest.

    More turns than `tolerated` that are left are worth a warning.
    """
    size, columns = buffer.dtype.bytes, b.known(buffer.shape[-1]) or 1
    row_bytes, banks = columns * size, ctx.target.banks
    tried = [SharedLayout()]
    tried += [
        SharedLayout(chunk=chunk // size, divide=divide, modulus=modulus)
        for chunk, divide, modulus in _EXCHANGES
        if row_bytes % (chunk * modulus) == 0
    ]
    # A pad keeps rows aligned for the widest access: 16 bytes where the tile's own rows are.
    widest = 16 if row_bytes % 16 == 0 else max(size, *(phase.bytes for phase in reads))
    tried += [SharedLayout(pad=pad // size) for pad in _PADS if pad % widest == 0]
    turns = [extra_turns(reads, partial(_offset, x, columns, size), banks) for x in tried]
    best = min(turns)
    layout = tried[turns.index(best)]
    if layout.swizzled:
        layout = replace(layout, function=_function_name(ctx, buffer))
    if layout.swizzled or layout.pad:
        ctx.shared[buffer.name] = layout
    if best > tolerated:
        _warn_of_turns(ctx, buffer, len(reads), best)


def _warn_of_turns(ctx: Context, buffer: Buffer, accesses: int, more: int) -> None:
    """The turns that are left in the best layout, beside one an access; what makes more layouts fit."""
    size, columns = buffer.dtype.bytes, b.known(buffer.shape[-1]) or 1
    whole = -(-columns * size // _EXCHANGED) * _EXCHANGED
    each = (
        "the 1 access of a warp takes" if accesses == 1 else f"{accesses} accesses of a warp take"
    )
    exchangeable = columns * size == whole
    ctx.diagnostics.warning(
        "T2C518",
        f"lanes that access {buffer.name} together meet in the same banks: {each} "
        f"{accesses + more} turns instead of {accesses}",
        buffer.span,
        help=None
        if exchangeable
        else f"rows of {whole // size} elements ({whole} bytes) allow layouts that exchange parts of "
        f"rows; {columns * size} bytes do not",
    )


def _offset(layout: SharedLayout, columns: int, size: int, row: int, column: int) -> int:
    """Byte offset of an element of a tile of `columns` columns."""
    chunk, rest = divmod(column, layout.chunk)
    at = (chunk ^ row // layout.divide % layout.modulus) * layout.chunk + rest
    return (row * (columns + layout.pad) + at) * size


def _rows_together(
    ctx: Context, gemms: list[Gemm], matrices: dict[int, MatrixPlan]
) -> dict[Buffer, int]:
    """Tiles with k along their rows, whose values a lane would have to gather: how many it holds.

    Tiles that another gemm reads the other way are left out.
    """
    wanted: dict[Buffer, set[int]] = {}
    for gemm in gemms:
        instruction = matrices[id(gemm)].instruction
        sides = (
            (gemm.a, gemm.transpose_a, instruction.a.values),
            (gemm.b, not gemm.transpose_b, instruction.b.values),
        )
        for operand, k_in_rows, values in sides:
            row = operand.ranges[matrix_dims(operand)[0]].start
            together = values if k_in_rows and ctx.facts.divisible(row, values) else 1
            wanted.setdefault(operand.buffer, set()).add(together)
    return {
        buffer: min(groups)
        for buffer, groups in wanted.items()
        if buffer.scope == "shared" and len(groups) == 1 and min(groups) > 1
    }


def _exchange_chunks(ctx: Context, gemms: list[Gemm], matrices: dict[int, MatrixPlan]) -> None:
    """Tiles that matrix operands are read from get chunks of their rows exchanged.

    A chunk is what a lane reads at once, at least 16 bytes. Rows that are read in one phase, 128
    bytes, fall into different groups of banks: with chunks of 16 bytes, chunk c of row r moves to
    c ^ (r % 8) for rows of 128 bytes or more, c ^ (r / 2 % 4) for 64, c ^ (r / 4 % 2) for 32.
    """
    widest: dict[Buffer, int] = {}
    for gemm in gemms:
        instruction = matrices[id(gemm)].instruction
        for operand, values in ((gemm.a, instruction.a.values), (gemm.b, instruction.b.values)):
            size = values * operand.buffer.dtype.bits // 8 if instruction.load == "plain" else 0
            widest[operand.buffer] = max(widest.get(operand.buffer, _CHUNK_BYTES), size)
    for buffer, chunk_bytes in widest.items():
        if buffer.scope != "shared" or buffer.name in ctx.shared or buffer.dtype.bits % 8:
            continue
        columns = b.known(buffer.shape[-1]) or 1
        chunk = chunk_bytes // buffer.dtype.bytes
        found = _exchange(columns * buffer.dtype.bytes, chunk_bytes)
        if found is None or columns % chunk:
            continue
        divide, modulus = found
        name = _function_name(ctx, buffer)
        ctx.shared[buffer.name] = SharedLayout(
            function=name, chunk=chunk, divide=divide, modulus=modulus
        )


def _exchange(row_bytes: int, chunk_bytes: int) -> tuple[int, int] | None:
    """(divide, modulus) of the row's part in the exchange; None where chunks would leave the row."""
    if row_bytes % 128 == 0:
        return 1, 128 // chunk_bytes
    if row_bytes not in (32, 64) or row_bytes <= chunk_bytes:
        return None
    return 128 // row_bytes, row_bytes // chunk_bytes


def share_functions(ctx: Context) -> None:
    """Tiles that are laid out alike get one function; called before any text uses their names."""
    alike: dict[tuple[int, ...], list[str]] = {}
    for name, layout in ctx.shared.items():
        if layout.function:
            formula = (layout.chunk, layout.divide, layout.modulus, layout.group)
            alike.setdefault(formula, []).append(name)
    for tiles in alike.values():
        if len(tiles) < 2:
            continue
        for tile in tiles:
            ctx.namer.release(ctx.shared[tile].function)
        name = ctx.namer.ours("tile_col", "col_of_tile")
        for tile in tiles:
            ctx.shared[tile] = replace(ctx.shared[tile], function=name)


def swizzle_helpers(ctx: Context) -> None:
    """The layout functions of the text, with the tiles that they are for."""
    users: dict[str, list[str]] = {}
    for name, layout in ctx.shared.items():
        if layout.function:
            users.setdefault(layout.function, []).append(name)
    for tiles in users.values():
        layout = ctx.shared[tiles[0]]
        names = listed(tiles)
        if layout.group > 1:
            ctx.need("row_groups", name=layout.function, tile=names, group=layout.group)
            continue
        ctx.need(
            "swizzle",
            name=layout.function,
            tile=names,
            chunk=layout.chunk,
            divide=layout.divide,
            modulus=layout.modulus,
        )
