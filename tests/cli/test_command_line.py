"""The command line: exit statuses, suggestions, formats. The pipeline is a stand-in."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from tile2c.transpile import pipeline, stage
from tile2c.transpile.cli.main import main
from tile2c.transpile.diagnostics import Diagnostics, Span
from tile2c.transpile.output.generated import GeneratedKernel

TEXT = """\
// add: C = A + B      from add.py by tile2c 0.1.0
//   target   cuda:sm_80 (has run on silicon)
//   text     sha256 000000000000  (edit freely: `tile2c --merge` keeps your changes)
extern "C" __global__ void add(float* A) {
    A[0] = 0;
}
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source file, with a pipeline that makes the kernel `add` of it for each target."""

    def generate(request: pipeline.Request, diagnostics: Diagnostics):
        return tuple(
            GeneratedKernel(
                name="add",
                target=target,
                suffix=".cu",
                text=TEXT,
                manifest={"source": {"file": "add.py", "line": 1, "sha256": ""}},
            )
            for target in request.targets
        )

    monkeypatch.setattr(pipeline, "generate", generate)
    monkeypatch.setattr(stage, "parse_defines", lambda values: values, raising=False)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "add.py"
    path.write_text("x = 1\ny = bad(x)\n")
    return path


def test_no_file_of_another_name_is_meant(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nofile.py", "-o", "out"]) == 2
    assert "did you mean" not in capsys.readouterr().err


def test_writes_the_folder(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["add.py", "-o", "out"]) == 0
    assert Path("out/add.cu").exists() and Path("out/tile2c.json").exists()
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err == "wrote out/add.cu\n"
    assert main(["-o", "out", "add.py", "--check"]) == 0


def test_several_targets(source: Path) -> None:
    assert main(["add.py", "-o", "out", "--target", "cuda,cuda:sm_90a"]) == 0
    assert Path("out/cuda_sm_80/add.cu").exists() and Path("out/cuda_sm_90a/add.cu").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add.py", "-o", "out", "--taget", "cuda"], "did you mean --target"),
        (["add.py", "-o", "out", "--target", "cuda:sm_81"], "did you mean cuda:sm_8"),
        (["add.py", "-o", "out", "--target", "cude"], "did you mean cuda"),
        (["add.py", "-o", "out", "--target", "gfx942"], "did you mean hip:gfx942?"),
        (["add.py", "-o", "out", "--target", "AMD:gfx90a"], "did you mean hip:gfx90a?"),
        (["add.py", "-o", "out", "--target", "amd"], "did you mean hip?"),
        (["add.py", "-o", "out", "--target", "moorethreads"], "did you mean musa?"),
        (["add.py", "-o", "out", "--target", "huawei"], "did you mean ascendc?"),
        (["ad.py", "-o", "out"], "did you mean add.py?"),
        (["add.py"], "tile2c add.py -o out/"),
        (["-o", "out"], "no input file"),
        (["add.py", "-o", "out", "-D", "block"], "write NAME=VALUE"),
        (["add.py", "-o", "out", "--merge", "--force"], "exclude each other"),
        (["add.py", "-o", "out", "--pristine"], "--check"),
        (["add.py", "-o", "out", "--check", "--compile"], "--check writes nothing"),
        (["add.py", "-o", "out", "--emit", "plam"], "plan"),
        (["add.py", "-o", "add.py"], "is a file, not a folder"),
        (["add.py", "-o"], "requires an argument"),
        (["rum", "out"], "did you mean run?"),
        (["add", "-o", "out"], "did you mean add.py?"),
        (["add.py", "xyzzy"], "an output folder is said by -o xyzzy"),
        (["add.py", "-o", "out", "--target", "hopper"], "`tile2c --targets` lists their chips"),
        (["run", "add.py"], "`tile2c add.py -o out` writes one"),
        (["emulate", "nothing", "-o", "e"], "`tile2c INPUT.py -o nothing --launcher` writes one"),
        (["emulate", "nothing", "-o", "add.py"], "help: -o add/"),
        (["add.py", "-o", "add.py/deeper"], "help: -o add/"),
        (["add.py", "-o", "out", "--check", "--merge"], "help: --merge alone, then --check"),
        (["add.py", "-o", "out", "--pristine"], "help: --check --pristine"),
        (["add.py", "-o", "out", "--emit", "ir", "--check"], "help: without --check"),
        (["add.py", "-o", "out", "--license-header", "ad.py"], "did you mean add.py?"),
        (["add.py", "-o", "out", "--license-header", "."], ". is a folder, not a file"),
        (["add.py", "-o", "out", "--target", "cude"], "did you mean cuda?"),
        (["help"], "`tile2c -h` explains the options"),
        (["check", "-o", "out"], "did you mean --check?"),
        (["diff", "add.py", "ad.py"], "did you mean add.py?"),
        (["where", "add.py:0"], "help: tile2c where add.py:1"),
        (["build", "--project", "add.toml"], "no such file: add.toml"),
    ],
)
def test_a_wrong_command_line_is_status_2(
    source: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
    assert not Path("out").exists()


def test_usage_problems_are_json_too(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["add.py", "-o", "out", "--format", "json", "--taget", "x"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    problem = json.loads(lines[0])
    assert problem["severity"] == "error" and problem["code"] == "T2C001"


def test_problems_of_the_input_are_status_1(
    source: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def generate(request: pipeline.Request, diagnostics: Diagnostics):
        diagnostics.error("T2C101", "bad is not known", Span("add.py", 2, 4, 2, 7), help="write f")
        return ()

    monkeypatch.setattr(pipeline, "generate", generate)
    assert main(["add.py", "-o", "out"]) == 1
    assert capsys.readouterr().err == (
        "add.py:2:5: error[T2C101]: bad is not known\ny = bad(x)\n    ^^^\n   = help: write f\n"
    )
    assert main(["add.py", "-o", "out", "--format=json"]) == 1
    found = json.loads(capsys.readouterr().err)
    assert (found["file"], found["line"], found["col"], found["end_col"]) == ("add.py", 2, 5, 8)
    assert not Path("out").exists()


def test_an_unknown_define_is_status_2(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def generate(request: pipeline.Request, diagnostics: Diagnostics):
        diagnostics.error("T2C005", "no parameter blok", None)
        return ()

    monkeypatch.setattr(pipeline, "generate", generate)
    assert main(["add.py", "-o", "out", "-D", "blok=1"]) == 2


def test_a_bug_is_status_3_without_a_traceback(
    source: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def generate(request: pipeline.Request, diagnostics: Diagnostics):
        raise KeyError("layout")

    monkeypatch.setattr(pipeline, "generate", generate)
    assert main(["add.py", "-o", "out"]) == 3
    error = capsys.readouterr().err
    assert "internal error: KeyError: 'layout'" in error and "report it" in error
    assert "Traceback" not in error
    monkeypatch.setenv("TILE2C_DEBUG", "1")
    assert main(["add.py", "-o", "out"]) == 3
    assert "Traceback" in capsys.readouterr().err


def test_an_edited_file_is_status_1(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["add.py", "-o", "out"])
    path = Path("out/add.cu")
    path.write_text(path.read_text() + "// mine\n")
    assert main(["add.py", "-o", "out"]) == 0
    assert "stays as it is" in capsys.readouterr().err
    base = Path("out/.tile2c/base/add.cu")
    base.write_text(base.read_text().replace("void add", "void was"))
    assert main(["add.py", "-o", "out"]) == 1
    error = capsys.readouterr().err
    assert "add.cu" in error and "--merge" in error and "--force" in error
    assert main(["add.py", "-o", "out", "--merge"]) == 0
    assert path.read_text().endswith("// mine\n")


def test_help_version_and_targets(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-h"]) == 0
    text = capsys.readouterr().out
    assert "INPUT.py" in text and "Examples:" in text and "--target" in text
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("tile2c ")
    assert main(["--targets"]) == 0
    assert "cuda:sm_80" in capsys.readouterr().out
    assert main([]) == 2


def test_a_broken_manifest_is_status_1(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["add.py", "-o", "out"])
    Path("out/tile2c.json").write_text("<<<<<<< ours")
    for extra in ([], ["--check"], ["--force"]):
        assert main(["add.py", "-o", "out", *extra]) == 1
        assert "tile2c.json cannot be read: it holds conflict marks" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_status_1(
    source: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("taken").mkdir()

    def refuses(*arguments: object, **options: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "taken/out")

    monkeypatch.setattr(os, "mkdir", refuses)
    assert main(["add.py", "-o", "taken/out"]) == 1
    assert "T2C606" in capsys.readouterr().err
