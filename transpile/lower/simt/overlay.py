"""Shared tiles that lie in the same bytes, one after the other, where all of them do not fit side by side.

A tile lives from the first to the last statement of the block that touches it. Barriers order the last
use of one tile before the first of the next: to them they are one piece of memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from tile2c.transpile.lower.simt.steps import BranchStep, LoopStep, Node
from tile2c.transpile.lower.simt.uses import names_in

Path = tuple[int, ...]
Life = tuple[Path, Path]  # the first and the last step that names an array
Layer = tuple[str, ...]  # arrays that lie side by side
Group = tuple[Layer, ...]  # layers that lie in the same bytes, one after the other in time

ALIGNMENT = 128  # bytes, of every tile


def layer_bytes(layer: Sequence[str], sizes: Mapping[str, int]) -> int:
    """Bytes of arrays that lie side by side."""
    return sum(-(-sizes.get(name, 0) // ALIGNMENT) * ALIGNMENT for name in layer)


def group_bytes(group: Group, sizes: Mapping[str, int]) -> int:
    """Bytes of a group: those of its largest layer."""
    return max(layer_bytes(layer, sizes) for layer in group)


def overlays(
    nodes: Sequence[Node], sizes: Mapping[str, int], scratch: set[str], most: int
) -> tuple[Group, ...]:
    """Groups of tiles that share their bytes, so that at most `most` are taken; as few as will do.

    sizes     bytes of each array of the block
    scratch   those that are written before they are read wherever they are used
    """
    if sum(sizes.values()) <= most:
        return ()
    lives = _lives(nodes, sizes)
    groups: list[tuple[str, ...]] = [(name,) for name in sizes]
    while sum(max(sizes[name] for name in group) for group in groups) > most:
        pairs = [
            (first, second)
            for first, second in combinations(groups, 2)
            if all(_apart(lives, scratch, a, c) for a in first for c in second)
        ]
        if not pairs:
            break
        first, second = max(pairs, key=lambda pair: _saved(sizes, *pair))
        groups[groups.index(first)] = tuple(sorted((*first, *second), key=lambda x: lives[x]))
        groups.remove(second)
    return tuple(tuple((name,) for name in group) for group in groups if len(group) > 1)


def in_place_of_dead(
    nodes: Sequence[Node], sizes: Mapping[str, int], guests: Sequence[str]
) -> tuple[Group, ...] | None:
    """`guests` in the bytes of tiles that nothing touches any more; None where these are too few.

    Tiles that are dead lie side by side under the first guest; the next ones follow in the same bytes.
    """
    lives = _lives(nodes, sizes)
    first, *later = sorted(guests, key=lambda name: lives[name])
    dead = [x for x in sizes if x not in guests and _before(lives[x], lives[first])]
    needed = max(layer_bytes((name,), sizes) for name in guests)
    enough = [x for x in dead if layer_bytes((x,), sizes) >= needed]
    hosts = tuple(enough[:1] or dead)  # one that is large enough, else all of them
    group: Group = (hosts, (first,))
    for name in later:
        if not all(_before(lives[x], lives[name]) for layer in group for x in layer):
            return None
        group = (*group, (name,))
    return (group,) if group_bytes(group, sizes) == layer_bytes(hosts, sizes) else None


def _before(first: Life, second: Life) -> bool:
    """Whether one array is dead when the block comes to the other, in whatever loops these lie."""
    return first[1][:1] < second[0][:1]


def _lives(nodes: Sequence[Node], names: Mapping[str, int]) -> dict[str, Life]:
    found: dict[str, Life] = {}
    for path, node in _steps(nodes, ()):
        for name in names_in(node) & set(names):
            first, _ = found.get(name, (path, path))
            found[name] = (first, path)
    whole: Life = ((0,), (len(nodes),))
    return {name: found.get(name, whole) for name in names}


def _steps(nodes: Sequence[Node], above: Path) -> Iterator[tuple[Path, object]]:
    """Steps, and the heads of loops and branches, with their places in the tree."""
    for number, node in enumerate(nodes):
        path = (*above, number)
        if isinstance(node, LoopStep):
            yield path, node.frame
            yield from _steps(node.body, path)
        elif isinstance(node, BranchStep):
            yield path, node.condition
            yield from _steps(node.then, (*path, 0))
            yield from _steps(node.orelse, (*path, 1))
        else:
            yield path, node


def _apart(lives: Mapping[str, Life], scratch: set[str], a: str, c: str) -> bool:
    """Whether one is dead before the other is touched: in the block, or in each round of a loop."""
    first, second = lives[a], lives[c]
    if not {a, c} <= scratch:  # a tile may be carried from round to round
        first, second = ((life[0][:1], life[1][:1]) for life in (first, second))
    return first[1] < second[0] or second[1] < first[0]


def _saved(sizes: Mapping[str, int], first: tuple[str, ...], second: tuple[str, ...]) -> int:
    return min(max(sizes[x] for x in first), max(sizes[x] for x in second))
