"""A team lives with generated kernels: generate, commit, edit, change the source, merge, run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tile2c.transpile.cli.main import main

OPS = Path(__file__).with_name("ops.py")
KERNELS = ("linear", "row_max", "scale_add")
SIZES = {"linear": "M=72,N=40,K=104", "row_max": "M=7", "scale_add": "N=1000"}
COMMAND = ["ops.py", "-o", "kernels"]


def git(*arguments: str) -> str:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "core.autocrlf=false")
    done = subprocess.run(["git", *who, *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def commit_all(message: str) -> None:
    git("add", "-A")
    git("commit", "-q", "-m", message)


def edit(file: str, old: str, new: str) -> None:
    path = Path(file)
    text = path.read_text()
    assert text.count(old) == 1, (file, old, text.count(old))
    path.write_text(text.replace(old, new))


def runs(kernel: str) -> int:
    """Runs a kernel as it stands, with all checks, beside the meaning of its source."""
    options = ["--backend", "emulate", "--check", "races,memory", "--against", "interpreter"]
    return main(["run", "kernels", "--kernel", kernel, "--sizes", SIZES[kernel], *options])


def hand_edits() -> None:
    edit(
        "kernels/row_max.cu",
        "    best = warp_max(best);\n",
        "    for (int far = 16; far > 0; far /= 2)  // by hand\n"
        "        best = fmaxf(best, __shfl_xor_sync(0xffffffffu, best, far));\n",
    )
    edit(
        "kernels/scale_add.cu",
        "        const int at = bx * block + i;\n",
        "        const int at = bx * block + i;\n        if (at >= N) return;  // by hand\n",
    )
    edit("kernels/linear.cu", "__launch_bounds__(128) linear(", "__launch_bounds__(128, 4) linear(")
    edit(
        "kernels/linear.cu",
        "    // T.copy(C_local, C[by * block, bx * block])\n",
        "    C_local[0][0][0] *= 1.f;  // by hand\n\n"
        "    // T.copy(C_local, C[by * block, bx * block])\n",
    )


def source_changes() -> None:
    source = Path("ops.py")
    text = source.read_text()
    text = text.replace("C_local", "acc")  # a name
    text = text.replace("num_stages=3", "num_stages=2")  # the depth of a pipeline
    text = text.replace("* alpha + B[bx", "* alpha - B[bx")  # what it computes
    text = text.replace("import tilelang\n", "import math\n\nimport tilelang\n", 1)  # places
    relu = OPS.read_text().split("@tilelang.jit\n")[1].replace("scale_add", "scale")
    text += "\n\n@tilelang.jit\n" + relu.replace(" + B[bx * block + i]", "")  # a new kernel
    source.write_text(text)


def test_the_story(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("ops.py").write_text(OPS.read_text())
    git("init", "-q")
    assert main(COMMAND) == 0
    commit_all("Kernels")

    hand_edits()
    assert main([*COMMAND, "--check"]) == 0
    assert "linear.cu was edited by hand; its base is current" in capsys.readouterr().err
    assert main(COMMAND) == 0  # edited files stay
    assert git("diff", "--name-only").split() == [f"kernels/{name}.cu" for name in KERNELS]
    commit_all("Edits by hand")

    source_changes()
    assert main([*COMMAND, "--check"]) == 1
    told = capsys.readouterr().err
    for words in ("linear.cu is stale", "+constexpr int num_stages = 2;", "scale.cu is missing"):
        assert words in told
    assert "row_max.cu is stale" not in told
    assert main(COMMAND) == 1  # refused, and nothing is written
    assert "--merge keeps the edits" in capsys.readouterr().err
    assert git("status", "--porcelain").split() == ["M", "ops.py"]

    assert main([*COMMAND, "--merge"]) == 0
    assert "C_local is acc now" in capsys.readouterr().err
    assert main([*COMMAND, "--check"]) == 0
    linear = Path("kernels/linear.cu").read_text()
    assert "acc[0][0][0] *= 1.f;  // by hand" in linear and "num_stages = 2" in linear
    assert "__launch_bounds__(128, 4) linear(" in linear and "C_local" not in linear
    added = Path("kernels/scale_add.cu").read_text()
    assert "return;  // by hand" in added and "alpha - B_part[v]" in added
    assert "kernels/row_max.cu" not in git("diff", "--name-only").split()
    commit_all("Merged")

    for kernel in KERNELS:
        assert runs(kernel) == 0, kernel
    assert capsys.readouterr().out.count("equal within the tolerance") == len(KERNELS)


def test_a_conflict_is_resolved_by_hand_and_the_work_goes_on(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("ops.py").write_text(OPS.read_text())
    assert main([*COMMAND, "--kernel", "scale_add"]) == 0
    edit("kernels/scale_add.cu", "* alpha + B_part[v];", "* alpha + 1.f * B_part[v];")
    edit("ops.py", "* alpha + B[bx", "* alpha - B[bx")
    command = [*COMMAND, "--kernel", "scale_add"]
    assert main([*command, "--merge"]) == 1
    path = Path("kernels/scale_add.cu")
    marked = path.read_text()
    assert "+ 1.f * B_part[v];" in marked and "- B_part[v];" in marked
    for again in (command, [*command, "--merge"], [*command, "--check"]):
        assert main(again) == 1
    assert runs("scale_add") == 1 and main(["where", f"{path}:30"]) == 1
    assert "conflict marks" in capsys.readouterr().err
    assert path.read_text() == marked
    lines = marked.split("\n")
    first, last = (
        next(number for number, line in enumerate(lines) if line.startswith(mark))
        for mark in ("<<<<<<<", ">>>>>>>")
    )
    resolved = (
        "        for (int v = 0; v < 4; ++v) C_part[v] = A_part[v] * alpha - 1.f * B_part[v];"
    )
    path.write_text("\n".join([*lines[:first], resolved, *lines[last + 1 :]]))
    assert main(command) == 0 and main([*command, "--check"]) == 0
    assert runs("scale_add") == 0


def test_a_merge_that_no_longer_compiles_writes_nothing(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """People used what the source then took away."""
    Path("ops.py").write_text(OPS.read_text())
    command = [*COMMAND, "--kernel", "scale_add"]
    assert main(command) == 0
    at = "        const int at = bx * block + i;\n"
    edit("kernels/scale_add.cu", at, f"{at}        const float mine = alpha;\n")
    edit("ops.py", "* alpha + B[bx", "* 3.0 + B[bx")
    before = {path: path.read_bytes() for path in Path("kernels").rglob("*") if path.is_file()}
    assert main([*command, "--merge"]) == 1
    told = capsys.readouterr().err
    assert "T2C605" in told and "no longer compiles" in told and "nothing was written" in told
    assert before == {p: p.read_bytes() for p in Path("kernels").rglob("*") if p.is_file()}
