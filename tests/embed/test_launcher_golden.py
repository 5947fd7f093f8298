"""Whole launchers to read in review; `--update-golden` writes them anew."""

from __future__ import annotations

from pathlib import Path

import pytest
from embed_programs import MIXED, SAMPLES, generate

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("gemm", "cuda:sm_90a"),
        ("mixed", "hip:gfx942"),
        ("mixed", "maca:xcore1000"),
        ("softmax", "ascendc:ascend910b"),
        ("softmax", "bang:mtp_592"),
    ],  # fmt: skip,
)
def test_golden(name: str, target: str, pytestconfig: pytest.Config) -> None:
    text = MIXED if name == "mixed" else (SAMPLES / f"{name}.py").read_text()
    Path(f"{name}.py").write_text(text)
    generate(f"{name}.py", "-o", "out", "--launcher", "--target", target)
    suffix = ".mlu" if target.startswith("bang") else ".cpp"
    for file in (f"{name}.h", f"{name}_launch{suffix}"):
        made = Path("out", file).read_text()
        golden = GOLDEN / f"{target.replace(':', '_')}-{file}"
        if pytestconfig.getoption("--update-golden"):
            GOLDEN.mkdir(exist_ok=True)
            golden.write_text(made)
        assert golden.is_file(), f"{golden.name} is missing: run with --update-golden and read it"
        assert made == golden.read_text()
