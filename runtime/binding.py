"""Binds call arguments to a kernel's parameters, finds sizes from shapes and checks both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tile2c.runtime import dtypes
from tile2c.runtime.expressions import ExpressionError, evaluate, names_of, solve
from tile2c.runtime.records import Argument, Expression, KernelRecord
from tile2c.runtime.tensors import TensorView, allocate_like, view


@dataclass(frozen=True, slots=True)
class Bound:
    """A call: its tensors and scalars by name, its sizes, and the outputs that were allocated."""

    tensors: Mapping[str, TensorView]
    scalars: Mapping[str, object]
    sizes: Mapping[str, int]
    fresh: tuple[str, ...]  # outputs allocated for this call, in the author's order


def bind(record: KernelRecord, args: Sequence[object], keywords: Mapping[str, object]) -> Bound:
    """The call `kernel(*args, **keywords)`; raises TypeError or ValueError naming the argument."""
    given_sizes = {name: keywords[name] for name in record.sizes if name in keywords}
    named = {name: value for name, value in keywords.items() if name not in given_sizes}
    values = _assigned(record, args, named)
    tensors: dict[str, TensorView] = {}
    scalars: dict[str, object] = {}
    for argument in record.arguments:
        if argument.name not in values:
            continue
        value = values[argument.name]
        if argument.kind == "scalar":
            scalars[argument.name] = value
        else:
            tensors[argument.name] = _viewed(record, argument, value)
    sizes = _Sizes(record)
    for name, value in given_sizes.items():
        sizes.give(name, int(value), f"{name}={value}")  # type: ignore[call-overload]
    sizes.find(tensors)
    fresh = [item for item in record.arguments if item.is_out and item.name not in tensors]
    like = next(iter(tensors.values()), None)
    for argument in fresh:
        tensors[argument.name] = _allocated(argument, like, sizes)
    ordered = {a.name: tensors[a.name] for a in record.arguments if a.kind == "tensor"}
    return Bound(ordered, scalars, sizes.values, tuple(a.name for a in fresh))


def _assigned(
    record: KernelRecord, args: Sequence[object], named: Mapping[str, object]
) -> dict[str, object]:
    """Values by parameter: positional ones with or without the outputs, then keywords."""
    known = [argument.name for argument in record.arguments]
    for name in named:
        if name not in known:
            raise TypeError(f"{record.name} has no argument {name}; it takes {_takes(record)}")
    left = [argument for argument in record.arguments if argument.name not in named]
    inputs = [argument for argument in left if not argument.is_out]
    if len(args) == len(left):
        chosen = left
    elif len(args) == len(inputs):
        chosen = inputs
    else:
        counts = " or ".join(str(count) for count in sorted({len(inputs), len(left)}))
        raise TypeError(
            f"{record.name} takes {counts} positional arguments here, {len(args)} were passed; "
            f"it takes {_takes(record)}"
        )
    _check_order(record, chosen, named)
    values = {argument.name: value for argument, value in zip(chosen, args, strict=True)}
    return {**values, **named}


def _check_order(
    record: KernelRecord, chosen: Sequence[Argument], named: Mapping[str, object]
) -> None:
    """An input given by name, with positional ones left for those behind it, is most likely twice."""
    last = chosen[-1] if chosen else None
    for argument in record.arguments:
        if argument is last:
            return
        if argument.name in named and not argument.is_out and last is not None:
            raise TypeError(
                f"{record.name}: {argument.name} is passed by name, so what comes after it must be "
                f"passed by name too; it takes {_takes(record)}"
            )


def _takes(record: KernelRecord) -> str:
    parts = [
        f"{argument.signature} (out, may be left out)" if argument.is_out else argument.signature
        for argument in record.arguments
    ]
    return ", ".join(parts)


def _viewed(record: KernelRecord, argument: Argument, value: object) -> TensorView:
    try:
        found = view(value, argument.name)
    except ValueError as error:
        raise ValueError(f"{argument.name} is {error}") from error
    if not dtypes.accepts(argument.dtype, found.dtype):
        raise TypeError(f"{argument.name} is {found.dtype}, {record.name} takes {argument.dtype}")
    if len(found.shape) != len(argument.shape):
        raise ValueError(
            f"{argument.name} has shape {_shown(found.shape)}, "
            f"{record.name} takes {argument.signature}"
        )
    if argument.written and found.read_only:
        raise ValueError(f"{argument.name} is written by {record.name}, but it is read-only")
    if argument.strides is None and found.strides is not None:
        raise ValueError(
            f"{argument.name} has gaps or is transposed (strides {_shown(found.strides)}), "
            f"{record.name} takes rows without gaps; pass a contiguous copy"
        )
    return found


def _shown(values: Sequence[object]) -> str:
    return "[" + ", ".join(str(value) for value in values) + "]"


class _Sizes:
    """Sizes found so far, each with the argument that told it."""

    def __init__(self, record: KernelRecord) -> None:
        self.record = record
        self.values: dict[str, int] = {}
        self._from: dict[str, str] = {}

    def give(self, name: str, value: int, origin: str) -> None:
        """Takes a size; it must be what others said."""
        known = self.values.setdefault(name, value)
        self._from.setdefault(name, origin)
        if known != value:
            raise ValueError(f"{name} is {value} by {origin}, but {known} by {self._from[name]}")

    def find(self, tensors: Mapping[str, TensorView]) -> None:
        """Solves the shapes for the sizes: plain names first, then what follows from them."""
        pending = list(self._extents(tensors))
        while pending:
            left = []
            for name, expression, actual in pending:
                if isinstance(expression, str) and expression in self.record.sizes:
                    self.give(expression, actual, name)
                elif names_of(expression) <= set(self.values):
                    self._check(name, expression, actual)
                elif solved := solve(expression, actual, self.values):
                    self.give(solved[0], solved[1], name)
                else:
                    left.append((name, expression, actual))
            if len(left) == len(pending):
                name, expression, actual = left[0]
                unknown = ", ".join(sorted(names_of(expression) - set(self.values)))
                raise ValueError(f"{name} tells no {unknown}: pass {unknown} by keyword")
            pending = left

    def _extents(self, tensors: Mapping[str, TensorView]) -> list[tuple[str, Expression, int]]:
        found: list[tuple[str, Expression, int]] = []
        for argument in self.record.arguments:
            tensor = tensors.get(argument.name)
            if tensor is None:
                continue
            shape = list(tensor.shape)
            if shape and dtypes.packed(argument.dtype) and not dtypes.packed(tensor.dtype):
                shape[-1] *= 2
            found += [(argument.name, *pair) for pair in zip(argument.shape, shape, strict=True)]
            if argument.strides is not None:
                strides = tensor.strides or _row_strides(tensor.shape)
                pairs = zip(argument.strides, strides, tensor.shape, strict=True)
                found += [(argument.name, e, s) for e, s, extent in pairs if extent != 1]
        return sorted(found, key=lambda item: item[1] not in self.record.sizes)

    def _check(self, name: str, expression: Expression, actual: int) -> None:
        expected = evaluate(expression, self.values)
        if expected == actual:
            return
        reasons = [f"{n} = {self.values[n]} by {self._from[n]}" for n in names_of(expression)]
        because = f" with {', '.join(sorted(reasons))}" if reasons else ""
        argument = self.record.argument(name)
        raise ValueError(
            f"{name}: {self.record.name} takes {argument.signature}{because}, so {expression} must "
            f"be {expected}, not {actual}"
        )


def _row_strides(shape: Sequence[int]) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.insert(0, step)
        step *= extent
    return tuple(strides)


def _allocated(argument: Argument, like: TensorView | None, sizes: _Sizes) -> TensorView:
    try:
        shape = [evaluate(extent, sizes.values) for extent in argument.shape]
    except ExpressionError as error:
        raise ValueError(
            f"{argument.name} was not passed, and its shape {_shown(argument.shape)} does not "
            f"follow from the other arguments: {error}"
        ) from error
    if dtypes.packed(argument.dtype):
        shape[-1] //= 2
    made = allocate_like(like, tuple(shape), argument.dtype)
    if made is None:
        raise TypeError(
            f"{argument.name} must be passed: the framework of the other tensors is not known"
        )
    return view(made, argument.name)
