"""T.Parallel: all iterations at once where they cannot tell, else in rounds of the threads."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from tile2c.transpile.ir import forms
from tile2c.transpile.ir.forms import Parallel, Stmt
from tile2c.transpile.ir.interpret.evaluate import whole
from tile2c.transpile.ir.interpret.state import Mask, State, some
from tile2c.transpile.ir.walk import expressions, loads, statements, variables, writes
from tile2c.transpile.record import record

Execute = Callable[[State, tuple[Stmt, ...]], None]


@record
class Needs:
    """What decides how a loop may be run."""

    by_thread: bool  # uses the thread index, or writes what is private and lives on after it
    outer: tuple[str, ...]  # variables and private buffers from outside that it reads
    in_order: frozenset[int]  # loop variables whose iterations update the same elements


def parallel(state: State, loop: Parallel, execute: Execute) -> None:
    """Runs the whole loop."""
    extents = tuple(whole(state, extent) for extent in loop.extents)
    if min(extents, default=1) <= 0:
        return
    needs = _needs(state, loop)
    if needs.by_thread or any(_differs(state, name) for name in needs.outer):
        _by_threads(state, loop, extents, execute)
    else:
        _at_once(state, loop, extents, needs.in_order, execute)


def _needs(state: State, loop: Parallel) -> Needs:
    """Found once for each loop of a run."""
    found = state.memory.get(id(loop))
    if not isinstance(found, Needs):
        found = state.memory[id(loop)] = _analyse(loop)
    return found


def _analyse(loop: Parallel) -> Needs:
    inside = {var.name for var in loop.loop_vars}
    by_thread = False
    outer: list[str] = []
    for stmt in statements(loop.body):
        if isinstance(stmt, forms.Declare):
            inside.add(stmt.buffer.name)
        if isinstance(stmt, (forms.Let, forms.For)):
            inside.add(stmt.var.name)
    for stmt in statements(loop.body):
        for buffer in writes(stmt):
            private = buffer.scope == "local" or buffer.scope == "variable"
            by_thread = by_thread or (private and buffer.name not in inside)
        for expr in expressions(stmt):
            for var in variables(expr):
                by_thread = by_thread or var.kind == "thread"
                outer.append(var.name)
            private_loads = (load for load in loads(expr) if load.buffer.scope in _PRIVATE)
            outer.extend(load.buffer.name for load in private_loads)
        if isinstance(stmt, forms.Jump) and stmt.kind == "return":
            by_thread = True
    names = tuple(sorted(set(outer) - inside))
    return Needs(by_thread, names, _in_order(loop))


_PRIVATE = ("local", "variable")


def _in_order(loop: Parallel) -> frozenset[int]:
    """Axes along which one iteration reads what another stores: `acc[i] += x[i, j]` along j."""
    read = {
        load.buffer.name
        for stmt in statements(loop.body)
        for expr in expressions(stmt)
        for load in loads(expr)
    }
    found: set[int] = set()
    for stmt in statements(loop.body):
        if not isinstance(stmt, forms.Store) or stmt.buffer.scope in _PRIVATE:
            continue
        if stmt.buffer.name in read:
            used = {var.name for expr in stmt.index for var in variables(expr)}
            used |= _through_lets(loop, used)
            found |= {axis for axis, var in enumerate(loop.loop_vars) if var.name not in used}
    return frozenset(found)


def _through_lets(loop: Parallel, used: set[str]) -> set[str]:
    """Variables that the used temporaries were made of."""
    found: set[str] = set()
    for stmt in reversed(list(statements(loop.body))):
        if isinstance(stmt, forms.Let) and stmt.var.name in used | found:
            found |= {var.name for var in variables(stmt.value)}
        if isinstance(stmt, forms.For) and stmt.var.name in used | found:
            for bound in (stmt.start, stmt.stop):
                found |= {var.name for var in variables(bound)}
    return found


def _differs(state: State, name: str) -> bool:
    """Whether threads have different values of something from outside the loop."""
    if name in state.env:
        return bool(np.size(state.env[name]) > 1)
    if name in state.scalars:
        return bool(np.size(state.scalars[name]) > 1)
    return name in state.arrays and state.arrays[name].shape[0] > 1


@contextmanager
def _lanes(state: State, lanes: tuple[int, ...], mask: Mask) -> Iterator[None]:
    outer = (state.lanes, state.mask, state.axes, state.loops)
    state.lanes, state.mask, state.axes, state.loops = lanes, mask, {}, []
    try:
        yield
    finally:
        state.lanes, state.mask, state.axes, state.loops = outer


def _at_once(
    state: State,
    loop: Parallel,
    extents: tuple[int, ...],
    in_order: frozenset[int],
    execute: Execute,
) -> None:
    if not some(state.mask):
        return
    returned, state.returned = state.returned, False
    lanes = tuple(1 if axis in in_order else extent for axis, extent in enumerate(extents))
    with _lanes(state, lanes, True):
        for axis, (var, extent) in enumerate(zip(loop.loop_vars, extents, strict=True)):
            if axis in in_order:
                continue
            shape = [1] * len(extents)
            shape[axis] = extent
            storage = state.numbers.storage(var.dtype)
            values = np.arange(extent, dtype=storage).reshape(shape)
            state.env[var.name] = values
            state.axes[id(values)] = axis
        steps = [range(extents[axis]) for axis in sorted(in_order)]
        for place in itertools.product(*steps):
            for axis, value in zip(sorted(in_order), place, strict=True):
                var = loop.loop_vars[axis]
                state.env[var.name] = state.numbers.constant(value, var.dtype)
            state.mask = True
            execute(state, loop.body)
    state.returned = returned


def _by_threads(state: State, loop: Parallel, extents: tuple[int, ...], execute: Execute) -> None:
    """Iteration n is run by active thread n % count, whole iterations after each other."""
    workers = np.asarray(state.active())
    if not workers.size:
        return
    total = int(np.prod(extents))
    for first in range(0, total, workers.size):
        turn = np.arange(first, min(first + workers.size, total))
        mask = np.zeros(state.count, np.bool_)
        mask[workers[: turn.size]] = True
        chosen: Mask = True if mask.all() else mask
        with _lanes(state, (state.count,), chosen):
            for var, values in zip(loop.loop_vars, np.unravel_index(turn, extents), strict=True):
                lane_values = np.zeros(state.count, state.numbers.storage(var.dtype))
                lane_values[workers[: turn.size]] = values
                state.env[var.name] = lane_values
            execute(state, loop.body)
