"""Elements of buffers: loads and stores of many lanes, guarded as the language says (5.5)."""

from __future__ import annotations

import numpy as np
from tile2c.transpile.ir.expr import Buffer
from tile2c.transpile.ir.interpret.numbers import Array
from tile2c.transpile.ir.interpret.state import Mask, State, both, some, uniform


def load(state: State, buffer: Buffer, index: list[Array]) -> Array:
    """One element for each lane; 0 outside a global tensor."""
    if buffer.scope == "variable":
        return state.scalars[buffer.name]
    if buffer.scope == "local":
        data, index = _private(state, buffer, index)
    else:
        data = state.storage(buffer)
    sliced = _slices(state, data, index)
    if sliced is not None:
        return data[sliced].reshape(_lane_shape(state, index))
    inside, index = _clipped(state, buffer, data, index)
    if inside is False or not data.size:  # a tensor without elements has no place to clip to
        return state.numbers.constant(0, buffer.dtype)
    found = np.asarray(data[tuple(index)])
    if inside is True:
        return found
    return np.where(inside, found, state.numbers.constant(0, buffer.dtype))


def store(state: State, buffer: Buffer, index: list[Array], value: Array) -> None:
    """Stores for the active lanes, in order of lanes; dropped outside a global tensor."""
    if buffer.scope == "variable":
        store_scalar(state, buffer.name, value)
        return
    if buffer.scope == "local":
        _spread_private(state, buffer, index, value)
        data, index = _private(state, buffer, index)
    else:
        data = state.storage(buffer)
    if state.mask is True:
        sliced = _slices(state, data, index)
        if sliced is not None and _covers(state, index, value):
            part = data[sliced]
            part[...] = np.broadcast_to(value, _lane_shape(state, index)).reshape(part.shape)
            return
    places, kept = selected(state, buffer, data, index, value)
    if kept is not None:
        data[places] = kept


def selected(
    state: State, buffer: Buffer, data: Array, index: list[Array], value: Array
) -> tuple[tuple[Array, ...], Array | None]:
    """Places and values of the active lanes that are inside; None where there are none."""
    inside, index = _clipped(state, buffer, data, index)
    keep = both(state.mask, inside)
    if not some(keep):
        return (), None
    if keep is True:
        places = np.broadcast_shapes(*(np.shape(part) for part in index))
        shape = np.broadcast_shapes(places, np.shape(value))
        if shape != places:  # many lanes store into few places
            return tuple(np.broadcast_to(part, shape) for part in index), value
        return tuple(index), value
    shape = np.broadcast_shapes(
        np.shape(keep), np.shape(value), *(np.shape(part) for part in index)
    )
    chosen = np.broadcast_to(keep, shape)
    places = tuple(np.broadcast_to(part, shape)[chosen] for part in index)
    return places, np.broadcast_to(value, shape)[chosen]


def store_scalar(state: State, name: str, value: Array) -> None:
    if state.mask is True:
        state.scalars[name] = np.array(value)  # it may be a view of what changes later
    else:
        state.scalars[name] = np.where(state.mask, value, state.scalars[name])


def _clipped(
    state: State, buffer: Buffer, data: Array, index: list[Array]
) -> tuple[Mask, list[Array]]:
    """Which lanes are inside, and an index that is harmless for the others."""
    inside: Mask = True
    found: list[Array] = []
    for part, size in zip(index, data.shape, strict=True):
        part = np.asarray(part)
        if part.size and 0 <= part.min() and part.max() < size:
            found.append(part)
            continue
        good = (part >= 0) & (part < size)
        inside = both(inside, bool(good) if good.size == 1 else good)
        found.append(np.where(good, part, 0))
    if inside is True or buffer.scope == "global":
        return inside, found
    if some(both(state.mask, np.logical_not(inside))):
        shown = ", ".join(str(np.asarray(part).ravel()[0]) for part in index)
        raise state.fail(f"{buffer.name}[{shown}] is outside its shape {data.shape}")
    return inside, found


def _slices(state: State, data: Array, index: list[Array]) -> tuple[slice | int, ...] | None:
    """Plain slices, where each index is one number or one loop variable as it stands."""
    if not state.axes:
        return None
    found: list[slice | int] = []
    last = -1
    for part, size in zip(index, data.shape, strict=True):
        axis = state.axes.get(id(part))
        if axis is not None:
            if axis <= last or state.lanes[axis] > size:
                return None
            found.append(slice(0, state.lanes[axis]))
            last = axis
        elif np.size(part) == 1:
            place = int(np.asarray(part).item())
            if not 0 <= place < size:
                return None
            found.append(place)
        else:
            return None
    return tuple(found) if last >= 0 else None


def _lane_shape(state: State, index: list[Array]) -> tuple[int, ...]:
    used = {state.axes[id(part)] for part in index if id(part) in state.axes}
    return tuple(extent if axis in used else 1 for axis, extent in enumerate(state.lanes))


def _covers(state: State, index: list[Array], value: Array) -> bool:
    """Whether the value varies only along axes that the index has."""
    shape = _lane_shape(state, index)
    varied = np.shape(value)
    if len(varied) > len(shape):
        return False
    return all(a in (1, b) for a, b in zip(varied[::-1], shape[::-1], strict=False))


# ---- private arrays


def _private(state: State, buffer: Buffer, index: list[Array]) -> tuple[Array, list[Array]]:
    """Storage and index of a thread's array: as it is while equal for all, else by thread."""
    data = state.arrays[buffer.name]
    if data.shape[0] == 1:
        return data[0], index
    return data, [np.arange(state.count), *index]


def _spread_private(state: State, buffer: Buffer, index: list[Array], value: Array) -> None:
    """Gives each thread its own copy, once they differ."""
    data = state.arrays[buffer.name]
    if data.shape[0] == 1 and not (
        isinstance(state.mask, bool) and uniform(value) and all(map(uniform, index))
    ):
        state.arrays[buffer.name] = np.repeat(data, state.count, axis=0)
