"""`tile2c run` with inputs, references and sizes that are not what they should be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from attack_harness import elements
from tile2c.transpile.cli.main import main

FUNCTIONS = """
import numpy as np

def raises(*given, **named):
    return {}["N"]

def ends():
    raise SystemExit(0)

def of_nobody():
    return 1

def strange(A):
    return object()

def nothing(A):
    return {}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """OUT with a kernel that copies A to B, its source and the files that options name."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "input.py").write_text(elements())
    (folder / "f.py").write_text(FUNCTIONS)
    (folder / "ends.py").write_text("raise SystemExit(5)\n")
    (folder / "empty.npz").write_bytes(b"")
    (folder / "torn.npz").write_bytes(b"PK\x03\x04torn")
    np.savez(folder / "square.npz", A=np.ones((5, 5), np.float32))
    np.savez(folder / "two.npz", A=np.ones(5, np.float32), B=np.ones(6, np.float32))
    assert main([str(folder / "input.py"), "-o", str(folder / "out")]) == 0
    return folder


@pytest.mark.parametrize(
    ("options", "status", "told"),
    [
        (["--seed", "-1"], 2, "--seed"),
        (["--sizes", "N=5,N=6"], 2, "--sizes N=6 contradicts N=5"),
        (["--sizes", "=5"], 2, "--sizes =5: not of the form NAME=NUMBER"),
        (["--inputs", "empty.npz"], 2, "empty.npz cannot be read"),
        (["--inputs", "torn.npz"], 2, "torn.npz cannot be read"),
        (["--inputs", "square.npz"], 1, "A has shape [5, 5]"),
        (["--inputs", "square.npz", "--against", "interpreter"], 1, "A has 1 dimensions, not 2"),
        (["--inputs", "two.npz", "--against", "interpreter"], 1, "B is (6,)"),
        (["--inputs", "f.py:raises"], 2, "cannot be called: KeyError: 'N' at f.py:5"),
        (["--inputs", "f.py:ends"], 2, "cannot be called: SystemExit: 0 at f.py:8"),
        (["--against", "f.py:raises"], 2, "cannot be called: KeyError: 'N' at f.py:5"),
        (["--against", "f.py:of_nobody"], 2, "takes 0 positional arguments"),
        (["--against", "f.py:strange"], 2, "float() argument"),
        (["--against", "f.py:nothing"], 2, "says nothing of B"),
        (["--against", "ends.py:f"], 2, "ends.py cannot be run: SystemExit: 5"),
    ],
)
def test_it_is_told_and_nothing_is_traced(
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    status: int,
    told: str,
) -> None:
    monkeypatch.chdir(place)
    run = ["run", "out", "--backend", "emulate", "--source", "input.py"]
    assert main([*run, *options]) == status
    assert told in capsys.readouterr().err


def test_a_tensor_without_elements(tmp_path: Path) -> None:
    source = tmp_path / "input.py"
    body = "for i in T.Parallel(128):\n                B[i] = A[i] + 1"
    source.write_text(elements(before="N = 0", grid="1", body=body))
    out = str(tmp_path / "out")
    assert main([str(source), "-o", out]) == 0
    run = ["run", out, "--backend", "emulate", "--source", str(source), "--check", "memory"]
    assert main([*run, "--against", "interpreter"]) == 0


def test_a_loop_too_large_for_the_interpreter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "input.py"
    source.write_text(elements(body="for i in T.Parallel(2**46):\n                B[i] = A[i]"))
    out = str(tmp_path / "out")
    assert main([str(source), "-o", out]) == 0
    run = ["run", out, "--backend", "emulate", "--source", str(source), "--against", "interpreter"]
    assert main(run) == 1
    assert "error[T2C704]: the interpreter runs out of memory" in capsys.readouterr().err


@pytest.mark.parametrize("size", ['T.dynamic("a b")', "make", "[make, 3]"])
def test_messages_show_no_insides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], size: str
) -> None:
    source = tmp_path / "input.py"
    source.write_text(elements(before=f"N = {size}"))
    assert main([str(source), "-o", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert "T2C242" in said and "object at 0x" not in said and "Expr(" not in said, said
