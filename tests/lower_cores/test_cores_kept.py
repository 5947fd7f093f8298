"""Tiles that are the same for every block are loaded once a core."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tile2c

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.mark.parametrize(("name", "tiles"), [("rms_norm", 1), ("layer_norm", 2)])
def test_weights_are_loaded_before_the_blocks(tmp_path: Path, name: str, tiles: int) -> None:
    choices = {"N": 200}
    kernels = tile2c.build(
        SAMPLES / f"{name}.py",
        tmp_path,
        "ascendc:ascend910b",
        choices,
        backend="emulate",
        check="races,memory",
    )
    text = (tmp_path / f"{name}.ascendc.cpp").read_text()
    before, blocks = text.split("for (int32_t bx =")
    assert before.count(": the same for every block") == tiles
    assert blocks.count("copy_in_row(") == 1  # X
    rng = np.random.default_rng(0)
    x = rng.standard_normal((130, 200)).astype(np.float16)
    weights = [rng.standard_normal(200).astype(np.float16) for _ in range(tiles)]
    got = np.asarray(kernels[name](x, *weights)).astype(np.float64)
    wide = x.astype(np.float64)
    if name == "layer_norm":
        wide -= wide.mean(1, keepdims=True)
    want = wide / np.sqrt((wide**2).mean(1, keepdims=True)) * weights[0]
    want += weights[1] if tiles == 2 else 0
    np.testing.assert_allclose(got, want, rtol=0.01, atol=0.01)
