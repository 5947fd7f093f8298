"""Dynamic shared memory of a kernel with roles: the ring first, then other tiles, then its barriers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Buffer, Expr, const
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import CStmt, Declarator, Local, Placed
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper.roles import Roles, TileLoad
from tile2c.transpile.lower.simt.hopper.store import Passage
from tile2c.transpile.lower.simt.hopper.unfit import Unfit
from tile2c.transpile.lower.simt.shared_memory import bytes_words, stored_as

_TILE_ALIGN = 1024  # the period of the widest swizzle
_BARRIER = 8
BARRIERS = 1024  # bytes, at most, with what fills up to the last multiple


def tile_bytes(load: TileLoad, depth: int) -> int:
    """All stages of a tile; a tile's size is a multiple of the swizzle's period."""
    rows = b.known(load.slabs.rows) or 0
    return depth * rows * load.slabs.count * load.slabs.row_bytes


def declare(
    ctx: Context,
    roles: Roles,
    used: list[Buffer],
    staged: Sequence[Passage] = (),
    *,
    captured: bool,
) -> tuple[list[CStmt], list[Placed], int]:
    """The struct as a helper of the text, its members as names, and its size.

    `staged`: tiles on their way to a tensor, a part for each warpgroup.
    `captured`: lambdas use the names, and C++17 lets them capture no structured bindings.
    """
    from tile2c.transpile.render.expressions import CPrinter

    printer = CPrinter(ctx.target.dialect)
    loaded = {load.tile.name for load in (*roles.loads, *roles.once)}
    lines: list[tuple[str, str, int, int]] = []  # member, name, align, bytes
    placed: list[Placed] = []

    def member(name: str, kind: str, dims: tuple[Expr, ...], align: int, size: int) -> None:
        subscripts = "".join(f"[{printer(dim)}]" for dim in dims)
        text = f"alignas({align}) {kind} {name}{subscripts};"
        lines.append(
            (f"{text}  // {bytes_words(size)}" if size >= 1024 else text, name, align, size)
        )

    for load in roles.loads:
        size = tile_bytes(load, roles.depth)
        kind = printer.type_name(load.tile.dtype)
        member(load.tile.name, kind, (roles.extent, *load.slabs.dims), _TILE_ALIGN, size)
        words = f"slabs of {load.slabs.width} columns, {load.slabs.row_bytes}B swizzle"
        placed.append(Placed(name=load.tile.name, bytes=size, layout=words, versions=roles.depth))
    for load in roles.once:
        size = tile_bytes(load, 1)
        member(
            load.tile.name, printer.type_name(load.tile.dtype), load.slabs.dims, _TILE_ALIGN, size
        )
        words = f"slabs of {load.slabs.width} columns, {load.slabs.row_bytes}B swizzle"
        placed.append(Placed(name=load.tile.name, bytes=size, layout=words))
    for passage in staged:
        name, groups, size = passage.tile, const(roles.groups), passage.own_bytes
        kind = printer.type_name(passage.copy.dst.buffer.dtype)
        member(name, kind, (groups, *passage.slabs.dims), _TILE_ALIGN, size)
        words = f"slabs of {passage.slabs.width} columns, {passage.slabs.row_bytes}B swizzle"
        placed.append(Placed(name=name, bytes=size, layout=f"{words}, one tile a warpgroup"))
    for buffer in used:
        if buffer.name in loaded:
            continue
        dims, size, versions, words = stored_as(ctx, buffer)
        member(buffer.name, printer.type_name(buffer.dtype), dims, 128, size)
        placed.append(Placed(name=buffer.name, bytes=size, layout=words, versions=versions))
    for array in ctx.arrays:
        dtype = ctx.array_types[array.name]
        member(array.name, printer.type_name(dtype), array.dims, dtype.bytes, array.bytes)
        placed.append(Placed(name=array.name, bytes=array.bytes, layout=array.words))
    total = 0
    for index, (_, _, align, size) in enumerate(lines):
        start = -(-total // align) * align
        placed[index] = replace(placed[index], offset=start)
        total = start + size
    total = -(-total // _BARRIER) * _BARRIER
    barriers = [name for ring in roles.rings for name in (ring.full, ring.empty)]
    room = len(barriers) * roles.depth * _BARRIER
    words = "mbarriers, two a stage: it has arrived, it is free again"
    if roles.once:
        barriers.append("ready")
        room += _BARRIER
        words += "; one for what is loaded once"
        if roles.again is not None:
            barriers.append(roles.again.free)
            room += _BARRIER
            words += ", one for when it has been read"
    placed.append(Placed(name=", ".join(barriers), bytes=room, layout=words, offset=total))
    total += room
    total = -(-total // _TILE_ALIGN) * _TILE_ALIGN
    if total > ctx.target.max_shared:
        raise Unfit(f"its shared memory, {total} bytes, is more than {ctx.target.max_shared}")
    depth = printer(roles.extent)
    members = [text for text, *_ in lines]
    for ring in roles.rings:
        arrays = f"{ring.full}[{depth}], {ring.empty}[{depth}]"
        members.append(f"unsigned long long {arrays};  // mbarriers: arrived, free again")
    if roles.again is not None:
        both = f"unsigned long long ready, {roles.again.free};"
        members.append(f"{both}  // mbarriers of what a tile loads once: arrived, free again")
    elif roles.once:
        members.append("unsigned long long ready;  // mbarrier: what is loaded once has arrived")
    ctx.need("shared_struct", name="Shared", members="\n".join(members))
    ctx.need("shared_size", name="Shared", bytes=total, most=ctx.target.max_shared)
    ctx.need("shared_memory", name="shared_bytes", struct="Shared")
    names = [*(name for _, name, _, _ in lines), *barriers]
    whole = "*reinterpret_cast<Shared*>(shared_bytes)"
    if not captured:
        return [_reference("auto&", f"[{', '.join(names)}]", whole)], placed, total
    struct = _reference("Shared&", "shared", whole)
    fields = [_reference("auto&", name, f"shared.{name}") for name in names]
    return [struct, *fields], placed, total


def _reference(ctype: str, name: str, value: str) -> Local:
    declared = Declarator(name=name, value=b.local(value))
    return Local(dtype=INT32, ctype=ctype, const=False, names=(declared,))
