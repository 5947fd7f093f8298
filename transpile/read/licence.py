"""Licence comments: the one at the top of a source, and a project's as C++ has it.

reads   the first comments of a Python file, or a file with a licence header
writes  lines of a C++ comment
"""

from __future__ import annotations

import re
from itertools import groupby

from tile2c.transpile.read.source import Source

_SAYS = re.compile(r"SPDX-License-Identifier|copyright|\blicen[sc]e", re.IGNORECASE)
_SETTING = re.compile(r"^#!|^#.*coding[:=]")


def licence_of(source: Source) -> tuple[str, ...]:
    """The licence comment above a file's first statement, as C++; empty without one."""
    found: list[str] = []
    top: list[str] = []
    for line in source.lines:
        if line.strip() and not line.startswith("#"):
            break
        top.append(line)
    for is_comment, block in groupby(top, key=lambda line: line.startswith("#")):
        lines = [line for line in block if not _SETTING.match(line)]
        if is_comment and any(_SAYS.search(line) for line in lines):
            found += [*([""] if found else []), *lines]
    return as_comment("\n".join(found))


def as_comment(text: str) -> tuple[str, ...]:
    """The text as lines of a C++ comment, whatever comment it was before."""
    lines = [line.rstrip() for line in text.removeprefix("\ufeff").splitlines()]
    while lines and not lines[0]:
        lines.pop(0)
    while lines and not lines[-1]:
        lines.pop()
    if lines and lines[0].startswith("/*") and lines[-1].endswith("*/"):
        inner = "\n".join(lines)[2:-2]
        if "*/" not in inner:
            return tuple(lines)
    for mark in ("//", "#", "--", ";"):
        if lines and all(line.startswith(mark) or not line for line in lines):
            lines = [line.removeprefix(mark) for line in lines]
            return tuple(_line(line) for line in lines)
    return tuple(_line(f" {line}" if line else "") for line in lines)


def _line(text: str) -> str:
    """One comment line; a backslash at its end would draw the next line into it."""
    return f"//{text}".rstrip().rstrip("\\").rstrip()
