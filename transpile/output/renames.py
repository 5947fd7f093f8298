"""Names that the program's author changed, so that edits made by hand can follow them.

A name in the source stands in many lines of a kernel. Without this a rename would collide with every
edit of such a line, and lines that people added would go on using a name that is gone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from difflib import SequenceMatcher

_NAME = re.compile(r"\b[A-Za-z_]\w*\b")


def renamed(base: str, generated: str, edited: str) -> dict[str, str]:
    """Old name to new name, for names that `generated` has in the very places of old ones.

    Only sure ones: the old name is gone from `generated`, the new one is in neither `base` nor
    `edited`, and where lines of the two texts correspond the one always stands for the other.
    """
    before, after = set(_NAME.findall(base)), set(_NAME.findall(generated))
    gone, come = before - after, after - before - set(_NAME.findall(edited))
    if not gone or not come:
        return {}
    votes = _votes(base.split("\n"), generated.split("\n"))
    found = {}
    for old in sorted(gone):
        stands_for = [(new, count) for (name, new), count in votes.items() if name == old]
        if len(stands_for) == 1 and stands_for[0][0] in come:
            new, count = stands_for[0]
            if count * 2 >= len(re.findall(rf"\b{old}\b", base)):
                found[old] = new
    taken = Counter(found.values())
    return {old: new for old, new in found.items() if taken[new] == 1}


def apply(names: dict[str, str], text: str) -> str:
    """The text with the names replaced, whole words only."""
    if not names:
        return text
    return _NAME.sub(lambda match: names.get(match[0], match[0]), text)


def uses(name: str, lines: Iterable[str]) -> bool:
    """Whether one of the lines has the name."""
    return any(name in _NAME.findall(line) for line in lines)


def _votes(base: list[str], generated: list[str]) -> Counter[tuple[str, str]]:
    """How often a name of `base` stands where another of `generated` does, by corresponding lines."""
    shapes = ([_NAME.sub("@", line) for line in lines] for lines in (base, generated))
    votes: Counter[tuple[str, str]] = Counter()
    matcher = SequenceMatcher(None, next(shapes), next(shapes), autojunk=False)
    for block in matcher.get_matching_blocks():
        for offset in range(block.size):
            old, new = base[block.a + offset], generated[block.b + offset]
            votes.update(zip(_NAME.findall(old), _NAME.findall(new), strict=True))
    return votes
