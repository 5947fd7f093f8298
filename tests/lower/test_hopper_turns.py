"""Warpgroups that start products in turns: where the sums of a round leave the matrix unit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tile2c
from hopper_cases import TARGET, build, expected, inputs, right, text_of
from tile2c.runtime.errors import KernelError

FLOATS_8: dict[str, object] = {
    "block_M": 128, "block_N": 64, "block_K": 128, "threads": 256, "num_stages": 2,
    "dtype": "float8_e4m3fn", "trans_B": True,
}  # fmt: skip
CASES = {
    "two warpgroups": FLOATS_8,
    "three warpgroups": {**FLOATS_8, "block_M": 192, "threads": 384},
    "sums that leave twice a round": {**FLOATS_8, "block_K": 256},
}
OTHERS = {
    "one warpgroup": {**FLOATS_8, "block_M": 64, "threads": 128},
    "sums that leave in two parts": {**FLOATS_8, "block_N": 256},
    "sums that stay": {**FLOATS_8, "fast_accumulation": True},
    "half precision": {**FLOATS_8, "dtype": "float16"},
}


@pytest.mark.parametrize("case", CASES)
def test_tiles_and_rounds_of_any_number(tmp_path: Path, case: str) -> None:
    """The turn goes on from tile to tile, and is nobody's at the end."""
    defines = CASES[case]
    assert "turn_wait(warpgroup);" in build(tmp_path, "product", defines)
    (found,) = tile2c.load(tmp_path, "emulate", target=TARGET, check="races,memory").values()
    found.backend.multiprocessors = 1  # type: ignore[attr-defined]
    for sizes in ((264, 72, 272), (136, 264, 128)):
        operands = inputs("product", defines, *sizes)
        want = expected("product", defines, operands)
        got = np.asarray(found(*operands)).astype(np.float64)
        np.testing.assert_allclose(got, want, rtol=4e-3, atol=4e-3 * np.abs(want).max())


def test_products_start_within_a_turn(tmp_path: Path) -> None:
    """What follows them, the wait too, is no longer part of it."""
    text = build(tmp_path, "product", FLOATS_8)
    text = text[text.index("__launch_bounds__") :] if "_block(" not in text else text
    calls = (
        "turn_wait(",
        "mma_begin(",
        "mma_m64n64k32(",
        "mma_commit(",
        "turn_pass(",
        "mma_wait<0>(",
    )
    loop = text.index("barrier_wait(full[ring.stage], ring.phase);  // the tiles")
    places = [text.index(x, loop) for x in calls]
    assert places == sorted(places)
    first, last = "if (warpgroup == 1) turn_pass(", "if (threadIdx.x < 128) turn_wait("
    assert text.index(first) < loop < text.index(last)


@pytest.mark.parametrize("which", [0, 1])
def test_a_turn_that_is_kept_is_reported(tmp_path: Path, which: int) -> None:
    text = build(tmp_path, "product", FLOATS_8)
    operands = inputs("product", FLOATS_8, 136, 72, 272)
    assert right(tmp_path, "product", FLOATS_8, operands)
    passed = [x for x in text.split("\n") if "turn_pass(warpgroup);" in x]
    assert len(passed) == 2
    text_of(tmp_path).write_text(text.replace(passed[which], ""))
    with pytest.raises(KernelError, match="bar"):
        right(tmp_path, "product", FLOATS_8, operands)


@pytest.mark.parametrize("case", OTHERS)
def test_others_start_when_they_can(tmp_path: Path, case: str) -> None:
    assert "turn_" not in build(tmp_path, "product", OTHERS[case])
