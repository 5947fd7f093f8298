"""The CMake function builds HIP kernels with clang 22; a ROCm of stubs stands where CMake looks for one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from embed_programs import SAMPLES, generate
from test_example import CMAKE, NINJA, configured
from test_launcher_hip import CLANG, HEADERS, HOST, PRELUDE, PROGRAM

pytestmark = pytest.mark.skipif(
    not (CMAKE and NINJA and CLANG and shutil.which("lld-22")),
    reason="needs cmake, ninja, clang-22",
)

PROJECT = """\
cmake_minimum_required(VERSION 3.21)
project(program LANGUAGES CXX HIP)
find_package(tile2c CONFIG REQUIRED)
tile2c_add_library(kernels FOLDER out TARGET {target} KERNELS gemm)
add_executable(program main.cpp)
target_link_libraries(program PRIVATE kernels)
"""
# What ROCm's own packages define, as far as it is asked for.
HIP = """\
add_library(hip::host INTERFACE IMPORTED)
set_target_properties(hip::host PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "{headers}")
"""


def rocm(folder: Path) -> Path:
    """A folder that CMake takes for ROCm."""
    for name, text in (("hip-lang", ""), ("hip", HIP.format(headers=HEADERS / "hip"))):
        place = folder / "lib" / "cmake" / name
        place.mkdir(parents=True)
        (place / f"{name}-config.cmake").write_text(text)
    return folder


def test_clang_builds_the_library(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = "hip:gfx942"
    generate(str(SAMPLES / "gemm.py"), "-o", "out", "--launcher", "--target", target)
    Path("CMakeLists.txt").write_text(PROJECT.format(target=target))
    Path("main.cpp").write_text(PROGRAM)
    Path("host.h").write_text(HOST)
    root = rocm(tmp_path / "rocm")
    flags = f"-nogpulib -nogpuinc -I{PRELUDE} -include {tmp_path / 'host.h'}"
    arch = target.partition(":")[2]
    configured(
        tmp_path, tmp_path / "build", capsys, f"-DCMAKE_HIP_COMPILER={CLANG}",
        f"-DCMAKE_HIP_COMPILER_ROCM_ROOT={root}", f"-DCMAKE_HIP_COMPILER_ROCM_LIB={root / 'lib'}",
        f"-DCMAKE_PREFIX_PATH={root}", "-DCMAKE_HIP_PLATFORM=amd",
        f"-DCMAKE_HIP_ARCHITECTURES={arch}", f"-DCMAKE_HIP_FLAGS={flags}",
        "-DCMAKE_HIP_COMPILER_FORCED=ON",
    )  # fmt: skip
    done = subprocess.run(
        [str(CMAKE), "--build", "build"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run(["build/program"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["gemm 1 2 128", "gemm_any 3 1 128"]
