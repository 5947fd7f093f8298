"""Why a launch is not lowered with roles."""

from __future__ import annotations


class Unfit(Exception):
    """The launch takes the ordinary path; the message is a line of the file's header."""


class Crowded(Unfit):
    """The sums do not fit in the registers of so few threads."""


class Restless(Exception):
    """A block of the launch cannot stay for several tiles, as its steps showed."""
