"""What the planner for machines without threads asks of a target: memories and whole-tile calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from tile2c.transpile.record import record
from tile2c.transpile.targets.cube import CubeUnit
from tile2c.transpile.targets.target import Target


@record(kw_only=True)
class Conversion:
    """How one element type becomes another: a rounding mode for each step."""

    through: tuple[str, ...] = ()  # element types on the way, when there is no direct call
    modes: tuple[str, ...]  # one a step


@record(kw_only=True)
class CoresWords:
    """How a dialect writes what is no call: `{...}` are holes."""

    memory: str = "UB"  # the local memory of a core
    cores: str = "cores"  # what a launch counts
    tasks: str = "fewer"  # how many of them else will do
    task: str = "GetBlockIdx()"  # which of them this is
    stride: str = "GetBlockNum()"  # how many of them run
    handle: str = "{name}_gm"  # a tensor in the body
    parameter: str = "GM_ADDR {name}"  # a tensor among the parameters: {type}, {const} ("const ")
    element: str = "{handle}.GetValue"  # reads one element of a tensor, as a call; "": C's brackets
    at: str = "{tile}[{offset}]"  # a tile from an element on
    seen_as: str = "{tile}.ReinterpretCast<{type}>()"  # its bits as another type
    # What maxima and minima make of NaN: of two operands, and of the elements of a reduction.
    nan_of_two: str = "no document says what Max, Min and their reductions make of it"
    nan_of_many: str = "no document says what Max, Min and their reductions make of it"
    strides: str = (  # what the numbers of `Strides` mean
        "braces hold strides in 32-byte blocks, the result's and each operand's: those between the "
        "blocks of a repeat, then those between repeats"
    )


@record(kw_only=True)
class WeightUnit:
    """A matrix unit of the core itself: left operand and sums in local memory, the right one in a
    memory of its own, brought into the unit's order by a call."""

    memory: str  # what the dialect calls that memory
    bytes: int
    products: Mapping[str, str]  # element type of both operands -> of the sums
    columns: int  # the right operand has a multiple of so many columns
    inner_bytes: int  # and rows of a multiple of so many bytes along the sum
    ordered_as: Mapping[
        str, str
    ]  # element type that the ordering call does not know -> one like it


@record(kw_only=True)
class CoresTarget(Target):
    """Limits and calls of one chip whose cores run one instruction stream over whole tiles.

    Vector calls of `repeats` work on repeats of `repeat_bytes`, addressed in blocks of
    `block_bytes`; those of `counts` take numbers of elements and nothing else.
    """

    vectors: Literal["repeats", "counts"] = "repeats"
    # How units wait for each other: by queues and flags, or by one wait for all at the end of each
    # turn of a loop whose copies run a turn ahead.
    order: Literal["queues", "stages"] = "queues"
    words: CoresWords = CoresWords()
    spelling: Mapping[str, str] = field(
        default_factory=dict
    )  # call -> its name, where not the same
    forms: Mapping[str, str] = field(default_factory=dict)  # call -> template, where it is no call
    trailing: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # call -> last arguments
    apart: frozenset[str] = frozenset()  # calls that cannot write where they read
    helpers: tuple[str, ...] = ()  # templates of functions that its texts may ask for, in order

    cores: int  # vector cores that a launch fills; more blocks than that take turns
    local_bytes: int  # on-chip memory of a vector core that a kernel may use
    select_bytes: int  # of it, what a vector select keeps for itself
    block_bytes: int  # alignment of tiles and unit of strides
    repeat_bytes: int  # what one repeat of a vector call covers
    max_repeats: int  # repeats of one call
    max_stride: int  # blocks between two repeats
    max_copy_rows: int  # rows of one strided copy from or to global memory
    max_queue_buffers: int  # buffers of all queues of one position: each holds event ids
    max_buffers: int  # buffers of a kernel
    arithmetic: Mapping[str, tuple[str, ...]]  # vector call -> element types it takes
    conversions: Mapping[tuple[str, str], Conversion]
    cube: CubeUnit | None = None  # for T.gemm
    weights: WeightUnit | None = None  # for T.gemm, where the core itself multiplies
    widen: Mapping[str, str]  # element type without arithmetic -> the one it is computed in
    held: Mapping[str, str] = field(
        default_factory=dict
    )  # bytes -> the integer in which their values are held while they are computed with

    def lanes(self, size: int) -> int:
        """Elements of `size` bytes in a block."""
        return max(1, self.block_bytes // size)

    def can(self, call: str, dtype: str) -> bool:
        """Whether the vector unit has `call` for elements of `dtype`."""
        return dtype in self.arithmetic.get(call, ())
