"""Rows that TMA cannot reach: copies in a workspace, launched only where the sizes say that it pays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tile2c
from hopper_cases import TARGET, build, inputs, right
from tile2c.runtime.expressions import evaluate
from tile2c.transpile.lower.simt.hopper import repack

SQUARE: dict[str, object] = {"block_M": 64, "block_N": 64, "block_K": 32}
SIZES = [(65, 72, 104), (65, 72, 103), (66, 67, 104), (65, 67, 33), (1, 1, 1)]


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies that pay at sizes which the emulator can run."""
    monkeypatch.setattr(repack, "_LAUNCHES", 0)
    monkeypatch.setattr(repack, "_SLOWER", 1)
    monkeypatch.setattr(repack, "_COPIED", 1 << 20)


def launches(folder: Path) -> list[dict[str, Any]]:
    (kernel,) = json.loads((folder / "tile2c.json").read_text())["kernels"]
    found: list[dict[str, Any]] = kernel["launch"]
    return found


def chosen(folder: Path, m: int, n: int, k: int) -> list[str]:
    """Entries that run for these sizes and aligned tensors, in order."""
    names = {"M": m, "N": n, "K": k, "A": 0, "B": 0, "C": 0}
    found: dict[int, str] = {}
    for launch in launches(folder):
        holds = launch["when"] is None or evaluate(launch["when"], names)
        if holds:
            found.setdefault(launch["group"], launch["entry"])
    return [found[group] for group in sorted(found)]


@pytest.mark.parametrize("m,n,k", SIZES)
def test_products_over_copies_are_right(
    tmp_path: Path, cheap: None, m: int, n: int, k: int
) -> None:
    build(tmp_path, "product", SQUARE)
    operands = inputs("product", SQUARE, m, n, k)
    assert right(tmp_path, "product", SQUARE, operands)
    rows = "product_rows_float16"
    odd_k, odd_n = [rows] * (k % 8 > 0), [rows] * (n % 8 > 0)
    assert chosen(tmp_path, m, n, k) == [*odd_k, *odd_n, "product", *odd_n]


def test_batches_and_a_caller_workspace(tmp_path: Path, cheap: None) -> None:
    build(tmp_path, "batched", {})
    assert right(tmp_path, "batched", {}, inputs("batched", {}, 35, 37, 39))
    (kernel,) = tile2c.load(tmp_path, "emulate", target=TARGET).values()
    a, b = inputs("batched", {}, 35, 37, 39)
    size = kernel.workspace_bytes(a, b)
    assert size > 0
    space = np.zeros(size + 512, np.uint8)
    start = -space.ctypes.data % 256
    c = np.empty((2, 35, 37), np.float16)
    kernel(a, b, c, workspace=space[start : start + size])
    want = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c.astype(np.float64), want, rtol=4e-3, atol=0.05)
    assert kernel.workspace_bytes(*inputs("batched", {}, 35, 40, 40)) == 0


def test_tensors_that_do_not_start_aligned_are_loaded_by_element(
    tmp_path: Path, cheap: None
) -> None:
    build(tmp_path, "product", SQUARE)
    a, b = inputs("product", SQUARE, 65, 67, 33)
    shifted = np.empty(a.size + 9, np.float16)
    start = (-shifted.ctypes.data % 16) // 2 + 1
    moved = shifted[start : start + a.size].reshape(a.shape)
    moved[:] = a
    (kernel,) = tile2c.load(tmp_path, "emulate", target=TARGET, check="races,memory").values()
    want = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(kernel(moved, b).astype(np.float64), want, rtol=4e-3, atol=0.05)


@pytest.mark.parametrize("n", [72, 67])
def test_what_is_read_by_pointer_has_to_be_aligned_for_copies_too(
    tmp_path: Path, cheap: None, n: int
) -> None:
    """The bias is loaded two elements at once, whichever launch runs; with N odd it is by itself."""
    sample = Path(__file__).parents[2] / "samples" / "gemm_bias_relu.py"
    tile2c.build(sample, tmp_path, TARGET, SQUARE | {"threads": 128}, backend="emulate")
    every = launches(tmp_path)
    others = [x["when"] for x in every if x["entry"] != "gemm_bias_relu_any"]
    copies = [x for x in every if "_rows_" in x["entry"]]
    assert copies and all("bias % 4 == 0" in when for when in others)
    a, b = inputs("product", SQUARE, 65, n, 33)
    space = np.zeros(n + 16, np.float16)
    start = (-space.ctypes.data % 16) // 2
    want = a.astype(np.float64) @ b.astype(np.float64)
    (kernel,) = tile2c.load(tmp_path, "emulate", target=TARGET, check="races,memory").values()
    for first in (start, start + 1, start + 2):
        bias = space[first : first + n]
        bias[:] = np.linspace(-3, 3, n)
        got = np.asarray(kernel(a, b, bias)).astype(np.float64)
        right_sums = np.maximum(want + bias.astype(np.float64), 0)
        np.testing.assert_allclose(got, right_sums, rtol=4e-3, atol=0.05)


def test_sums_that_are_stored_by_pointer_leave_their_size_aligned(
    tmp_path: Path, cheap: None
) -> None:
    """float32 has no store by TMA here: N is asked for, so B stays where it is."""
    defines = SQUARE | {"out_dtype": "float32"}
    build(tmp_path, "product", defines)
    assert right(tmp_path, "product", defines, inputs("product", defines, 65, 72, 33))
    assert chosen(tmp_path, 65, 72, 33) == ["product_rows_float16", "product"]
    assert chosen(tmp_path, 65, 67, 33) == ["product_any"]


def test_small_products_are_not_worth_copies(tmp_path: Path) -> None:
    build(tmp_path, "product", SQUARE)
    assert chosen(tmp_path, 511, 513, 515) == ["product_any"]
    rows = "product_rows_float16"
    assert chosen(tmp_path, 4095, 4097, 4099) == [rows, rows, "product", rows]
    (kernel,) = tile2c.load(tmp_path, "emulate", target=TARGET).values()
    assert kernel.workspace_bytes(*inputs("product", SQUARE, 65, 67, 33)) == 0


def test_promised_sizes_need_no_workspace(tmp_path: Path) -> None:
    build(tmp_path, "product", SQUARE | {"K%8": 0, "N%8": 0})
    (kernel,) = json.loads((tmp_path / "tile2c.json").read_text())["kernels"]
    assert kernel["workspace"] is None


@pytest.mark.parametrize("known", [{"M": 65, "N": 67, "K": 33}, {"K": 33}, {"N": 67}])
def test_known_odd_rows_are_always_copied(
    tmp_path: Path, cheap: None, known: dict[str, object]
) -> None:
    defines = SQUARE | known
    text = build(tmp_path, "product", defines)
    assert "For copies whose rows TMA can load" in text
    assert right(tmp_path, "product", defines, inputs("product", defines, 65, 67, 33))
    rows = "product_rows_float16"
    assert chosen(tmp_path, 65, 67, 33) == [rows, rows, "product", rows]


def test_known_sizes_that_are_not_worth_copies_take_the_ordinary_way(tmp_path: Path) -> None:
    text = build(tmp_path, "product", SQUARE | {"M": 65, "N": 67, "K": 33})
    assert "rows of A are 33 elements apart" in text
    assert text.count("__global__") == 1


def test_rounds_that_a_longer_row_would_change(tmp_path: Path, cheap: None) -> None:
    """K // block_K of rows with their padding can be a round more."""
    defines = SQUARE | {"whole_rounds": True}
    build(tmp_path, "product", defines)
    a, b = inputs("product", defines, 65, 72, 63)
    (kernel,) = tile2c.load(tmp_path, "emulate", target=TARGET, check="races,memory").values()
    found = np.asarray(kernel(a, b)).astype(np.float64)
    wanted = a[:, :32].astype(np.float64) @ b[:32].astype(np.float64)
    assert np.allclose(found, wanted, rtol=5e-3, atol=5e-2)
