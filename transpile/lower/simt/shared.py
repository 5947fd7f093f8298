"""Shared tiles: their layout for the accesses they get, their declaration, what they cost."""

from __future__ import annotations

from math import prod

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.expr import Buffer, Expr, const
from tile2c.transpile.ir.forms import Gemm
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import CStmt, Declarator, Local, Placed
from tile2c.transpile.lower.simt.context import Context, SharedLayout
from tile2c.transpile.lower.simt.matrix import MatrixPlan

_CHUNK_BYTES = 16


def choose_layouts(ctx: Context, gemms: list[Gemm], matrices: dict[int, MatrixPlan]) -> None:
    """Tiles that an instruction wants column by column get rows together; others exchange chunks."""
    for buffer, group in _rows_together(gemms, matrices).items():
        base = buffer.name.removesuffix("_shared").removesuffix("_smem").removesuffix("_s")
        name = ctx.namer.ours(f"{base}_col", f"{buffer.name}_col")
        ctx.shared[buffer.name] = SharedLayout(function=name, group=group)
    _exchange_chunks(ctx, gemms, matrices)


def _rows_together(gemms: list[Gemm], matrices: dict[int, MatrixPlan]) -> dict[Buffer, int]:
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
            together = values if k_in_rows and instruction.load == "plain" else 1
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
        base = buffer.name.removesuffix("_shared").removesuffix("_smem").removesuffix("_s")
        name = ctx.namer.ours(f"{base}_col", f"{buffer.name}_col")
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


def swizzle_helpers(ctx: Context) -> None:
    """The layout functions of the text, one a tile, equal formulas said once each."""
    for name, layout in ctx.shared.items():
        if layout.group > 1:
            ctx.need("row_groups", name=layout.function, tile=name, group=layout.group)
            continue
        ctx.need(
            "swizzle",
            name=layout.function,
            tile=name,
            chunk=layout.chunk,
            divide=layout.divide,
            modulus=layout.modulus,
            partial=name in ctx.partial_swizzle,
        )


def declare(ctx: Context, used: list[Buffer]) -> tuple[list[CStmt], list[Placed], int]:
    """Declarations of the shared arrays, their table, and the bytes of dynamic shared memory."""
    placed: list[Placed] = []
    lines: list[tuple[str, Local, int]] = []
    for buffer in used:
        dims: list[Expr] = list(buffer.shape)
        versions = 1
        ring = ctx.ring.get(buffer.name)
        if ring is not None and ring.depth > 1:
            dims.insert(0, ring.extent)
            versions = ring.depth
        size = versions * prod(b.known(extent) or 1 for extent in buffer.shape) * buffer.dtype.bytes
        layout = ctx.shared.get(buffer.name)
        words = "row-major"
        if layout is not None and layout.group > 1:
            rows, columns = dims[-2:]
            dims[-2:] = [b.div(rows, const(layout.group)), columns, const(layout.group)]
            words = f"{layout.group} rows together, column c at c ^ (c / 8 % 8)"
        elif layout is not None:
            row = "r" if layout.divide == 1 else f"r / {layout.divide}"
            words = f"chunk c of row r at c ^ ({row} % {layout.modulus})"
        placed.append(Placed(name=buffer.name, bytes=size, layout=words, versions=versions))
        lines.append(
            (buffer.name, _declaration(buffer.name, buffer.dtype, tuple(dims), 128, size), size)
        )
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
    total = sum(entry.bytes for entry in placed)
    _check(ctx, placed, total)
    if total <= ctx.target.static_shared:
        return [line for _, line, _ in lines], placed, 0
    return _dynamic(ctx, lines, placed)


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
    from dataclasses import replace

    from tile2c.transpile.render.expressions import CPrinter

    printer = CPrinter(ctx.target.dialect)
    members, total = [], 0
    for name, line, size in lines:
        align = line.align or line.dtype.bytes
        dims = "".join(f"[{printer(dim)}]" for dim in line.names[0].dims)
        spelled = ctx.target.dialect.types[line.dtype.name]
        member = f"alignas({align}) {spelled} {name}{dims};"
        members.append(f"{member}  // {bytes_words(size)}" if size >= 1024 else member)
        total = -(-total // align) * align + size
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


def _check(ctx: Context, placed: list[Placed], total: int) -> None:
    if total <= ctx.target.max_shared:
        return
    largest = max(placed, key=lambda entry: entry.bytes)
    hint = (
        f"num_stages={largest.versions - 1} or a smaller tile"
        if largest.versions > 1
        else "a smaller tile"
    )
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
