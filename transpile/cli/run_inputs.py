"""The arguments of `tile2c run`: random by a seed, or given and brought to the kernel's types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tile2c.runtime import dtypes
from tile2c.runtime.expressions import ExpressionError, evaluate, names_of, solve
from tile2c.transpile.cli.status import UsageProblem

if TYPE_CHECKING:
    import numpy as np
    from tile2c.runtime.records import Argument, KernelRecord

LARGEST = 1 << 30  # elements of one tensor; more is a mistyped size
SMALL = 128  # a size to propose in its place


def sizes_of_inputs(record: KernelRecord, given: Mapping[str, Any]) -> dict[str, int]:
    """The sizes that the shapes of given arrays tell."""
    found: dict[str, int] = {}
    for argument in record.arguments:
        if argument.kind != "tensor" or argument.name not in given:
            continue
        shape = getattr(given[argument.name], "shape", ())
        for expression, extent in zip(argument.shape, shape, strict=False):
            solved = solve(expression, int(extent), found)
            if solved is not None:
                found.setdefault(*solved)
    return found


def arguments_for(
    record: KernelRecord, sizes: Mapping[str, int], seed: int, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Every argument by name: arrays of the kernel's types, scalars. The same seed, the same bytes.

    Outputs are filled with random values too: what a kernel leaves alone must be left alone.
    """
    import numpy as np

    unknown = sorted(set(given) - {argument.name for argument in record.arguments})
    if unknown:
        known = ", ".join(argument.name for argument in record.arguments)
        raise UsageProblem(
            "T2C001", f"--inputs gives {', '.join(unknown)}, {record.name} has {known}"
        )
    rng = np.random.default_rng(seed)
    found: dict[str, Any] = {}
    for argument in record.arguments:
        if argument.name in given:
            found[argument.name] = _fitted(argument, given[argument.name])
        elif argument.kind == "scalar" and argument.name in sizes:
            found[argument.name] = sizes[argument.name]
        elif argument.kind == "scalar":
            found[argument.name] = _random_scalar(argument.dtype, rng)
        else:
            array = _random(argument, _shape(argument, sizes), rng)
            found[argument.name] = _strided(argument, array, sizes)
    return found


def _strided(argument: Argument, array: Any, sizes: Mapping[str, int]) -> Any:
    """The array with its rows as far apart as the sizes say, where these are its strides."""
    import numpy as np

    if argument.strides is None or not array.size:
        return array
    try:
        strides = [evaluate(stride, sizes) for stride in argument.strides]
    except ExpressionError:
        return array
    pairs = sorted(zip(strides, array.shape, strict=True))
    last = 0  # of the elements that the inner dimensions reach
    for stride, extent in pairs:
        if stride <= last and extent > 1:
            raise UsageProblem(
                "T2C001",
                f"the rows of {argument.name} would overlap: shape {list(array.shape)}, "
                f"strides {strides}",
                "pass --sizes",
            )
        last += stride * (extent - 1)
    item = array.dtype.itemsize
    room = np.zeros(last + 1, dtype=array.dtype)
    spread = np.lib.stride_tricks.as_strided(
        room, array.shape, [stride * item for stride in strides]
    )
    spread[...] = array
    return spread


def copied(array: Any) -> Any:
    """A copy whose rows are as far apart as the array's."""
    import numpy as np

    if not array.size or array.flags.c_contiguous:
        return array.copy()
    item = array.dtype.itemsize
    reach = sum(
        stride * (extent - 1) for stride, extent in zip(array.strides, array.shape, strict=True)
    )
    room = np.zeros(reach // item + 1, dtype=array.dtype)
    found = np.lib.stride_tricks.as_strided(room, array.shape, array.strides)
    found[...] = array
    return found


def _shape(argument: Argument, sizes: Mapping[str, int]) -> tuple[int, ...]:
    try:
        shape = [evaluate(extent, sizes) for extent in argument.shape]
    except ExpressionError as error:
        raise UsageProblem(
            "T2C001", f"the shape of {argument.signature} is not known: {error}", "pass --sizes"
        ) from error
    count = 1
    for extent in shape:
        count *= extent
    if count > LARGEST or any(extent < 0 for extent in shape):
        names = [name for extent in argument.shape for name in sorted(names_of(str(extent)))]
        told = ",".join(f"{name}={min(SMALL, sizes[name])}" for name in dict.fromkeys(names))
        help = f"give smaller ones: --sizes {told}" if told else None
        raise UsageProblem("T2C001", f"{argument.name} would have the shape {shape}", help)
    if shape and dtypes.packed(argument.dtype):
        shape[-1] //= 2
    return tuple(shape)


def _fitted(argument: Argument, value: Any) -> Any:
    """A given value in the kernel's type; archives keep types that NumPy lacks as plain bytes."""
    import numpy as np

    if argument.kind == "scalar":
        return value.item() if hasattr(value, "item") else value
    array = np.asarray(value)
    wanted = dtypes.numpy_dtype(argument.dtype)
    if array.dtype == wanted:
        return np.ascontiguousarray(array)
    if array.dtype.kind == "V" and array.dtype.itemsize == wanted.itemsize:
        return np.ascontiguousarray(array).view(wanted)
    return np.ascontiguousarray(array.astype(wanted))


def _random_scalar(dtype: str, rng: np.random.Generator) -> int | float:
    if dtype.startswith(("int", "uint", "bool")):
        return 1
    return float(round(rng.uniform(0.5, 2.0), 3))


def _random(argument: Argument, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    """Normal numbers; small integers, because they are often indices or counts."""
    import numpy as np

    wanted = dtypes.numpy_dtype(argument.dtype)
    name = argument.dtype
    if dtypes.packed(name):
        return rng.integers(0, 256, shape, dtype=np.uint8).view(wanted)
    if name == "bool":
        return rng.integers(0, 2, shape).astype(wanted)
    if name == "int8":
        return rng.integers(-8, 8, shape).astype(wanted)
    if name.startswith(("int", "uint")):
        return rng.integers(0, 8, shape).astype(wanted)
    if name == "float8_e8m0fnu":
        return (2.0 ** rng.integers(-3, 4, shape)).astype(np.float32).astype(wanted)
    return rng.standard_normal(shape, dtype=np.float32).astype(wanted)
