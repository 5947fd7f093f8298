"""Samples on every target with threads: the text, emulated with both checks, gives what the program means.

All samples on all targets: `pytest -m slow tests/dialects/test_dialect_samples.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tile2c.transpile.cli.main import main
from tile2c.transpile.targets import all_targets
from tile2c.transpile.targets.simt import SimtTarget

SAMPLES = Path(__file__).parents[2] / "samples"
NAMES = sorted(path.stem for path in SAMPLES.glob("*.py") if path.stem != "references")
TARGETS = [target.name for target in all_targets() if isinstance(target, SimtTarget)]
# What a sample needs beyond its defaults, and what it uses that not every chip has.
DEFINES = {"top_k": ["-D", "N=200"]}
TYPES = {"quantize_fp8": "float8_e4m3fn"}
NEW = [name for name in TARGETS if name.partition(":")[0] not in ("cuda", "hip")]


def check(name: str, target: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source, out = str(SAMPLES / f"{name}.py"), str(folder)
    wanted = next(x for x in all_targets() if x.name == target)
    status = main([source, "-o", out, "--target", target, *DEFINES.get(name, ())])
    told = capfd.readouterr().err
    if TYPES.get(name, "float32") not in wanted.dialect.types:
        assert status == 1 and "T2C557" in told, told
        return
    assert status == 0, told
    checks = ["--backend", "emulate", "--check", "races,memory"]
    status = main(["run", out, *checks, "--against", "interpreter", "--source", source])
    assert status == 0, capfd.readouterr()


@pytest.mark.parametrize("target", NEW)
def test_a_product_with_everything(
    tmp_path: Path, target: str, capfd: pytest.CaptureFixture[str]
) -> None:
    check("gemm_bias_relu", target, tmp_path, capfd)


@pytest.mark.parametrize("target", ["dcu:gfx936", "musa:mp_22", "corex:ivcore11", "ppu:ppu_15"])
def test_rows_over_warps(tmp_path: Path, target: str, capfd: pytest.CaptureFixture[str]) -> None:
    check("softmax", target, tmp_path, capfd)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NAMES)
def test_every_sample(
    tmp_path: Path, name: str, target: str, capfd: pytest.CaptureFixture[str]
) -> None:
    check(name, target, tmp_path, capfd)
