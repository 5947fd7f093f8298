"""What reviewers ask: which statement is this line, what changed, what is stale."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from tile2c.transpile.cli.main import main

SAMPLES = Path(__file__).parents[2] / "samples"


def line_of(path: Path, text: str) -> int:
    lines = path.read_text().split("\n")
    return 1 + next(number for number, line in enumerate(lines) if text in line)


@pytest.fixture
def gemm(home: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """`gemm.py` here, and its kernel in `out`."""
    (home / "gemm.py").write_text((SAMPLES / "gemm.py").read_text())
    assert main(["gemm.py", "-o", "out"]) == 0
    capsys.readouterr()
    return home / "out/gemm.cu"


def answer(capsys: pytest.CaptureFixture[str], place: str, *options: str) -> tuple[str, str]:
    assert main(["where", place, *options]) == 0
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_where_names_the_statement(gemm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = answer(capsys, f"out/gemm.cu:{line_of(gemm, '&A_shared[')}")
    source = Path("gemm.py")
    line = line_of(source, "T.copy(A[")
    kernel = line_of(source, "def main(")
    assert out.split("\n")[0] == (
        f"gemm.py:{line}:17: T.copy(A[by * block_M, ko * block_K], A_shared)"
    )
    assert f"    in kernel gemm (cuda:sm_80), gemm.py:{kernel}" in out
    assert err == ""


def test_where_works_on_edited_files(gemm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = gemm.read_text().replace("#include <cuda_fp16.h>\n", "#include <cuda_fp16.h>\n" * 9)
    gemm.write_bytes(text.replace("\n", "\r\n").encode())
    number = line_of(gemm, "&A_shared[")
    out, err = answer(capsys, f"out/gemm.cu:{number}")
    assert "T.copy(A[" in out and err == ""
    lines = gemm.read_text().split("\n")
    lines[number - 1] = "            mine();"
    gemm.write_text("\n".join(lines))
    out, err = answer(capsys, f"out/gemm.cu:{number}")
    assert "T.copy(A[" in out and "edited" in err


def test_where_says_when_it_is_not_sure(gemm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = answer(capsys, f"out/gemm.cu:{line_of(gemm, 'A_col(unsigned')}")
    assert "no statement of its own" in out
    Path("gemm.py").write_text("# moved\n" + Path("gemm.py").read_text())
    _, err = answer(capsys, "out/gemm.cu:150")
    assert "has changed since" in err
    Path("gemm.py").rename("linear.py")
    out, err = answer(capsys, "out/gemm.cu:150")
    assert "is not found" in err and out.startswith("gemm.py:")
    out, _ = answer(capsys, "out/gemm.cu:150", "--source", "linear.py")
    assert out.startswith("linear.py:")


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("out/gemm.cu", "KERNEL.cu:LINE"),
        ("out/gemm.cu:0", "KERNEL.cu:LINE"),
        ("out/gem.cu:3", "no such file"),
        ("gemm.py:3", "no kernel file that tile2c wrote"),
        ("out/gemm.cu:9999", "lines, not 9999"),
    ],
)
def test_where_refuses_in_words(
    gemm: Path, capsys: pytest.CaptureFixture[str], place: str, words: str
) -> None:
    assert main(["where", place]) == 2
    assert words in capsys.readouterr().err


def test_diff_says_what_changed(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    old = (SAMPLES / "gemm_bias_relu.py").read_text()
    Path("old.py").write_text(old)
    new = old.replace("num_stages=3", "num_stages=5").replace("block_K=32", "block_K=64")
    Path("new.py").write_text(
        new.replace("        C: T.T", "        scale: T.float32,\n        C: T.T")
    )
    assert main(["diff", "old.py", "new.py"]) == 0
    text = capsys.readouterr().out
    for words in (
        "gemm_bias_relu (cuda:sm_80): changed",
        "num_stages = 3 -> 5",
        "+ scale: float32",
        "gemm_bias_relu: shared_bytes 0 -> 163840",
        "49152 bytes -> 163840 bytes",
        "-constexpr int num_stages = 3;",
    ):
        assert words in text
    assert "more lines" not in text  # a pipe gets everything, a terminal the start
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["diff", "old.py", "new.py"]) == 0
    assert re.search(r"… \d+ more lines; --full shows them", capsys.readouterr().out)
    assert main(["diff", "old.py", "new.py", "--full"]) == 0
    assert capsys.readouterr().out == text
    assert main(["diff", "old.py", "old.py", "--exit-code"]) == 0
    assert "same" in capsys.readouterr().out
    assert main(["diff", "old.py", "new.py", "--exit-code", "--format", "json"]) == 1
    (change,) = json.loads(capsys.readouterr().out)
    assert change["kind"] == "changed" and change["target"] == "cuda:sm_80"


def test_diff_knows_new_kernels_and_those_that_are_gone(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("add", "row_sum"):
        Path(f"{name}.py").write_text((SAMPLES / f"{name}.py").read_text())
    assert main(["diff", "add.py", "row_sum.py", "--target", "cuda:sm_80,ascendc"]) == 0
    text = capsys.readouterr().out
    assert "row_sum (ascendc:ascend910b): new" in text and "add (cuda:sm_80): gone" in text
    assert "local memory" in text and "registers" in text
    assert main(["diff", "add.py", "nothing.py"]) == 2


def test_check_shows_what_is_stale_and_not_the_edits(
    gemm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = Path("gemm.py")
    source.write_text(source.read_text().replace("num_stages=3", "num_stages=2"))
    gemm.write_text(gemm.read_text().replace("row < M", "(row < M)"))
    before = {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    assert main(["gemm.py", "-o", "out", "--check"]) == 1
    text = capsys.readouterr().err
    assert "and it was edited by hand" in text and "--merge keeps the edits" in text
    assert "   | -constexpr int num_stages = 3;\n   | +constexpr int num_stages = 2;" in text
    assert "(row < M)" not in text and "(parameters)" in text
    number = line_of(gemm, "constexpr int num_stages")
    assert f"@@ -{number - 1},3" in text  # the file's own lines
    assert before == {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    main(["gemm.py", "-o", "out", "--check", "--format", "json"])
    found = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert any("+constexpr int num_stages = 2;" in item.get("diff", ()) for item in found)


def test_pristine_shows_the_edit(gemm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gemm.write_text(gemm.read_text().replace("row < M", "(row < M)"))
    assert main(["gemm.py", "-o", "out", "--check"]) == 0
    assert main(["gemm.py", "-o", "out", "--check", "--pristine"]) == 1
    assert "+            const int valid = (row < M) ? K - col : 0;" in capsys.readouterr().err
