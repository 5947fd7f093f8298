"""Tiles that loops gather by division: convolutions, whose rows are what a kernel covers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cores_harness import SAMPLES, built, lowered, program
from tile2c.transpile.diagnostics import InputError
from tile2c.transpile.ir.expr import Binary, Const
from tile2c.transpile.ir.interpret import run

ASCEND = "ascendc:ascend910b"
BANG = "bang:mtp_372"
TILE = {"block_M": 32, "block_N": 16, "block_K": 32}
# Images, channels and steps around those of tiles.
IMAGES: dict[str, dict[str, object]] = {
    "odd": {"H": 7, "W": 9, "C": 12, "F": 21},
    "channels_of_a_tile": {"H": 5, "W": 6, "C": 32, "F": 16},
    "channels_of_two_tiles": {"H": 4, "W": 5, "C": 64, "F": 8},
    "wide_rows": {"H": 2, "W": 70, "C": 16, "F": 9},
    "tile_of_rows": {"H": 3, "W": 32, "C": 16, "F": 16},
    "no_padding": {"H": 6, "W": 8, "C": 16, "F": 16, "padding": 0},
    "steps": {"H": 9, "W": 11, "C": 8, "F": 16, "stride": 2},
    "far_steps": {"H": 9, "W": 12, "C": 8, "F": 16, "stride": 3, "padding": 2},
    "holes": {"H": 9, "W": 11, "C": 16, "F": 16, "dilation": 2, "padding": 3},
    "one_pixel": {"H": 1, "W": 1, "C": 16, "F": 16},
    "one_by_one": {"H": 6, "W": 7, "C": 40, "F": 16, "K": 1, "padding": 0},
    "one_channel": {"H": 6, "W": 7, "C": 1, "F": 3, "K": 5, "padding": 2},
}


def _extent(extent: Any, images: int) -> int:
    """The number that an extent stands for; the only size that is free counts images."""
    if isinstance(extent, Binary):
        a, b = _extent(extent.a, images), _extent(extent.b, images)
        return a // b if extent.op == "//" else a * b
    return int(extent.value) if isinstance(extent, Const) else images


def agrees(path: Path, out: Path, target: str, defines: dict[str, object], images: int) -> None:
    form = lowered(path, defines, target)
    assert form.plan is not None, form.diagnostics.items
    kernel = built(path, out, defines, target)[form.function.name]
    rng = np.random.default_rng(3)
    given: list[Any] = []
    for param in form.function.params:
        assert param.tensor is not None
        shape = [_extent(extent, images) for extent in param.tensor.shape]
        given.append(rng.standard_normal(shape).astype(param.tensor.dtype.name))
    names = [param.name for param in form.function.params]
    expected = run(form.function, {k: np.copy(v) for k, v in zip(names, given, strict=True)})
    kernel(*given)
    for name, wanted in expected.items():
        got = np.asarray(given[names.index(name)]).astype(np.float64)
        want = np.asarray(wanted).astype(np.float64)
        np.testing.assert_allclose(got, want, rtol=4e-3, atol=2e-2, err_msg=name)


@pytest.mark.parametrize("case", list(IMAGES))
def test_convolutions_on_bang(case: str, tmp_path: Path) -> None:
    agrees(SAMPLES / "conv2d.py", tmp_path, BANG, {**TILE, **IMAGES[case]}, 3)


@pytest.mark.parametrize(
    "case",
    [c for c, image in IMAGES.items() if int(image["C"]) % 16 == 0],  # type: ignore[call-overload]
)
def test_convolutions_on_ascend(case: str, tmp_path: Path) -> None:
    agrees(SAMPLES / "conv2d.py", tmp_path, ASCEND, {**TILE, **IMAGES[case]}, 3)


@pytest.mark.parametrize("target", [ASCEND, BANG])
def test_tensors_under_other_shapes(target: str, tmp_path: Path) -> None:
    agrees(program("reshaped"), tmp_path, target, {}, 7)


@pytest.mark.parametrize("target", [ASCEND, BANG])
@pytest.mark.parametrize("reach", [2, -3])
def test_rows_of_images(reach: int, target: str, tmp_path: Path) -> None:
    agrees(program("gathered"), tmp_path, target, {"reach": reach}, 5)


def test_parts_of_rows_that_start_anywhere_stay_refused_on_ascend() -> None:
    with pytest.raises(InputError, match="do not start at multiples of 32 bytes"):
        lowered(SAMPLES / "conv2d.py", {**TILE, **IMAGES["odd"]}, ASCEND)


@pytest.mark.parametrize("target", [ASCEND, BANG])
def test_extents_that_are_arithmetic_of_constants(target: str, tmp_path: Path) -> None:
    agrees(program("half_rows"), tmp_path, target, {}, 19)
