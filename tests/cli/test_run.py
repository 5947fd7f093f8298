"""`tile2c run` on a hand-made folder, in the emulator."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from tile2c.transpile.cli.main import main

FUNCTIONS = """\
import numpy as np

def add(A, B, alpha):
    return alpha * A.astype(float) + B

def off(A, B, alpha):
    result = add(A, B, alpha)
    result[7] += 1
    return result

def inputs(N, rng):
    return {"A": rng.random(N, np.float32), "B": np.zeros(N)}

def three(sizes, seed):
    return np.ones(sizes["N"], np.float32), np.ones(sizes["N"], np.float32), 0.5
"""


def _manifests() -> ModuleType:
    path = Path(__file__).parent.parent / "runtime" / "manifests.py"
    spec = importlib.util.spec_from_file_location("run_manifests", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


manifests = _manifests()


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """OUT with the kernel `add`, and functions.py beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TILE2C_BACKEND", raising=False)
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    folder: Path = manifests.write(Path("out"), manifests.add_entry())
    return folder


def run(*arguments: str) -> int:
    return main(["run", "out", "--backend", "emulate", *arguments])


def test_equal_to_a_function(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--against", "functions.py:add", "--check", "races,memory") == 0
    text = capsys.readouterr().out
    assert "add (cuda:sm_80) in the emulator: N = 168" in text
    assert "C[168] float32: equal within the tolerance (rtol 0.0001" in text
    assert "\nchecks: no race, no bad access\n" in text
    assert run("--check", "memory") == 0
    assert "\nchecks: no bad access\n" in capsys.readouterr().out
    assert run() == 0
    assert "checks:" not in capsys.readouterr().out


def test_a_difference_is_status_1_and_shown(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--against", "functions.py:off", "--sizes", "N=9") == 1
    text = capsys.readouterr().out
    assert "C[9] float32: 1 elements differ" in text and "largest error 1 at [7]:" in text
    assert run("--against", "functions.py:off", "--atol", "2") == 0


def test_given_inputs(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez("inputs.npz", A=np.arange(20.0), B=np.zeros(20))
    assert run("--inputs", "inputs.npz", "--against", "functions.py:add") == 0
    assert "N = 20" in capsys.readouterr().out
    assert run("--inputs", "functions.py:inputs", "--against", "functions.py:add") == 0
    assert run("--inputs", "functions.py:three", "--sizes", "N=5") == 0
    assert "C[5] float32: mean 1.5, from 1.5 to 1.5" in capsys.readouterr().out


def test_the_seed_decides(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for seed in ("1", "1", "2"):
        assert run("--seed", seed) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != texts[2]


def test_without_a_device_the_emulator_says_so(
    out: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tile2c.runtime.backends import choose
    from tile2c.runtime.errors import BackendUnavailable

    def absent() -> None:
        raise BackendUnavailable("no NVIDIA driver")

    monkeypatch.setitem(choose.DEVICES, "cuda", absent)
    assert main(["run", "out"]) == 0
    assert "no device, so the emulator runs the kernel" in capsys.readouterr().err
    assert main(["run", "out", "--backend", "cuda"]) == 1


def test_a_kernel_that_reaches_outside_is_status_1(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (out / "add.cu").write_text(manifests.ADD.replace("if (i < N) ", ""))
    assert run("--check", "memory", "--sizes", "N=100") == 1
    error = capsys.readouterr().err
    assert "T2C701" in error and "add.cu:" in error


def test_text_that_does_not_compile_is_status_1(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (out / "add.cu").write_text(manifests.ADD.replace("alpha *", "beta *"))
    assert run() == 1
    assert "beta" in capsys.readouterr().err


def test_an_empty_output_is_said_to_be_empty(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--sizes", "N=0") == 0
    assert "C[0] float32: empty" in capsys.readouterr().out


def test_time_is_printed(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--time") == 0
    assert "time: median" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["out", "--kernel", "ad"], "did you mean add?"),
        (["nowhere"], "is not an output folder of tile2c"),
        (["out", "--sizes", "K=3"], "add has no size K"),
        (["out", "--sizes", "N=x"], "not of the form NAME=NUMBER"),
        (["out", "--target", "hip"], "add is not there for hip"),
        (["out", "--check", "race"], "unknown check 'race'"),
        (["out", "--backend", "cuda", "--check", "races"], "needs the emulator"),
        (["out", "--backend", "emulator"], "did you mean emulate?"),
        (["out", "--against", "functions.py:ad"], "did you mean add?"),
        (["out", "--against", "functions.py"], "functions.py:FUNCTION"),
        (["out", "--against", "functions"], "not of the form FILE.py:FUNCTION"),
        (["out", "--inputs", "no.npz"], "no such file: no.npz"),
        (["out", "--against", "interpreter"], "pass --source INPUT.py"),
        (["out", "--seet", "1"], "did you mean --seed?"),
        (["out/add.cu"], "help: tile2c run out --kernel add --target cuda:sm_80"),
        (["out", "--sizes", "N"], "help: --sizes N=168"),
        (["out", "--sizes", "N=1,N=2"], "help: one N=NUMBER"),
        (["out", "--source", "function.py"], "did you mean functions.py?"),
        (["out", "--against", "function.py:add"], "did you mean functions.py?"),
        (["out", "--inputs", "functions"], "--inputs FILE.npz, or FILE.py:FUNCTION"),
    ],
)
def test_a_wrong_command_line_is_status_2(
    out: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    if "--backend" not in arguments:
        arguments = [*arguments, "--backend", "emulate"]
    assert main(["run", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_an_unknown_backend_of_the_environment(
    out: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILE2C_BACKEND", "emulat")
    assert main(["run", "out"]) == 2
    assert "unknown backend 'emulat' in TILE2C_BACKEND" in capsys.readouterr().err
    assert run("--sizes", "N=5") == 0  # --backend is asked first


def test_conflict_marks_are_all_that_is_said(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (out / "add.cu").open("a") as stream:
        stream.write("<<<<<<< ours\n=======\n>>>>>>> theirs\n")
    assert run() == 1
    shown = capsys.readouterr()
    assert "T2C703" in shown.err and "holds conflict marks" in shown.err
    assert "it runs as it is" not in shown.err and shown.out == ""
    assert main(["emulate", "out", "-o", "emulated"]) == 1
    shown = capsys.readouterr()
    assert "T2C703" in shown.err and "holds conflict marks" in shown.err


def test_a_folder_of_one_target_names_the_output_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    entries = [
        manifests.add_entry(file=f"cuda_{arch}/add.cu", target=f"cuda:{arch}")
        for arch in ("sm_80", "sm_90a")
    ]
    manifests.write(Path("k"), *entries)
    Path("k/cuda_sm_90a").mkdir(exist_ok=True)
    assert main(["run", "k/cuda_sm_90a"]) == 2
    assert "help: tile2c run k --target cuda:sm_90a" in capsys.readouterr().err
    assert main(["run", "k/cuda_sm_70"]) == 2
    assert "tile2c INPUT.py -o k/cuda_sm_70" in capsys.readouterr().err


def test_a_backend_of_another_family_is_named(
    out: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["run", "out", "--backend", "hip", "--target", "cuda:sm_80"]) == 2
    error = capsys.readouterr().err
    assert "add is there for cuda:sm_80, which the backend hip does not run" in error
    assert "help: --backend cuda | emulate" in error
    monkeypatch.setenv("TILE2C_BACKEND", "hip")
    assert main(["run", "out"]) == 2
    assert "--backend cuda | emulate" in capsys.readouterr().err


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "-h"]) == 0
    text = capsys.readouterr().out
    assert "Examples:" in text and "--against" in text


def test_both_streams_into_one_file_keep_their_order(out: Path) -> None:
    text = (out / "add.cu").read_text()
    (out / "add.cu").write_text(text.replace("if (i < N)", "if (i <= N)"))
    command = [sys.executable, "-m", "tile2c", "run", "out", "--check", "memory"]
    done = subprocess.run(
        [*command, "--backend", "emulate", "--sizes", "N=9"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stdout.index("add (cuda:sm_80)") < done.stdout.index("error[T2C701]")
