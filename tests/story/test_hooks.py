"""The hooks for pre-commit do what their descriptions say."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from tile2c.transpile.cli.main import main

ROOT = Path(__file__).parents[2]
SOURCE = Path(__file__).with_name("ops.py")
PROJECT = """\
out = "kernels"
targets = ["cuda:sm_80"]

[[kernels]]
source = "ops.py"
"""


def hooks() -> dict[str, list[str]]:
    text = (ROOT / ".pre-commit-hooks.yaml").read_text()
    found = re.findall(r"^- id: (\S+)\n(?:  .*\n)*?  entry: (.+)\n", text, re.MULTILINE)
    return {name: shlex.split(entry) for name, entry in found}


def run(hook: str) -> int:
    program, *arguments = hooks()[hook]
    assert program == "tile2c"
    return main(arguments)


def test_check_and_build(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert set(hooks()) == {"tile2c-check", "tile2c-build"}
    Path("tile2c.toml").write_text(PROJECT)
    shutil.copy(SOURCE, home)
    assert run("tile2c-check") == 1
    assert run("tile2c-build") == 0
    assert run("tile2c-check") == 0
    source, kernel = Path("ops.py"), Path("kernels/linear.cu")
    source.write_text(source.read_text().replace("num_stages=3", "num_stages=2"))
    kernel.write_text(kernel.read_text().replace("const int bx =", "const int bx /* mine */ ="))
    capsys.readouterr()
    assert run("tile2c-check") == 1
    assert "+constexpr int num_stages = 2;" in capsys.readouterr().err
    assert run("tile2c-build") == 0
    assert run("tile2c-check") == 0
    assert "/* mine */" in kernel.read_text() and "num_stages = 2" in kernel.read_text()
