"""docs/language.md: its first programs are written for every kind of target, and mean what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tile2c.transpile.cli.main import main

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "language.md").read_text()
PROGRAMS = dict(re.findall(r"^```python (\S+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
TARGETS = "cuda:sm_80,cuda:sm_90a,hip:gfx942,ascendc,bang"


@pytest.mark.parametrize("name", PROGRAMS)
def test_first_programs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As its reader types it, and with the emulator's checks."""
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(PROGRAMS[name])
    assert main([name, "-o", "all", "--target", TARGETS]) == 0
    assert main([name, "-o", "out"]) == 0
    run = ["run", "out", "--backend", "emulate", "--against", "interpreter", "--source", name]
    assert main([*run, "--check", "races,memory"]) == 0


def test_the_programs_are_found() -> None:
    assert list(PROGRAMS) == ["scale.py", "softmax.py", "matmul.py"]


def test_statements_in_order_of_need_are_supported() -> None:
    """Each name of the table is one that CUDA's targets take."""
    table = TEXT.partition("# Statements in order of need")[2].partition("\n# ")[0]
    support = (DOCS / "language-support.md").read_text()
    names = set(re.findall(r"`[^`]*?\bT\.(\w+)", table)) - {"float32", "float16"}
    assert len(names) > 25
    taken = dict(re.findall(r"^\| `T\.(\w+)` \| (\S+) \|", support, re.MULTILINE))
    listed = set(re.findall(r"`T\.(\w+)`", support))
    assert {name for name in names if taken.get(name, "yes") != "yes"} == set()
    assert names - listed == set()
