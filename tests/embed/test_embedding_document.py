"""docs/embedding.md: its commands are run, in order, and say what it says they do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from embed_programs import SAMPLES
from tile2c.transpile.project import read

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "embedding.md"
_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_commands(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    command = tools / "tile2c"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tile2c "$@"\n')
    command.chmod(0o755)
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ("gemm.py", "softmax.py"):
        shutil.copy(SAMPLES / name, folder)
    said = ""
    for language, word, text in _BLOCK.findall(DOCUMENT.read_text()):
        if language == "toml":
            (folder / word).write_text(text)
        elif language == "output":
            assert all(line in said for line in text.splitlines()), (text, said)
        elif language == "sh" and (word != "nvcc" or shutil.which("nvcc")):
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", text],
                cwd=folder,
                env={**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            said = done.stdout
            assert done.returncode == 0, (text, said)
    header = (folder / "kernels/gemm.h").read_text()
    shown = re.search(r"^```c\n(.*?)^```$", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    assert shown is not None
    assert all(line in header.split("\n") for line in shown[1].splitlines())


def test_every_key_is_explained() -> None:
    module = sys.modules[read.__module__]
    text = DOCUMENT.read_text()
    for key in {*module._WHOLE, *module._SET} - {"kernels"}:
        assert f"\n| `{key}` |" in text, key
