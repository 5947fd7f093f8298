"""Statements and functions that the program's author moved, so that edits made by hand go with them.

To git a part that moved is gone in one place and new in another: an edit inside it collides with its
going. Here the base and the edited text are both put into the order of the new text first, part by
part; the edit then lies where its statement now is.

Only what is sure is moved: parts with a name of their own in all three texts, in an order that people left
alone. An edit goes along if it lies inside its part. A line that people put before or behind a part may
belong to what it stood beside as well as to the part: then nothing is moved, and the conflict is marked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher

from tile2c.transpile.output import anchors
from tile2c.transpile.record import record


@record
class _Part:
    """Lines that belong together; `name` is what they are about, None for what stands between."""

    name: str | None
    lines: tuple[str, ...]


def followed(base: str, edited: str, generated: str) -> tuple[str, str] | None:
    """Base and edited text in the order of the generated one; None where nothing moves surely."""
    texts = [_parts(text) for text in (base, edited, generated)]
    counts = [Counter(part.name for part in parts) for parts in texts]
    common = {name for name in counts[0] if name and all(count[name] == 1 for count in counts)}
    orders = [[part.name for part in parts if part.name in common] for parts in texts]
    if orders[0] == orders[2] or orders[0] != orders[1]:
        return None
    named = [{part.name: part.lines for part in parts} for parts in texts[:2]]
    touched = {name for name in common if named[0][name] != named[1][name]}
    order = [str(name) for name in orders[2]]
    moving = set(order) - _kept([str(name) for name in orders[0]], order, touched)
    if not all(_lies_inside(named[0][name], named[1][name]) for name in moving & touched):
        return None
    found = [_reordered(parts, texts[0], texts[2], order, moving) for parts in texts[:2]]
    old, own = ("".join(line for part in parts for line in part.lines) for parts in found)
    same = Counter(old.split("\n")) == Counter(base.split("\n"))
    if not (same and Counter(own.split("\n")) == Counter(edited.split("\n"))):
        return None
    return old, own


def _parts(text: str) -> list[_Part]:
    """The parts of a text; what closes a block around a statement is not part of the statement."""
    found = []
    for lines in anchors.parts(text.splitlines(keepends=True)):
        name = anchors.name_of(lines)
        end = len(lines)
        if name is not None and lines[0][0].isspace():
            depth = _indent(lines[0])
            inner = (n for n, line in enumerate(lines) if line.strip() and _indent(line) < depth)
            end = next(inner, end)
        found.append(_Part(name, tuple(lines[:end])))
        if end < len(lines):
            found.append(_Part(None, tuple(lines[end:])))
    return found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _kept(before: Sequence[str], after: Sequence[str], touched: set[str]) -> set[str]:
    """The names that stay: the longest run in both orders, edited parts rather than others."""
    weight = [1000 if name in touched else 1 for name in before]
    best: list[list[tuple[int, tuple[str, ...]]]] = [
        [(0, ())] * (len(after) + 1) for _ in range(len(before) + 1)
    ]
    for i, old in enumerate(before):
        for j, new in enumerate(after):
            choice = max(best[i][j + 1], best[i + 1][j], key=lambda item: item[0])
            if old == new and best[i][j][0] + weight[i] > choice[0]:
                choice = best[i][j][0] + weight[i], (*best[i][j][1], old)
            best[i + 1][j + 1] = choice
    return set(best[-1][-1][1])


def _lies_inside(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether nothing was put in front of a part or behind it."""
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for kind, i, end, j, stop in matcher.get_opcodes():
        at_edge = i == 0 or end == len(before)
        if kind == "insert" and at_edge:
            return False
        if kind == "replace" and at_edge and stop - j > end - i:
            return False
    return True


def _reordered(
    parts: Sequence[_Part],
    base: Sequence[_Part],
    generated: Sequence[_Part],
    order: Sequence[str],
    moving: set[str],
) -> list[_Part]:
    """The parts with those that move behind what stands before them in the generated text."""
    found = [part for part in parts if part.name not in moving]
    own = {part.name: part for part in parts}
    for name in (name for name in order if name in moving):
        at = order.index(name)
        if at == 0:
            place = _place(found, _first(order, moving))
        else:
            place = _place(found, order[at - 1]) + 1
            place += _gap(base, generated, order[at - 1], name, moving)
        found.insert(min(place, len(found)), own[name])
    return found


def _first(order: Sequence[str], moving: set[str]) -> str:
    return next((name for name in order if name not in moving), order[0])


def _place(parts: Sequence[_Part], name: str) -> int:
    return next((n for n, part in enumerate(parts) if part.name == name), 0)


def _gap(
    base: Sequence[_Part],
    generated: Sequence[_Part],
    before: str,
    name: str,
    moving: Mapping[str, object] | set[str],
) -> int:
    """How many parts without a name stand behind `before` in both texts until the part comes."""
    if before in moving:
        return 0
    old = base[_place(base, before) + 1 :]
    new = generated[_place(generated, before) + 1 : _place(generated, name)]
    count = 0
    for mine, theirs in zip(old, new, strict=False):
        if mine.name is not None or theirs.name is not None or mine.lines != theirs.lines:
            break
        count += 1
    return count
