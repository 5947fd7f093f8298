"""docs/tutorial.md as a newcomer follows it: its files are written, its commands run, in order."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

TUTORIAL = Path(__file__).parents[2] / "docs/tutorial.md"
_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> Iterator[tuple[str, str | None, str]]:
    for match in _BLOCK.finditer(TUTORIAL.read_text()):
        yield match[1], match[2], match[3]


def present(wanted: str | None) -> bool:
    """Whether a command can run here."""
    if wanted in ("install", "branches"):
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


def test_when_two_branches_meet(home: Path) -> None:
    """Both edits and both changes of the program are in the kernel."""
    found = {word: text for _, word, text in blocks() if word is not None}
    source = home / "silu_mul.py"
    kernel = home / "kernels/silu_mul.cu"
    generate = "tile2c silu_mul.py -o kernels --merge"

    def branch(old: str, new: str, edit: Callable[[str], str]) -> None:
        text = source.read_text()
        assert old in text
        source.write_text(text.replace(old, new))
        kernel.write_text(edit(kernel.read_text()))
        run(f"{generate} && git add -A && git commit -qm branch", home, fails=False)

    source.write_text(found["silu_mul.py"])
    who = "git config user.name Ada; git config user.email ada@example.org"
    run(f"git init -q -b main; {who}; {generate} && git add -A && git commit -qm first", home,
        fails=False)  # fmt: skip
    run("git checkout -qb other", home, fails=False)
    at = "    const int bx"
    branch("block_M=8", "block_M=16", lambda text: text.replace(at, f"    // Theirs.\n{at}", 1))
    run("git checkout -q main", home, fails=False)
    branch("block_N=256", "block_N=512", lambda text: text + "// Ours.\n")
    run("git merge other", home, fails=True)
    both = found["silu_mul.py"].replace("block_M=8, block_N=256", "block_M=16, block_N=512")
    source.write_text(both)
    run(found["branches"], home, fails=False)
    run("tile2c silu_mul.py -o kernels --check", home, fails=False)
    text = kernel.read_text()
    for line in ("// Theirs.", "// Ours.", "block_M = 16;", "block_N = 512;"):
        assert line in text
    assert "<<<<<<<" not in text and not (home / "theirs").exists()


def test_the_readme_leads_there() -> None:
    assert "docs/tutorial.md" in (TUTORIAL.parents[1] / "README.md").read_text()
