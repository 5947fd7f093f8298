"""Blocks that stay for several tiles: any number of them, tiles of all kinds, one ring over all rounds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tile2c
from hopper_cases import TARGET, build, expected, inputs, right, text_of
from tile2c.runtime.errors import KernelError
from tile2c.runtime.expressions import evaluate

ROOT = Path(__file__).parents[2]
TWO: dict[str, object] = {"block_M": 128, "block_N": 64, "block_K": 64, "threads": 256}
IN_TURN = "for (int tile = blockIdx.x; "
# what is multiplied, what for, how many rows and columns of it
CASES: dict[str, tuple[str, dict[str, object], tuple[int, int, int]]] = {
    "an odd number of rounds": ("product", {**TWO, "num_stages": 2}, (264, 136, 168)),
    "shared memory for a part": (
        "product", {"block_M": 128, "block_N": 256, "block_K": 64, "threads": 256, "num_stages": 4},
        (136, 264, 200),
    ),
    "a third at a time": (
        "product",
        {"block_M": 128, "block_N": 192, "block_K": 64, "threads": 256, "num_stages": 5},
        (136, 200, 136),
    ),
    "no shared memory on the way": (
        "product", {**TWO, "out_dtype": "float32"}, (264, 72, 72),
    ),
    "a batch": ("batched", TWO, (136, 72, 72)),
    "8-bit floats": (
        "product", {**TWO, "block_K": 128, "dtype": "float8_e4m3fn", "trans_B": True}, (264, 72, 272),
    ),
    "staged by its author": ("staged", {"num_stages": 2}, (136, 136, 104)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_any_number_of_blocks_takes_all_tiles(tmp_path: Path, case: str) -> None:
    kernel, defines, sizes = CASES[case]
    assert IN_TURN in build(tmp_path, kernel, defines)
    operands = inputs(kernel, defines, *sizes)
    want = expected(kernel, defines, operands)
    for count in (1, 5):
        (found,) = tile2c.load(tmp_path, "emulate", target=TARGET, check="races,memory").values()
        found.backend.multiprocessors = count  # type: ignore[attr-defined]
        got = np.asarray(found(*operands)).astype(np.float64)
        np.testing.assert_allclose(got, want, rtol=4e-3, atol=4e-3 * np.abs(want).max())


def test_what_cannot_stay_has_a_block_a_tile(tmp_path: Path) -> None:
    """One warpgroup leaves room for a second block; known sizes say that the tiles are few."""
    assert IN_TURN not in build(tmp_path / "a", "product", {**TWO, "block_M": 64, "threads": 128})
    few = {**TWO, "M": 512, "N": 512, "K": 512}
    assert IN_TURN not in build(tmp_path / "b", "product", few)
    many = {**TWO, "M": 4096, "N": 4096, "K": 512}
    assert IN_TURN in build(tmp_path / "c", "product", many)


def test_the_end_of_the_rounds_may_need_a_name_of_the_kernel(tmp_path: Path) -> None:
    assert IN_TURN in build(tmp_path, "cut", {})
    a, b = inputs("cut", {}, 264, 136, 168)
    (found,) = tile2c.load(tmp_path, "emulate", target=TARGET, check="races,memory").values()
    found.backend.multiprocessors = 2  # type: ignore[attr-defined]
    want = a[:, :128].astype(np.float64) @ b[:128].astype(np.float64)
    np.testing.assert_allclose(np.asarray(found(a, b)), want, rtol=4e-3, atol=8e-2)


def test_two_extents_below_zero_make_no_tiles(tmp_path: Path) -> None:
    build(tmp_path, "cut", {"fewer": 320})
    (kernel,) = json.loads((tmp_path / "tile2c.json").read_text())["kernels"]
    grids = [x["grid"][0] for x in kernel["launch"] if "sms" in x["grid"][0]]
    assert grids
    for grid in grids:
        assert evaluate(grid, {"sms": 132, "M": 16, "N": 16, "K": 64}) == 0
        assert evaluate(grid, {"sms": 132, "M": 720, "N": 400, "K": 64}) == 8
    build(tmp_path / "usual", "cut", {})
    assert "max(" not in (tmp_path / "usual" / "tile2c.json").read_text()


def test_a_phase_that_starts_anew_for_each_tile_is_reported(tmp_path: Path) -> None:
    """Three rounds in a ring of two: the second tile starts in the middle of it."""
    defines = {**TWO, "num_stages": 2}
    text = build(tmp_path, "product", defines)
    sizes = (392, 64, 168)
    operands = inputs("product", defines, *sizes)
    ring = next(line.strip() for line in text.split("\n") if line.strip().startswith("Ring<"))
    head = next(line for line in text.split("\n") if IN_TURN in line)
    text_of(tmp_path).write_text(text.replace(head, f"{head}\n{ring}"))
    with pytest.raises(KernelError):
        right(tmp_path, "product", defines, operands)


def test_convolutions_stay(tmp_path: Path) -> None:
    defines = {
        "H": 9, "W": 8, "C": 64, "F": 136, "block_M": 256, "block_N": 128, "block_K": 64,
        "num_stages": 2, "threads": 256,
    }  # fmt: skip
    tile2c.build(ROOT / "samples" / "conv2d.py", tmp_path, TARGET, defines, backend="emulate")
    assert IN_TURN in text_of(tmp_path).read_text()
    rng = np.random.default_rng(0)
    data = rng.standard_normal((7, 9, 8, 64)).astype(np.float16)
    weights = rng.standard_normal((3, 3, 64, 136)).astype(np.float16)
    (kernel,) = tile2c.load(tmp_path, "emulate", target=TARGET, check="races,memory").values()
    kernel.backend.multiprocessors = 1  # type: ignore[attr-defined]
    got = np.asarray(kernel(data, weights)).astype(np.float64)
    padded = np.pad(data.astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
    want = sum(
        padded[:, y : y + 9, x : x + 8] @ weights[y, x].astype(np.float64)
        for y in range(3)
        for x in range(3)
    )
    np.testing.assert_allclose(got, want, rtol=4e-3, atol=0.1)
