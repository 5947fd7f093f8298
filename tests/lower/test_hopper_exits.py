"""Blocks that end or leave a round early; padded rows; places and types of results that are unusual."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tile2c
from hopper_cases import TARGET, text_of

PROGRAMS = Path(__file__).parent / "programs" / "exits.py"


def _run(folder: Path, kernel: str, defines: dict[str, object], operands: list[Any]) -> Any:
    """What the kernel gives, checked, and the entries that ran."""
    tile2c.build(PROGRAMS, folder, TARGET, defines, (kernel,), backend="emulate", force=True)
    (found,) = tile2c.load(folder, "emulate", target=TARGET, check="races,memory").values()
    return np.asarray(found(*operands)).astype(np.float64)


def _operands(m: int, n: int, k: int, pitch: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal(x).astype(np.float16) for x in ((m, pitch), (k, n)))  # type: ignore[return-value]


@pytest.mark.parametrize("when", ["before", "break", "continue", "after"])
def test_no_block_ends_while_its_tiles_are_being_loaded(tmp_path: Path, when: str) -> None:
    """A producer would go on, or wait for consumers that are gone."""
    m, n, k = 264, 72, 200
    a, b = _operands(m, n, k, k)
    last = np.array([2, -1, 3], np.int32)
    got = _run(tmp_path, "ended", {"when": when}, [a, b, last])
    assert ("mma_m64" in text_of(tmp_path).read_text()) == (when == "after")
    want = np.zeros((m, n))
    for by, stop in enumerate(last):
        rows = slice(by * 128, (by + 1) * 128)
        taken = np.arange(k) // 32
        kept = (
            taken <= stop
            if when == "break"
            else taken != stop
            if when == "continue"
            else taken >= 0
        )
        want[rows] = a[rows, kept].astype(np.float64) @ b[kept].astype(np.float64)
        if when in ("before", "after") and stop < 0:
            want[rows] = 1
    np.testing.assert_allclose(got, want, rtol=4e-3, atol=0.1)


def test_rows_that_lie_padded_are_multiples_as_a_whole(tmp_path: Path) -> None:
    """`K + 8` asks for `(K + 8) % 8 == 0`, not for what C reads in it without brackets."""
    m, n, k = 136, 72, 136
    a, b = _operands(m, n, k, k + 8)
    bias = np.arange(2 * (n + 8), dtype=np.float16).reshape(2, n + 8)
    got = _run(tmp_path, "padded", {}, [a, b, bias])
    want = a[:, :k].astype(np.float64) @ b.astype(np.float64) + np.repeat(bias, 128, 0)[:m, :n]
    np.testing.assert_allclose(got, want, rtol=4e-3, atol=0.1)
    (kernel,) = tile2c.load(tmp_path, "emulate", target=TARGET).values()
    assert "(K + 8) % 8 == 0" in text_of(tmp_path).read_text()
    launched = kernel.entries(a, b, bias, np.zeros((m, n), np.float16))
    assert launched == ("padded",)


def test_no_place_is_asked_for_early_that_divides_by_a_size(tmp_path: Path) -> None:
    m, n = 136, 72
    for k in (136, 40):
        a, b = _operands(m, n, k, k)
        bias = np.arange(n, dtype=np.float16)
        got = _run(tmp_path, "guarded", {}, [a, b, bias])
        added = bias[np.arange(n) % (k // 64)] if k >= 64 else 2
        want = a.astype(np.float64) @ b.astype(np.float64) + added
        np.testing.assert_allclose(got, want, rtol=4e-3, atol=0.1)
    assert "bias_held" not in text_of(tmp_path).read_text()


def test_a_place_that_is_read_stands_behind_the_place_it_is_read_at(tmp_path: Path) -> None:
    m, n, k = 256, 72, 136
    a, b = _operands(m, n, k, k)
    place = np.random.default_rng(1).permutation(m).astype(np.int32)
    bias, got = np.arange(n, dtype=np.float16), np.zeros((m, n), np.float16)
    _run(tmp_path, "scattered", {}, [a, b, bias, place, got])
    want = a.astype(np.float64) @ b.astype(np.float64) + bias
    np.testing.assert_allclose(got[place].astype(np.float64), want, rtol=4e-3, atol=0.1)


def test_sums_leave_in_two_types(tmp_path: Path) -> None:
    """Each has a function of its own that packs pairs."""
    m, n, k = 136, 72, 136
    a, b = _operands(m, n, k, k)
    first, second = np.zeros((m, n), np.float16), np.zeros((m, n), ml_dtypes.bfloat16)
    _run(tmp_path, "in_two_types", {}, [a, b, first, second])
    want = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(first.astype(np.float64), want, rtol=4e-3, atol=0.1)
    second_want = np.maximum(want, 0)
    np.testing.assert_allclose(second.astype(np.float64), second_want, rtol=2e-2, atol=0.2)
    text = text_of(tmp_path).read_text()
    assert "packed_pair(" in text
    assert "packed_pair_bfloat16(" in text or "packed_pair_float16(" in text
