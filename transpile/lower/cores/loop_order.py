"""Which two variables of a parallel loop become rows and columns of vector calls.

reads   the loop's variables and body        writes  the variables in the order to take them
why     calls walk along the last dimension of tiles; where that of one tile is not that of another,
        both have to be among the two, so that the tiles can be turned. Iterations are independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tile2c.transpile.ir import forms, walk
from tile2c.transpile.ir.expr import Expr, Var
from tile2c.transpile.ir.forms import Stmt
from tile2c.transpile.lower.cores.layouts import Layout

Pair = tuple[Var, Expr]  # a variable and its extent


def arranged(
    pairs: list[Pair], body: tuple[Stmt, ...], layouts: Mapping[str, Layout]
) -> list[Pair]:
    """The author's order, unless another brings every variable that walks along the last dimension
    of a tile to the last two places: columns are then those of the tile that is stored to."""
    names = [var for var, _ in pairs]
    along = [var for var in dict.fromkeys(_along(body, layouts)) if var in names]
    if len(pairs) < 3 or len(along) > 2 or set(along) <= set(names[-2:]):
        return pairs
    others = [var for var in names if var not in along]
    row = along[1] if len(along) > 1 else others[-1]
    order = [*(var for var in others if var != row), row, along[0]]
    return [pairs[names.index(var)] for var in order]


def _along(body: tuple[Stmt, ...], layouts: Mapping[str, Layout]) -> Iterator[Var]:
    """Variables in the last dimension of tiles: of those that are stored to, then of those read."""
    places = [(s.buffer.name, s.index) for s in walk.statements(body) if isinstance(s, forms.Store)]
    for stmt in walk.statements(body):
        for expr in walk.expressions(stmt):
            places += [(load.buffer.name, load.index) for load in walk.loads(expr)]
    for name, index in places:
        layout = layouts.get(name)
        if layout is not None and layout.kept:
            yield from walk.variables(index[layout.kept[-1]])
