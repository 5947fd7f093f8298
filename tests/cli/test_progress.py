"""A spinner for people at a terminal, nothing for anybody else."""

from __future__ import annotations

import io
import sys
import time

import pytest
from tile2c.transpile.cli import progress
from tile2c.transpile.cli.report import Reporter


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, format: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "DELAY", 0.01)
    with progress.busy("transpiling", Reporter(format)):  # type: ignore[arg-type]
        time.sleep(0.3)
    return stream.getvalue()


def test_who_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert "tile2c: transpiling" in shown(Terminal(), "text", monkeypatch)
    assert shown(io.StringIO(), "text", monkeypatch) == ""
    assert shown(Terminal(), "json", monkeypatch) == ""
