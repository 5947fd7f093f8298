"""docs/language-support.md is what the program does: made from the vocabulary, one probe a name."""

from __future__ import annotations

from pathlib import Path

import pytest
from support_probes import INSIDE, TARGETS, answer
from tile2c.transpile.stage import vocabulary

PAGE = Path(__file__).parents[2] / "docs" / "language-support.md"
HEAD = f"""# What of the tile language is supported

Each name of `tilelang.language` that tile2c knows, and what becomes of the shortest kernel that uses
it (tests/support/support_probes.py): `yes`, or the code with which it is refused
([errors.md](errors.md)). A name that is not listed is refused with T2C202 and the nearest known one.
The page is made by `pytest tests/support --update-golden`.

Targets stand for their kind: `{TARGETS[0]}` for CUDA and the dialects that follow it, `{TARGETS[1]}`
for Hopper's own text, `{TARGETS[2]}` for HIP, `{TARGETS[3]}` and `{TARGETS[4]}` for cores
without threads. These two promise nothing about NaN in floating maxima and minima
([language.md](language.md)).
"""
SECTIONS = {
    "Declarations, allocations, launch": vocabulary.DECLARATIONS | vocabulary.ALLOCATIONS,
    "Tile statements": (
        vocabulary.COPIES | vocabulary.GEMMS | vocabulary.FILLS | vocabulary.REDUCTIONS
        | vocabulary.SCANS | vocabulary.ATOMICS
    ),
    "Loops": vocabulary.LOOPS,
    "Functions of elements": (
        vocabulary.MATH | vocabulary.OPERATORS.keys() | vocabulary.UNARY_OPERATORS.keys()
    ),
    "Threads, values, pointers": vocabulary.VALUES,
    "Other statements": vocabulary.STATEMENTS,
}  # fmt: skip


def listed(names: frozenset[str]) -> list[str]:
    """The names of a section that have a probe, each once."""
    apart = INSIDE.keys() | vocabulary.RENAMED.keys() | vocabulary.HINTS | vocabulary.REFUSED.keys()
    return sorted(names - apart, key=lambda name: (name.lower().lstrip("_"), name))


def page(folder: Path) -> str:
    lines = [HEAD]
    seen: set[str] = set()
    for title, names in SECTIONS.items():
        lines += [
            f"## {title}",
            "",
            "| name | CUDA | Hopper | HIP | Ascend C | BANG C |",
            "| --- " * 6 + "|",
        ]
        for name in listed(frozenset(names) - seen):
            answers = [answer(name, target, folder) for target in TARGETS]
            lines.append(f"| `T.{name}` | {' | '.join(answers)} |")
        seen |= names
        lines.append("")
    lines += ["## Other spellings", "", "| name | stands for |", "| --- | --- |"]
    lines += [f"| `T.{a}` | `T.{b}` |" for a, b in sorted(vocabulary.RENAMED.items())]
    lines += ["", "## Names that stand inside others", "", "| name | where |", "| --- | --- |"]
    lines += [f"| `T.{name}` | {where} |" for name, where in sorted(INSIDE.items())]
    lines += ["", "## Hints", "", "Read and dropped: they change no result.", ""]
    lines += [", ".join(f"`T.{name}`" for name in sorted(vocabulary.HINTS)), ""]
    lines += ["## Refused by name (T2C231)", "", "| name | because |", "| --- | --- |"]
    lines += [f"| `T.{name}` | {why} |" for name, why in sorted(vocabulary.REFUSED.items())]
    lines += ["", "## Element types", "", ", ".join(f"`{d}`" for d in vocabulary.SCALAR_DTYPES), ""]
    return "\n".join(lines)


def test_the_page_says_what_is(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    text = page(tmp_path)
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text, (
        "write it anew with: pytest tests/support --update-golden"
    )


def test_every_known_name_is_on_the_page() -> None:
    shown = set().union(*SECTIONS.values()) | vocabulary.RENAMED.keys() | INSIDE.keys()
    assert vocabulary.KNOWN - shown - vocabulary.HINTS - vocabulary.REFUSED.keys() == set()
