"""Bad input ends in a located error and the right exit status, never in a traceback; nothing is lost."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from attack_harness import elements
from tile2c.transpile.cli.main import main

SAMPLES = Path(__file__).parents[2] / "samples"
HEAD = "import tilelang\nimport tilelang.language as T\n\n"
DEEP = "x = " + "(" * 3000 + "1" + ")" * 3000
RECURSION = """
def depth(n):
    return depth(n + 1)

@T.prim_func
def kern(A: T.Tensor((64,), "float32")):
    with T.Kernel(depth(0), threads=64) as bx:
        A[bx] = 0
"""
MACROS = """
@T.macro
def again(A):
    again(A)

@T.prim_func
def kern(A: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64) as bx:
        again(A)
"""
BAD: dict[str, tuple[bytes, str, int]] = {  # bytes, code, line
    "binary": (bytes(range(256)) * 40, "T2C103", 1),
    "elf": (b"\x7fELF\x02\x01\x01\x00" + b"\x00" * 64, "T2C103", 1),
    "empty": (b"", "T2C118", 1),
    "blank": (b"\n\n  \n", "T2C118", 1),
    "latin-1": ("# gr\xf6\xdfe\nx = 1\n".encode("latin-1"), "T2C103", 1),
    "syntax": (b"import tilelang\ndef f(:\n    pass\n", "T2C101", 2),
    "unfinished": (b"x = [1, 2\n", "T2C101", 1),
    "tabs": (b"if 1:\n\tx = 1\n        y = 2\n", "T2C101", 3),
    "deep": (DEEP.encode(), "T2C104", 1),
    "recursion": ((HEAD + RECURSION).encode(), "T2C113", 5),
    "macros": ((HEAD + MACROS).encode(), "T2C113", 6),
    "unknown name": (elements(body="T.copi(A, B)").encode(), "T2C202", 9),
    "shape": (elements(body="T.copy(A[0:4], B[0:8])").encode(), "T2C301", 9),
    "type": (
        elements(params='A: T.Tensor((N,), "float33"), B: T.Tensor((N,), "float32")').encode(),
        "T2C211",
        7,
    ),
    "untyped": (elements(params='A, B: T.Tensor((N,), "float32")').encode(), "T2C247", 7),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data, code, line = BAD[name]
    monkeypatch.chdir(tmp_path)
    Path("input.py").write_bytes(data)
    assert main(["input.py", "-o", "out"]) == 1
    told = capsys.readouterr().err
    assert "Traceback" not in told and "internal error" not in told, told
    first = re.search(r"^input\.py:(\d+):(\d+): error\[(T2C\d+)\]: (.+)$", told, re.MULTILINE)
    assert first is not None, told
    assert first[3] == code, told
    assert abs(int(first[1]) - line) <= 1, told
    assert not Path("out").exists()


def test_a_missing_parameter_names_the_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = """
@tilelang.jit
def kern(N, width):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=64) as bx:
            s = T.alloc_shared((width,), "float32")
            T.copy(A[0], s)
    return main
"""
    Path("input.py").write_text(HEAD + text)
    assert main(["input.py", "-o", "out"]) == 1
    told = capsys.readouterr().err
    assert "T2C116" in told and "-D" in told and "width" in told
    assert main(["input.py", "-o", "out", "-D", "width=64"]) == 0


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tile2c", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


def test_a_full_disk(tmp_path: Path) -> None:
    """A file system of 16 KiB: a clear message, and what was there stays whole."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        (disk / "notes.txt").write_text("mine")
        done = command(str(SAMPLES / "gemm.py"), "-o", str(disk / "out"))
        assert done.returncode == 1, done.stderr
        assert "T2C606" in done.stderr and "Traceback" not in done.stderr
        assert (disk / "notes.txt").read_text() == "mine"
        left = [path for path in disk.rglob("*") if path.is_file()]
        assert not [path for path in left if path.suffix == ".cu"], left
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_read_only_folder(tmp_path: Path) -> None:
    """Nothing is written, and the message says why; what is there is still checked and run."""
    out = tmp_path / "out"
    assert main([str(SAMPLES / "row_sum.py"), "-o", str(out)]) == 0
    before = files(out)
    bound = subprocess.run(["mount", "--bind", str(out), str(out)], capture_output=True)
    if bound.returncode:
        pytest.skip("no folder can be made read-only here")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(out)], check=True)
        done = command(str(SAMPLES / "gemm.py"), "-o", str(out))
        assert done.returncode == 1 and "error[T2C606]" in done.stderr, done.stderr
        assert "Traceback" not in done.stderr and "ead-only" in done.stderr
        assert command(str(SAMPLES / "row_sum.py"), "-o", str(out)).returncode == 0
        assert command(str(SAMPLES / "row_sum.py"), "-o", str(out), "--check").returncode == 0
        assert command("run", str(out), "--backend", "emulate").returncode == 0
    finally:
        subprocess.run(["umount", str(out)], check=True)
    assert files(out) == before


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def other_pythons() -> list[str]:
    """Interpreters that are named for this, `TILE2C_OTHER_PYTHON=python3.13:…`."""
    return [name for name in os.environ.get("TILE2C_OTHER_PYTHON", "").split(":") if name]


def test_the_same_bytes_everywhere(tmp_path: Path) -> None:
    """Two folders, locales, hash seeds, time zones; and other interpreters where some are named."""
    ways: list[tuple[list[str], dict[str, str]]] = [
        ([sys.executable], {"PYTHONHASHSEED": "1", "LC_ALL": "C.UTF-8"}),
        ([sys.executable], {"PYTHONHASHSEED": "2", "LC_ALL": "POSIX", "TZ": "Asia/Tokyo"}),
        *(([python], {"PYTHONHASHSEED": "3"}) for python in other_pythons()),
    ]
    root = Path(__file__).parents[2] / ".dev"
    found = []
    for number, (python, environment) in enumerate(ways):
        folder = tmp_path / f"place {number}" / ("deep" * number or "d")
        folder.mkdir(parents=True)
        for name in ("gemm_bias_relu", "row_sum"):
            shutil.copy(SAMPLES / f"{name}.py", folder)
        command_line = [*python, "-m", "tile2c", "gemm_bias_relu.py", "row_sum.py", "-o", "out"]
        subprocess.run(
            [*command_line, "--target", "cuda:sm_80,hip:gfx942"],
            cwd=folder,
            check=True,
            env={**os.environ, "PYTHONPATH": str(root), **environment},
        )
        found.append(files(folder / "out"))
    assert found[0]
    for other in found[1:]:
        assert other == found[0]
