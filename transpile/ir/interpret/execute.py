"""Statements of a block, in order, for all its lanes at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never, cast

import numpy as np
from tile2c.transpile.ir import forms
from tile2c.transpile.ir.forms import AnyStmt, Stmt
from tile2c.transpile.ir.interpret import access
from tile2c.transpile.ir.interpret.evaluate import evaluate
from tile2c.transpile.ir.interpret.numbers import Array
from tile2c.transpile.ir.interpret.parallel import parallel
from tile2c.transpile.ir.interpret.state import (
    Escapes,
    Mask,
    State,
    both,
    either,
    mask_of,
    some,
    without,
)
from tile2c.transpile.ir.interpret.tiles import combined, tile_statement

MOST_STEPS = 100_000  # statements inside one `while`: some seconds


def execute(state: State, body: tuple[Stmt, ...]) -> None:
    """Runs statements for the active lanes, until none is left."""
    for stmt in body:
        if state.mask is not True and not some(state.mask):
            return
        state.span = stmt.span or state.span
        state.steps += 1
        _statement(state, stmt)


def _statement(state: State, stmt: Stmt) -> None:
    node = cast(AnyStmt, stmt)
    match node:
        case (
            forms.Copy()
            | forms.Fill()
            | forms.Gemm()
            | forms.Reduce()
            | forms.Scan()
            | forms.AtomicTile()
        ):
            _together(state, node, lambda: tile_statement(state, node))
        case forms.Parallel():
            _together(state, node, lambda: parallel(state, node, execute))
        case forms.Atomic():
            _atomic(state, node)
        case forms.Let():
            state.env[node.var.name] = np.array(evaluate(state, node.value))
        case forms.Declare():
            _declare(state, node)
        case forms.Store():
            index = [evaluate(state, part) for part in node.index]
            access.store(state, node.buffer, index, evaluate(state, node.value))
        case forms.For():
            _for(state, node, node.step)
        case forms.Pipelined():
            _for(state, node, 1)
        case forms.While():
            _while(state, node)
        case forms.If():
            _if(state, node)
        case forms.Jump():
            _jump(state, node)
        case forms.AuthorSync():
            if state.roles is not None:
                state.roles.sync(state, node)
        case forms.BulkCopy():
            if state.roles is None or state.roles.first(state):
                tile_statement(state, forms.Copy(src=node.src, dst=node.dst, span=node.span))
        case forms.ElementCopy():
            _element_copy(state, node)
        case forms.BarrierArrive() if state.roles is not None:
            state.roles.arrive(state, node)
        case forms.BarrierWait() if state.roles is not None:
            state.roles.wait_for(state, node)
        case forms.Order() | forms.Hold() | forms.SetRegisters():
            pass  # here everything is done when it is started
        case forms.BarrierArrive() | forms.BarrierWait():
            raise state.fail("a barrier outside a block that has one")
        case forms.Assert():
            good = mask_of(evaluate(state, node.condition))
            if some(without(state.mask, good)):
                raise state.fail(f"assertion failed: {node.message or node.quote}")
        case forms.Foreign():
            raise state.fail(f"{node.name} is foreign code, which only a compiler understands")
        case forms.Print():
            pass  # values are what is asked for here; the emulator prints
        case _:
            assert_never(node)


def _together(state: State, stmt: Stmt, act: Callable[[], None]) -> None:
    """A tile statement: once for all the threads that get to it."""
    if state.roles is None:
        act()
    else:
        state.roles.together(state, stmt, act)


def _element_copy(state: State, node: forms.ElementCopy) -> None:
    """Neighbours along the last dimension, for each active thread."""
    source = [evaluate(state, part) for part in node.source]
    target = [evaluate(state, part) for part in node.target]
    for step in range(node.count):
        moved = access.load(state, node.src, [*source[:-1], source[-1] + step])
        access.store(state, node.dst, [*target[:-1], target[-1] + step], moved)


def _declare(state: State, node: forms.Declare) -> None:
    dtype = node.buffer.dtype
    if node.init is None:
        value: Array = state.numbers.poison((1,), dtype)[0]
    else:
        value = evaluate(state, node.init)
    state.scalars.setdefault(node.buffer.name, value)
    access.store_scalar(state, node.buffer.name, value)


def _atomic(state: State, node: forms.Atomic) -> None:
    """One after the other for every active lane."""
    data = state.storage(node.buffer)
    index = [np.broadcast_to(evaluate(state, part), state.lanes) for part in node.index]
    value = np.broadcast_to(evaluate(state, node.value), state.lanes)
    places, kept = access.selected(state, node.buffer, data, index, value)
    if node.result is not None:
        _with_result(state, node, index, value)
        return
    if kept is None:
        return
    dtype = node.buffer.dtype
    if node.op == "exchange":
        data[places] = kept
        return
    plain = data.dtype.kind in "iu" or data.dtype in (np.float32, np.float64)
    if plain:
        updates = {"add": np.add, "max": np.fmax, "min": np.fmin, "or": np.bitwise_or}
        updates[node.op].at(data, places, kept)
        return
    flat = [np.broadcast_to(part, kept.shape).ravel() for part in places]
    for place, new in zip(zip(*flat, strict=True), kept.ravel(), strict=True):
        data[place] = combined(state.numbers, node.op, dtype, data[place], new)


def _with_result(state: State, node: forms.Atomic, index: list[Array], value: Array) -> None:
    """Lane after lane, each with the value before its own turn."""
    assert node.result is not None
    data = state.storage(node.buffer)
    dtype = node.buffer.dtype
    found = np.zeros(state.lanes, data.dtype)
    active = np.broadcast_to(state.mask, state.lanes)
    for lane in np.ndindex(*state.lanes):
        place = tuple(int(part[lane]) for part in index)
        inside = all(0 <= part < size for part, size in zip(place, data.shape, strict=True))
        if not (active[lane] and inside):
            continue
        found[lane] = data[place]
        data[place] = combined(state.numbers, node.op, dtype, data[place], value[lane])
    state.env[node.result.name] = found


# ---- control flow


def _if(state: State, node: forms.If) -> None:
    outer, present = state.mask, state.present
    chosen = mask_of(evaluate(state, node.condition))
    for mask, body in ((chosen, node.then), (without(True, chosen), node.orelse)):
        state.mask = both(outer, mask)
        if body and some(state.mask):
            if state.roles is not None:
                state.present = state.roles.narrowed(state, node, body is node.then)
            execute(state, body)
    state.present = present
    state.mask = _still_here(state, outer)


def _jump(state: State, node: forms.Jump) -> None:
    match node.kind:
        case "break":
            state.loops[-1].broken = either(state.loops[-1].broken, state.mask)
        case "continue":
            state.loops[-1].continued = either(state.loops[-1].continued, state.mask)
        case "return":
            state.returned = either(state.returned, state.mask)
        case _:
            assert_never(node.kind)
    state.mask = False


def _still_here(state: State, outer: Mask) -> Mask:
    """Lanes of `outer` that have not jumped away."""
    found = without(outer, state.returned)
    if state.loops:
        found = without(without(found, state.loops[-1].broken), state.loops[-1].continued)
    return found


def _for(state: State, node: forms.For | forms.Pipelined, step: int) -> None:
    storage = state.numbers.storage(node.var.dtype)
    start, stop = evaluate(state, node.start), evaluate(state, node.stop)
    distance = np.asarray(stop).astype(np.int64) - np.asarray(start).astype(np.int64)
    counts = np.maximum(-(-distance // step), 0)
    outer = state.mask
    state.loops.append(Escapes())
    for trip in range(int(counts.max())):
        inside = mask_of(trip < counts)
        state.loops[-1].continued = False
        state.mask = both(_still_here(state, outer), inside)
        if not some(state.mask):
            break
        state.env[node.var.name] = (start + trip * step).astype(storage)
        execute(state, node.body)
    state.loops.pop()
    state.mask = _still_here(state, outer)


def _while(state: State, node: forms.While) -> None:
    outer = state.mask
    state.loops.append(Escapes())
    going: Mask = True
    first, rounds = state.steps, 0
    while True:
        state.steps, rounds = state.steps + 1, rounds + 1
        if state.steps - first > MOST_STEPS:
            state.span = node.span or state.span
            raise state.fail(f"this loop is still running after {rounds - 1} rounds")
        state.loops[-1].continued = False
        state.mask = both(_still_here(state, outer), going)
        if not some(state.mask):
            break
        going = both(going, mask_of(evaluate(state, node.condition)))
        state.mask = both(state.mask, going)
        if not some(state.mask):
            break
        execute(state, node.body)
    state.loops.pop()
    state.mask = _still_here(state, outer)
