"""Exit statuses, and the exception for a command line that is wrong."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """What scripts may rely on."""

    DONE = 0
    INPUT = 1  # something in the input is wrong, or --check found a difference
    USAGE = 2  # the command line is wrong
    BUG = 3  # an internal error
    INTERRUPTED = 130


class UsageProblem(Exception):
    """The command line is wrong: a code of the 0xx section, the message, what to type instead."""

    def __init__(self, code: str, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.help = help


def nearest(name: str, known: list[str] | tuple[str, ...], *, alike: float = 0.4) -> str | None:
    """The known name most like `name`, if any is near; letter case does not count.

    Short names are alike by chance: those ask for more (`alike`, of 1).
    """
    from difflib import get_close_matches

    by_lower = {item.lower(): item for item in known}
    found = get_close_matches(name.lower(), list(by_lower), n=1, cutoff=alike)
    return by_lower[found[0]] if found else None


def suggestion(name: str, known: list[str] | tuple[str, ...]) -> str | None:
    """`did you mean X?`, or the known names if none is near; None without any."""
    near = nearest(name, known)
    if near is not None:
        return f"did you mean {near}?"
    return f"known: {', '.join(known)}" if known else None
