"""Tile statements under a condition on the thread index: the threads it selects do them, all of them.

The selected threads have to be neighbours. Their fragments are spread over them alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Expr, const
from tile2c.transpile.ir.forms import (
    BulkCopy,
    Copy,
    For,
    Gemm,
    If,
    Order,
    Parallel,
    Pipelined,
    Reduce,
    Scan,
    Stmt,
    While,
)
from tile2c.transpile.ir.walk import reads, statements, writes
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import CCall
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.divergence import Divergence
from tile2c.transpile.lower.simt.frames import Frames, assign_layouts
from tile2c.transpile.lower.simt.layouts import Layout
from tile2c.transpile.lower.simt.per_thread import PerThread
from tile2c.transpile.lower.simt.steps import Team

TILE_STATEMENTS = (Parallel, Copy, Gemm, Reduce, Scan, Pipelined, BulkCopy, Order)


def team_range(ctx: Context, active: Sequence[bool]) -> tuple[int, int] | None:
    """(first, count) of the threads that get here; None where they are no neighbours."""
    chosen = [thread for thread, here in enumerate(active) if here]
    if not chosen or chosen[-1] - chosen[0] + 1 != len(chosen):
        return None
    lanes = ctx.target.lanes
    first, count = chosen[0], len(chosen)
    if count == len(active) or (first % lanes and count > 1):
        return None
    return first, count


def team_of(ctx: Context, active: Sequence[bool]) -> Team | None:
    """How the threads that get here meet."""
    found = team_range(ctx, active)
    if found is None:
        return None
    first, count = found
    return Team(first=first, count=count, meet=_meeting(ctx, first, count))


def _meeting(ctx: Context, first: int, count: int) -> Expr | None:
    lanes = ctx.target.lanes
    if count <= lanes:
        if ctx.target.lanes_meet == "mask":
            mask = b.local(ctx.target.mask(count))
            return CCall(dtype=INT32, function="__syncwarp", args=(mask,))
        if ctx.target.lanes_meet == "wave":
            return CCall(dtype=INT32, function="wave_sync", args=())
        return None
    if count % lanes or not ctx.target.named_barriers:
        return None
    taken = {*ctx.teams.values(), *ctx.named_barriers}
    free = next(number for number in range(1, len(taken) + 2) if number not in taken)
    number = ctx.teams.setdefault((first, count), free)
    return CCall(
        dtype=INT32, function="threads_sync", args=(), template=(const(number), const(count))
    )


def team_frames(ctx: Context, body: Sequence[Stmt], pinned: dict[str, Layout]) -> Frames:
    """Layouts of all fragments: each team's over its own threads, the rest over the block."""
    threads = PerThread(
        ctx.launch.threads, {var.name: dim for dim, var in enumerate(ctx.launch.thread_vars)}
    )
    divergence = Divergence(ctx.launch.body)
    parts = list(teams_of(ctx, tuple(body), threads, divergence))
    if not parts:
        return assign_layouts(ctx, body, pinned)
    rest = _without(tuple(body), [part for part, _ in parts])
    owners: dict[str, tuple[int, int] | None] = {name: None for name in _fragments(rest)}
    frames = assign_layouts(ctx, rest, pinned)
    launch, count = ctx.launch, ctx.threads
    teams: dict[tuple[int, int], list[Stmt]] = {}
    for part, team in parts:
        inner = _apart(part, parts)
        teams.setdefault(team, []).extend(inner)
        for name in _fragments(inner):
            if owners.setdefault(name, team) != team:
                raise failure(
                    "T2C565",
                    f"{name} is used by a part of the threads and by others as well",
                    part[0].span,
                    help="pass its values through a shared tile",
                )
    for team, own in teams.items():
        names = _fragments(own)
        ctx.launch = replace(launch, buffers=tuple(x for x in launch.buffers if x.name in names))
        ctx.threads = team[1]
        held = {name: layout for name, layout in pinned.items() if name in names}
        frames.loops |= assign_layouts(ctx, own, held).loops
        ctx.launch, ctx.threads = launch, count
    return frames


def _fragments(body: Sequence[Stmt]) -> set[str]:
    return {
        buffer.name
        for stmt in statements(tuple(body))
        for buffer in (*reads(stmt), *writes(stmt))
        if buffer.scope == "fragment"
    }


def teams_of(
    ctx: Context, body: tuple[Stmt, ...], threads: PerThread, divergence: Divergence
) -> Iterator[tuple[tuple[Stmt, ...], tuple[int, int]]]:
    """Lists of statements with tile statements that only some threads run, and which those are.

    Lists inside such lists, of fewer threads, come behind them.
    """
    return _teams(ctx, body, threads, divergence, (True,) * ctx.threads)


def _teams(
    ctx: Context,
    body: tuple[Stmt, ...],
    threads: PerThread,
    divergence: Divergence,
    active: tuple[bool, ...],
) -> Iterator[tuple[tuple[Stmt, ...], tuple[int, int]]]:
    for stmt in body:
        if isinstance(stmt, For | Pipelined | While):
            yield from _teams(ctx, stmt.body, threads, divergence, active)
        if not isinstance(stmt, If):
            continue
        chosen = threads.values(stmt.condition)
        for side, part in enumerate((stmt.then, stmt.orelse)):
            inside = active
            if chosen is not None:
                pairs = zip(active, chosen, strict=True)
                inside = tuple(a and bool(c) != bool(side) for a, c in pairs)
            found = team_range(ctx, inside)
            apart = divergence.differs(stmt.condition)
            if apart and found is not None and _has_tiles(part, divergence):
                yield part, found
            yield from _teams(ctx, part, threads, divergence, inside)


def _has_tiles(body: Sequence[Stmt], divergence: Divergence) -> bool:
    """Whether tile statements stand in the list, not below a further condition on the thread."""
    for stmt in body:
        if isinstance(stmt, For | Pipelined | While):
            if _has_tiles(stmt.body, divergence):
                return True
        elif isinstance(stmt, If):
            if divergence.differs(stmt.condition):
                continue
            if _has_tiles((*stmt.then, *stmt.orelse), divergence):
                return True
        elif isinstance(stmt, TILE_STATEMENTS):
            return True
    return False


def _apart(
    part: tuple[Stmt, ...], parts: Sequence[tuple[tuple[Stmt, ...], tuple[int, int]]]
) -> tuple[Stmt, ...]:
    """The list less those inside it that fewer threads run."""
    return _without(part, [other for other, _ in parts if other is not part])


def _without(body: tuple[Stmt, ...], taken: list[tuple[Stmt, ...]]) -> tuple[Stmt, ...]:
    """The statements less those lists."""
    if any(body is part for part in taken):
        return ()
    found: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For | Pipelined | While):
            stmt = replace(stmt, body=_without(stmt.body, taken))
        elif isinstance(stmt, If):
            stmt = replace(
                stmt, then=_without(stmt.then, taken), orelse=_without(stmt.orelse, taken)
            )
        found.append(stmt)
    return tuple(found)
