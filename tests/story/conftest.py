"""A folder of a person's own for each test."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder."""
    monkeypatch.delenv("TILE2C_BACKEND", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path
