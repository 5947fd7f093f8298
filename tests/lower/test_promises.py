"""A promise leaves guards out of the text; a call that breaks it is refused, by name, on every target."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tile2c

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"])
def test_promises_stand_in_the_manifest_and_the_head(tmp_path: Path, target: str) -> None:
    from tile2c.transpile.cli.main import main

    options = ["-o", str(tmp_path), "--target", target, "-D", "M%64=0"]
    assert main([str(SAMPLES / "gemm.py"), *options]) == 0
    kernel = tile2c.load(tmp_path, "emulate")["gemm"]
    assert "M % 64 == 0" in kernel.record.requires
    (path,) = [p for p in tmp_path.iterdir() if p.suffix in (".cu", ".hip")]
    assert "M % 64 == 0" in path.read_text().split("#include")[0]
    a, b = np.ones((65, 32), np.float16), np.ones((32, 64), np.float16)
    with pytest.raises(ValueError, match="needs M % 64 == 0, but M = 65"):
        kernel(a, b)
    assert np.allclose(np.asarray(kernel(a[:64], b)), 32)
