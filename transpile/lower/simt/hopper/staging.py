"""Shared tiles of the author's that only hand sums over to a tensor: the store stages them itself."""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.ir.expr import Buffer
from tile2c.transpile.ir.forms import Copy, Launch, Region, Stmt
from tile2c.transpile.ir.walk import reads, statements, writes
from tile2c.transpile.lower import build as b


def drop_staging(launch: Launch) -> tuple[Launch, int]:
    """The launch with `fragment -> shared tile -> tensor` as one copy each, and how many there were.

    reads   tile IR, verified          writes  tile IR, verified
    """
    body: list[Stmt] = []
    gone: set[str] = set()
    for stmt in launch.body:
        before = body[-1] if body else None
        if (
            isinstance(stmt, Copy)
            and isinstance(before, Copy)
            and _hands_over(launch, before, stmt)
        ):
            gone.add(stmt.src.buffer.name)
            comments = (*before.comments, before.quote, *stmt.comments)
            body[-1] = replace(stmt, src=before.src, comments=comments)
        else:
            body.append(stmt)
    buffers = tuple(x for x in launch.buffers if x.name not in gone)
    return replace(launch, body=tuple(body), buffers=buffers), len(gone)


def _hands_over(launch: Launch, first: Copy, second: Copy) -> bool:
    """Whether the second copy takes exactly what the first one left in a tile nobody else uses."""
    tile = first.dst.buffer
    return (
        tile.scope == "shared"
        and first.src.buffer.scope == "fragment"
        and second.src.buffer.name == tile.name
        and second.dst.buffer.scope == "global"
        and second.dst.buffer.dtype == tile.dtype
        and all(_whole(region) for region in (first.src, first.dst, second.src))
        and _uses(launch, tile) == 2
    )


def _whole(region: Region) -> bool:
    return all(
        b.literal(part.start, 0) and b.known(part.extent) == b.known(extent)
        for part, extent in zip(region.ranges, region.buffer.shape, strict=True)
    )


def _uses(launch: Launch, tile: Buffer) -> int:
    """How many statements touch the tile."""
    return sum(
        any(x.name == tile.name for x in (*reads(stmt), *writes(stmt)))
        for stmt in statements(launch.body)
    )
