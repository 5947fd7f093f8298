"""Project files: what they say is generated, and every mistake in one is told at its place."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from embed_programs import SAMPLES, generate
from tile2c.transpile.cli.main import main

WHOLE = """\
out = "kernels"
launcher = true
promises = ["K % 16 == 0"]

[[kernels]]
source = "gemm.py"
specialisations = [{ block_M = 64 }, { block_M = 128, dtype = "bfloat16" }]

[[kernels]]
source = "add.py"
out = "small/kernels"
launcher = false
targets = ["cuda:sm_80", "hip"]
"""


@pytest.fixture(autouse=True)
def sources(tmp_path: Path) -> None:
    for name in ("gemm.py", "add.py"):
        shutil.copy(SAMPLES / name, tmp_path)


def entries(folder: str) -> dict[str, dict[str, object]]:
    data = json.loads(Path(folder, "tile2c.json").read_text())
    return {entry["file"]: entry for entry in data["kernels"]}


def test_a_project_is_generated_checked_and_listed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("tile2c.toml").write_text(WHOLE)
    generate("build", "--list-outputs")
    listed = capsys.readouterr().out.split()
    assert not Path("kernels").exists()
    generate("build", "--depfile", "build.d")
    assert all(Path(name).is_file() for name in listed)
    kernels = entries("kernels")
    assert list(kernels) == [
        "gemm_block_M128_dtype_bfloat16.cu",
        "gemm_block_M64_dtype_float16.cu",
    ]
    assert kernels["gemm_block_M64_dtype_float16.cu"]["defines"] == ["K%16=0", "block_M=64"]
    assert kernels["gemm_block_M64_dtype_float16.cu"]["requires"] == ["K % 16 == 0"]
    assert list(entries("small/kernels")) == ["cuda_sm_80/add.cu", "hip_gfx942/add.hip"]
    text = Path("kernels/gemm_block_M64_dtype_float16.cu").read_text()
    assert "//   again    tile2c build\n" in text
    rule = Path("build.d").read_text()
    assert rule.startswith(" ".join(listed) + ": \\\n")
    assert rule.replace("\\\n", "").split(": ")[1].split() == ["tile2c.toml", "gemm.py", "add.py"]
    generate("build", "--check", "--pristine")
    Path("small").mkdir(exist_ok=True)
    generate("build")
    assert "wrote" not in capsys.readouterr().err.split("\n")[-2]


def test_the_kernels_of_a_project_run(capsys: pytest.CaptureFixture[str]) -> None:
    Path("tile2c.toml").write_text(WHOLE)
    generate("build")
    command = ["run", "kernels", "--kernel", "gemm_block_M64_dtype_float16", "--backend", "emulate"]
    assert main([*command, "--against", "interpreter"]) == 0
    assert "equal within the tolerance" in capsys.readouterr().out


def test_a_project_owns_its_folders() -> None:
    Path("tile2c.toml").write_text(WHOLE)
    generate("build")
    Path("tile2c.toml").write_text(WHOLE.replace("{ block_M = 64 }, ", "").replace(', "hip"', ""))
    assert main(["build", "--check"]) == 1
    generate("build")
    assert list(entries("kernels")) == ["gemm.cu"]
    assert list(entries("small/kernels")) == ["add.cu"]
    assert not list(Path("small").rglob("*.hip"))
    assert not Path("kernels/gemm_block_M64_dtype_float16.h").exists()


def test_a_project_may_change_its_target() -> None:
    text = WHOLE.replace('["cuda:sm_80", "hip"]', '["hip"]').replace("launcher = false\n", "")
    Path("tile2c.toml").write_text(text)
    generate("build")
    assert "hipStream_t" in Path("small/kernels/add_launch.cpp").read_text()
    Path("tile2c.toml").write_text(text.replace('["hip"]', '["cuda"]'))
    generate("build")
    assert "cudaStream_t" in Path("small/kernels/add_launch.cpp").read_text()
    assert list(entries("small/kernels")) == ["add.cu"]
    assert not Path("small/kernels/add.hip").exists()
    generate("build", "--check", "--pristine")


def test_edits_in_one_folder_keep_all_from_being_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("tile2c.toml").write_text(WHOLE)
    generate("build")
    edited = Path("small/kernels/cuda_sm_80/add.cu")
    edited.write_text(edited.read_text() + "// ours\n")
    for name in ("gemm.py", "add.py"):
        text = Path(name).read_text()
        Path(name).write_text(text.replace("threads=", "threads=2 * "))
    before = {path: path.read_bytes() for path in Path("kernels").rglob("*.*") if path.is_file()}
    capsys.readouterr()
    assert main(["build"]) == 1
    told = capsys.readouterr().err
    assert "cuda_sm_80/add.cu was edited by hand" in told
    assert "= note: this is in small/kernels" in told
    assert all(path.read_bytes() == content for path, content in before.items())
    generate("build", "--merge")
    assert "// ours" in edited.read_text()
    assert any(path.read_bytes() != content for path, content in before.items())


def test_the_nearest_project_above(monkeypatch: pytest.MonkeyPatch) -> None:
    table = WHOLE.replace("[[kernels]]", "[[tool.tile2c.kernels]]")
    Path("pyproject.toml").write_text(f'[project]\nname = "x"\n[tool.tile2c]\n{table}')
    Path("deep", "deeper").mkdir(parents=True)
    monkeypatch.chdir("deep/deeper")
    generate("build")
    assert Path("../../kernels/gemm_block_M64_dtype_float16.cu").is_file()


def test_outputs_may_go_elsewhere() -> None:
    Path("tile2c.toml").write_text(WHOLE)
    generate("build", "--into", "build/generated")
    assert Path("build/generated/kernels/tile2c.json").is_file() and not Path("kernels").exists()


FORMATTER = """\
import sys
text = sys.stdin.read()
assert sys.argv[1].endswith((".cu", ".hip", ".h", ".cpp")), sys.argv
sys.stdout.write(text.replace("    ", "  "))
"""


def test_a_formatter_is_applied_before_the_base_is_taken() -> None:
    Path("format.py").write_text(FORMATTER)
    command = json.dumps([sys.executable, "format.py", "{file}"])
    Path("tile2c.toml").write_text(f"formatter = {command}\n{WHOLE}")
    generate("build")
    text = Path("kernels/gemm_block_M64_dtype_float16.cu").read_text()
    assert "\n  const int bx" in text and "\n    const int bx" not in text
    assert "\n  if (M < 0" in Path("kernels/gemm_block_M64_dtype_float16_launch.cpp").read_text()
    generate("build", "--check", "--pristine")
    origins = json.loads(
        Path("kernels/.tile2c/map/gemm_block_M64_dtype_float16.cu.json").read_text()
    )["lines"]
    lines = text.split("\n")
    loads = [origin for origin in origins if origin["line"] == 37]
    assert loads and all(lines[origin["first"] - 1].strip() for origin in loads)


def test_licences_stand_on_top_of_every_text() -> None:
    text = Path("gemm.py").read_text()
    Path("gemm.py").write_text(f"#!/usr/bin/env python\n# SPDX-License-Identifier: MIT\n\n{text}")
    Path("HEADER").write_text("/* Ours */\n")
    Path("tile2c.toml").write_text(f'license-header = "HEADER"\n{WHOLE}')
    generate("build")
    top = "/* Ours */\n//\n// SPDX-License-Identifier: MIT\n\n// gemm_block_M64"
    for end in (".cu", ".h", "_launch.cpp"):
        path = Path(f"kernels/gemm_block_M64_dtype_float16{end}")
        assert path.read_text().startswith(top), path
    assert Path("small/kernels/cuda_sm_80/add.cu").read_text().startswith("/* Ours */\n\n// add")
    generate("gemm.py", "-o", "alone")
    assert (
        Path("alone/gemm.cu").read_text().startswith("// SPDX-License-Identifier: MIT\n\n// gemm")
    )
    generate("gemm.py", "-o", "alone", "--license-header", "HEADER")
    text = Path("alone/gemm.cu").read_text()
    assert text.startswith(top.replace("_block_M64", "")) and "--license-header HEADER\n" in text


# What a project file says wrong, and the message about it.
MISTAKES = {
    'out = "kernels"\n[[kernels]]\nsource = "gemm.py': (
        "tile2c.toml:3:1: error[T2C630]: tile2c.toml is no TOML: unterminated string"
    ),
    'out = "k"\nlauncer = true\n[[kernels]]\nsource = "add.py"\n': (
        "tile2c.toml:2:1: error[T2C631]: tile2c has no key launcer\n"
        "launcer = true\n^^^^^^^\n   = help: did you mean launcher?"
    ),
    'out = "k"\nlauncher = "yes"\n[[kernels]]\nsource = "add.py"\n': (
        "tile2c.toml:2:12: error[T2C632]: launcher is 'yes', not true or false\n"
        'launcher = "yes"\n           ^^^^^'
    ),
    'out = "k"\n[[kernels]]\nsource = ["add.py", "gem.py"]\n': (
        "tile2c.toml:3:21: error[T2C634]: gem.py is not there\n"
        'source = ["add.py", "gem.py"]\n'
        "                    ^^^^^^^^\n   = help: did you mean gemm.py?"
    ),
    'out = "k"\n[[kernels]]\nsource = "add.py"\ntargets = ["cuda:sm_81"]\n': (
        "tile2c.toml:4:12: error[T2C632]: unknown target 'cuda:sm_81'\n"
        'targets = ["cuda:sm_81"]\n'
        "           ^^^^^^^^^^^^\n   = help: did you mean cuda:sm_"
    ),
    'out = "k"\n[[kernels]]\nsource = "add.py"\ndefines = { blok_N = 4 }\n': (
        "tile2c.toml:4:13: error[T2C632]: add.py has no parameter or size blok_N\n"
        "defines = { blok_N = 4 }\n"
        "            ^^^^^^\n   = help: did you mean block_N?"
    ),
    'out = "k"\n[[kernels]]\nsource = "add.py"\nnames = ["ad"]\n': (
        "tile2c.toml:4:10: error[T2C632]: add.py has no kernel ad\n"
        'names = ["ad"]\n         ^^^^\n   = help: did you mean add?'
    ),
    'out = "k"\npromises = ["Q % 8 == 0"]\n[[kernels]]\nsource = "add.py"\n': (
        "tile2c.toml:2:13: error[T2C632]: no source of the project has a parameter or size Q\n"
        'promises = ["Q % 8 == 0"]\n            ^^^^^^^^^^^^'
    ),
    'out = "k"\n[[kernels]]\nsource = "add.py"\npromises = ["N > 8"]\n': (
        "tile2c.toml:4:13: error[T2C632]: 'N > 8' is no promise of divisibility\n"
        'promises = ["N > 8"]\n            ^^^^^^^\n   = help: M % 16 == 0;'
    ),
    '[[kernels]]\nsource = "add.py"\n': (
        "tile2c.toml:1:1: error[T2C633]: no output folder is named\n"
        '[[kernels]]\n^^^^^^^^^^^\n   = help: out = "kernels"'
    ),
    'out = "../k"\n[[kernels]]\nsource = "add.py"\n': (
        "tile2c.toml:1:7: error[T2C632]: out is ../k, which is not inside the project's folder"
    ),
    'out = "k"\n': "tile2c.toml:1:1: error[T2C633]: the project has no kernels",
    'out = "k"\n[[kernels]]\nsource = "add.py"\n[[kernels.specialisations]]\nblock_N = 64\n'
    "[[kernels.specialisations]]\nblock_N = 64\n": (
        "tile2c.toml:6:1: error[T2C632]: this specialisation is there twice"
    ),
    'out = "k"\nformatter = "no-such-formatter"\n[[kernels]]\nsource = "add.py"\n': (
        "tile2c.toml:2:13: error[T2C635]: no-such-formatter cannot run"
    ),
    'out = "k"\nlicense-header = "NONE"\n[[kernels]]\nsource = "add.py"\n': (
        "tile2c.toml:2:18: error[T2C634]: NONE cannot be read"
    ),
    'out = "k"\n[[kernels]]\nsource = "add.py"\ndefines = { block_N = { x = 1 } }\n': (
        "tile2c.toml:4:23: error[T2C632]: block_N is a table, not a value"
    ),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_are_located(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("tile2c.toml").write_text(text)
    assert main(["build"]) == 1
    assert MISTAKES[text] in capsys.readouterr().err
    assert not Path("k").exists()


def test_no_project(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build"]) == 2
    assert "error[T2C003]: there is no tile2c.toml here or above" in capsys.readouterr().err
    assert main(["build", "--project", "x.toml"]) == 2
    Path("pyproject.toml").write_text("[tool.other]\n")
    assert main(["build", "--project", "pyproject.toml"]) == 1
    assert "error[T2C630]: pyproject.toml has no table tool.tile2c" in capsys.readouterr().err


def test_make_reads_the_depfile() -> None:
    make = shutil.which("make")
    if make is None:
        pytest.skip("make is not there")
    Path("a folder").mkdir()
    shutil.move("add.py", "a folder/add.py")
    Path("tile2c.toml").write_text('out = "k"\n[[kernels]]\nsource = "a folder/add.py"\n')
    generate("build", "--depfile", "k.d")
    Path("Makefile").write_text("k/add.cu:\n\ttouch k/add.cu\ninclude k.d\n")
    done = subprocess.run([make, "-q", "k/add.cu"], check=False)
    assert done.returncode == 0
    Path("a folder/add.py").touch()
    assert subprocess.run([make, "-q", "k/add.cu"], check=False).returncode == 1
