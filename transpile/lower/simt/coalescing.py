"""Warnings about global memory: neighbouring threads far apart, and rows that start at odd addresses.

Memory moves in sectors of 32 bytes. Threads whose elements lie further apart than that move a sector for
each element; elements of one or two bytes that cannot be joined to four take a request each.
"""

from __future__ import annotations

from tile2c.transpile.ir.expr import Buffer, Expr, Var, const
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.facts import linear
from tile2c.transpile.lower.simt.access import neighbours
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.iteration import Iteration, ParallelLoop, memory_accesses

SECTOR = 32  # bytes
WORD = 4  # bytes, the narrowest access that keeps the memory busy
FEW = 8  # threads side by side; below that a sector is shared by nobody anyway


def warn_of_scattered(ctx: Context, loop: ParallelLoop, iteration: Iteration) -> None:
    """T2C412 and T2C413, once a tensor and loop."""
    accesses = [x for x in memory_accesses(loop) if x[0].scope == "global"]
    beside = _beside(loop)
    told: set[str] = set()
    for buffer, index in accesses:
        if buffer.name in told:
            continue
        apart = None if beside is None else _bytes_apart(ctx, buffer, index, beside)
        if beside is not None and apart is not None:
            told.add(buffer.name)
            _warn_apart(ctx, loop, buffer, beside, apart)
        elif _narrow(ctx, loop, iteration, buffer, index):
            told.add(buffer.name)
            _warn_narrow(ctx, loop, buffer)


def _beside(loop: ParallelLoop) -> Var | None:
    """The loop variable that differs between neighbouring threads, where the author chose it."""
    if (
        loop.layout is not None
    ):  # threads go where fragments are held: nothing to be done in the program
        return None
    extent = b.known(loop.extents[-1])
    return loop.loop_vars[-1] if extent is None or extent >= FEW else None


def _bytes_apart(
    ctx: Context, buffer: Buffer, index: tuple[Expr, ...], beside: Var
) -> int | str | None:
    """How far a step of `beside` goes, where that is more than a sector; a text for run-time pitches."""
    for part, pitch in zip(index, ctx.pitch(buffer), strict=True):
        steps = [c for atom, c in linear(part).terms if atom == beside]
        if not steps:
            continue
        stride = b.known(pitch)
        if stride is None:
            return f"a row of {buffer.name}"
        bytes_apart = abs(steps[0]) * stride * buffer.dtype.bytes
        return bytes_apart if bytes_apart >= SECTOR and bytes_apart > buffer.dtype.bytes else None
    return None


def _warn_apart(
    ctx: Context, loop: ParallelLoop, buffer: Buffer, beside: Var, apart: int | str
) -> None:
    distance = f"{apart} bytes" if isinstance(apart, int) else apart
    ctx.diagnostics.warning(
        "T2C412",
        f"neighbouring threads take elements of {buffer.name} that lie {distance} apart "
        f"(steps of {beside.author or beside.name}): {buffer.dtype.bytes} of each {SECTOR} bytes "
        "that move are used",
        loop.span,
        help=f"let the last loop variable be the last index of {buffer.name}, and turn the tile in "
        "shared memory",
    )


def _narrow(
    ctx: Context,
    loop: ParallelLoop,
    iteration: Iteration,
    buffer: Buffer,
    index: tuple[Expr, ...],
) -> bool:
    """Whether elements move one by one because the known rows of the tensor start anywhere."""
    size = buffer.dtype.bytes
    last = loop.loop_vars[-1].name
    wanted = WORD // size
    if iteration.width * size >= WORD or not neighbours(ctx, index, last, 2) or len(index) < 2:
        return False
    extent = b.known(loop.extents[-1])
    if extent is None or extent % wanted or extent < FEW:
        return False
    start = b.substitute(index[-1], {last: const(0)})
    if not ctx.facts.divisible(start, wanted):
        return False
    pitches = [b.known(pitch) for pitch in ctx.pitch(buffer)[:-1]]
    return any(pitch is not None and pitch % wanted for pitch in pitches)


def _warn_narrow(ctx: Context, loop: ParallelLoop, buffer: Buffer) -> None:
    row = b.known(ctx.pitch(buffer)[-2]) or 0
    size = buffer.dtype.bytes
    wider = -(-row * size // 16) * 16 // size
    ctx.diagnostics.warning(
        "T2C413",
        f"rows of {buffer.name} are {row * size} bytes long, so they start at no multiple of "
        f"{WORD} bytes and elements of {size} move one by one",
        loop.span,
        help=f"rows of {wider} elements (16 bytes at a time), in the tensor's shape or its strides",
    )
