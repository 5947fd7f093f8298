"""Sizes for `tile2c run`: those given, else small ones with tails, as the launches suggest.

Where some entries take sizes that vectors divide and others the rest, `other_sizes` has the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from math import lcm, prod

from tile2c.runtime.dtypes import packed
from tile2c.runtime.expressions import ExpressionError, evaluate, names_of
from tile2c.runtime.grid import SMS
from tile2c.runtime.records import Argument, KernelRecord, Launch
from tile2c.transpile.cli.run_loops import ROUNDS, Step
from tile2c.transpile.cli.status import UsageProblem, suggestion

UNKNOWN_TILE = 128
SMALLEST_TAIL = 8
APART = 40  # between two sizes of which one has to be larger
MOST_ELEMENTS = 2**20  # of all tensors together: some seconds in the emulator
UNEVEN = 3  # added to a size that vectors of 2, 4, 8 and 16 elements divide
EVEN = 32  # divides what conditions on vectors of 16 elements, or of 32 halves of a byte, ask for

_CAPPED = re.compile(r"min\(.*,\s*(\d+)\)")
_PROMISE = re.compile(r"(?:\w+\.)?(\w+)\s*%\s*(\d+)\s*==?\s*(\d+)")


def passed_sizes(record: KernelRecord) -> tuple[str, ...]:
    """Whole numbers among the arguments that shapes or grids ask for."""
    asked = {name for launch in record.launches for extent in launch.grid
             for name in names_of(str(extent))}  # fmt: skip
    for argument in record.arguments:
        asked |= {name for extent in argument.shape for name in names_of(str(extent))}
    return tuple(
        argument.name
        for argument in record.arguments
        if argument.kind == "scalar" and argument.name in asked
    )


def given_sizes(text: str | None, record: KernelRecord) -> dict[str, int]:
    """`M=512,N=512` as numbers; UsageProblem for an unknown size or what is no number."""
    found: dict[str, int] = {}
    sizes = (*record.sizes, *passed_sizes(record))
    for part in (text or "").split(","):
        name, _, value = part.strip().partition("=")
        if not part.strip():
            continue
        if not name or not value.strip().isdecimal():
            told = ",".join(f"{name}={size}" for name, size in default_sizes(record).items())
            help = f"--sizes {told}" if told else f"all sizes of {record.name} are fixed"
            raise UsageProblem("T2C001", f"--sizes {part}: not of the form NAME=NUMBER", help)
        if name not in sizes and record.parameters.get(name) == int(value):
            continue
        if name not in sizes:
            fixed = record.parameters.get(name)
            if fixed is not None:
                help = f"leave it out, or generate with -D {name}={value.strip()} or without {name}"
                raise UsageProblem("T2C001", f"--sizes: {name} is fixed to {fixed}", help)
            known = ", ".join(sizes)
            hint = suggestion(name, sizes) or (
                f"the sizes of {record.name} are {known}" if known else "all its sizes are fixed"
            )
            raise UsageProblem("T2C001", f"--sizes: {record.name} has no size {name}", hint)
        if found.setdefault(name, int(value)) != int(value):
            raise UsageProblem(
                "T2C001", f"--sizes {part} contradicts {name}={found[name]}", f"one {name}=NUMBER"
            )
    return found


def default_sizes(
    record: KernelRecord, steps: Mapping[str, tuple[Step, ...]] | None = None
) -> dict[str, int]:
    """A small size for each name that leaves a tail in the last tile.

    With the steps of loops over tiles, as the program says them, each loop has some rounds.
    """
    names = (*record.sizes, *passed_sizes(record))
    taken = steps or {}
    found = {name: _kept(record, name, _small(record, name, taken.get(name, ()))) for name in names}
    _keep_small(record, found)
    _keep_promises(record, found)
    for argument in record.arguments:
        _spread_strides(record, argument, found)
    return found


def _keep_small(record: KernelRecord, sizes: dict[str, int]) -> None:
    """Fewer of what has a block each (images of a batch, rows) where all tensors together are large."""
    lone = [name for name in sizes if _grid_tile(record, name) == 1]
    while _elements(record, sizes) > MOST_ELEMENTS:
        name = max(lone, key=lambda one: sizes[one], default=None)
        if name is None or sizes[name] == 1:
            return
        sizes[name] //= 2


def _elements(record: KernelRecord, sizes: dict[str, int]) -> int:
    """Of all tensors together, as far as sizes tell."""
    total = 0
    for argument in record.arguments:
        try:
            total += prod(evaluate(extent, sizes) for extent in argument.shape)
        except ExpressionError:
            continue
    return total


def _keep_promises(record: KernelRecord, sizes: dict[str, int]) -> None:
    """Sizes of a condition that every call has to meet (`seq_kv >= seq_q`), so that it is met."""
    for condition in record.requires:
        names = [name for name in sizes if name in names_of(condition)]
        if not names or _holds(condition, sizes):
            continue
        most = max(sizes[name] for name in names)
        trials = [{name: _kept(record, name, most + APART)} for name in names]
        trials.append({name: most for name in names})
        for trial in trials:
            if all(_holds(other, {**sizes, **trial}) for other in record.requires):
                sizes.update(trial)
                break


def _holds(condition: str, sizes: dict[str, int]) -> bool:
    """Whether sizes meet the condition; one on anything else is not theirs to meet."""
    try:
        return bool(evaluate(condition, sizes))
    except ExpressionError:
        return True


def _spread_strides(record: KernelRecord, argument: Argument, sizes: dict[str, int]) -> None:
    """Sizes that are strides and nothing else become large enough for rows not to overlap."""
    shapes = {name for other in record.arguments for extent in other.shape
              for name in names_of(str(extent))}  # fmt: skip
    reach = 1
    pairs = list(zip(argument.strides or (), argument.shape, strict=False))
    for stride, extent in reversed(pairs):
        name = str(stride)
        try:
            if name in sizes and name not in shapes:
                sizes[name] = max(sizes[name], _kept(record, name, reach + SMALLEST_TAIL))
            reach = max(reach, evaluate(stride, sizes) * max(evaluate(extent, sizes), 1))
        except ExpressionError:
            return


def _small(record: KernelRecord, name: str, steps: tuple[Step, ...]) -> int:
    tile = _grid_tile(record, name)
    size = 0 if tile is None else tile * _most_blocks(record, name) + _tail(record, name, tile)
    for step in steps:
        last = _tail(record, name, step.elements)
        size = max(size, step.elements * (step.rounds - 1) + last)
    if size:
        return size
    block = record.parameters.get(f"block_{name}")
    if not isinstance(block, int) or block <= 1:
        return UNKNOWN_TILE + SMALLEST_TAIL
    return block * ROUNDS + SMALLEST_TAIL


def _tail(record: KernelRecord, name: str, tile: int) -> int:
    """Part of a tile, of whole vectors; half of a narrow tile, unless an entry asks for vectors."""
    if 1 < tile <= SMALLEST_TAIL and name not in _asked_by_conditions(record):
        return tile // 2
    return max(SMALLEST_TAIL, tile // 3 // SMALLEST_TAIL * SMALLEST_TAIL)


def other_sizes(record: KernelRecord, sizes: dict[str, int]) -> Iterator[dict[str, int]]:
    """Sizes near these at which entries run that these leave out: uneven ones, then even ones."""
    seen = set(_entries(record, sizes))
    asked = sorted(_asked_by_conditions(record) & set(sizes))
    uneven = dict(sizes)
    for name in asked:
        other = _kept(record, name, sizes[name] + _step(record, name))
        if set(_entries(record, {**sizes, name: other})) - seen:
            uneven[name] = other
    even = {
        **sizes,
        **{name: _kept(record, name, -(-sizes[name] // EVEN) * EVEN) for name in asked},
    }
    for trial in (uneven, even):
        new = set(_entries(record, trial)) - seen
        if new and all(_holds(condition, trial) for condition in record.requires):
            seen |= new
            yield trial


def _asked_by_conditions(record: KernelRecord) -> frozenset[str]:
    """Names that decide which entry of a launch runs."""
    asked = (names_of(launch.when) for launch in record.launches if launch.when is not None)
    return frozenset().union(*asked)


def _step(record: KernelRecord, name: str) -> int:
    """How far the next size is that fits the shapes: `K / 2` asks for steps of 2."""
    divided = re.compile(rf"\b{re.escape(name)}\b\s*//?\s*(\d+)")
    step = 1
    for argument in record.arguments:
        for extent in argument.shape:
            step = lcm(step, *(int(found[1]) or 1 for found in divided.finditer(str(extent))))
        if argument.shape and packed(argument.dtype) and name in names_of(argument.shape[-1]):
            step = lcm(step, 2)
    return step * UNEVEN if step % 2 else step


def _entries(record: KernelRecord, sizes: dict[str, int]) -> tuple[str, ...]:
    """The entries that a call with these sizes launches, as far as they tell: on few SMs, aligned."""
    known = {**{argument.name: 0 for argument in record.arguments}, SMS: 1, **sizes}
    found = []
    for _, group in groupby(record.launches, key=lambda launch: launch.group):
        chosen = next((one for one in group if one.when is None or _true(one.when, known)), None)
        found += [] if chosen is None else [chosen.entry]
    return tuple(found)


def _true(condition: str | int, names: dict[str, int]) -> bool:
    try:
        return bool(evaluate(condition, names))
    except ExpressionError:
        return False


def _extents_of(record: KernelRecord, name: str) -> list[str]:
    """The grid's extents that ask for a size, of the launches that compute."""
    extents = [str(extent) for launch in _computing(record) for extent in launch.grid]
    return [extent for extent in extents if name in names_of(extent)]


def _computing(record: KernelRecord) -> list[Launch]:
    """The launches of groups that always run one: others only prepare operands for some sizes."""
    always = {launch.group for launch in record.launches if launch.when is None}
    return [launch for launch in record.launches if launch.group in always or not always]


def _grid_tile(record: KernelRecord, name: str) -> int | None:
    """By what the grid divides a size: 128 for `(N + 127) / 128`; 1 for a block each, or several."""
    # No factor and no bracket may open on the way: `M * ((K + 63) / 64)` divides K alone.
    division = re.compile(rf"\b{re.escape(name)}\b((?: \* \d+)*)[^/%,*(]*(?://?|,)\s*(\d+)")
    extents = _extents_of(record, name)
    for extent in extents:
        found = division.search(extent)
        if found is not None and int(found[2]) > 0:
            each = prod(map(int, re.findall(r"\d+", found[1])))
            return max(1, int(found[2]) // max(1, each))
    return 1 if extents else None


def _most_blocks(record: KernelRecord, name: str) -> int:
    """How many blocks a size may have before they take several tiles each: 40 of `min(…, 40)`.

    Where several sizes share the blocks, small ones stay small: the matrix would be large.
    """
    for extent in _extents_of(record, name):
        found = _CAPPED.fullmatch(extent)
        if found is not None and names_of(extent) == {name}:
            return int(found[1])
    return 1


def _kept(record: KernelRecord, name: str, size: int) -> int:
    """The next size that keeps the promises made with `-D M%16=0`."""
    for define in record.defines:
        promise = _PROMISE.fullmatch(define.strip())
        if promise and promise[1] == name:
            divisor, remainder = int(promise[2]), int(promise[3])
            size += (remainder - size) % max(divisor, 1)
    return size
