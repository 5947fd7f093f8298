"""Dynamic shared memory of a kernel with roles: the ring first, then other tiles, then its barriers."""

from __future__ import annotations

from collections.abc import Sequence

from tile2c.transpile.ir.expr import Buffer, const
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import CStmt, Placed
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper.roles import Roles, TileLoad
from tile2c.transpile.lower.simt.hopper.store import Passage
from tile2c.transpile.lower.simt.hopper.struct import TILE_ALIGN, SharedStruct, reference
from tile2c.transpile.lower.simt.hopper.unfit import Unfit
from tile2c.transpile.lower.simt.shared_memory import stored_as

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
    struct = SharedStruct(ctx)
    for load in roles.loads:
        tile, slabs, size = load.tile, load.slabs, tile_bytes(load, roles.depth)
        dims = (roles.extent, *slabs.dims)
        struct.slabs(tile.name, tile.dtype, slabs, dims, size, versions=roles.depth)
    for load in roles.once:
        tile, slabs, size = load.tile, load.slabs, tile_bytes(load, 1)
        struct.slabs(tile.name, tile.dtype, slabs, slabs.dims, size)
    for passage in staged:
        dims = (const(roles.groups), *passage.slabs.dims)
        dtype, size = passage.copy.dst.buffer.dtype, passage.own_bytes
        more = ", a tile a warpgroup"
        struct.slabs(passage.tile, dtype, passage.slabs, dims, size, more=more)
    loaded = {load.tile.name for load in (*roles.loads, *roles.once)}
    for buffer in used:
        if buffer.name not in loaded:
            dims, size, versions, words = stored_as(ctx, buffer)
            struct.array(buffer.name, buffer.dtype, dims, size, words, versions=versions)
    struct.own_arrays()
    _barriers(struct, roles)
    total = struct.size(TILE_ALIGN)
    if total > ctx.target.max_shared:
        raise Unfit(f"its shared memory, {total} bytes, is more than {ctx.target.max_shared}")
    struct.need("Shared", "shared_bytes")
    whole = "*reinterpret_cast<Shared*>(shared_bytes)"
    if not captured:
        return [reference("auto&", f"[{', '.join(struct.names)}]", whole)], struct.placed, total
    fields = [reference("auto&", name, f"shared.{name}") for name in struct.names]
    return [reference("Shared&", "shared", whole), *fields], struct.placed, total


def _barriers(struct: SharedStruct, roles: Roles) -> None:
    """Two a stage of each ring; one or two for what is loaded once."""
    names = [name for ring in roles.rings for name in (ring.full, ring.empty)]
    count = len(names) * roles.depth
    words = "mbarriers, two a stage: it has arrived, it is free again"
    depth = struct.printer(roles.extent)
    members = [
        f"unsigned long long {ring.full}[{depth}], {ring.empty}[{depth}];"
        "  // mbarriers: arrived, free again"
        for ring in roles.rings
    ]
    if roles.again is not None:
        names += [roles.kept, roles.again.empty]
        count += 2
        words += "; one for what is loaded once, one for when it has been read"
        members.append(
            f"unsigned long long {roles.kept}, {roles.again.empty};  // the same for what a tile loads once"
        )
    elif roles.once:
        names.append(roles.kept)
        count += 1
        words += "; one for what is loaded once"
        members.append(
            f"unsigned long long {roles.kept};  // mbarrier: what is loaded once has arrived"
        )
    struct.barriers(names, count, words, members)
