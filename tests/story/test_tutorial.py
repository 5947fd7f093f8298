"""docs/tutorial.md as a newcomer follows it: its files are written, its commands run, in order."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

TUTORIAL = Path(__file__).parents[2] / "docs/tutorial.md"
_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> Iterator[tuple[str, str | None, str]]:
    for match in _BLOCK.finditer(TUTORIAL.read_text()):
        yield match[1], match[2], match[3]


def present(wanted: str | None) -> bool:
    """Whether a command can run here."""
    if wanted == "install":
        return False
    if wanted == "nvcc":
        return shutil.which("nvcc") is not None
    return wanted != "device" or Path("/dev/nvidia0").exists()


def run(script: str, folder: Path, *, fails: bool) -> str:
    """Runs commands as a person would, where `tile2c` is this interpreter's; both outputs."""
    tools = folder.parent / "tools"
    tools.mkdir(exist_ok=True)
    command = tools / "tile2c"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tile2c "$@"\n')
    command.chmod(0o755)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert (done.returncode != 0) == fails, f"{script}\n{done.stdout}"
    return done.stdout


def test_the_tutorial(home: Path) -> None:
    folder = home / "newcomer"
    folder.mkdir()
    said = ""
    commands = 0
    for language, word, text in blocks():
        if language == "output":
            for line in text.splitlines():
                assert line in said, f"{line!r} is not in\n{said}"
        elif language != "sh":
            assert word is not None
            (folder / word).write_text(text)
        elif present(word):
            said = run(text, folder, fails=word == "fails")
            commands += 1
    assert commands >= 11


def test_the_readme_leads_there() -> None:
    assert "docs/tutorial.md" in (TUTORIAL.parents[1] / "README.md").read_text()
