"""8-bit floats on AMD's chips: each chip's own kinds, their conversions, and products of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tile2c
from hip_programs import BOTH, GEMMS, text_of
from test_hip_compile import assembly, needs_clang, nothing_spilled

KINDS: dict[str, Any] = {
    name: getattr(ml_dtypes, name)
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
}
OWN = [
    ("gfx942", "float8_e4m3fnuz"),
    ("gfx942", "float8_e5m2fnuz"),
    ("gfx950", "float8_e4m3fn"),
    ("gfx1201", "float8_e4m3fn"),
    ("gfx1201", "float8_e5m2"),
]
CONVERT = """
import tilelang
import tilelang.language as T


@T.prim_func
def convert(X: T.Tensor((300,), "float32"), Q: T.Tensor((300,), "{kind}"), Y: T.Tensor((300,), "float32")):
    with T.Kernel(1, threads=64) as bx:
        q = T.alloc_fragment((300,), "{kind}")
        T.copy(X, q)
        T.copy(q, Q)
        T.copy(q, Y)
"""


@pytest.mark.parametrize(("arch", "kind"), OWN)
def test_conversions_round_and_saturate(tmp_path: Path, arch: str, kind: str) -> None:
    source = tmp_path / "convert.py"
    source.write_text(CONVERT.format(kind=kind))
    out = tmp_path / "out"
    (kernel,) = tile2c.build(source, out, f"hip:{arch}", backend="emulate", check=BOTH).values()
    x = np.random.default_rng(0).standard_normal(300).astype(np.float32) * 100
    x[:4] = 1e6, -1e6, 0.0, np.nan
    q, y = kernel(x)
    largest = float(ml_dtypes.finfo(KINDS[kind]).max)
    want = np.clip(x, -largest, largest).astype(KINDS[kind])
    np.testing.assert_array_equal(np.asarray(q).astype(np.float32), want.astype(np.float32))
    np.testing.assert_array_equal(np.asarray(y), want.astype(np.float32))


@pytest.mark.parametrize(("arch", "kind"), [*OWN, ("gfx942", "int8"), ("gfx950", "int8")])
@pytest.mark.parametrize("transposed", [pytest.param(False, marks=pytest.mark.slow), True])
def test_products(tmp_path: Path, arch: str, kind: str, transposed: bool) -> None:
    total = "int32" if kind == "int8" else "float32"
    choices: dict[str, object] = {
        "dtype": kind, "out_dtype": total, "sums": total, "transpose_B": transposed,
    }  # fmt: skip
    kernels = tile2c.build(GEMMS, tmp_path, f"hip:{arch}", choices, backend="emulate", check=BOTH)
    (text,) = (path.read_text() for path in tmp_path.glob("*.hip"))
    assert "__builtin_amdgcn_mfma_" in text or "__builtin_amdgcn_wmma_" in text
    rng = np.random.default_rng(1)
    shapes = (70, 96), (72, 96) if transposed else (96, 72)
    if kind == "int8":
        a, b = (rng.integers(-100, 100, shape).astype(np.int8) for shape in shapes)
    else:
        a, b = (rng.standard_normal(shape).astype(KINDS[kind]) for shape in shapes)
    got = np.asarray(kernels["product"](a, b)).astype(np.float64)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    want = wide_a @ (wide_b.T if transposed else wide_b)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3)


@needs_clang
@pytest.mark.parametrize(("arch", "kind"), [*OWN[::2], ("gfx942", "int8")])
def test_compiled_for_the_chip(tmp_path: Path, arch: str, kind: str) -> None:
    total = "int32" if kind == "int8" else "float32"
    path = text_of(GEMMS, tmp_path, arch, dtype=kind, out_dtype=total, sums=total)
    text = assembly(path, arch)
    nothing_spilled(text)
    assert re.search(r"v_(mfma|wmma)_\w+_(i8|fp8|bf8)", text)


def test_another_chips_kind_is_refused(tmp_path: Path) -> None:
    choices = {"dtype": "float8_e4m3fn", "out_dtype": "float32"}
    with pytest.raises(
        tile2c.TranspileError, match="float8_e4m3fn, which hip:gfx942 does not have"
    ):
        tile2c.build(GEMMS, tmp_path, "hip:gfx942", choices, backend="emulate")
