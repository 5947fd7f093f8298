"""Says at the head of a kernel what its vector unit makes of NaN in maxima and minima."""

from __future__ import annotations

from tile2c.transpile.ir.dtypes import DTYPES
from tile2c.transpile.lower.cores.accesses import all_inside
from tile2c.transpile.lower.cores.plan import Step, Tile, VectorCall
from tile2c.transpile.targets.cores import CoresTarget

_OF_TWO = frozenset(word + end for word in ("Max", "Min") for end in ("", "s"))
_OF_TWO_ROWS = frozenset(("CycleMax", "CycleMin"))
_OF_MANY = frozenset(
    call.format(word) for word in ("Max", "Min") for call in ("Reduce{}", "WholeReduce{}", "{}Pool")
)


def nan_lines(
    body: tuple[Step, ...], tiles: tuple[Tile, ...], target: CoresTarget
) -> tuple[str, ...]:
    """A line for the head where the kernel takes maxima or minima of floating numbers."""
    floats = {tile.name for tile in tiles if DTYPES[tile.dtype.name].is_float}
    calls = {
        step.function
        for step in all_inside(body)
        if isinstance(step, VectorCall) and step.dst.tile in floats
    }
    words = target.words
    said = dict.fromkeys(
        text
        for text, of in (
            (words.nan_of_two, _OF_TWO | _OF_TWO_ROWS),
            (words.nan_of_many, _OF_MANY),
        )
        if text and calls & of
    )
    return (f"NaN      {'; '.join(said)}",) if said else ()
