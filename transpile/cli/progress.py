"""Tells a person at a terminal that something takes long; scripts see nothing."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tile2c.transpile.cli.report import Reporter

if TYPE_CHECKING:
    from rich.status import Status

DELAY = 1.0  # seconds before anything is shown


@contextmanager
def busy(text: str, reporter: Reporter) -> Iterator[None]:
    """Shows a spinner beside `text` once the work inside has taken a second."""
    if reporter.format != "text" or not sys.stderr.isatty():
        yield
        return
    shown: list[Status] = []

    def show() -> None:
        from rich.console import Console

        status = Console(stderr=True).status(f"tile2c: {text}")
        status.start()
        shown.append(status)

    timer = threading.Timer(DELAY, show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        for status in shown:
            status.stop()
