"""Several numbers in one element: loops over parts; shifts, on BANG C by powers of two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cores_harness import SAMPLES, built, lowered, program
from tile2c.transpile.ir.interpret import run


def agrees(path: Path, out: Path, target: str, defines: dict[str, object], given: Any) -> None:
    form = lowered(path, defines, target)
    assert form.plan is not None, form.diagnostics.items
    kernel = built(path, out, defines, target)[form.function.name]
    names = [param.name for param in form.function.params]
    expected = run(form.function, {k: np.copy(v) for k, v in zip(names, given, strict=True)})
    kernel(*given)
    for name, wanted in expected.items():
        got = np.asarray(given[names.index(name)]).astype(np.float64)
        want = np.asarray(wanted).astype(np.float64)
        np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-3 * abs(want).max(), err_msg=name)


@pytest.mark.parametrize("target", ["bang:mtp_372", "ascendc:ascend910b"])
@pytest.mark.parametrize(
    ("dtype", "shift"), [("int8", 4), ("int8", 1), ("int8", 7), ("uint8", 4), ("int16", 9)]
)
def test_parts_of_numbers(dtype: str, shift: int, target: str, tmp_path: Path) -> None:
    limits = np.iinfo(dtype)
    x = np.linspace(limits.min, limits.max, 7 * 40).astype(dtype).reshape(7, 40)
    given = [x, np.zeros((7, 80), np.float32), np.zeros_like(x)]
    agrees(program("nibbles"), tmp_path, target, {"dtype": dtype, "shift": shift}, given)


@pytest.mark.parametrize("target", ["bang:mtp_372", "bang:mtp_592", "ascendc:ascend910b"])
@pytest.mark.parametrize(("m", "n", "k"), [(3, 67, 98), (65, 64, 128), (1, 1, 2)])
def test_products_of_half_bytes(m: int, n: int, k: int, target: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    given = [
        rng.standard_normal((m, k)).astype(np.float16),
        rng.integers(-128, 128, (n, k // 2)).astype(np.int8),
        rng.standard_normal((-(-k // 64), n)).astype(np.float16),
        np.zeros((m, n), np.float16),
    ]
    agrees(SAMPLES / "int4_gemm.py", tmp_path, target, {"group_size": 64}, given)
