"""docs/errors.md lists every code, and every code in use is registered."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from error_examples import FRAME, examples
from tile2c.transpile.diagnostics.codes import CODES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "errors.md"
SECTIONS = {
    "0": "The command line (exit status 2)",
    "1": "Reading the file, and host code that has to be evaluated",
    "2": "The tile language: names, types, indices, expressions",
    "3": "Tile statements: copies, products, reductions, loops",
    "4": "Memory and launch",
    "5": "What a target cannot do",
    "6": "The output folder",
    "7": "Running kernels",
}
HEAD = """# Codes of diagnostics

Every diagnostic has a code, which stays the same from version to version and is never given a
second meaning. The message says which facts disagree, with the names and values of the program; the
line below it points at the expression, and `help` is something that can be typed. Warnings do not
change the exit status.
"""


EXAMPLES = f"""
# Examples

Each is told with its code, or transpiled (tests/diagnostics/examples). Those that do not show a whole
program are statements of this kernel; they are for `cuda:sm_80` where no target is named.

```python
import tilelang
import tilelang.language as T

{FRAME}```
"""


def shown() -> list[str]:
    """The examples by code."""
    lines = [EXAMPLES]
    for example in sorted(examples(), key=lambda item: item.code):
        where = f" ({example.target})" if "target" in example.options else ""
        lines += [f"## {example.code}: {CODES[example.code]}{where}", "", "Wrong:", "", "```python"]
        lines += [example.wrong.rstrip("\n"), "```", "", "Right:", "", "```python"]
        lines += [example.right.rstrip("\n"), "```", ""]
    return lines


def page() -> str:
    """The whole text of docs/errors.md."""
    lines = [HEAD]
    for digit, title in SECTIONS.items():
        lines += [f"## {title}", "", "| code | meaning |", "| --- | --- |"]
        lines += [f"| {code} | {text} |" for code, text in CODES.items() if code[3] == digit]
        lines.append("")
    return "\n".join([*lines[:-1], *shown()])


def test_errors_page(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(page())
    assert PAGE.read_text() == page(), (
        "write it anew with: pytest tests/diagnostics --update-golden"
    )


def test_every_code_is_registered_and_used() -> None:
    used: set[str] = set()
    for folder in ("transpile", "runtime"):
        for path in (ROOT / folder).rglob("*.py"):
            if path.name != "codes.py":
                used |= set(re.findall(r'"(T2C\d{3})"', path.read_text()))
    assert used - CODES.keys() == set(), "codes that codes.py does not have"
    assert CODES.keys() - used == set(), "codes that nothing uses"


def test_codes_are_in_order() -> None:
    assert list(CODES) == sorted(CODES)


def test_no_code_is_registered_twice() -> None:
    text = (ROOT / "transpile" / "diagnostics" / "codes.py").read_text()
    codes = re.findall(r'^    "(T2C\d{3})":', text, re.MULTILINE)
    assert len(codes) == len(set(codes))
