"""Running a function on arrays: sizes from shapes, outputs made, launches and blocks in order."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
from tile2c.transpile.ir.expr import Buffer, Expr, Var
from tile2c.transpile.ir.forms import Function, Launch
from tile2c.transpile.ir.interpret.evaluate import evaluate, whole
from tile2c.transpile.ir.interpret.execute import execute
from tile2c.transpile.ir.interpret.numbers import Array, Numbers, packed, unpacked
from tile2c.transpile.ir.interpret.roles import roles_of, scheduled
from tile2c.transpile.ir.interpret.state import State
from tile2c.transpile.ir.walk import statements, writes

Argument = Array | int | float


def run(
    function: Function, arguments: Mapping[str, Argument], *, float64: bool = False
) -> dict[str, Array]:
    """The tensors that `function` writes, by name; the arguments stay as they are.

    Written tensors may be left out: they start as poison (NaN, or bytes of 0xCD). With `float64`
    floats of every width are held and returned in float64, and nothing is rounded; sizes come from
    the shapes. Raises ValueError or TypeError for arguments that do not fit, `MeaningError` for a
    program without meaning.
    """
    numbers = Numbers(float64)
    written = {
        buffer.name
        for launch in function.launches
        for stmt in statements(launch.body)
        for buffer in writes(stmt)
    }
    with np.errstate(all="ignore"):
        tensors = _given(function, arguments, numbers)
        env = _scalars(function, arguments, numbers)
        env |= _sizes(function, tensors, numbers)
        _complete(function, tensors, env, numbers, written)
        memory: dict[int, object] = {}
        for launch in function.launches:
            _launch(State(numbers, tensors, launch.threads, dict(env), memory=memory), launch)
    return {
        param.name: _outward(tensors[param.tensor.name], param.tensor, float64)
        for param in function.params
        if param.tensor is not None and param.tensor.name in written
    }


# ---- arguments


def _given(
    function: Function, arguments: Mapping[str, Argument], numbers: Numbers
) -> dict[str, Array]:
    known = {param.name for param in function.params}
    for name in arguments:
        if name not in known:
            raise ValueError(f"{function.name} has no parameter {name}")
    tensors: dict[str, Array] = {}
    for param in function.params:
        if param.tensor is None or param.name not in arguments:
            continue
        array = np.asarray(arguments[param.name])
        tensors[param.tensor.name] = _inward(array, param.tensor, numbers)
    return tensors


def _inward(array: Array, tensor: Buffer, numbers: Numbers) -> Array:
    """A copy of an argument in the storage of its type."""
    storage = numbers.storage(tensor.dtype)
    rank = len(tensor.shape)
    if array.ndim != rank:
        raise ValueError(f"{tensor.name} has {rank} dimensions, not {array.ndim}")
    if tensor.dtype.bits == 4 and array.dtype in (np.int8, np.uint8):
        array = unpacked(np.ascontiguousarray(array), tensor.dtype)
    exact = Numbers(False).storage(tensor.dtype)
    same = array.dtype == exact or array.dtype == storage
    if tensor.dtype.kind == "bool" and array.dtype in (np.int8, np.uint8):
        same = True
    if not same and not (numbers.float64 and tensor.dtype.is_float):
        raise TypeError(f"{tensor.name} holds {tensor.dtype}, not {array.dtype}")
    return array.astype(storage, copy=True, order="C")


def _outward(array: Array, tensor: Buffer, float64: bool) -> Array:
    if tensor.dtype.bits == 4 and not (float64 and tensor.dtype.is_float):
        return packed(np.ascontiguousarray(array), tensor.dtype)
    return array


def _scalars(
    function: Function, arguments: Mapping[str, Argument], numbers: Numbers
) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for param in function.params:
        if param.scalar is None:
            continue
        if param.name not in arguments:
            raise ValueError(f"{function.name} needs {param.name}")
        value = np.asarray(arguments[param.name])
        if value.size != 1:
            raise ValueError(f"{param.name} is one number, not an array of {value.shape}")
        found[param.scalar.name] = numbers.constant(value.item(), param.scalar.dtype)
    return found


def _sizes(function: Function, tensors: dict[str, Array], numbers: Numbers) -> dict[str, Array]:
    """Each size from the first dimension or stride where it stands alone."""
    found: dict[str, Array] = {}
    for param in function.params:
        array = tensors.get(param.tensor.name) if param.tensor is not None else None
        if param.tensor is None or array is None:
            continue
        for extent, actual in zip(param.tensor.shape, array.shape, strict=True):
            if isinstance(extent, Var) and extent.kind == "size":
                found.setdefault(extent.name, numbers.constant(actual, extent.dtype))
    for size in function.sizes:
        if size.name not in found and _needed(function, size):
            raise ValueError(f"the size {size.name} is in the shape of no argument that is given")
    return found


def _needed(function: Function, size: Var) -> bool:
    return any(
        extent == size for param in function.params if param.tensor for extent in param.tensor.shape
    )


def _complete(
    function: Function,
    tensors: dict[str, Array],
    env: dict[str, Array],
    numbers: Numbers,
    written: set[str],
) -> None:
    """Checks shapes against each other, and makes the outputs that were left out."""
    state = State(numbers, tensors, (1, 1, 1), env)
    for param in function.params:
        tensor = param.tensor
        if tensor is None:
            continue
        shape = tuple(_extent(state, tensor, extent) for extent in tensor.shape)
        array = tensors.get(tensor.name)
        if array is None and tensor.name not in written:
            raise ValueError(f"{function.name} needs {param.name}")
        if array is None:
            tensors[tensor.name] = numbers.poison(shape, tensor.dtype)
        elif array.shape != shape:
            raise ValueError(f"{param.name} is {array.shape}, but {function.name} needs {shape}")


def _extent(state: State, tensor: Buffer, extent: Expr) -> int:
    try:
        return whole(state, extent)
    except KeyError as missing:
        raise ValueError(f"the shape of {tensor.name} needs the size {missing}") from None


# ---- launches


def _launch(state: State, launch: Launch) -> None:
    if launch.when is not None and not bool(evaluate(state, launch.when)):
        return
    grid = [whole(state, extent) for extent in launch.grid]
    x, y, z = launch.threads
    count = state.count
    lane = np.arange(count, dtype=np.int32)
    indices = (lane % x, lane // x % y, lane // (x * y))
    threads: dict[str, Array] = {
        var.name: index if extent > 1 else index[0]
        for var, index, extent in zip(launch.thread_vars, indices, (x, y, z), strict=False)
    }
    shapes = [
        (buffer, tuple(whole(state, extent) for extent in buffer.shape))
        for buffer in launch.buffers
    ]
    for buffer, shape in shapes:
        if buffer.scope == "global" and buffer.name not in state.tensors:
            state.tensors[buffer.name] = state.numbers.poison(shape, buffer.dtype)
    views: list[tuple[Buffer, Array]] = []
    for view in launch.views:
        shape = tuple(whole(state, extent) for extent in view.shape)
        views.append((view, state.tensors[view.name].reshape(shape)))  # the same memory
    for place in itertools.product(*(range(extent) for extent in reversed(grid))):
        block = State(
            state.numbers, state.tensors, launch.threads, dict(state.env), memory=state.memory
        )
        block.views = views
        block.lanes = (count,)
        block.env |= threads
        for var, value in zip(launch.blocks, reversed(place), strict=True):
            block.env[var.name] = state.numbers.constant(value, var.dtype)
        for buffer, shape in shapes:
            if buffer.scope == "global":
                continue
            if buffer.scope == "local":
                block.arrays[buffer.name] = state.numbers.poison((1, *shape), buffer.dtype)
            else:
                block.tiles[buffer.name] = state.numbers.poison(shape, buffer.dtype)
        if scheduled(launch):
            roles_of(launch, block).run(launch.body, execute)
        else:
            execute(block, launch.body)
