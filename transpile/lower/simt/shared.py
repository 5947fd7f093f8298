"""Shared tiles: their layout for the accesses they get, their declaration, what they cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from math import prod

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.expr import Buffer, Expr, const
from tile2c.transpile.ir.forms import Gemm
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import CStmt, Declarator, Local, Placed
from tile2c.transpile.lower.simt.banks import Phase, extra_turns
from tile2c.transpile.lower.simt.context import Context, SharedLayout
from tile2c.transpile.lower.simt.matrix import GemmPlan, MatrixPlan, matrix_dims
from tile2c.transpile.lower.simt.phases import operand_phases

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
        ctx.diagnostics.warning(
            "T2C518",
            f"lanes that read {buffer.name} together meet in the same banks: {len(reads)} accesses "
            f"take {best} turns more",
            buffer.span,
            help="rows of a multiple of 32 bytes leave more room for another layout",
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
        names = " and ".join([", ".join(tiles[:-1]), tiles[-1]] if len(tiles) > 1 else tiles)
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
            partial=not ctx.partial_swizzle.isdisjoint(tiles),
        )


def declare(ctx: Context, used: list[Buffer]) -> tuple[list[CStmt], list[Placed], int]:
    """Declarations of the shared arrays, their table, and the bytes of dynamic shared memory."""
    placed, lines = _arrays(ctx, used)
    total = _total(ctx, {entry.name: entry.bytes for entry in placed})
    _check(ctx, placed, total)
    if total <= ctx.target.static_shared and not ctx.overlays:
        return [line for _, line, _ in lines], placed, 0
    return _dynamic(ctx, lines, placed)


def shared_sizes(ctx: Context, used: list[Buffer]) -> dict[str, int]:
    """Bytes of each shared array of the block."""
    return {entry.name: entry.bytes for entry in _arrays(ctx, used)[0]}


def _total(ctx: Context, sizes: dict[str, int]) -> int:
    """Bytes that all arrays take, those that overlay each other once."""
    saved = 0
    for group in ctx.overlays:
        own = [sizes[name] for name in group if name in sizes]
        saved += sum(own) - max(own, default=0)
    return sum(sizes.values()) - saved


def stored_as(ctx: Context, buffer: Buffer) -> tuple[tuple[Expr, ...], int, int, str]:
    """A shared tile as an array: dimensions, bytes, versions of it, its layout in words."""
    dims: list[Expr] = [b.in_words(extent) for extent in buffer.shape]
    versions = 1
    ring = ctx.ring.get(buffer.name)
    if ring is not None and ring.depth > 1:
        dims.insert(0, ring.extent)
        versions = ring.depth
    layout = ctx.shared.get(buffer.name)
    words = "row-major"
    if layout is not None and layout.pad:
        dims[-1] = b.add(dims[-1], const(layout.pad))
        words = f"rows with {layout.pad} elements more, which spread them over the banks"
    size = prod(b.known(extent) or 1 for extent in dims) * buffer.dtype.bytes
    if layout is not None and layout.group > 1:
        rows, columns = dims[-2:]
        dims[-2:] = [b.div(rows, const(layout.group)), columns, const(layout.group)]
        words = f"{layout.group} rows together, column c at c ^ (c / 8 % 8)"
    elif layout is not None:
        row = "r" if layout.divide == 1 else f"r / {layout.divide}"
        words = f"chunk c of row r at c ^ ({row} % {layout.modulus})"
    return tuple(dims), size, versions, words


def _arrays(ctx: Context, used: list[Buffer]) -> tuple[list[Placed], list[tuple[str, Local, int]]]:
    """Each shared array: its place in the table, and (name, declaration, bytes)."""
    placed: list[Placed] = []
    lines: list[tuple[str, Local, int]] = []
    for buffer in used:
        dims, size, versions, words = stored_as(ctx, buffer)
        placed.append(Placed(name=buffer.name, bytes=size, layout=words, versions=versions))
        lines.append((buffer.name, _declaration(buffer.name, buffer.dtype, dims, 128, size), size))
    for array in ctx.arrays:
        dtype = ctx.array_types[array.name]
        placed.append(Placed(name=array.name, bytes=array.bytes, layout=array.words))
        lines.append(
            (
                array.name,
                _declaration(array.name, dtype, array.dims, None, array.bytes),
                array.bytes,
            )
        )
    return placed, lines


def _declaration(
    name: str, dtype: object, dims: tuple[Expr, ...], align: int | None, size: int
) -> Local:
    from tile2c.transpile.ir.dtypes import DType

    assert isinstance(dtype, DType)
    return Local(
        dtype=dtype,
        names=(Declarator(name=name, dims=dims),),
        const=False,
        shared=True,
        align=align,
        remark=bytes_words(size) if size >= 1024 else "",
    )


def _dynamic(
    ctx: Context, lines: list[tuple[str, Local, int]], placed: list[Placed]
) -> tuple[list[CStmt], list[Placed], int]:
    """More than a static declaration may hold: one struct over dynamic shared memory."""
    from tile2c.transpile.render.expressions import CPrinter

    printer = CPrinter(ctx.target.dialect)
    inside: dict[tuple[str, ...], list[str]] = {}
    total = 0
    groups = {name: group for group in ctx.overlays for name in group}
    sizes = {name: size for name, _, size in lines}
    starts: dict[tuple[str, ...], int] = {}
    for index, (name, line, size) in enumerate(lines):
        align = line.align or line.dtype.bytes
        dims = "".join(f"[{printer(dim)}]" for dim in line.names[0].dims)
        spelled = ctx.target.dialect.types[line.dtype.name]
        member = f"alignas({align}) {spelled} {name}{dims};"
        member = f"{member}  // {bytes_words(size)}" if size >= 1024 else member
        group = groups.get(name, (name,))
        start = starts.setdefault(group, -(-total // align) * align)
        placed[index] = replace(placed[index], offset=start)
        # A union takes the bytes of its largest member from where its first one stands.
        total = max(total, start + max(sizes.get(other, 0) for other in group))
        inside.setdefault(group, []).append(member)
    members = [line for group, parts in inside.items() for line in _member(group, parts)]
    total = -(-total // 128) * 128
    struct = ctx.namer.ours("Shared", "SharedTiles")
    ctx.need("shared_struct", name=struct, members="\n".join(members))
    whole = ctx.namer.ours("shared", "shared_tiles")
    raw = ctx.namer.ours("shared_bytes", "shared_memory")
    ctx.need("shared_memory", name=raw, struct=struct)
    found: list[CStmt] = [
        Local(
            dtype=lines[0][1].dtype,
            ctype=f"{struct}&",
            const=False,
            names=(Declarator(name=whole, value=b.local(f"*reinterpret_cast<{struct}*>({raw})")),),
            remark=f"{bytes_words(total)} of dynamic shared memory",
        )
    ]
    for name, line, _ in lines:
        found.append(
            Local(
                dtype=line.dtype,
                ctype="auto&",
                const=False,
                names=(Declarator(name=name, value=b.local(f"{whole}.{name}")),),
            )
        )
    return found, [replace(entry) for entry in placed], total


def _member(group: tuple[str, ...], parts: list[str]) -> list[str]:
    """A member of the struct, or those that lie in the same bytes."""
    if len(group) == 1:
        return parts
    head = f"union {{  // in the same bytes, one after the other: {', then '.join(group)}"
    return [head, *(f"    {part}" for part in parts), "};"]


def _check(ctx: Context, placed: list[Placed], total: int) -> None:
    if total <= ctx.target.max_shared:
        return
    largest = max(placed, key=lambda entry: entry.bytes)
    rings = sum(entry.bytes // entry.versions for entry in placed if entry.versions > 1)
    fixed = sum(entry.bytes for entry in placed if entry.versions == 1)
    stages = (ctx.target.max_shared - fixed) // rings if rings else 0
    hint = f"num_stages={stages} or a smaller tile" if stages > 0 else "a smaller tile"
    raise failure(
        "T2C401",
        f"the block's shared tiles take {total} bytes, and {ctx.target.name} has {ctx.target.max_shared} "
        f"a block; {largest.name} alone takes {largest.bytes}",
        ctx.launch.span,
        help=f"try {hint}",
    )


def bytes_words(size: int) -> str:
    """`24 KiB`, or `1.5 KiB`, or `96 bytes`."""
    if size < 1024:
        return f"{size} bytes"
    return f"{size // 1024} KiB" if size % 1024 == 0 else f"{size / 1024:.1f} KiB"
