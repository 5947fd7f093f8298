"""A project as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from tile2c.transpile.diagnostics import Span
from tile2c.transpile.record import record


@record(kw_only=True)
class KernelSet:
    """One table of `kernels`: sources, with the values and targets that they are generated for.

    `variants` are the `-D` options of each specialisation; there is one at least.
    """

    sources: tuple[Path, ...]
    names: tuple[str, ...]  # only these kernels; empty: all of the sources
    targets: tuple[str, ...]
    out: Path
    variants: tuple[tuple[str, ...], ...]
    launcher: bool
    licence: tuple[str, ...]  # lines that go on top of every text
    span: Span  # of the table's `source`
    defined: Mapping[str, Span] = field(default_factory=dict)  # where each name is fixed
    named: Mapping[str, Span] = field(default_factory=dict)  # where each kernel is named


@record(kw_only=True)
class Project:
    """The whole file. Paths are as they are found from the current folder."""

    file: Path
    folder: Path
    sets: tuple[KernelSet, ...]
    shared: Mapping[str, Span]  # names fixed for all sets: each set takes those that it has
    formatter: tuple[str, ...]  # a command that reads a text and writes it formatted
    formatter_span: Span | None
    inputs: tuple[Path, ...]  # further files that the output depends on: licence headers

    def folders(self) -> tuple[Path, ...]:
        """Every output folder once, in the order of the file."""
        return tuple(dict.fromkeys(part.out for part in self.sets))
