"""Three-way merge of a base, the file that people edited, and the newly generated text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, cast

from tile2c.transpile.output import header

if TYPE_CHECKING:
    from merge3 import SequenceMatcherProtocol

# Stands for the header in all three texts, so that the header itself is never merged.
_HEADER = "\0header\n"


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged text, with the edited file's line ends; `conflicts` counts the marked places."""

    text: str
    conflicts: int


def merge(base: str, edited: str, generated: str, name: str) -> Merged:
    """Applies what people changed since `base` to `generated`; conflicts are marked as git does."""
    from merge3 import Merge3

    matcher = cast("type[SequenceMatcherProtocol[str]]", _ExactMatcher)
    three = Merge3(_lines(base), _lines(edited), _lines(generated), sequence_matcher=matcher)
    lines: list[str] = []
    conflicts = 0
    for group in three.merge_groups():
        if group[0] == "conflict":
            conflicts += 1
            lines += _marked(group[2], group[3], name)
        else:
            lines += group[1]
    new_header = "".join(header.split(header.normalized(generated)).header)
    text = "".join(lines).replace(_HEADER, new_header)
    if edited.count("\r\n") * 2 > edited.count("\n"):
        text = text.replace("\n", "\r\n")
    mark = "\ufeff" if edited.startswith("\ufeff") else ""
    return Merged(mark + text, conflicts)


class _ExactMatcher(SequenceMatcher[str]):
    """difflib without its shortcut for long texts, which ignores lines that occur often."""

    def __init__(self, isjunk: None, a: Sequence[str], b: Sequence[str]) -> None:
        super().__init__(isjunk, a, b, autojunk=False)


def _lines(text: str) -> list[str]:
    parts = header.split(header.normalized(text))
    anchor = (_HEADER,) if parts.header else ()
    return [*parts.before, *anchor, *parts.after]


def _marked(edited: Sequence[str], generated: Sequence[str], name: str) -> list[str]:
    """Both sides between marks; lines on which they agree at either end stay outside."""
    shortest = min(len(edited), len(generated))
    head = 0
    while head < shortest and edited[head] == generated[head]:
        head += 1
    tail = 0
    while tail < shortest - head and edited[-1 - tail] == generated[-1 - tail]:
        tail += 1
    return [
        *edited[:head],
        f"<<<<<<< {name} as edited\n",
        *_ended(edited[head : len(edited) - tail]),
        "=======\n",
        *_ended(generated[head : len(generated) - tail]),
        f">>>>>>> {name} as generated\n",
        *edited[len(edited) - tail :],
    ]


def _ended(lines: Sequence[str]) -> list[str]:
    """The last line of a file may lack its line end; a mark must still start a line."""
    return [line if line.endswith("\n") else line + "\n" for line in lines]
