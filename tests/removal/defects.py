"""Kernels with one wait, barrier or guard taken out: each has to be reported by the emulator.

Elections are no guards: where every lane holds the same value, one writes it; with all of them writing,
the bytes are the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

ELECTION = re.compile(r"^(lane|threadIdx\.x|thread)( [%/] \d+)* == 0( && \(?(lane|threadIdx\.x|warp).* == 0\)?)*$")
_ALL = "(1 << 20)"  # more elements than any vector has: nothing is left out


@dataclass(frozen=True)
class Defect:
    """`text` lacks the thing that stands on `line`; `kind` is barrier, wait, commit or guard."""

    kind: str
    line: int
    what: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind} on line {self.line}: {self.what}"


def defects(text: str) -> tuple[Defect, ...]:
    """One text for each wait, barrier and guard of the kernels in it (helper functions left alone)."""
    lines = text.split("\n")
    found: list[Defect] = []
    for number, line in kernel_lines(lines):
        for kind, changed in _without(line):
            new = [*lines[: number - 1], changed, *lines[number:]]
            found.append(Defect(kind, number, line.strip(), "\n".join(new)))
    return tuple(found)


def kernel_lines(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Lines (from 1) of kernel bodies: entry points, and the functions that several of them share."""
    inside = False
    for number, line in enumerate(lines, 1):
        if re.match(r"(extern \"C\" __global__|static __device__ void \w+_(block|produce|consume)\()", line):
            inside = True
        elif line == "}":
            inside = False
        elif inside:
            yield number, line


def _without(line: str) -> Iterator[tuple[str, str]]:
    """(kind, line without one ordering or guarding thing)."""
    bare = line.split("//")[0].rstrip()
    indent = line[: len(line) - len(line.lstrip())]
    if re.match(r"\s*__syncthreads\(\);", line):
        yield "barrier", ""
    elif re.match(r"\s*copies_wait<.*>\(\);", line):
        yield "wait", ""
    elif re.match(r"\s*copies_commit\(\);", line):
        yield "commit", ""
    elif skip := re.match(r"\s*if \((.*)\) (continue|return);$", bare):
        yield "guard", ""
        del skip
    elif block := re.match(r"\s*if (?!constexpr)\((.*)\) \{$", bare):
        if not ELECTION.match(block[1]):
            yield "guard", f"{indent}if (true) {{"
    elif single := re.match(r"\s*if (?!constexpr)\((.*?)\) ([\w:]+[\[(<].*|\w+ = .*)$", bare):
        if not ELECTION.match(single[1]):
            yield "guard", f"{indent}{single[2]}"
    elif choice := re.match(r"(.* = )(.*[<>=].*) \? (.*) : (0|0\.f|half\(0\.f\));$", bare):
        yield "guard", f"{choice[1]}{choice[3]};"
    elif call := re.match(r"(\s*(?:load_vector|store_vector).*, )(\w+ - [\w* +]+)(\);)$", bare):
        yield "guard", f"{call[1]}{_ALL}{call[3]}"
    if tail := re.match(r"(.* \? )(\w+ - [\w* +]+)( : 0;)$", bare):
        yield "guard", f"{tail[1]}{_ALL}{tail[3]}"
