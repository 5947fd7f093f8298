"""The tiles of a kernel while it is lowered: the author's, and scratch tiles that come and go."""

from __future__ import annotations

from dataclasses import field

from tile2c.transpile.ir.dtypes import DType
from tile2c.transpile.lower.cores.layouts import Layout
from tile2c.transpile.lower.cores.names import Names
from tile2c.transpile.lower.cores.plan import WEIGHTS, Tile
from tile2c.transpile.record import record
from tile2c.transpile.targets.cores import CoresTarget

# Scratch tiles by what they hold; a word further down the list serves when the first is in use.
_WORDS = {
    "tile": ("work", "work_other", "spare", "spare_other", "rest", "rest_other"),
    "row": ("row_work", "row_work_other", "row_spare", "row_spare_other"),
    "column": ("column_work", "column_work_other", "column_spare", "column_spare_other"),
    "blocks": ("blocks", "blocks_other", "blocks_spare", "blocks_rest"),
    "mask": ("mask", "mask_other", "mask_spare", "mask_rest"),
    "extreme": ("extreme", "extreme_other"),
    "one": ("one_work", "one_work_other", "one_spare", "one_spare_other"),
    "weights": ("weights", "weights_other"),
}


@record(frozen=False)
class _Scratch:
    name: str
    dtype: DType
    kind: str
    elements: int
    free: bool = False


@record(frozen=False)
class Tiles:
    """Sizes of all tiles. Scratch tiles are shared: one is as large as its largest use."""

    target: CoresTarget
    layouts: dict[str, Layout]
    names: Names
    scratch: list[_Scratch] = field(default_factory=list)
    whole_repeats: set[str] = field(default_factory=set)  # read in whole repeats by comparisons
    lasting: dict[str, Tile] = field(default_factory=dict)  # filled once, before the first block
    written: dict[str, int] = field(default_factory=dict)  # elements that calls write past a tile

    def lanes(self, dtype: DType) -> int:
        """Elements of one block."""
        return self.target.lanes(dtype.bytes)

    def repeat(self, dtype: DType) -> int:
        """Elements of one repeat."""
        return max(1, self.target.repeat_bytes // dtype.bytes)

    def borrow(self, kind: str, dtype: DType, elements: int) -> str:
        """A scratch tile of at least so many elements; `give_back` ends its use."""
        for found in self.scratch:
            if found.free and (found.kind, found.dtype) == (kind, dtype):
                found.free = False
                found.elements = max(found.elements, elements)
                return found.name
        ending = {"float32": "", "float16": "_half", "uint8": ""}.get(dtype.name, f"_{dtype.name}")
        wanted = [f"{word}{ending}" for word in _WORDS[kind]]
        name = self.names.fresh(*wanted)
        self.scratch.append(_Scratch(name, dtype, kind, elements))
        return name

    def give_back(self, name: str) -> None:
        for found in self.scratch:
            if found.name == name:
                found.free = True

    def dtype(self, name: str) -> DType | None:
        """The elements of a tile; None for a name that is none."""
        if name in self.layouts:
            return self.layouts[name].buffer.dtype
        if name in self.lasting:
            return self.lasting[name].dtype
        return next((found.dtype for found in self.scratch if found.name == name), None)

    def index_tile(self, count: int, dtype: DType) -> str:
        """The tile that holds 0, 1, 2, ..., filled before the first block."""
        for tile in self.lasting.values():
            if tile.dtype == dtype:
                if tile.columns < count:
                    self.lasting[tile.name] = self._index(tile.name, count, dtype)
                return tile.name
        ending = "" if dtype.is_float else "_int"
        name = self.names.fresh(f"indices{ending}")
        self.lasting[name] = self._index(name, count, dtype)
        return name

    def _index(self, name: str, count: int, dtype: DType) -> Tile:
        lanes = self.repeat(dtype)
        count = -(-count // lanes) * lanes
        size = count * dtype.bytes
        purpose = "0, 1, 2, ... to compare indices"
        return Tile(
            name=name, dtype=dtype, rows=1, columns=count, pitch=count, bytes=size, purpose=purpose
        )

    def all(self) -> tuple[Tile, ...]:
        """Every tile with its final size: the author's, those that last, then scratch."""
        found = []
        for name, layout in self.layouts.items():
            shape = ", ".join(_extent(extent) for extent in layout.buffer.shape)
            found.append(
                Tile(
                    name=name,
                    dtype=layout.buffer.dtype,
                    rows=layout.rows,
                    columns=layout.columns,
                    pitch=layout.pitch,
                    bytes=self._bytes(name, layout.size, layout.buffer.dtype),
                    shape=f"[{shape}]",
                )
            )
        found += self.lasting.values()
        for scratch in self.scratch:
            found.append(
                Tile(
                    name=scratch.name,
                    dtype=scratch.dtype,
                    rows=1,
                    columns=scratch.elements,
                    pitch=scratch.elements,
                    bytes=self._bytes(scratch.name, scratch.elements, scratch.dtype),
                    purpose=self._purpose(scratch.kind),
                    position=WEIGHTS if scratch.kind == "weights" else "VECCALC",
                )
            )
        return tuple(found)

    def _purpose(self, kind: str) -> str:
        if kind == "mask" and self.target.vectors == "counts":
            return "results of comparisons, one number each"
        return _PURPOSES[kind]

    def _bytes(self, name: str, elements: int, dtype: DType) -> int:
        elements = max(elements, self.written.get(name, 0))
        unit = self.target.block_bytes
        if name in self.whole_repeats:
            unit = self.target.repeat_bytes
        return -(-elements * dtype.bytes // unit) * unit


_PURPOSES = {
    "tile": "intermediate results",
    "row": "intermediate results, one for each column",
    "column": "intermediate results, one for each row",
    "blocks": "a value for each row, spread over a block",
    "mask": "results of comparisons, one bit each",
    "extreme": "the larger, or smaller, of each two that are compared",
    "one": "an intermediate result",
    "weights": "the right operand of a product",
}


def _extent(extent: object) -> str:
    name = getattr(extent, "name", None)
    return str(name) if name else str(getattr(extent, "value", extent))
