"""Random edits and random changes of the source: both are in the merge, or in marked conflicts."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from story_merges import CHANGES, SOURCE, generated_from, write
from tile2c.transpile.output import anchors, header, renames
from tile2c.transpile.output.layout import base_file

FILE = "gemm_bias_relu.cu"
# Sets of changes that can be made together.
SETS = (
    ("depth",),
    ("tile", "renamed tensor"),
    ("renamed", "statement_acc"),
    ("threads", "comment"),
    ("arithmetic", "deeper", "moved"),
    ("argument",),
    ("swapped",),
    ("swapped", "depth"),
    ("statement", "tile"),
)


def changed(names: tuple[str, ...]) -> str:
    """The program after several changes, one after the other."""
    text = SOURCE
    for name in names:
        change = CHANGES["statement" if name == "statement_acc" else name]
        text = change(text.replace("acc", "C_local")).replace("C_local", "acc") if (
            name == "statement_acc"
        ) else change(text)  # fmt: skip
    return text


edits = st.lists(
    st.tuples(
        st.sampled_from(("insert", "extend", "replace", "delete")),
        st.floats(0, 1, exclude_max=True),
    ),
    min_size=1,
    max_size=8,
)


def edited(text: str, plan: list[tuple[str, float]]) -> str:
    """The text with an edit at each place; all but deletions leave a word of their own."""
    lines = text.split("\n")
    for number, (kind, place) in enumerate(plan):
        at = int(place * len(lines))
        word = f"/* edit {number} */"
        if kind == "insert":
            lines.insert(at, word)
        elif kind == "extend":
            lines[at] += f" {word}"
        elif kind == "replace":
            lines[at] = word
        elif len(lines) > 1:
            del lines[at]
    return "\n".join(lines)


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"/\* edit \d+ \*/", text))


def statements(text: str) -> dict[str, str]:
    """Of each quoted statement that occurs once, what its first block has between its braces."""
    parts = list(anchors.parts(header.normalized(text).splitlines(keepends=True)))
    names = Counter(anchors.name_of(part) for part in parts if part[0][0].isspace())
    found = {}
    for part in parts:
        name, depth = anchors.name_of(part), len(part[0]) - len(part[0].lstrip())
        ends = [n for n, line in enumerate(part) if line.startswith(" " * depth + "}")]
        if name is not None and names[name] == 1 and ends:
            found[name] = "".join(part[1 : ends[0]])
    return found


def stays_in_its_statement(mine: str, result: str) -> None:
    """What was edited within a statement is within it after a clean merge, wherever that is now."""
    after = statements(result)
    for name, lines in statements(mine).items():
        if name in after:
            assert words(lines) <= words(after[name]), name


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(SETS[:-1]), st.sampled_from(SETS), edits, st.booleans())
def test_both_are_in_the_merge_or_in_marked_conflicts(
    first: tuple[str, ...], then: tuple[str, ...], plan: list[tuple[str, float]], windows: bool
) -> None:
    before, after = generated_from(changed(first)), generated_from(changed(then))
    with TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / FILE
        assert write(folder, before) == []
        mine = edited(path.read_text(), plan)
        path.write_bytes(mine.replace("\n", "\r\n" if windows else "\n").encode())
        codes = write(folder, after, merge=True)
        result = header.normalized(path.read_bytes().decode())
        base = (folder / base_file(FILE)).read_text()
    new = header.sign(after.text)
    assert words(result) >= words(mine), "an edit is lost"
    assert not {"T2C601", "T2C613"} & set(codes)
    if header.body(header.sign(before.text)) != header.body(new):
        assert base == new
    if "T2C604" in codes:
        assert header.has_conflict_marks(result)
        sides = [re.findall(f"^{mark}", result, re.MULTILINE) for mark in ("<{7}", "={7}", ">{7}")]
        assert len({len(side) for side in sides}) == 1
    else:
        assert not header.has_conflict_marks(result)
        stays_in_its_statement(mine, result)
    # Whatever the new text adds is there, on a line that people did not make another one.
    old, new = (header.neutral(text, "", "") for text in (header.sign(before.text), new))
    names = renames.renamed(old, new, mine)
    result = header.neutral(result, "", "")
    added = Counter(new.split("\n")) - Counter(renames.apply(names, old).split("\n"))
    assert not added - Counter(
        re.sub(r" /\* edit \d+ \*/$", "", line) for line in result.split("\n")
    )
