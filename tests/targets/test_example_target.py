"""A target in a package of its own: installed, found, written for, emulated; nothing in tile2c names it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS / "example_target"
SAMPLES = TESTS.parent / "samples"


def wheel_of(package: Path, folder: Path) -> Path:
    """The wheel that the package's build would give; building one needs no tool beyond this."""
    project = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, version = project["name"].replace("-", "_"), project["version"]
    entries = "".join(
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in found.items())
        for group, found in project["entry-points"].items()
    )
    path = folder / f"{name}-{version}-py3-none-any.whl"
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n"
    about = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(path, "w") as wheel:
        for file in sorted(package.glob("abacus_target/**/*")):
            if file.is_file() and "__pycache__" not in file.parts:
                wheel.write(file, file.relative_to(package))
        for part, text in (("METADATA", head), ("WHEEL", about), ("entry_points.txt", entries)):
            wheel.writestr(f"{name}-{version}.dist-info/{part}", text)
        wheel.writestr(f"{name}-{version}.dist-info/RECORD", "")
    return path


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process that has the package."""
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
        "--disable-pip-version-check", "--target", str(folder),
        str(wheel_of(PACKAGE, tmp_path_factory.mktemp("wheel"))),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {**os.environ, "PYTHONPATH": str(folder)}


def tile2c(environment: dict[str, str], *words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tile2c", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_it_is_listed(installed: dict[str, str]) -> None:
    done = tile2c(installed, "--targets", "--format", "json")
    found = {target["name"]: target for target in json.loads(done.stdout)}
    assert "warps of 16, at most 512 threads a block" in found["abacus:a1"]["supports"]
    assert "abacus" not in tile2c(dict(os.environ), "--targets").stdout


@pytest.mark.parametrize("name", ["softmax", "gemm_bias_relu"])
def test_samples_mean_their_programs(tmp_path: Path, installed: dict[str, str], name: str) -> None:
    source = SAMPLES / f"{name}.py"
    done = tile2c(installed, source, "-o", tmp_path, "--target", "abacus")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / f"{name}.abx").read_text()
    assert "block_meet();" in text and "__syncthreads" not in text
    assert ("abacus_product(" in text) == (name != "softmax")
    done = tile2c(
        installed, "run", tmp_path, "--backend", "emulate", "--check", "races,memory",
        "--against", "interpreter", "--source", source,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_its_limits_hold(tmp_path: Path, installed: dict[str, str]) -> None:
    done = tile2c(
        installed, SAMPLES / "gemm.py", "-o", tmp_path, "--target", "abacus:a1", "-D", "block_M=256",
        "-D", "block_K=128",
    )  # fmt: skip
    assert done.returncode == 1 and "32768" in done.stderr and "T2C401" in done.stderr, done.stderr
