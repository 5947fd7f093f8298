"""Values of `-D` that the checks of the language refuse: the message says that `-D` brought them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tile2c.transpile.cli.main import main

GEMM = Path(__file__).parents[2] / "samples" / "gemm.py"


@pytest.mark.parametrize(
    ("option", "code", "note"),
    [
        ("block_M=1e3", "T2C234", "block_M 1000.0; with 128"),
        ("block_M=0", "T2C238", "block_M 0; with 128"),
        ("gemm.block_M=0", "T2C238", "block_M 0; with 128"),
        ("num_stages=-1", "T2C315", "num_stages -1; with 3"),
        ("M=0", "T2C403", "M 0; with a run-time size"),
        (f"M={10**20 - 1}", "T2C237", f"M {10**20 - 1}; with a run-time size"),
    ],
)
def test_the_option_is_named(
    option: str, code: str, note: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(GEMM), "-o", str(tmp_path), "-D", option, "-D", "block_N=64"]) == 1
    text = capsys.readouterr().err
    assert text.count("error[") == 1
    assert f"error[{code}]" in text
    assert f"note: -D makes {note}, as in the source, there is no error" in text


def test_other_errors_are_told_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gemm.py"
    path.write_text(GEMM.read_text("utf-8").replace("T.clear(", "T.cleer("), "utf-8")
    assert main([str(path), "-o", str(tmp_path / "out"), "-D", "block_M=64"]) == 1
    assert "-D makes" not in capsys.readouterr().err
