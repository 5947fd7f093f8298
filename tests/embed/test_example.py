"""The example project, built by CMake: on the CPU with emulated kernels, and by nvcc."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from embed_programs import SAMPLES, generate
from tile2c.transpile.cli.main import main

EXAMPLE = Path(__file__).parent / "example"
CMAKE = shutil.which("cmake", path=str(Path(sys.executable).parent)) or shutil.which("cmake")
NINJA = shutil.which("ninja", path=str(Path(sys.executable).parent)) or shutil.which("ninja")

pytestmark = pytest.mark.skipif(not (CMAKE and NINJA), reason="cmake or ninja is not there")


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    said = done.stdout + done.stderr
    assert done.returncode == 0, " ".join(said.split())  # cmake breaks its messages into lines
    return said


def configured(source: Path, build: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """Runs CMake with the package that the command names and with the command itself."""
    capsys.readouterr()
    generate("--cmake-dir")
    package = capsys.readouterr().out.strip()
    command = build.parent / "tile2c"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tile2c "$@"\n')
    command.chmod(0o755)
    return run(
        str(CMAKE), "-S", str(source), "-B", str(build), "-G", "Ninja",
        f"-DCMAKE_MAKE_PROGRAM={NINJA}", f"-Dtile2c_DIR={package}", f"-DTILE2C_COMMAND={command}",
        *options,
    )  # fmt: skip


def test_the_example_runs_on_the_cpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, build = tmp_path / "example", tmp_path / "build"
    shutil.copytree(EXAMPLE, source)
    configured(source, build, capsys, "-DEMULATE=ON")
    run(str(CMAKE), "--build", str(build))
    assert run(str(build / "example")).splitlines() == [
        "largest error: 0",
        "refused: scaled_product_block_M128: K is not a multiple of 16",
        "refused: scaled_product_block_M128: A is null",
        "refused: add_rows: the kernel needs N > 0",
    ]
    text = Path(build / "kernels/scaled_product_block_M64.cu").read_text()
    assert text.startswith(
        "// Copyright of the example's authors\n// SPDX-License-Identifier: MIT\n//\n"
        "// SPDX-FileCopyrightText: the authors of the tile program\n\n// scaled_product_block_M64"
    )
    program = source / "add_rows.py"
    program.write_text(program.read_text().replace("+ row[", "- row["))
    told = run(str(CMAKE), "--build", str(build))
    assert "add_rows.cu" in told and "wrote" in told
    done = subprocess.run([build / "example"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "largest error: 142" in done.stdout


@pytest.mark.slow  # cmake tries nvcc several times first
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not there")
def test_nvcc_builds_the_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build = tmp_path / "build"
    configured(EXAMPLE, build, capsys)
    run(str(CMAKE), "--build", str(build))
    assert (build / "example").exists()


COMMITTED = """\
cmake_minimum_required(VERSION 3.20)
project(committed LANGUAGES CXX)
find_package(tile2c CONFIG REQUIRED)
tile2c_add_library(kernels FOLDER kernels {options} EMULATE)
"""


@pytest.mark.parametrize(
    ("options", "message"),
    [("KERNELS scaled_product", "scaled_product has no launcher"),
     ("TARGET cuda:sm_90", "has no kernel with a launcher for"),
     ("", "has no kernel with a launcher")],
)  # fmt: skip
def test_cmake_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: str, message: str
) -> None:
    assert main([str(EXAMPLE / "scaled_product.py"), "-o", "kernels"]) == 0
    Path("CMakeLists.txt").write_text(COMMITTED.format(options=options))
    with pytest.raises(AssertionError, match=message):
        configured(tmp_path, tmp_path / "build", capsys)


ASCEND = """\
cmake_minimum_required(VERSION 3.20)
project(ascend LANGUAGES CXX)
find_package(tile2c CONFIG REQUIRED)
tile2c_add_library(kernels FOLDER kernels {options})
file(WRITE main.cpp "#include <acl/acl.h>\\n#include \\"add.h\\"\\n#include <cstdio>\\n"
     "int main() { std::puts(add_launch_message(add_launch(nullptr, nullptr, nullptr, 8, nullptr))); }")
add_executable(program main.cpp)
target_link_libraries(program PRIVATE kernels)
"""


def test_a_library_for_a_vendor_without_a_language_of_cmake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generate(str(SAMPLES / "add.py"), "-o", "kernels", "--launcher", "--target", "ascendc")
    Path("CMakeLists.txt").write_text(ASCEND.replace("{options}", "EMULATE"))
    configured(tmp_path, tmp_path / "build", capsys)
    run(str(CMAKE), "--build", str(tmp_path / "build"))
    assert run(str(tmp_path / "build" / "program")).strip() == "add: A is null"
    Path("CMakeLists.txt").write_text(ASCEND.replace("{options}", ""))
    with pytest.raises(AssertionError, match="CMake has no language for ascendc:ascend910b"):
        configured(tmp_path, tmp_path / "other", capsys)
