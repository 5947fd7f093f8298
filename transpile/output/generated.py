"""What rendering hands to the output folder: one finished text and its manifest entry."""

from __future__ import annotations

from dataclasses import dataclass

from tile2c.transpile.diagnostics import Span

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineOrigin:
    """Lines `first` to `last` of the text (from 1) come from `span` of the source."""

    first: int
    last: int
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedKernel:
    """One kernel for one target, ready to be written.

    `text` is complete but for the digest in its `//   text     sha256 …` line, which `output` fills
    in.
    `manifest` is the kernel's entry in tile2c.json (see the contract) without "file" and "sha256".
    """

    name: str  # gemm
    target: str  # cuda:sm_80
    suffix: str  # .cu
    text: str
    manifest: dict[str, JsonValue]
    origins: tuple[LineOrigin, ...] = ()
