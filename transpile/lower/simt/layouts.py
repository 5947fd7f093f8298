"""Fragment layouts: who holds which element of a tile, as digits.

A dimension of extent E is written in mixed radix, fastest digit first; each digit is held by the
thread index or by the thread's own values. From that follow, without search: inverse, equality of
owners, replicas and the text of a coordinate. Digits may multiply past the shape: padding, guarded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import gcd, prod
from typing import Literal

from tile2c.transpile.record import record

_MANY_CHUNKS = 4


@record
class Digit:
    """One factor of one dimension. `weight` is in threads, or in the thread's value index.

    `name` suggests the loop variable over a value digit; it takes no part in comparisons of owners.
    """

    holder: Literal["thread", "value"]
    extent: int
    weight: int
    name: str = "v"

    def owner(self) -> tuple[str, int, int]:
        """What two layouts must share for a thread to hold the same elements."""
        return (self.holder, self.extent, self.weight if self.holder == "thread" else 0)


@record
class Axis:
    """One dimension of the C array that stores a thread's values: value indices by `weight`."""

    extent: int
    weight: int


@record
class Layout:
    """Digits of each dimension, fastest first; storage axes, slowest first."""

    shape: tuple[int, ...]
    dims: tuple[tuple[Digit, ...], ...]
    threads: int
    axes: tuple[Axis, ...]
    element: Literal["array", "vector"] = "array"  # last axis as a C array or as a vector type

    @property
    def values(self) -> int:
        """Elements that one thread holds."""
        return prod(axis.extent for axis in self.axes)

    @property
    def scalar(self) -> bool:
        """Whether a thread's only element is stored as a plain variable, not an array."""
        return len(self.axes) == 1 and self.values == 1

    def reach(self, dim: int) -> int:
        """The extent that the digits of `dim` cover, padding included."""
        return prod(digit.extent for digit in self.dims[dim])

    def padded(self, dim: int) -> bool:
        """Whether the digits of `dim` reach past its extent."""
        return self.reach(dim) > self.shape[dim]

    def value_digits(self) -> tuple[tuple[int, Digit], ...]:
        """(dimension, digit) of every value digit, slowest in storage first."""
        found = [
            (dim, digit)
            for dim, digits in enumerate(self.dims)
            for digit in digits
            if digit.holder == "value" and digit.extent > 1
        ]
        return tuple(sorted(found, key=lambda pair: -pair[1].weight))

    def thread_digits(self) -> tuple[tuple[int, Digit], ...]:
        """(dimension, digit) of every thread digit, by weight."""
        found = [
            (dim, digit)
            for dim, digits in enumerate(self.dims)
            for digit in digits
            if digit.holder == "thread" and digit.extent > 1
        ]
        return tuple(sorted(found, key=lambda pair: pair[1].weight))

    def replicas(self) -> tuple[tuple[int, int], ...]:
        """(weight, extent) of the parts of the thread index that no dimension uses."""
        gaps, at = [], 1
        for _, digit in self.thread_digits():
            if digit.weight > at:
                gaps.append((at, digit.weight // at))
            at = digit.weight * digit.extent
        if at < self.threads:
            gaps.append((at, -(-self.threads // at)))
        return tuple(gaps)

    def free(self) -> tuple[tuple[int, int], ...]:
        """(weight, extent) of the unused parts that every combination of the used ones has."""
        found = self.replicas()
        if not found or found[-1][0] * found[-1][1] <= self.threads:
            return found
        weight, _ = found[-1]
        whole = self.threads // weight
        return (*found[:-1], (weight, whole)) if whole > 1 else found[:-1]

    def turned(self) -> Layout:
        """The same elements for a loop whose dimensions come in the other order."""
        return replace(self, shape=self.shape[::-1], dims=self.dims[::-1])

    def place(self, dim: int, digit: Digit) -> int:
        """The elements of `dim` that one step of `digit` moves."""
        digits = self.dims[dim]
        return prod(other.extent for other in digits[: digits.index(digit)])

    def owners(self, dim: int) -> tuple[tuple[str, int, int], ...]:
        """Comparable description of who holds a coordinate of `dim`."""
        return tuple(digit.owner() for digit in self.dims[dim] if digit.extent > 1)

    def locate(self, thread: int, value: int) -> tuple[int, ...]:
        """The element at value index `value` of `thread`; may lie in the padding."""
        at = []
        for digits in self.dims:
            coordinate, place = 0, 1
            for digit in digits:
                index = thread if digit.holder == "thread" else value
                coordinate += index // digit.weight % digit.extent * place
                place *= digit.extent
            at.append(coordinate)
        return tuple(at)

    def words(self) -> str:
        """The layout for people: `rows lane/4 + 8 h + ...`."""
        return "; ".join(_dimension_words(digits) for digits in self.dims)


def _dimension_words(digits: Sequence[Digit]) -> str:
    parts, place = [], 1
    for digit in digits:
        if digit.extent > 1:
            of = "thread" if digit.weight == 1 else f"thread / {digit.weight}"
            who = f"{of} % {digit.extent}"
            if digit.holder == "value":
                who = f"{digit.name} < {digit.extent}"
            parts.append(f"({who}) * {place}" if place > 1 else f"({who})")
        place *= digit.extent
    return " + ".join(parts) or "0"


def assemble(dims: Sequence[tuple[Digit, ...]], shape: tuple[int, ...], threads: int) -> Layout:
    """A layout from the digits of its dimensions; values are stored row-major, slow digits first."""
    at = 1
    weighted: list[tuple[Digit, ...]] = []
    for digits in reversed(dims):
        own: list[Digit] = []
        for digit in digits:
            if digit.extent == 1:
                continue
            if digit.holder == "value":
                own.append(Digit("value", digit.extent, at, digit.name))
                at *= digit.extent
            else:
                own.append(digit)
        weighted.insert(0, tuple(own))
    layout = Layout(shape, tuple(weighted), threads, ())
    axes = tuple(Axis(digit.extent, digit.weight) for _, digit in layout.value_digits())
    return Layout(shape, layout.dims, threads, axes or (Axis(1, 1),))


def spread(extent: int, width: int, gaps: Sequence[tuple[int, int]]) -> tuple[Digit, ...]:
    """Digits of a dimension over threads that others leave free: (weight, extent) of each gap.

    Neighbours go to one thread's vector, then across the free threads, then to further values.
    """
    digits = [Digit("value", width, 1, "v")]
    left = -(-extent // width)
    for weight, free in gaps:
        used = min(free, _power_of_two_up(left))
        while free % used:
            used -= 1
        digits.append(Digit("thread", used, weight))
        left = -(-left // used)
    digits.append(Digit("value", left, 1, "c"))
    return tuple(digit for digit in digits if digit.extent > 1)


def default_layout(
    shape: tuple[int, ...], threads: int, lanes: int, width: int, reduced: frozenset[int]
) -> Layout:
    """Coalesced: neighbours of the last dimension in one thread's vector, then across threads.

    A row stays within a warp where there are rows for every warp and its dimension is reduced: then
    its reduction needs shuffles only. Otherwise a row gets as many threads as it has vectors.
    """
    last = len(shape) - 1
    rows = prod(shape[:last])
    vectors = -(-shape[last] // width)
    across = _threads_across(rows, vectors, threads, lanes, last in reduced)
    chunks = -(-vectors // across)
    dims: list[tuple[Digit, ...]] = [()] * len(shape)
    weight = 1  # value index
    near = _neighbours(shape[last], width, across, chunks, lanes) if last in reduced else across
    last_digits = [Digit("value", width, weight, "v"), Digit("thread", near, 1)]
    weight *= width
    last_digits.append(Digit("value", chunks, weight, "c"))
    weight *= chunks
    last_digits.append(Digit("thread", across // near, near))
    dims[last] = tuple(digit for digit in last_digits if digit.extent > 1)
    at = across  # thread weight
    names = ("r", "s", "t")
    for order, dim in enumerate(range(last - 1, -1, -1)):
        left = threads // at
        used = _largest_divisor(left, shape[dim])
        per_thread = -(-shape[dim] // used)
        digits = [
            Digit("thread", used, at),
            Digit("value", per_thread, weight, names[min(order, 2)]),
        ]
        dims[dim] = tuple(digit for digit in digits if digit.extent > 1)
        at *= used
        weight *= per_thread
    layout = Layout(shape, tuple(dims), threads, ())
    axes = tuple(Axis(digit.extent, digit.weight) for _, digit in layout.value_digits())
    return Layout(shape, tuple(dims), threads, axes or (Axis(1, 1),))


def _neighbours(extent: int, width: int, across: int, chunks: int, lanes: int) -> int:
    """How many of the threads across a row hold neighbouring vectors, chunk by chunk.

    A warp each, where warps have many chunks: a warp's loads then lie together in memory, which moves
    rows of 16 KiB about 1 % faster on an H200. With two chunks it makes no difference.
    """
    several = across > lanes and across % lanes == 0 and chunks >= _MANY_CHUNKS
    return lanes if several and width * across * chunks == extent else across


def grouped_layout(shape: tuple[int, int], threads: int, width: int, group: int) -> Layout:
    """Each thread holds `group` neighbouring rows of the columns of its vector: it can turn them.

    `group` divides the rows, `width` the columns; vectors get narrower while threads would idle.
    """
    rows, columns = shape
    while width > 1 and columns // width * (rows // group) < threads:
        width //= 2
    across = gcd(threads, columns // width)
    down = gcd(threads // across, rows // group)
    chunks = columns // width // across
    last = (
        Digit("value", width, 1, "v"),
        Digit("thread", across, 1),
        Digit("value", chunks, width * group, "c"),
    )
    first = (
        Digit("value", group, width, "r"),
        Digit("thread", down, across),
        Digit("value", rows // group // down, width * group * chunks, "s"),
    )
    dims = tuple(tuple(digit for digit in digits if digit.extent > 1) for digits in (first, last))
    layout = Layout(shape, dims, threads, ())
    axes = tuple(Axis(digit.extent, digit.weight) for _, digit in layout.value_digits())
    return Layout(shape, dims, threads, axes or (Axis(1, 1),))


def _threads_across(rows: int, vectors: int, threads: int, lanes: int, reduced: bool) -> int:
    """How many threads share a row: a divisor of `threads`."""
    if rows == 1:
        return threads if vectors > 1 else 1
    whole = min(threads, lanes)
    if reduced and rows * whole >= threads and threads % whole == 0:
        limit = whole
    else:
        limit = threads
    wanted = min(limit, _power_of_two_up(vectors))
    candidates = [d for d in range(1, threads + 1) if threads % d == 0 and d <= wanted]
    enough = [d for d in candidates if threads // d <= rows]
    best = [d for d in enough or candidates if d % lanes == 0 or lanes % d == 0]
    return max(best or enough or candidates)


def _largest_divisor(of: int, limit: int) -> int:
    return max(d for d in range(1, of + 1) if of % d == 0 and d <= max(limit, 1))


def _power_of_two_up(value: int) -> int:
    return 1 << max(0, value - 1).bit_length()
