"""Whole tile programs made by chance, each with a meaning that the generator has not to know.

A program is a grid of blocks over matrices of M x N (and a batch, and a depth K), tiles in shared
memory and fragments, and a dozen statements that fill, combine, reduce, multiply and store them.
`made(random)` draws everything from `random`; hypothesis gives one that it can shrink.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from number_rules import FLOATS, INTEGERS, STORED_FLOATS

HEAD = "import tilelang\nimport tilelang.language as T\n\n\n"
EXTENTS = (1, 2, 3, 5, 7, 8, 9, 13, 16, 17, 24, 31, 32, 33, 40, 63, 64, 65, 77, 96, 100, 130)
TILES = (1, 2, 3, 4, 5, 7, 8, 12, 16, 16, 24, 32, 32, 33, 48, 64)
THREADS = (1, 8, 24, 32, 32, 33, 48, 64, 64, 96, 100, 128, 128, 128, 160, 192, 256)
MOST_BLOCKS, MOST_ELEMENTS = 12, 2048


@dataclass(frozen=True, slots=True)
class Tensor:
    """A parameter. `dims` are letters of sizes; values lie between low and high."""

    name: str
    dims: str  # "MN", "NM", "ZMN", "M", "N", "MK", "KN"
    dtype: str
    role: str = "in"  # in | out | sum (an output that starts at zero)
    low: float = -2.0
    high: float = 2.0
    exact: bool = True
    loose: bool = False  # went through a product in TF32


@dataclass(slots=True)
class Shape:
    """Sizes, tile and launch of a program."""

    sizes: dict[str, int]
    tile: dict[str, int]  # M, N, K -> block_M, block_N, block_K
    threads: int
    batched: bool
    run_time: frozenset[str]  # sizes that are arguments
    style: str  # plain | lazy | eager
    whole_tiles: bool = False  # for targets without threads: what they compute with, in whole tiles

    @property
    def floats(self) -> tuple[str, ...]:
        return ("float16", "float32", "bfloat16") if self.whole_tiles else FLOATS

    @property
    def integers(self) -> tuple[str, ...]:
        return ("int32", "int16") if self.whole_tiles else INTEGERS

    def blocks(self, letter: str) -> int:
        return -(-self.sizes[letter] // self.tile[letter])


@dataclass(slots=True)
class TileProgram:
    """The text, and what is needed to run it."""

    name: str
    shape: Shape
    tensors: list[Tensor]
    launches: list[list[list[str]]]  # of each launch its statements, each as lines
    heads: list[str]
    defines: dict[str, int] = field(default_factory=dict)

    @property
    def text(self) -> str:
        from program_text import whole

        return HEAD + whole(self)

    def extents(self, tensor: Tensor) -> tuple[int, ...]:
        return tuple(self.shape.sizes[letter] for letter in tensor.dims)


def drawn_shape(random: Random) -> Shape:
    """Sizes with tails more often than not, a tile, threads, a style."""
    sizes = {letter: random.choice(EXTENTS) for letter in "MNK"} | {"Z": random.choice((1, 2, 3))}
    tile = {letter: random.choice(TILES) for letter in "MNK"}
    while tile["M"] * tile["N"] > MOST_ELEMENTS:
        tile["M"] = max(1, tile["M"] // 2)
    if random.random() < 0.4:  # what matrix instructions like
        tile = {"M": random.choice((16, 32, 64)), "N": random.choice((8, 16, 32)), "K": 16}
        tile["K"] = random.choice((16, 32))
    if random.random() < 0.08:  # what a warpgroup's instructions like
        tile = {"M": random.choice((64, 128)), "N": random.choice((8, 16, 32)), "K": 32}
        tile["K"] = random.choice((16, 32, 64))
        warpgroups = random.choice((128, 128, 256, 384))
    else:
        warpgroups = 0
    for letter in "MN":
        sizes[letter] = min(sizes[letter], 3 * tile[letter])
    sizes["K"] = min(sizes["K"], 4 * tile["K"])
    batched = random.random() < 0.15
    while -(-sizes["M"] // tile["M"]) * -(-sizes["N"] // tile["N"]) > MOST_BLOCKS:
        sizes["M"] = max(1, sizes["M"] // 2)
    dynamic = frozenset(letter for letter in "MNK" if random.random() < 0.35)
    style = random.choice(("plain", "lazy", "eager"))
    return Shape(sizes, tile, warpgroups or random.choice(THREADS), batched, dynamic, style)


def input_dtype(random: Random, shape: Shape) -> str:
    """Floats mostly; 8-bit floats now and then."""
    if random.random() < 0.06 and not shape.whole_tiles:
        return random.choice(STORED_FLOATS)
    if random.random() < (0.9 if shape.whole_tiles else 0.7):
        return random.choice((*shape.floats, "float16", "float32", "float32"))
    return random.choice(shape.integers)


def made(random: Random, name: str = "main", *, whole_tiles: bool = False) -> TileProgram:
    """A program of one or two launches; `whole_tiles` for targets without threads."""
    from statements_drawn import Launch

    shape = drawn_shape(random)
    shape.whole_tiles = whole_tiles
    tensors: list[Tensor] = []
    launches, heads = [], []
    for number in range(2 if random.random() < 0.15 and not whole_tiles else 1):
        launch = Launch(random, shape, tensors, number)
        launch.draw()
        launches.append(launch.statements)
        heads.append(launch.head())
    return TileProgram(name, shape, tensors, launches, heads)
