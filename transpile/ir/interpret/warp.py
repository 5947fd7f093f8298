"""What threads of a warp tell each other: values of all lanes, moved between them."""

from __future__ import annotations

import numpy as np
from tile2c.transpile.ir.expr import Call
from tile2c.transpile.ir.interpret.numbers import Array
from tile2c.transpile.ir.interpret.state import State

WARP = 32
FUNCTIONS = frozenset(
    "shuffle shuffle_xor shuffle_up shuffle_down warp_sum warp_max warp_min warp_bitand warp_bitor "
    "warp_any warp_all warp_ballot block_and block_or block_count lane_index warp_index "
    "warpgroup_index".split()
)


def between_lanes(state: State, node: Call, args: list[Array]) -> Array:
    """The value for every lane. Lanes are threads; what inactive ones hold has no meaning."""
    if node.function in ("lane_index", "warp_index", "warpgroup_index"):
        thread = np.asarray(args[0])
        if node.function == "warpgroup_index":
            return thread // 128
        return thread % WARP if node.function == "lane_index" else thread // WARP
    count = state.count
    value = np.broadcast_to(args[0], (count,))
    active = np.broadcast_to(state.mask, (count,))
    if node.function.startswith("shuffle"):
        return _shuffle(node.function, value, args, count)
    if node.function.startswith("block"):
        votes = value & active
        found = {
            "block_and": bool(np.all(value | ~active)),
            "block_or": bool(votes.any()),
            "block_count": int(votes.sum()),
        }[node.function]
        return state.numbers.constant(int(found), node.dtype)
    result = np.zeros(count, state.numbers.storage(node.dtype))
    for first in range(0, count, WARP):
        part = slice(first, min(first + WARP, count))
        result[part] = _of_warp(state, node, value[part], active[part])
    return result


def _of_warp(state: State, node: Call, value: Array, active: Array) -> Array:
    mine = value[active]
    match node.function:
        case "warp_any":
            return np.asarray(mine.any())
        case "warp_all":
            return np.asarray(mine.all())
        case "warp_ballot":
            bits = sum(1 << int(lane) for lane in np.flatnonzero(value & active))
            return np.asarray(bits, np.uint64)
    wide = state.numbers.widen(mine, node.dtype)
    if not wide.size:
        return np.asarray(value[0])
    fold = {
        "warp_sum": np.add,
        "warp_max": np.fmax,
        "warp_min": np.fmin,
        "warp_bitand": np.bitwise_and,
        "warp_bitor": np.bitwise_or,
    }[node.function]
    return state.numbers.rounded(fold.reduce(wide), node.dtype)


def _shuffle(function: str, value: Array, args: list[Array], count: int) -> Array:
    lane = np.arange(count)
    given = np.broadcast_to(args[1], (count,)).astype(np.int64)
    width = int(np.asarray(args[2]).item()) or WARP
    start, place = lane // width * width, lane % width
    match function:
        case "shuffle":
            source = start + given % width
        case "shuffle_xor":
            source = lane ^ given
        case "shuffle_up":
            source = np.where(place >= given, lane - given, lane)
        case _:
            source = np.where(place + given < width, lane + given, lane)
    shuffled: Array = value[np.clip(source, 0, count - 1)]
    return shuffled
