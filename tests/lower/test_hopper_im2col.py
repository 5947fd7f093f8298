"""Convolutions whose pixels TMA loads by an im2col map: numbers, words, and what does not fit."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tile2c
from hopper_cases import mutants
from tile2c.runtime.errors import KernelError

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "samples" / "conv2d.py"
TARGET = "cuda:sm_90a"
SMALL: dict[str, object] = {"block_M": 64, "block_N": 64, "block_K": 64, "num_stages": 2}
# what is convolved; then how many images
CASES: dict[str, tuple[dict[str, object], int]] = {
    "64 channels": ({"H": 5, "W": 7, "C": 64, "F": 24}, 3),
    "16 channels: four taps a tile, and 9 taps are no whole tiles": ({"H": 7, "W": 5, "C": 16, "F": 40}, 2),
    "stride": ({"H": 9, "W": 12, "C": 32, "F": 16, "stride": 2}, 2),
    "stride and dilation without padding": (
        {"H": 12, "W": 11, "C": 64, "F": 16, "stride": 3, "dilation": 2, "padding": 0}, 2,
    ),
    "turned for width": (
        {"H": 9, "W": 8, "C": 64, "F": 136, "block_M": 256, "block_N": 128, "threads": 256}, 4,
    ),
    "one pixel": ({"H": 3, "W": 3, "C": 64, "F": 8, "padding": 0}, 1),
    "a kernel of one": ({"H": 4, "W": 9, "C": 64, "F": 8, "K": 1, "stride": 2, "padding": 0}, 2),
    "a kernel of five": ({"H": 6, "W": 6, "C": 64, "F": 8, "K": 5, "padding": 3}, 2),
}  # fmt: skip


def reference(data: Any, kernel: Any, defines: dict[str, object]) -> Any:
    spec = importlib.util.spec_from_file_location("references", ROOT / "samples" / "references.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    names = ("stride", "dilation", "padding")
    return module.conv2d(data, kernel, **{x: defines[x] for x in names if x in defines})


def arrays(defines: dict[str, object], images: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    h, w, c, f, k = (int(str(defines.get(x, 3))) for x in ("H", "W", "C", "F", "K"))
    data = rng.standard_normal((images, h, w, c)).astype(np.float16)
    return data, rng.standard_normal((k, k, c, f)).astype(np.float16)


def build(folder: Path, defines: dict[str, object]) -> Path:
    tile2c.build(SAMPLE, folder, TARGET, defines, backend="emulate", force=True)
    (path,) = folder.glob("*.cu")
    return path


def right(folder: Path, defines: dict[str, object], images: int) -> bool:
    data, kernel = arrays(defines, images)
    (found,) = tile2c.load(folder, "emulate", target=TARGET, check="races,memory").values()
    got = np.asarray(found(data, kernel)).astype(np.float64)
    want = reference(data, kernel, defines)
    return bool(np.allclose(got, want, rtol=4e-3, atol=4e-3 * float(np.abs(want).max())))


@pytest.mark.parametrize("case", CASES)
def test_pixels_by_im2col_are_right(tmp_path: Path, case: str) -> None:
    defines, images = CASES[case]
    defines = SMALL | defines
    text = build(tmp_path, defines).read_text()
    assert "im2col.mbarrier" in text
    assert " pixels of data (im2col)" in text  # in the header
    assert right(tmp_path, defines, images)


def test_what_lies_past_the_last_tap_is_not_read(tmp_path: Path) -> None:
    defines = SMALL | {"H": 8, "W": 5, "C": 16, "F": 8}  # 144 taps and channels, in tiles of 64
    build(tmp_path, defines)
    data, kernel = arrays(defines, 2)
    data[:, -1] = 0
    want = reference(data, kernel, defines)
    data[:, -1] = np.inf  # of which the first six rows of the output see nothing
    (found,) = tile2c.load(tmp_path, "emulate", target=TARGET).values()
    got = np.asarray(found(data, kernel))
    np.testing.assert_allclose(got[:, :6], want[:, :6], rtol=4e-3, atol=0.1)


def test_an_order_that_is_taken_out_is_reported(tmp_path: Path) -> None:
    defines = SMALL | {"H": 5, "W": 7, "C": 64, "F": 24, "block_K": 64, "block_N": 256}
    path = build(tmp_path, defines)
    missed = []
    for what, mutant in mutants(path.read_text()):
        path.write_text(mutant)
        try:
            if right(tmp_path, defines, 2):
                missed.append(what)
        except KernelError:
            pass
    assert not missed


@pytest.mark.parametrize(
    ("defines", "words"),
    [
        ({"C": 12}, "channels of data are no multiple of 16"),
        ({"C": 64, "stride": 9}, "more than an im2col map can say"),
    ],
)
def test_what_a_map_cannot_say_takes_the_ordinary_way(
    tmp_path: Path, defines: dict[str, object], words: str
) -> None:
    text = build(tmp_path, SMALL | {"H": 10, "W": 10, "F": 8} | defines).read_text()
    assert words in text
    assert "im2col.mbarrier" not in text
