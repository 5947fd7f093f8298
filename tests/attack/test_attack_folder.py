"""Folders, manifests and command lines that are not what they should be."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from attack_harness import elements
from tile2c.transpile.cli.main import main

CODE = "import sys; from tile2c.transpile.cli.main import main; sys.exit(main())"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "input.py"
    path.write_text(elements())
    return path


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        ("", "Expecting value"),
        ("[]", 'no list "kernels"'),
        ("null", 'no list "kernels"'),
        ("[" * 100_000, "nests too deeply"),
        ('{"version": 1, "kernels": [3]}', "entry"),
        ('{"version": 9, "kernels": []}', "version"),
        (
            '{"version": 1, "kernels": [{"name": "kern", "target": "cuda:sm_80", "file": "../x.cu"}]}',
            "../x.cu is not in the folder",
        ),
        (
            '{"version": 1, "kernels": [{"name": "kern", "target": "cuda:sm_80", "file": "/x.cu"}]}',
            "/x.cu is not in the folder",
        ),
    ],
)
def test_broken_manifests(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], manifest: str, reason: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "tile2c.json").write_text(manifest)
    assert main([str(source), "-o", str(out)]) == 1
    told = capsys.readouterr().err
    assert "error[T2C607]" in told and reason in told
    assert [path.name for path in out.iterdir()] == ["tile2c.json"]
    assert main(["run", str(out), "--backend", "emulate"]) == 1
    told = capsys.readouterr().err
    assert "error[T2C607]" in told and reason in told


@pytest.mark.parametrize("out", ["", "a" * 300, "/dev/null"])
def test_folders_that_cannot_be(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], out: str
) -> None:
    assert main([str(source), "-o", out]) == 2
    assert "error[T2C001]" in capsys.readouterr().err


def test_a_pipe_is_no_input_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    assert main([str(tmp_path / "pipe.py"), "-o", str(tmp_path / "out")]) == 2
    assert "is not a regular file" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
def test_a_full_disk_behind_standard_output(source: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", CODE, "--targets"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 1 and "error[T2C606]" in done.stderr
    assert "Traceback" not in done.stderr and "internal error" not in done.stderr


def test_closed_streams(source: Path, tmp_path: Path) -> None:
    command = f"exec {sys.executable} -c '{CODE}' {source} -o {tmp_path / 'out'} >&- 2>&-"
    assert subprocess.run(["sh", "-c", command]).returncode == 0


@pytest.mark.parametrize("call", range(1, 9))
def test_killed_in_mid_write(source: Path, tmp_path: Path, call: int) -> None:
    """Whatever call the process dies in, the next run puts the folder right."""
    out = tmp_path / "out"
    assert main([str(source), "-o", str(out), "-D", "N=64"]) == 0
    kill = f"""
import os, sys
from tile2c.transpile.cli.main import main
left = {call}
def dying(old):
    def call(*arguments, **more):
        global left
        left -= 1
        if not left:
            os._exit(9)
        return old(*arguments, **more)
    return call
for name in ("replace", "rename", "unlink", "mkdir"):
    setattr(os, name, dying(getattr(os, name)))
sys.exit(main())
"""
    source.write_text(elements(body=PLAIN_TWICE))
    arguments = [str(source), "-o", str(out), "-D", "N=64"]
    done = subprocess.run([sys.executable, "-c", kill, *arguments], capture_output=True, text=True)
    assert done.returncode in (0, 9)
    json.loads((out / "tile2c.json").read_text())
    assert main(arguments) == 0
    assert main([*arguments, "--check", "--pristine"]) == 0
    assert {path.name for path in out.iterdir()} == {".tile2c", "kern.cu", "tile2c.json"}
    assert {path.name for path in (out / ".tile2c").iterdir()} == {"base", "map"}


PLAIN_TWICE = "for i in T.Parallel(128):\n                B[bx * 128 + i] = A[bx * 128 + i] * 2"


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_kernel_that_never_ends_can_be_interrupted(source: Path, tmp_path: Path) -> None:
    loop = "x = T.alloc_var('int32')\n            x = 1\n            while x > 0:\n"
    source.write_text(elements(body=loop + "                x = x + 0\n            B[0] = x"))
    out = tmp_path / "out"
    assert main([str(source), "-o", str(out), "--target", "cuda:sm_80"]) == 0
    command = [sys.executable, "-c", CODE, "run", str(out), "--backend", "emulate"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, _RAISE)
    )
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    try:
        assert process.wait(10) in (-signal.SIGINT, 130)
    finally:
        process.kill()


_RAISE = signal.default_int_handler


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "x"])
def test_tolerances_that_tell_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str
) -> None:
    assert main(["run", str(tmp_path), "--rtol", value]) == 2
    assert "error[T2C001]" in capsys.readouterr().err


def test_rows_with_gaps(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source.write_text(
        elements(
            before='N = T.dynamic("N"); S = T.dynamic("S")',
            params='A: T.StridedTensor((N, N), (S, 1), "float32"), '
            'B: T.StridedTensor((N, N), (S, 1), "float32")',
            grid="N",
            body="for i in T.Parallel(128):\n                if i < N:\n"
            "                    B[bx, i] = A[bx, i] + 1.0",
        )
    )
    out = str(tmp_path / "out")
    assert main([str(source), "-o", out, "--target", "cuda:sm_80"]) == 0
    run = ["run", out, "--backend", "emulate", "--source", str(source), "--against", "interpreter"]
    assert main([*run, "--sizes", "N=9,S=13"]) == 0
    assert main(run) == 0
    capsys.readouterr()
    assert main([*run, "--sizes", "N=9,S=4"]) == 2
    assert "would overlap" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('out = "a\\u0000"\n[[kernels]]\nsource = "input.py"\n', 1, "out holds a NUL character"),
        ('out = "a"\n[[kernels]]\nsource = ["input.py", "\\u0000"]\n', 3, "source holds a NUL"),
        ('out = "a"\nkernels = []\n', 2, "the project has no kernels"),
        ('out = "a"\n[[kernels]]\nsource = []\n', 3, "this table of kernels has no source"),
        ('out = "a"\n[[kernels]]\nsource = [""]\n', 3, "source is empty"),
    ],
)
def test_projects_that_name_nothing(
    source: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    line: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tile2c.toml").write_text(text)
    assert main(["build"]) == 1
    told = capsys.readouterr().err
    assert f"tile2c.toml:{line}:" in told and message in told
