"""Shared memory of a block: how its tiles are declared, and how many bytes they take."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.expr import Buffer, Expr, const
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import CStmt, Declarator, Local, Placed
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.overlay import ALIGNMENT, Group, group_bytes


def declare(ctx: Context, used: list[Buffer]) -> tuple[list[CStmt], list[Placed], int]:
    """Declarations of the shared arrays, their table, and the bytes of dynamic shared memory."""
    placed, lines = _arrays(ctx, used)
    total = _total(ctx, {entry.name: entry.bytes for entry in placed})
    _check(ctx, placed, total)
    if total <= ctx.target.static_shared and not ctx.overlays:
        return [line for _, line, _ in lines], placed, 0
    return _one_struct(ctx, lines, placed)


def shared_sizes(ctx: Context, used: list[Buffer]) -> dict[str, int]:
    """Bytes of each shared array of the block."""
    return {entry.name: entry.bytes for entry in _arrays(ctx, used)[0]}


def _total(ctx: Context, sizes: dict[str, int]) -> int:
    """Bytes that all arrays take, those that overlay each other once."""
    inside = {name for group in ctx.overlays for layer in group for name in layer}
    alone = sum(size for name, size in sizes.items() if name not in inside)
    return alone + sum(group_bytes(group, sizes) for group in ctx.overlays)


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


def _one_struct(
    ctx: Context, lines: list[tuple[str, Local, int]], placed: list[Placed]
) -> tuple[list[CStmt], list[Placed], int]:
    """One struct for all arrays: some share bytes, or they are more than a static declaration may hold."""
    struct = ctx.namer.ours("Shared", "SharedTiles")
    whole = ctx.namer.ours("shared", "shared_tiles")
    members, places, total = _members(ctx, lines)
    placed = [replace(entry, offset=places[entry.name]) for entry in placed]
    ctx.need("shared_struct", name=struct, members="\n".join(members))
    first = lines[0][1].dtype
    if total <= ctx.target.static_shared:
        dynamic = 0
        static = Declarator(name=whole)
        block = Local(dtype=first, ctype=struct, const=False, shared=True, names=(static,))
        block = replace(block, remark=bytes_words(total))
    else:
        dynamic = total
        raw = ctx.namer.ours("shared_bytes", "shared_memory")
        ctx.need("shared_memory", name=raw)
        cast = b.local(f"*reinterpret_cast<{struct}*>({raw})")
        block = Local(
            dtype=first,
            ctype=f"{struct}&",
            const=False,
            names=(Declarator(name=whole, value=cast),),
            remark=f"{bytes_words(total)} of dynamic shared memory",
        )
    found: list[CStmt] = [block]
    for name, line, _ in lines:
        found.append(
            Local(
                dtype=line.dtype,
                ctype="auto&",
                const=False,
                names=(Declarator(name=name, value=b.local(f"{whole}.{name}")),),
            )
        )
    return found, placed, dynamic


def _members(
    ctx: Context, lines: list[tuple[str, Local, int]]
) -> tuple[list[str], dict[str, int], int]:
    """The struct's members, their offsets, and its size."""
    from tile2c.transpile.render.expressions import CPrinter

    printer = CPrinter(ctx.target.dialect)
    spelled: dict[str, str] = {}
    aligned: dict[str, int] = {}
    sizes = {name: size for name, _, size in lines}
    for name, line, size in lines:
        aligned[name] = line.align or line.dtype.bytes
        dims = "".join(f"[{printer(dim)}]" for dim in line.names[0].dims)
        kind = ctx.target.dialect.types[line.dtype.name]
        member = f"alignas({aligned[name]}) {kind} {name}{dims};"
        spelled[name] = f"{member}  // {bytes_words(size)}" if size >= 1024 else member
    groups: dict[str, Group] = {name: ((name,),) for name in spelled}
    for group in ctx.overlays:
        groups.update((name, group) for layer in group for name in layer)
    members: list[str] = []
    places: dict[str, int] = {}
    total = 0
    for group in dict.fromkeys(groups.values()):
        start = -(-total // max(aligned[x] for layer in group for x in layer if x in aligned))
        start *= max(aligned[x] for layer in group for x in layer if x in aligned)
        for layer in group:
            end = start
            for name in layer:
                if name in aligned:
                    places[name] = -(-end // aligned[name]) * aligned[name]
                    end = places[name] + sizes[name]
            total = max(total, end)  # a union takes the bytes of its largest member
        members += _member([[spelled[x] for x in layer if x in spelled] for layer in group], group)
    return members, places, -(-total // ALIGNMENT) * ALIGNMENT


def _member(layers: list[list[str]], group: Group) -> list[str]:
    """A member of the struct, or those that lie in the same bytes."""
    if len(group) == 1:
        return layers[0]
    words = [" and ".join(layer) for layer in group]
    lines = [f"union {{  // in the same bytes, one after the other: {', then '.join(words)}"]
    for parts in layers:
        if len(parts) > 1:
            parts = ["struct {", *(f"    {part}" for part in parts), "};"]
        lines += [f"    {part}" for part in parts]
    return [*lines, "};"]


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
