"""Values of expressions, for all lanes at once."""

from __future__ import annotations

from typing import assert_never, cast

import numpy as np
from tile2c.transpile.ir.expr import (
    AnyExpr,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Logical,
    Reinterpret,
    Select,
    Unary,
    Var,
)
from tile2c.transpile.ir.interpret import operations
from tile2c.transpile.ir.interpret.access import load
from tile2c.transpile.ir.interpret.numbers import Array
from tile2c.transpile.ir.interpret.state import State, both, mask_of, some, without
from tile2c.transpile.ir.interpret.warp import FUNCTIONS, between_lanes


def evaluate(state: State, expr: Expr) -> Array:
    """The value of an expression; one element where it is the same for all lanes.

    Inactive lanes get some value of the type.
    """
    node = cast(AnyExpr, expr)
    numbers = state.numbers
    match node:
        case Const():
            return numbers.constant(node.value, node.dtype)
        case Var():
            return state.env[node.name]
        case Load():
            index = [evaluate(state, part) for part in node.index]
            return load(state, node.buffer, index)
        case Binary():
            a, b = evaluate(state, node.a), evaluate(state, node.b)
            return operations.binary(numbers, node.op, node.dtype, a, b)
        case Compare():
            a, b = evaluate(state, node.a), evaluate(state, node.b)
            return operations.compare(numbers, node.op, node.a.dtype, a, b)
        case Unary():
            return _unary(state, node)
        case Logical():
            return _logical(state, node)
        case Select():
            return _select(state, node)
        case Cast():
            return numbers.cast(evaluate(state, node.a), node.a.dtype, node.dtype)
        case Reinterpret():
            return _reinterpret(state, node)
        case Call():
            args = [evaluate(state, arg) for arg in node.args]
            types = [arg.dtype for arg in node.args]
            if node.function.startswith("extern "):
                name = node.function.removeprefix("extern ")
                raise state.fail(f"{name} is foreign code, which only a compiler understands")
            if node.function in ("joined", "part_of"):
                return _bits(state, node, args)
            if node.function in FUNCTIONS:
                return between_lanes(state, node, args)
            return operations.call(numbers, node.function, node.dtype, types, args)
        case _:
            assert_never(node)


def whole(state: State, expr: Expr) -> int:
    """An integer that has to be the same for all active lanes."""
    value = np.asarray(evaluate(state, expr))
    if value.size == 1:
        return int(value.item())
    chosen = np.broadcast_to(value, state.lanes)[np.broadcast_to(state.mask, state.lanes)]
    if chosen.size and np.any(chosen != chosen[0]):
        raise state.fail("a tile statement's bound differs between threads")
    return int(chosen[0]) if chosen.size else 0


def _unary(state: State, node: Unary) -> Array:
    a = evaluate(state, node.a)
    match node.op:
        case "-":
            return operations.negative(state.numbers, node.dtype, a)
        case "~":
            return operations.invert(state.numbers, node.dtype, a)
        case "not":
            return np.logical_not(a)
        case _:
            assert_never(node.op)


def _logical(state: State, node: Logical) -> Array:
    """Short-circuit: the right side is evaluated only for lanes that need it."""
    a = evaluate(state, node.a)
    needed = mask_of(a if node.op == "and" else np.logical_not(a))
    if not some(both(state.mask, needed)):
        return a
    b = _under(state, node.b, needed)
    return np.logical_and(a, b) if node.op == "and" else np.logical_or(a, b)


def _select(state: State, node: Select) -> Array:
    chosen = mask_of(evaluate(state, node.condition))
    if not node.lazy:
        return np.where(chosen, evaluate(state, node.a), evaluate(state, node.b))
    other = without(True, chosen)
    if not some(both(state.mask, other)):
        return _under(state, node.a, chosen)
    if not some(both(state.mask, chosen)):
        return _under(state, node.b, other)
    return np.where(chosen, _under(state, node.a, chosen), _under(state, node.b, other))


def _under(state: State, expr: Expr, mask: Array | bool) -> Array:
    """Evaluates with fewer lanes active, so that the others may index anything."""
    outer = state.mask
    state.mask = both(outer, mask)
    try:
        return evaluate(state, expr)
    finally:
        state.mask = outer


def _bits(state: State, node: Call, args: list[Array]) -> Array:
    """Several elements as one, the first in the low bits; or one part of an element."""
    if state.numbers.float64 and (node.dtype.is_float or node.args[0].dtype.is_float):
        raise state.fail("bits of a float have no meaning where floats are held in float64")
    storage = state.numbers.storage(node.dtype)
    if node.function == "joined":
        parts = np.stack(np.broadcast_arrays(*args), axis=-1)
        return np.ascontiguousarray(parts).view(storage)[..., 0]
    whole, which = np.broadcast_arrays(args[0], args[1])
    parts = np.ascontiguousarray(whole[..., None]).view(storage)
    return np.take_along_axis(parts, which[..., None].astype(np.int64), axis=-1)[..., 0]


def _reinterpret(state: State, node: Reinterpret) -> Array:
    if state.numbers.float64 and (node.dtype.is_float or node.a.dtype.is_float):
        raise state.fail("bits of a float have no meaning where floats are held in float64")
    value = np.asarray(evaluate(state, node.a))
    return value.view(state.numbers.storage(node.dtype))
