"""The whole way on a sample: text, check, build, run, with real kernels."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tile2c
from tile2c.transpile.cli.main import main

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of samples/add.py in the current folder."""
    shutil.copy(SAMPLES / "add.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TILE2C_BACKEND", raising=False)
    return tmp_path / "add.py"


def tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_write_check_run(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["add.py", "-o", "out"]) == 0
    assert main(["add.py", "-o", "out", "--check", "--pristine"]) == 0
    command = ["run", "out", "--backend", "emulate", "--check", "races,memory"]
    assert main([*command, "--against", "interpreter"]) == 0
    assert "C[1360] float32: equal within the tolerance" in capsys.readouterr().out
    assert main([*command, "--against", f"{SAMPLES / 'references.py'}:add"]) == 0
    edited = Path("out/add.cu")
    edited.write_text(edited.read_text().replace("A_part[v] + B_part[v]", "A_part[v] - B_part[v]"))
    assert main([*command, "--against", "interpreter"]) == 1
    assert "elements differ" in capsys.readouterr().out


def test_run_takes_every_entry_it_can(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(SAMPLES / "row_sum.py", tmp_path)
    assert main(["row_sum.py", "-o", "out"]) == 0
    command = ["run", "out", "--backend", "emulate", "--against", "interpreter"]
    capsys.readouterr()
    assert main(command) == 0
    told = capsys.readouterr().out
    assert "M = 12, N = 1192; entry row_sum\n" in told
    assert "M = 12, N = 1195; entry row_sum_any\n" in told and "not run" not in told
    assert main([*command, "--sizes", "N=7"]) == 0
    told = capsys.readouterr().out
    assert "N = 7; entry row_sum_any\n" in told
    assert told.endswith("\nnot run: row_sum (N % 4 == 0 and X % 16 == 0)\n")
    assert main([*command, "--sizes", "M=0"]) == 0
    assert "M = 0, N = 1192; nothing to launch\n" in capsys.readouterr().out


def test_the_same_bytes_everywhere(source: Path, tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "deeper" / "b"]
    for folder in folders:
        folder.mkdir(parents=True)
        shutil.copy(source, folder)
        assert main([str(folder / "add.py"), "-o", str(folder / "out")]) == 0
    assert main(["add.py", "-o", "out"]) == 0
    first = tree(tmp_path / "out")
    assert all(tree(folder / "out") == first for folder in folders)
    assert str(tmp_path).encode() not in b"".join(first.values())


def test_a_moved_kernel_changes_no_byte_of_its_file(source: Path) -> None:
    main(["add.py", "-o", "out"])
    before = tree(Path("out"))
    text = source.read_text()
    first, rest = text.split("\n", 1)
    source.write_text(f"{first}\n\nunused = 1\n{rest}")
    assert main(["add.py", "-o", "out", "--check"]) == 0
    assert main(["add.py", "-o", "out"]) == 0
    after = tree(Path("out"))
    changed = {file for file in after if after[file] != before[file]}
    assert changed <= {"tile2c.json", ".tile2c/map/add.cu.json"}


def test_build_gives_kernels(source: Path) -> None:
    kernels = tile2c.build("add.py", "out", defines={"block_N": 512}, backend="emulate")
    a = np.arange(700, dtype=np.float32)
    np.testing.assert_array_equal(kernels["add"](a, a), 2 * a)
    entry = json.loads(Path("out/tile2c.json").read_text())["kernels"][0]
    assert entry["parameters"]["block_N"] == 512 and entry["defines"] == ["block_N=512"]
    assert tile2c.load("out", backend="emulate")["add"].name == "add"


def test_build_raises_what_the_command_prints(source: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"did you mean add\.py\?"):
        tile2c.build("ad.py", "out")
    with pytest.raises(ValueError, match="did you mean block_N"):
        tile2c.build("add.py", "out", defines={"blok_N": 1})
    source.write_text("def broken(:\n")
    with pytest.raises(tile2c.TranspileError) as error:  # type: ignore[attr-defined]
        tile2c.build("add.py", "out")
    assert str(error.value).startswith("add.py:1:")
    assert not Path("out").exists()


def test_build_without_a_device_still_writes(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tile2c.runtime.backends import choose

    def absent() -> None:
        raise tile2c.BackendUnavailable("no NVIDIA driver")

    monkeypatch.setitem(choose.DEVICES, "cuda", absent)
    kernels = tile2c.build("add.py", "out")
    a = np.ones(3, np.float32)
    with pytest.raises(tile2c.BackendUnavailable, match="no NVIDIA driver"):
        kernels["add"](a, a)
    with pytest.raises(tile2c.BackendUnavailable):
        tile2c.load("out")


def test_runs_side_by_side_keep_each_others_entries(source: Path) -> None:
    for name in ("one", "two", "three"):
        text = source.read_text().replace("def add(", f"def {name}(")
        Path(f"{name}.py").write_text(text)
    command = [sys.executable, "-m", "tile2c"]
    running = [
        subprocess.Popen([*command, f"{name}.py", "-o", "out"], stderr=subprocess.PIPE)
        for name in ("one", "two", "three")
    ]
    for process in running:
        _, error = process.communicate(timeout=60)
        assert process.returncode == 0, error
    entries = json.loads(Path("out/tile2c.json").read_text())["kernels"]
    assert [entry["name"] for entry in entries] == ["one", "three", "two"]


def test_one_file_of_several_may_hold_no_kernel(
    source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("helpers.py").write_text("x = 1\n")
    assert main(["helpers.py", "add.py", "-o", "out"]) == 0
    assert "helpers.py:1:1: warning[T2C118]: there is no kernel" in capsys.readouterr().err
    assert Path("out/add.cu").exists()
    assert main(["helpers.py", "-o", "out"]) == 1
    assert "helpers.py:1:1: error[T2C118]: there is no kernel" in capsys.readouterr().err


def test_what_is_unchanged_is_said_to_be(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def told(*options: str) -> str:
        assert main(["add.py", "-o", "out", *options]) == 0
        return capsys.readouterr().err

    assert told() == "wrote out/add.cu\n"
    assert told() == "out/add.cu is up to date\n"
    assert told("--check") == "out is up to date: 1 kernel file\n"
    with Path("out/add.cu").open("a") as file:
        file.write("// mine\n")
    assert "was edited by hand and stays" in told() and "up to date" not in told()
    assert told("--check").endswith("out is up to date: 1 kernel file\n")


def compiler_of(folder: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts a compiler in front of those that are there."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


def test_a_run_that_writes_nothing_says_so(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compiler_of(source.parent / "bin", "nvcc", "echo no such card >&2; exit 1", monkeypatch)
    assert main(["add.py", "-o", "out", "--compile"]) == 1
    error = capsys.readouterr().err
    assert "T2C620" in error and "no such card" in error
    assert error.endswith("nothing was written to out\n")
    assert not Path("out").exists()


def test_hipcc_is_told_the_vendor(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = 'for last; do :; done; echo "$HIP_PLATFORM" > "$last"'
    compiler_of(source.parent / "bin", "hipcc", script, monkeypatch)
    monkeypatch.delenv("HIP_PLATFORM", raising=False)
    assert main(["add.py", "-o", "out", "--target", "hip", "--compile"]) == 0
    entry = json.loads(Path("out/tile2c.json").read_text())["kernels"][0]
    assert Path("out", entry["modules"][0]["file"]).read_text() == "amd\n"


def test_a_problem_with_a_file_of_the_folder_names_it_for_tools(
    source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["add.py", "-o", "out"]) == 0
    capsys.readouterr()
    command = ["add.py", "-o", "out", "-D", "block_N=512", "--format", "json"]
    assert main(command) == 1
    told = json.loads(capsys.readouterr().err)
    assert (told["code"], told["file"], told["line"]) == ("T2C602", "out/add.cu", None)


@pytest.mark.parametrize("function", [tile2c.build, tile2c.load])
def test_every_argument_is_described(function: Callable[..., object]) -> None:
    optional = list(inspect.signature(function).parameters)[1 if function is tile2c.load else 2 :]
    assert [name for name in optional if f"`{name}`" not in str(function.__doc__)] == []


def test_build_takes_what_the_command_takes(source: Path) -> None:
    Path("HEADER").write_text("SPDX-License-Identifier: MIT\n")
    tile2c.build("add.py", "out", launcher=True, license_header=Path("HEADER"), line_info=True)
    text = Path("out", "add.cu").read_text()
    assert text.startswith("// SPDX-License-Identifier: MIT\n") and "\n#line " in text
    assert Path("out", "add_launch.cpp").read_text().startswith("// SPDX")
    tile2c.build("add.py", "out")
    assert Path("out", "add.h").exists()
    tile2c.build("add.py", "out", launcher=False)
    assert not Path("out", "add.h").exists()
    with pytest.raises(FileNotFoundError, match="--license-header: no such file: NONE"):
        tile2c.build("add.py", "out", license_header="NONE")


def test_no_option_of_the_command_is_missing() -> None:
    from tile2c.transpile.cli.options import command

    names = {parameter.name for parameter in command().params} - {"help"}
    only_there = {  # answers of their own, checks, forms for reading, and how messages look
        "inputs", "targets", "compile_modules", "emit", "check", "pristine", "format", "list_kernels",
        "list_targets", "cmake_dir", "version",
    }  # fmt: skip
    assert names - only_there <= set(inspect.signature(tile2c.build).parameters)
