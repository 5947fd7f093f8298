"""What finishes sums: loads that stand in front of the rounds, bounds that are taken of rounded pairs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import tile2c
from hopper_cases import TARGET, TYPES, text_of
from tile2c.transpile.ir.forms import Stmt
from tile2c.transpile.lower.simt.frames import Frames
from tile2c.transpile.lower.simt.hopper import launch
from tile2c.transpile.lower.simt.hopper.late_bounds import Bounded
from tile2c.transpile.lower.simt.hopper.store import Passage

PROGRAMS = Path(__file__).parent / "programs" / "endings.py"
# what, defines, tensors that are loaded early
CASES: dict[str, tuple[dict[str, object], set[str]]] = {
    "rows and columns": ({}, {"scale", "bias"}),
    "columns at places that are read": ({"from_index": True}, {"scale", "column"}),
    "float columns": ({"bias_dtype": "float32"}, {"scale", "bias"}),
    "too many registers": ({"bias_dtype": "float32", "block_N": 256}, {"scale"}),
    "no shared memory on the way": ({"out_dtype": "float32", "block_N": 64}, {"scale", "bias"}),
    "sums that start at something": ({"filled": True, "block_N": 64}, {"scale", "bias"}),
    "few rows": ({"block_M": 16, "block_N": 128, "num_stages": 4}, {"scale", "bias"}),
    "one warpgroup": ({"threads": 128, "block_M": 64, "block_N": 64}, set()),
}


def _text(folder: Path, kernel: str, defines: dict[str, object]) -> str:
    tile2c.build(PROGRAMS, folder, TARGET, defines, (kernel,), backend="emulate", force=True)
    return text_of(folder).read_text()


@pytest.mark.parametrize("case", CASES)
def test_what_finishes_sums_is_loaded_before_the_rounds(tmp_path: Path, case: str) -> None:
    defines, early = CASES[case]
    text = _text(tmp_path, "finished", defines)
    assert {x for x in ("scale", "bias", "column") if f"{x}_held" in text} == early
    few = defines.get("block_M") == 16  # blocks of a cluster share the rounds of a tile
    m, n, k = (
        24 if few else 264,
        328 if defines.get("block_N") == 256 else 136,
        1608 if few else 136,
    )
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n)))
    scale = rng.random(m, np.float32) + 0.5
    bias = rng.standard_normal(n).astype(str(defines.get("bias_dtype", "float16")))
    column = rng.permutation(n).astype(np.int32)
    (kernel,) = tile2c.load(tmp_path, "emulate", target=TARGET, check="races,memory").values()
    kernel.backend.multiprocessors = 2  # type: ignore[attr-defined]
    got = np.asarray(kernel(a, b, scale, bias, column)).astype(np.float64)
    added = bias[column] if defines.get("from_index") else bias
    first = scale[:, None] if defines.get("filled") else 0
    want = (a.astype(np.float64) @ b.astype(np.float64) + first) * scale[:, None] + added
    np.testing.assert_allclose(got, np.maximum(want, 0), rtol=4e-3, atol=0.1)


@pytest.mark.parametrize("filled", [False, True])
def test_the_place_of_a_tile_is_found_beside_its_first_products(
    tmp_path: Path, filled: bool
) -> None:
    """Unless it is asked for earlier: it takes divisions, which the products would wait for."""
    text = _text(tmp_path, "finished", {"filled": filled})
    consumer = text[text.index("more_registers<") :]
    found, products = (consumer.index(x) for x in ("find_tile(tile, bx, by);", "mma_commit();"))
    assert (found < products) == filled
    assert products < consumer.index("load_words(bias_held") < consumer.index("mma_wait<0>();")


def test_what_the_launch_writes_is_read_where_it_stands(tmp_path: Path) -> None:
    """Nor is all of a tile held, which would take as many registers as the sums."""
    assert "_held" not in _text(tmp_path, "residual", {})
    rng = np.random.default_rng(0)
    m, n, k = 136, 72, 136
    a, b, r = (rng.standard_normal(x).astype(np.float16) for x in ((m, k), (k, n), (m, n)))
    own = np.full(n, -1, np.float32)
    (kernel,) = tile2c.load(tmp_path, "emulate", target=TARGET, check="memory").values()
    got = np.asarray(kernel(a, b, r, own)).astype(np.float64)
    want = a.astype(np.float64) @ b.astype(np.float64) + r + np.arange(n) // 64
    np.testing.assert_allclose(got, want, rtol=4e-3, atol=0.1)


# what, defines, the bounds that are taken of rounded pairs
BOUNDS: dict[str, tuple[dict[str, object], set[str]]] = {
    "two of them": ({}, {"at_least", "at_most"}),
    "bfloat16": ({"dtype": "bfloat16"}, {"at_least", "at_most"}),
    "the outer one is no half": ({"high": 0.1}, set()),
    "the inner one is no half": ({"low": -0.1, "high": 65504.0}, {"at_most"}),
    "no bfloat16": ({"dtype": "bfloat16", "high": 65504.0}, set()),
    "more than a half can be": ({"high": 65536.0}, set()),
    "the sums are read again": ({"kept": True}, set()),
    "few rows": ({"block_M": 16, "block_N": 128}, {"at_least", "at_most"}),
}


@pytest.mark.parametrize("case", BOUNDS)
def test_bounds_are_taken_of_rounded_pairs(
    tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the last bit what bounds before rounding give, of NaN, infinities and what overflows, too."""
    defines, late = BOUNDS[case]
    kind = TYPES[str(defines.get("dtype", "float16"))]
    m, n, k = 136, 136, 72
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(x).astype(kind) for x in ((m, k), (k, n)))
    a[3], a[4, 0], a[5], b[:, 9] = np.nan, np.inf, 6e4, 6e4
    found: list[np.ndarray] = []
    for way in ("late", "early"):
        text = _text(tmp_path / way, "bounded", defines)
        bounds = {x for x in ("at_least", "at_most") if f"unsigned {x}(" in text}
        assert bounds == (late if way == "late" else set())
        (kernel,) = tile2c.load(
            tmp_path / way, "emulate", target=TARGET, check="races,memory"
        ).values()
        got = np.zeros((m, n), kind)
        kernel(a, b, np.zeros((m, n), np.float32), got)
        found.append(got.view(np.uint16))
        monkeypatch.setattr(launch, "with_late_bounds", _as_they_stand)
    np.testing.assert_array_equal(*found)


def _as_they_stand(body: Sequence[Stmt], passages: dict[int, Passage], frames: Frames) -> Bounded:
    return Bounded(body=tuple(body), passages=passages)
