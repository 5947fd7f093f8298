"""What the planner for machines with threads asks of a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from tile2c.transpile.record import record
from tile2c.transpile.targets.target import Target


@record(kw_only=True)
class Fragment:
    """Who holds what of a matrix operand: digits of (row, column), fastest first.

    A digit is (holder, extent, weight); holder "lane" counts in lanes, "value" in registers' elements.
    """

    shape: tuple[int, int]
    rows: tuple[tuple[Literal["lane", "value"], int, int], ...]
    columns: tuple[tuple[Literal["lane", "value"], int, int], ...]

    @property
    def values(self) -> int:
        """Elements that one lane holds."""
        total = 1
        for holder, extent, _ in (*self.rows, *self.columns):
            total *= extent if holder == "value" else 1
        return total


@record(kw_only=True)
class MatrixInstruction:
    """c (m, n) += a (m, k) @ b (k, n), held by the lanes of one warp. `b` maps (n, k)."""

    name: str  # the helper's template: mma_m16n8k16
    m: int
    n: int
    k: int
    inputs: tuple[str, ...]  # element types of a and b it takes
    output: str
    a: Fragment
    b: Fragment
    c: Fragment
    operand: Literal["packed", "vector"]  # registers of 32 (or 64) bits, or a vector type
    # How operands come from shared memory: by ldmatrix where a tile lies so, by the map of one lane
    # ("plain": into a vector type, "lanes": into registers).
    load: Literal["ldmatrix", "lanes", "plain"]
    a_turned: Fragment | None = None  # the maps for tiles that are not k-major, where they differ
    b_turned: Fragment | None = None
    through: str = ""  # the instruction of the same size, of other types, that does the work
    several: tuple[int, int, int] | None = (
        None  # m, n, k of the chip's own, where it is some of those
    )
    converts: bool = False  # the chip itself widens elements for it, two at once
    note: str = ""  # what the product does to its inputs, for the head of the text
    cost: str = ""  # why it is slower than what newer chips have


@record(kw_only=True)
class SimtTarget(Target):
    """Limits and mechanisms of one chip with threads."""

    lanes: int  # threads that run in step and can shuffle among themselves
    matrix_lanes: int = 0  # threads that do one matrix instruction, where those are more
    group: str = "warp"  # what the vendor calls `lanes` threads: warp or wave
    shuffle: str  # C name of the xor shuffle
    shuffle_mask: str | None  # its first argument, all lanes set, where it takes one
    # How lanes of one warp wait for each other: __syncwarp(mask), a helper wave_sync(), not at all.
    lanes_meet: Literal["mask", "wave", ""] = ""
    named_barriers: bool = False  # whole warps of a block can meet: the helper threads_sync
    shuffle_as: Mapping[str, str] = field(default_factory=dict)  # types it lacks -> the one to take
    max_threads: int = 1024
    static_shared: int  # bytes a block may declare statically
    max_shared: int  # bytes a block can have at all
    async_copy: tuple[
        int, ...
    ]  # bytes one asynchronous copy to shared memory can move; empty: none
    bulk_copy: bool = False  # tensor maps, transaction barriers
    warpgroup_matrix: bool = False  # wgmma
    matrix: tuple[MatrixInstruction, ...] = ()
    registers: int = 255  # of 4 bytes, that one thread can have
    register_file: int = 65536  # registers that the threads of a block share
    banks: int = 32
    vector_bytes: int = 16  # widest access of one thread
    results_in_rows: bool = False  # matrix instructions' results leave faster through a shared tile
    lone_types: frozenset[str] = frozenset()  # elements that never move several at once
    atomics: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    # (operation, element type) -> C function and the type it takes, where that is another
    trap: str = "__trap"  # C function that stops the kernel with an error
    declares_printf: bool = False  # the vendor's headers do not
    swap: str = "atomicCAS({word}, {seen}, {next})"  # C of compare-and-swap; gives what was there
    swap_small: str = "atomicCAS({word}, {seen}, {next})"  # on 16 bits

    @property
    def team(self) -> int:
        """Threads that do one matrix instruction together."""
        return self.matrix_lanes or self.lanes

    @property
    def team_name(self) -> str:
        """What the text calls `team` threads."""
        return "group" if self.team != self.lanes else self.group

    def mask(self, count: int) -> str:
        """The shuffle mask of a block of fewer threads than lanes."""
        suffix = str(self.shuffle_mask).lstrip("~0xXfF")  # u or ull
        return hex((1 << count) - 1) + suffix
