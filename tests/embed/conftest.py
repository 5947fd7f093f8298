"""Keeps what the tests remember about folders out of the user's cache."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # embed_programs


@pytest.fixture(autouse=True)
def own_memory(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    from tile2c.runtime.emulate.compiler import cache_folder

    compiled: Path = cache_folder().parent  # shared by all tests: the emulator is compiled once
    monkeypatch.setenv("TILE2C_CACHE", str(compiled))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("memory")))


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
