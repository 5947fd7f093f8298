"""What the emulator says while it compiles itself."""

from __future__ import annotations

import time

import pytest
from tile2c.runtime.emulate import compiler


def test_the_first_run_says_what_takes_so_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with compiler.told_if_slow():
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(compiler, "TOLD_AFTER", 0.0)
    with compiler.told_if_slow():
        time.sleep(0.2)
    assert "compiling the emulator's own library, once" in capsys.readouterr().err
