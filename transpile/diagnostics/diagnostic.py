"""A diagnostic is a value: code, span, message, notes, help. It is rendered later, elsewhere."""

from __future__ import annotations

from dataclasses import astuple, field
from enum import StrEnum

from tile2c.transpile.record import record


@record
class Span:
    """A stretch of a source file. Lines count from 1, columns from 0; the end is exclusive."""

    file: str
    line: int
    col: int
    end_line: int
    end_col: int

    def __lt__(self, other: Span) -> bool:
        return astuple(self) < astuple(other)

    def start(self) -> str:
        """`file:line:column` with the column counted from 1, as editors do."""
        return f"{self.file}:{self.line}:{self.col + 1}"


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"  # nothing is wrong: what a run found and left as it was


@record
class Note:
    """A second fact that matters, with its place where it has one."""

    text: str
    span: Span | None = None


@record
class Diagnostic:
    """One problem: what is wrong, where exactly, and what to write instead."""

    severity: Severity
    code: str  # "T2C304": stable, see codes.py
    message: str
    span: Span | None
    notes: tuple[Note, ...] = ()
    help: str | None = None
    file: str | None = None  # a file of the output folder that it is about; it has no span then
    diff: tuple[str, ...] = ()  # the lines of such a file that differ, as a unified diff


class InputError(Exception):
    """Raised where nothing sensible can follow a problem; carries the diagnostic."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


def _may_follow(item: Diagnostic) -> bool:
    """Arrays that nothing writes or reads, functions that launch nothing: a lost statement may be why."""
    idle = item.code == "T2C404" and item.message.endswith("launches nothing")
    return idle or item.code in ("T2C313", "T2C322")


@record(frozen=False)
class Diagnostics:
    """Collects problems so that many are found in one go."""

    items: list[Diagnostic] = field(default_factory=list)

    def add(self, diagnostic: Diagnostic) -> None:
        """Keeps a problem once, however often it is met."""
        if diagnostic not in self.items:
            self.items.append(diagnostic)

    def error(
        self,
        code: str,
        message: str,
        span: Span | None,
        *,
        notes: tuple[Note, ...] = (),
        help: str | None = None,
        file: str | None = None,
        diff: tuple[str, ...] = (),
    ) -> None:
        self.add(Diagnostic(Severity.ERROR, code, message, span, notes, help, file, diff))

    def warning(
        self,
        code: str,
        message: str,
        span: Span | None,
        *,
        notes: tuple[Note, ...] = (),
        help: str | None = None,
        file: str | None = None,
    ) -> None:
        self.add(Diagnostic(Severity.WARNING, code, message, span, notes, help, file))

    def leave_consequences_out(self) -> None:
        """Drops what may be said only because a statement with an error in it is missing."""
        if any(item.severity is Severity.ERROR and not _may_follow(item) for item in self.items):
            self.items = [item for item in self.items if not _may_follow(item)]

    def note(
        self, code: str, message: str, *, help: str | None = None, file: str | None = None
    ) -> None:
        self.add(Diagnostic(Severity.NOTE, code, message, None, (), help, file))

    @property
    def failed(self) -> bool:
        """Whether any of them is an error."""
        return any(item.severity is Severity.ERROR for item in self.items)


def failure(
    code: str,
    message: str,
    span: Span | None,
    *,
    notes: tuple[Note, ...] = (),
    help: str | None = None,
) -> InputError:
    """An error to raise: `raise failure("T2C304", ..., span)`."""
    return InputError(Diagnostic(Severity.ERROR, code, message, span, notes, help))
