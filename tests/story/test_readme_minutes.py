"""README.md's five minutes, typed in an empty folder with the samples in it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(title: str) -> list[tuple[str, str]]:
    """The code of one section, in order."""
    text = (ROOT / "README.md").read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return [(match[1], match[2]) for match in _BLOCK.finditer(text)]


def typed(script: str, folder: Path) -> str:
    """Runs commands as a person would, where `tile2c` is this interpreter's; both outputs."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    command = tools / "tile2c"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tile2c "$@"\n')
    command.chmod(0o755)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}"
    return done.stdout


def test_five_minutes(tmp_path: Path) -> None:
    (tmp_path / "samples").mkdir()
    shutil.copy(ROOT / "samples/gemm_bias_relu.py", tmp_path / "samples")
    (_, written), (_, merged), (python, call), (cpp, launch) = blocks("Five minutes")
    said = typed(written, tmp_path)
    assert "entry gemm_bias_relu\n" in said and "entry gemm_bias_relu_any\n" in said
    assert said.count("no race, no bad access") == said.count("largest error") == 2
    said = typed(merged, tmp_path)
    assert "was edited by hand; it runs as it is" in said and said.count("largest error") == 2
    kernel = (tmp_path / "kernels/gemm_bias_relu.cu").read_text()
    assert "num_stages = 2;" in kernel and "2.f * C_local" in kernel
    assert (python, cpp) == ("python", "cpp")
    check = "\nassert C.shape == (64, 80) and (C == 193).all()\n"
    done = subprocess.run([sys.executable, "-c", call + check], cwd=tmp_path, check=False)
    assert done.returncode == 0
    _compiles(launch, tmp_path)


def _compiles(launch: str, folder: Path) -> None:
    """The lines of C++ stand in a function with arguments of the launcher's types."""
    head, _, body = launch.partition("\n\n")
    text = (
        f"#include <cstdio>\nusing std::puts;\n{head}\nvoid f(__half* A, __half* B, __half* bias, "
        f"__half* C, int64_t M, int64_t N, int64_t K, CUstream_st* stream) {{\n{body}\n}}\n"
    )
    (folder / "lines.cpp").write_text(text)
    command = ["g++", "-std=c++17", "-fsyntax-only", "-I", "kernels", "lines.cpp"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_from_python(tmp_path: Path) -> None:
    (tmp_path / "samples").mkdir()
    shutil.copy(ROOT / "samples/gemm.py", tmp_path / "samples")
    ((_, code),) = blocks("From Python")
    check = "\nassert (C == 96).all()\nassert (kernels['gemm'](A, B) == 96).all()\n"
    done = subprocess.run([sys.executable, "-c", code + check], cwd=tmp_path, check=False)
    assert done.returncode == 0
