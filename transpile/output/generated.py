"""What rendering hands to the output folder: one finished text and its manifest entry."""

from __future__ import annotations

from tile2c.transpile.diagnostics import Span
from tile2c.transpile.record import record

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]


@record(kw_only=True)
class LineOrigin:
    """Lines `first` to `last` of the text (from 1) come from `span` of the source."""

    first: int
    last: int
    span: Span


@record(kw_only=True)
class Resources:
    """What a kernel takes of a block's share, as far as its plan tells, for `tile2c diff`.

    `registers` counts registers of 32 bits that a thread's arrays fill at most; the compiler adds
    what indices and addresses need. None on machines without threads.
    """

    local_bytes: int  # shared memory of a block, or a core's own memory
    registers: int | None


@record(kw_only=True)
class Companion:
    """A further text that goes with a kernel, its digest line open: the launcher's two files."""

    name: str  # gemm.h, in the kernel's folder
    text: str


@record(kw_only=True)
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
    companions: tuple[Companion, ...] = ()
    launcher: bool | None = None  # whether it is to have one, where the run does not say it for all
    defines: tuple[str, ...] | None = None  # its `-D` values, where those of the run are not all
    resources: Resources | None = None
