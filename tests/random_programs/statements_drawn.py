"""Statements of one launch, drawn one after the other over tiles that are already defined."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from expressions_drawn import computable, drawn, stored
from number_rules import FLOATS, INTEGERS, STORED_FLOATS, Number, fits, joined
from statements_more import MORE, WHOLE_TILES
from tile_programs import Shape, Tensor, input_dtype

VARIABLES = {"M": "i", "N": "j", "K": "k"}
# What no whole-tile call computes.
NO_WHOLE_TILES = re.compile(
    r"//|%|&|\||\^|>>|int64|uint|int8|float64|float8|block_. - 1|"
    r"T\.(floor|ceil|trunc|round|tanh|sin|cos)"
)
BLOCKS = {"M": "by", "N": "bx", "Z": "bz"}


@dataclass(slots=True)
class Tile:
    """An array on the chip and what is known of its elements; "1" is a dimension kept as 1."""

    name: str
    dims: str
    dtype: str
    scope: str  # shared | fragment
    low: float = 0.0
    high: float = 0.0
    exact: bool = True
    loose: bool = False
    defined: bool = False


class Launch:
    """One `with T.Kernel` in the making."""

    def __init__(self, random: Random, shape: Shape, tensors: list[Tensor], number: int) -> None:
        self.random = random
        self.shape = shape
        self.tensors = tensors
        self.number = number
        self.readable = [tensor for tensor in tensors]
        self.tiles: list[Tile] = []
        self.statements: list[list[str]] = []
        self.stored = False

    def head(self) -> str:
        shape = self.shape
        grid = [f"T.ceildiv({letter}, block_{letter})" for letter in "NM"]
        names = "bx, by"
        if shape.batched:
            grid.append("Z")
            names += ", bz"
        return f"with T.Kernel({', '.join(grid)}, threads={shape.threads}) as ({names}):"

    # ---- what there is

    def fresh(self, prefix: str) -> str:
        return f"{prefix}{self.number}{len(self.tiles)}"

    def tensor(self, dims: str, dtype: str, role: str) -> Tensor:
        """A new parameter; inputs hold quarters and small whole numbers."""
        dims = "Z" + dims if self.shape.batched and len(dims) == 2 else dims
        name = f"{'XS'[role == 'sum'] if role != 'out' else 'Y'}{len(self.tensors)}"
        low, high = (0, 9) if dtype.startswith("uint") else (-6, 6)
        if dtype in (*FLOATS, *STORED_FLOATS):
            low, high = -2, 2
        made = Tensor(name, dims, dtype, role, low, high)
        self.tensors.append(made)
        if role == "in":
            self.readable.append(made)
        return made

    def input(self, dims: str, dtypes: tuple[str, ...] = ()) -> Tensor:
        """A known tensor of these dimensions, or a new one."""
        wanted = "Z" + dims if self.shape.batched and len(dims) == 2 else dims
        known = [t for t in self.readable if t.dims == wanted and (not dtypes or t.dtype in dtypes)]
        if known and self.random.random() < 0.5:
            return self.random.choice(known)
        dtype = self.random.choice(dtypes) if dtypes else input_dtype(self.random, self.shape)
        return self.tensor(dims, dtype, "in")

    def tile(self, dims: str, dtype: str, scope: str | None = None) -> Tile:
        """A new tile with its allocation."""
        scope = scope or self.random.choice(("shared", "fragment"))
        made = Tile(self.fresh("s" if scope == "shared" else "f"), dims, dtype, scope)
        self.tiles.append(made)
        extents = ", ".join("1" if letter == "1" else f"block_{letter}" for letter in dims)
        comma = "," if len(dims) == 1 else ""
        self.statements.append([f'{made.name} = T.alloc_{scope}(({extents}{comma}), "{dtype}")'])
        return made

    def defined(self, dims: str | None = None, **wanted: object) -> list[Tile]:
        return [
            tile
            for tile in self.tiles
            if tile.defined
            and (dims is None or tile.dims == dims)
            and all(getattr(tile, name) == value for name, value in wanted.items())
        ]

    def full(self) -> Tile:
        """A defined tile of M x N."""
        known = self.defined("MN")
        return self.random.choice(known) if known else self.load("MN")

    # ---- indices

    def base(self, letter: str, step: str = "ko") -> str:
        if letter == "Z":
            return "bz"
        if letter == "K":
            return f"{step} * block_K"
        return f"{BLOCKS[letter]} * block_{letter}"

    def corner(self, tensor: Tensor) -> str:
        """The tile's first element, or its region."""
        if self.random.random() < 0.5:
            return f"{tensor.name}[{', '.join(self.base(d) for d in tensor.dims)}]"
        parts = [
            "bz" if d == "Z" else f"{self.base(d)}:{self.base(d)} + block_{d}" for d in tensor.dims
        ]
        return f"{tensor.name}[{', '.join(parts)}]"

    def element(self, tensor: Tensor) -> str:
        parts = ["bz" if d == "Z" else f"{self.base(d)} + {VARIABLES[d]}" for d in tensor.dims]
        return f"{tensor.name}[{', '.join(parts)}]"

    def at(self, tile: Tile, mirrored: bool = False) -> str:
        parts = ["0" if d == "1" else VARIABLES[d] for d in tile.dims]
        if mirrored and tile.scope == "shared" and not self.shape.whole_tiles:
            letter = self.random.choice([d for d in tile.dims if d != "1"])
            where = tile.dims.index(letter)
            parts[where] = f"block_{letter} - 1 - {parts[where]}"
        return f"{tile.name}[{', '.join(parts)}]"

    def leaves(self, dims: str, without: Tile | None = None) -> list[Number]:
        """Everything that a loop over `dims` may read."""
        found = [
            Number(self.at(t, self.random.random() < 0.1), t.dtype, t.low, t.high, t.exact)
            for t in self.tiles
            if t.defined and set(t.dims) <= {*dims, "1"} and t is not without
        ]
        if without is not None and without.defined:  # its own element only
            t = without
            found.append(Number(self.at(t), t.dtype, t.low, t.high, t.exact))
        for t in self.readable:
            if set(t.dims) <= {*dims, "Z"} and self.random.random() < 0.4:
                low, high = min(t.low, 0), max(t.high, 0)
                found.append(Number(self.element(t), t.dtype, low, high, t.exact))
        for letter in dims:
            last = self.shape.tile[letter] - 1
            if last <= 100:
                found.append(Number(VARIABLES[letter], "int32", 0, last))
        found.append(Number("bx", "int32", 0, 12))
        return found

    def value(self, leaves: list[Number], depth: int) -> Number:
        """A drawn expression; without threads one of what whole tiles are computed with."""
        for _ in range(12):
            found = drawn(self.random, leaves, depth)
            if not self.shape.whole_tiles:
                return found
            if NO_WHOLE_TILES.search(found.text):
                continue
            if " / " not in found.text:
                return found
            if "T.cast" not in found.text:  # some units divide by a reciprocal
                return replace(found, exact=False)
        return computable(self.random, next(n for n in leaves if not NO_WHOLE_TILES.search(n.text)))

    # ---- statements

    def draw(self) -> None:
        kinds: list[tuple[int, Callable[[], object]]] = [
            (3, lambda: self.load("MN")),
            (6, self.combine),
            (3, self.reduce),
            (2, self.move),
            (2, self.product),
            (1, self.scan),
            (1, self.turn),
            (2, self.add_up),
            (1, self.refill),
            (1, self.under_condition),
            (1, self.rows_by_threads),
            (1, self.variable),
            (2, self.store),
            (1, self.chain),
            (2, self.several),
            (1, self.part),
            (1, self.gather),
            (1, self.flat),
            (1, self.running),
        ]
        draws = [draw for weight, draw in kinds for _ in range(weight)]
        draws += [partial(more, self) for weight, more in MORE for _ in range(weight)]
        if self.shape.whole_tiles:
            own = (self.combine, self.reduce, self.move, self.refill, self.store, self.several)
            more = (self.under_condition, self.running, self.chain, self.product, self.part)
            draws = [*own, self.combine, *own, self.reduce, *more]
            draws += [partial(part, self) for part in WHOLE_TILES]
        self.load("MN")
        for _ in range(self.random.randint(2, 6)):
            self.random.choice(draws)()
        if not self.stored or self.random.random() < 0.5:
            self.store()
        self.show()

    def show(self) -> None:
        """Most tiles into outputs, vectors spread over the rows or columns that they lack."""
        for tile in self.tiles:
            if not tile.defined or not set(tile.dims) <= {*"MN1"} or self.random.random() < 0.4:
                continue
            target = self.tensor("MN", tile.dtype, "out")
            self.statements.append(self.loop("MN", [f"{self.element(target)} = {self.at(tile)}"]))
            self.outcome(target, tile, tile.loose)

    def know(self, tile: Tile, number: Number | Tile | Tensor, loose: bool = False) -> None:
        tile.low, tile.high, tile.exact = number.low, number.high, number.exact
        tile.defined = True
        if loose or getattr(number, "loose", False):
            tile.loose = True

    def load(self, dims: str) -> Tile:
        """A tile from memory, by a copy or by a loop; outside of the tensor it is zero."""
        tensor = self.input(dims)
        dtype = tensor.dtype
        if self.random.random() < 0.4:
            dtype = self.fitting(tensor.low, tensor.high, tensor.exact, tensor.dtype)
        tile = self.tile(dims, dtype)
        if self.random.random() < 0.7 or dtype in STORED_FLOATS:
            self.statements.append([f"T.copy({self.corner(tensor)}, {tile.name})"])
        else:
            value = self.element(tensor)
            self.statements.append(self.loop(dims, [f"{self.at(tile)} = {value}"]))
        self.know(tile, replace(tensor, low=min(0, tensor.low), high=max(0, tensor.high)))
        return tile

    def fitting(self, low: float, high: float, exact: bool, source: str) -> str:
        """A type that holds the values; a float becomes no integer."""
        if source in INTEGERS:
            wanted = (*self.shape.integers, "float32", "float16")
            known = [d for d in wanted if fits(d, low, high)]
        else:
            known = [d for d in self.shape.floats if fits(d, low, high)]
        return self.random.choice(known)

    def loop(self, dims: str, body: list[str]) -> list[str]:
        names = ", ".join(VARIABLES[d] for d in dims)
        extents = ", ".join(f"block_{d}" for d in dims)
        return [f"for {names} in T.Parallel({extents}):", *(f"    {line}" for line in body)]

    def assigned(self, tile: Tile, dims: str, into: str | None = None) -> list[str] | None:
        """`tile[i, j] = …` with a drawn value."""
        value = self.value(self.leaves(dims, tile), self.random.randint(1, 3))
        fitted = stored(self.random, value, tile.dtype)
        if fitted is None:
            return None
        was = replace_known(tile)
        self.know(tile, fitted)
        if was is not None and into is None:
            tile.loose = tile.loose or was.loose
        tile.loose = tile.loose or any(t.loose for t in self.tiles if t.name in fitted.text)
        return [f"{self.at(tile)} = {fitted.text}"]

    def combine(self) -> None:
        """Elements computed from elements, into a new tile or one that is there."""
        dims = self.random.choice(("MN", "MN", "MN", "M", "N"))
        known = self.defined(dims)
        if known and self.random.random() < 0.5:
            tile = self.random.choice(known)
        else:
            tile = self.tile(
                dims, self.random.choice((*self.shape.floats, *self.shape.integers, "float32"))
            )
        if tile.dtype in STORED_FLOATS:
            return
        body = self.assigned(tile, dims)
        if body is not None:
            self.statements.append(self.loop(dims, body))

    def move(self) -> None:
        """One tile copied into another of another type or place."""
        source = self.random.choice(self.tiles)
        if not source.defined or source.dtype in STORED_FLOATS or "K" in source.dims:
            return
        dtype = self.fitting(source.low, source.high, source.exact, source.dtype)
        target = self.tile(source.dims, dtype)
        self.statements.append([f"T.copy({source.name}, {target.name})"])
        self.know(target, source)

    def refill(self) -> None:
        tile = self.full()
        if tile.dtype in STORED_FLOATS:
            return
        value = self.random.randint(0, 5)
        text = "T.clear({0})" if value == 0 else f"T.fill({{0}}, {value})"
        self.statements.append([text.format(tile.name)])
        self.know(tile, Number("", tile.dtype, value, value))

    def reduce(self) -> None:
        """Rows or columns of a tile, into a vector or a dimension kept as 1."""
        tile = self.full()
        if tile.dtype in STORED_FLOATS:
            return
        kind = self.random.choice(("sum", "max", "min", "absmax", "abssum", "sum", "max"))
        axis = self.random.choice((0, 1))
        count = self.shape.tile["MN"[axis]]
        low, high, exact = reduced(kind, tile, count)
        kept = self.random.random() < 0.25
        dims = ("1N", "M1")[axis] if kept else "NM"[axis]
        dtypes = [d for d in self.results(tile.dtype) if fits(d, low, high)]
        if not dtypes:
            return
        target = self.tile(dims, self.random.choice(dtypes))
        clear = ""
        if kind in ("sum", "max", "min") and self.random.random() < 0.25:
            value = self.random.randint(0, 3)
            self.statements.append([f"T.fill({target.name}, {value})"])
            clear = ", clear=False"
            low, high = min(low, low + value, value), max(high, high + value, value)
            if not fits(target.dtype, low, high):
                return
        spelled = self.random.choice((axis, axis - 2))
        call = f"T.reduce_{kind}({tile.name}, {target.name}, dim={spelled}{clear})"
        self.statements.append([call])
        self.know(target, Number("", target.dtype, low, high, exact), tile.loose)

    def results(self, dtype: str) -> list[str]:
        """Types that a reduction's result may have."""
        if dtype in FLOATS:
            return [dtype, "float32"]
        return [dtype, "int32"] if self.shape.whole_tiles else [dtype, "int32", "int64"]

    def scan(self) -> None:
        tile = self.full()
        axis = self.random.choice((0, 1))
        count = self.shape.tile["MN"[axis]]
        low, high, exact = reduced("sum", tile, count)
        if tile.dtype in STORED_FLOATS or not fits(tile.dtype, low, high):
            return
        reverse = self.random.choice(("", ", reverse=True"))
        target = self.tile("MN", tile.dtype, tile.scope)
        self.statements.append([f"T.cumsum({tile.name}, {target.name}, dim={axis}{reverse})"])
        self.know(target, Number("", tile.dtype, low, high, exact), tile.loose)

    def turn(self) -> None:
        """A transposed tile, and back."""
        tile = self.full()
        if tile.dtype in STORED_FLOATS:
            return
        scope = "shared" if tile.scope == "fragment" else None
        target = self.tile("NM", tile.dtype, scope)
        body = [f"{target.name}[j, i] = {self.at(tile)}"]
        self.statements.append(self.loop("MN", body))
        self.know(target, tile)

    def product(self) -> None:
        """A product over K, in a serial or a pipelined loop."""
        dtype = self.random.choice(
            (
                "float16",
                "float16",
                "bfloat16",
                "float32",
                "int8",
                "uint8",
                "float64",
                *STORED_FLOATS,
            )
        )
        a_dims = self.random.choice(("MK", "MK", "KM"))
        b_dims = self.random.choice(("KN", "KN", "NK"))
        a, b = self.input(a_dims, (dtype,)), self.input(b_dims, (dtype,))
        into = {"int8": "int32", "uint8": "int32", "float64": "float64"}.get(dtype, "float32")
        if dtype == "float16" and self.random.random() < 0.2:
            into = dtype
        a_tile = self.tile(a_dims, dtype, "shared")
        b_tile = self.tile(b_dims, dtype, "shared")
        total = self.tile("MN", into, "fragment")
        steps = self.shape.blocks("K")
        loop = self.random.choice(("T.serial({0})", "T.Pipelined({0}, num_stages={1})"))
        loop = loop.format("T.ceildiv(K, block_K)", self.random.randint(0, 3))
        options = [
            f"transpose_{x}=True"
            for x, d, t in (("A", a_dims, "KM"), ("B", b_dims, "NK"))
            if d == t
        ]
        policy = self.random.choice(("", "", "FullRow", "FullCol"))
        if policy:
            options.append(f"policy=T.GemmWarpPolicy.{policy}")
        call = ", ".join((a_tile.name, b_tile.name, total.name, *options))
        self.statements.append(
            [
                f"T.clear({total.name})",
                f"for ko in {loop}:",
                f"    T.copy({self.corner(a)}, {a_tile.name})",
                f"    T.copy({self.corner(b)}, {b_tile.name})",
                f"    T.gemm({call})",
            ]
        )
        most = max(abs(a.low), abs(a.high)) * max(abs(b.low), abs(b.high))
        bound = most * steps * self.shape.tile["K"]
        exact = a.exact and b.exact and into == "int32"
        if not fits(into, -bound, bound):
            bound = 1e4
        self.know(total, Number("", into, -bound, bound, exact), dtype == "float32")

    def add_up(self) -> None:
        """Sums in memory: an element by each iteration, or a whole tile."""
        tile = self.full()
        if tile.dtype in STORED_FLOATS:
            return
        dims = self.random.choice(("MN", "M", "N"))
        times = {"MN": 1, "M": 1300, "N": 1300}[dims]
        choices = ["int32", "int64"] if tile.dtype in INTEGERS else ["float32", "float64"]
        if tile.dtype in ("uint8", "uint32"):
            choices = ["uint32"]
        dtype = self.random.choice(choices)
        if not fits(dtype, tile.low * times, tile.high * times):
            return
        kind = self.random.choice(("add", "add", "max", "min"))
        target = self.tensor(dims, dtype, "sum")
        if dims == "MN" and self.random.random() < 0.5 and tile.dtype == dtype:
            self.statements.append([f"T.atomic_{kind}({self.corner(target)}, {tile.name})"])
        else:
            call = f"T.atomic_{kind}({self.element(target)}, {self.at(tile)})"
            self.statements.append(self.loop("MN", [call]))
        self.outcome(target, Number("", dtype, 0, 0, tile.exact and dtype in INTEGERS), tile.loose)

    def outcome(self, tensor: Tensor, number: Number | Tile, loose: bool = False) -> None:
        """What is known of an output, for the comparison and for a second launch."""
        where = self.tensors.index(tensor)
        spread = max(abs(number.low), abs(number.high))
        self.tensors[where] = replace(
            tensor, low=-spread, high=spread, exact=number.exact, loose=loose
        )

    def under_condition(self) -> None:
        """A tile changed by some of the blocks."""
        tile = self.full()
        if tile.dtype in STORED_FLOATS:
            return
        before = (tile.low, tile.high, tile.exact)
        condition = self.random.choice(("bx > 0", "by % 2 == 0", "bx == by", "bx + by < 2"))
        body = self.assigned(tile, "MN")
        if body is None:
            return
        lines = [f"if {condition}:", *(f"    {line}" for line in self.loop("MN", body))]
        if self.random.random() < 0.4:
            lines += ["else:", f"    T.clear({tile.name})"]
        self.statements.append(lines)
        tile.low, tile.high = min(tile.low, before[0], 0), max(tile.high, before[1], 0)
        tile.exact = tile.exact and before[2]

    def rows_by_threads(self) -> None:
        """A vector in shared memory, read by the thread index."""
        known = self.defined("M", scope="shared") + self.defined("N", scope="shared")
        if not known:
            return
        tile = self.random.choice(known)
        if self.shape.tile[tile.dims] > self.shape.threads or tile.dtype in STORED_FLOATS:
            return
        dims = tile.dims
        other = "N" if dims == "M" else "M"
        if self.shape.blocks(other) > 1 or (self.shape.batched and self.shape.sizes["Z"] > 1):
            return  # the other blocks would write the same rows
        target = self.tensor(dims, tile.dtype, "out")
        self.stored = True
        self.statements.append(
            [
                "tx = T.get_thread_binding()",
                f"if tx < block_{dims}:",
                f"    {target.name}[{self.base(dims)} + tx] = {tile.name}[tx]",
            ]
        )
        self.outcome(target, tile, tile.loose)

    def variable(self) -> None:
        """A sum of each row in a variable, by a serial loop inside T.Parallel."""
        known = [t for t in self.defined("MN", scope="shared") if t.dtype not in STORED_FLOATS]
        if not known:
            return
        tile = self.random.choice(known)
        low, high, exact = reduced("sum", tile, self.shape.tile["N"])
        dtype = "float32" if tile.dtype in FLOATS else "int32"
        if not fits(dtype, low, high) or joined(dtype, tile.dtype) != dtype:
            return
        target = self.tile("M", dtype)
        name = f"v{len(self.tiles)}"
        self.statements.append(
            [
                "for i in T.Parallel(block_M):",
                f'    {name} = T.alloc_var("{dtype}", 0)',
                "    for j in T.serial(block_N):",
                f"        {name} = {name} + {tile.name}[i, j]",
                f"    {target.name}[i] = {name}",
            ]
        )
        self.know(target, Number("", dtype, low, high, exact), tile.loose)

    def chain(self) -> None:
        """A tile that a serial loop changes a few times."""
        tile = self.full()
        if tile.dtype in STORED_FLOATS:
            return
        count = self.random.randint(1, 4)
        value = self.random.randint(0, 2)
        if not fits(tile.dtype, tile.low, tile.high + count * (value + count)):
            return
        body = f"{self.at(tile)} = {self.at(tile)} + (q + {value})"
        loop = self.random.choice(("T.serial", "range", "T.unroll"))
        lines = [f"    {line}" for line in self.loop("MN", [body])]
        self.statements.append([f"for q in {loop}({count}):", *lines])
        tile.high += count * (value + count)

    def several(self) -> None:
        """A loop of several statements: a name, a choice, two tiles."""
        first = self.full()
        if first.dtype in STORED_FLOATS:
            return
        integers = ("int32",) if self.shape.whole_tiles else ("int32", "int64")
        dtypes = self.shape.floats if first.dtype in FLOATS else integers
        second = self.tile("MN", self.random.choice(dtypes))
        leaves = self.leaves("MN", first)
        value = self.value(leaves, 2)
        name = f"t{len(self.statements)}"
        fitted = stored(self.random, replace(value, text=name), second.dtype)
        again = stored(self.random, replace(value, text=name), first.dtype)
        if fitted is None or again is None:
            return
        loose = first.loose or any(t.loose for t in self.tiles if t.name in value.text)
        body = [f"{name} = {value.text}", f"{self.at(second)} = {fitted.text}"]
        self.know(second, fitted, loose)
        if value.exact and self.random.random() < 0.5:
            low, high, exact = first.low, first.high, first.exact
            body += [f"if {name} > 1:", f"    {self.at(first)} = {again.text}"]
            self.know(first, again, loose)
            first.low, first.high = min(low, first.low), max(high, first.high)
            first.exact = exact and first.exact
        else:
            body.append(f"{self.at(first)} = {again.text}")
            self.know(first, again, loose)
        self.statements.append(self.loop("MN", body))

    def part(self) -> None:
        """Some rows of a tile filled, or copied over others."""
        tile = self.full()
        rows = self.shape.tile["M"]
        if tile.scope != "shared" or rows < 2 or tile.dtype in STORED_FLOATS:
            return
        half = self.random.randint(1, rows // 2)
        if self.random.random() < 0.5:
            self.statements.append([f"T.fill({tile.name}[{rows - half}:{rows}, :], 1)"])
            tile.low, tile.high = min(tile.low, 1), max(tile.high, 1)
        else:
            source = f"{tile.name}[0:{half}, :]"
            self.statements.append([f"T.copy({source}, {tile.name}[{rows - half}:{rows}, :])"])

    def gather(self) -> None:
        """Rows chosen by an index that is loaded; outside of the tensor they are zero."""
        rows = self.tensor("M", "int32", "in")
        tensor = self.input("MN")
        if tensor.dtype in STORED_FLOATS:
            return
        tile = self.tile("MN", tensor.dtype)
        places = ["bz"] * (len(tensor.dims) - 2) + [f"r{len(self.tiles)}", f"{self.base('N')} + j"]
        body = [
            f"{places[-2]} = {rows.name}[{self.base('M')} + i]",
            f"{self.at(tile)} = {tensor.name}[{', '.join(places)}]",
        ]
        self.statements.append(self.loop("MN", body))
        self.know(tile, replace(tensor, low=min(0, tensor.low), high=max(0, tensor.high)))

    def flat(self) -> None:
        """A shared tile as one row, turned round."""
        tile = self.full()
        if tile.scope != "shared" or tile.dtype in STORED_FLOATS:
            return
        target = self.tile("MN", tile.dtype, "shared")
        count = self.shape.tile["M"] * self.shape.tile["N"]
        name = f"{tile.name}_row{len(self.tiles)}"
        self.statements.append(
            [
                f"{name} = T.reshape({tile.name}, ({count},))",
                f"for p in T.Parallel({count}):",
                f"    {target.name}[p // block_N, p % block_N] = {name}[{count - 1} - p]",
            ]
        )
        self.know(target, tile)

    def running(self) -> None:
        """A running maximum and sum of each row over tiles of K, as in an online softmax."""
        dtype = self.random.choice(("float16", "float32", "int32", "int8"))
        tensor = self.input("MK", (dtype,))
        wide = "int32" if dtype in INTEGERS else "float32"
        bound = max(abs(tensor.low), abs(tensor.high)) * self.shape.sizes["K"]
        x, most, total = (
            self.tile("MK", wide, "fragment"),
            self.tile("M", wide),
            self.tile("M", wide),
        )
        stages = self.random.randint(0, 2)
        self.statements.append(
            [
                f"T.fill({most.name}, 0)",
                f"T.clear({total.name})",
                f"for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages={stages}):",
                f"    T.copy({self.corner(tensor)}, {x.name})",
                f"    T.reduce_max({x.name}, {most.name}, dim=1, clear=False)",
                f"    T.reduce_sum({x.name}, {total.name}, dim=1, clear=False)",
            ]
        )
        high = max(0, tensor.high)
        self.know(most, Number("", wide, 0, high, tensor.exact))
        self.know(total, Number("", wide, -bound, bound, wide == "int32"))

    def store(self) -> None:
        """A tile into an output of its own."""
        tile = self.full()
        dtype = tile.dtype
        if tile.dtype in STORED_FLOATS:
            return
        if self.random.random() < 0.5:
            dtype = self.fitting(tile.low, tile.high, tile.exact, tile.dtype)
        way = self.random.choice(("copy", "copy", "loop", "guarded", "turned", "computed"))
        target = self.tensor("NM" if way == "turned" else "MN", dtype, "out")
        number: Number | Tile = tile
        loose = tile.loose
        if way == "copy":
            self.statements.append([f"T.copy({tile.name}, {self.corner(target)})"])
        else:
            value = self.at(tile)
            if way == "computed":
                leaves = self.leaves("MN")
                found = stored(self.random, self.value(leaves, 2), dtype)
                if found is not None:
                    number, value = found, found.text
                    loose = any(t.loose for t in self.tiles if t.name in value)
            body = [f"{self.element(target)} = {value}"]
            if way == "guarded":
                m, n = (f"{self.base(d)} + {VARIABLES[d]} < {d}" for d in "MN")
                body = [f"if {m} and {n}:", f"    {body[0]}"]
            self.statements.append(self.loop("MN", body))
        self.stored = True
        self.outcome(target, number, loose)


def replace_known(tile: Tile) -> Tile | None:
    return replace(tile) if tile.defined else None


def reduced(kind: str, tile: Tile, count: int) -> tuple[float, float, bool]:
    """Range and exactness of a reduction over `count` elements."""
    most = max(abs(tile.low), abs(tile.high))
    exact = tile.exact and tile.dtype in INTEGERS
    if kind == "sum":
        return min(tile.low * count, tile.low), max(tile.high * count, tile.high), exact
    if kind == "abssum":
        return 0, most * count, exact
    if kind == "absmax":
        return 0, most, tile.exact
    return tile.low, tile.high, tile.exact


__all__ = ["Launch", "Tile", "computable"]
