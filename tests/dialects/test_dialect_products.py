"""Products of every element type that a dialect's matrix unit takes, against NumPy.

All of them: `pytest -m slow tests/dialects/test_dialect_products.py`.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import tile2c
from tile2c.runtime.dtypes import numpy_dtype

PRODUCTS = Path(__file__).parents[1] / "hip" / "gemms.py"
# A piece of the call that the text makes for the type; none: plain arithmetic.
UNITS: dict[str, dict[str, str]] = {
    "dcu:gfx936": {"int8": "mmac_i32", "bfloat16": "16x16x16bf16"},
    "musa:mp_31": {
        "int8": "wmma_m16n16k32",
        "uint8": "wmma_m16n16k32",
        "bfloat16": "m16n16k16",
        "float8_e4m3fn": "type = 5;  // E4M3",
        "float8_e5m2": "type = 6;  // E5M2",
    },
    "musa:mp_22": {"int8": "imma_m32n32k32", "bfloat16": "bfmma_m32n32k16"},
    "maca:xcore1000": {"int8": "16x16x16i8", "bfloat16": "16x16x16bf16"},
    "ppu:ppu_10": {"int8": "tc01.mma", "uint8": "s32.u8.u8", "bfloat16": "f32.bf16.bf16"},
    "ppu:ppu_15": {
        "int8": "tc02.mma",
        "bfloat16": "tc02.mma",
        "float8_e4m3fn": "f32.e4m3.e4m3",
        "float8_e5m2": "f32.e5m2.e5m2",
    },
}
FLOATS_8 = [
    (target, kind) for target, units in UNITS.items() for kind in units if kind.startswith("float8")
]
CASES = [
    *product(UNITS, ("int8", "uint8", "bfloat16"), (False, True)),
    *((target, kind, turned) for target, kind in FLOATS_8 for turned in (False, True)),
]
FIRST = [
    (target, ("int8", "bfloat16")[number % 2], number % 3 == 0)
    for number, target in enumerate(UNITS)
] + [
    ("musa:mp_31", "float8_e4m3fn", True),
    ("ppu:ppu_15", "float8_e5m2", False),
    ("corex:ivcore11_mad", "float16", True),
]
CONVERT = """
import tilelang
import tilelang.language as T


@T.prim_func
def convert(X: T.Tensor((4096,), "float32"), Q: T.Tensor((4096,), "{kind}"), Y: T.Tensor((4096,), "float32")):
    with T.Kernel(1, threads=128) as bx:
        q = T.alloc_fragment((4096,), "{kind}")
        T.copy(X, q)
        T.copy(q, Q)
        T.copy(q, Y)
"""


def run(folder: Path, target: str, kind: str, transposed: bool) -> None:
    total = "float32" if "float" in kind else "int32"
    choices: dict[str, object] = {"dtype": kind, "out_dtype": total, "sums": total}
    kernels = tile2c.build(
        PRODUCTS,
        folder,
        target,
        {**choices, "transpose_B": transposed},
        backend="emulate",
        check="races,memory",
    )
    (path,) = (x for x in folder.iterdir() if x.is_file() and x.suffix != ".json")
    unit = {**UNITS, "corex:ivcore11_mad": {"float16": "matrix_mad"}}[target].get(kind)
    assert unit is None or unit in path.read_text()
    rng = np.random.default_rng(0)
    shapes = (70, 96), (72, 96) if transposed else (96, 72)
    if "float" in kind:
        a, b = (rng.standard_normal(shape).astype(numpy_dtype(kind)) for shape in shapes)
    else:
        low = 0 if kind == "uint8" else -128
        a, b = (rng.integers(low, low + 256, shape).astype(kind) for shape in shapes)
    got = np.asarray(kernels["product"](a, b)).astype(np.float64)
    wide = b.astype(np.float64)
    want = a.astype(np.float64) @ (wide.T if transposed else wide)
    np.testing.assert_allclose(got, want, rtol=0, atol=0 if total == "int32" else 1e-4)


@pytest.mark.parametrize(("target", "kind", "transposed"), FIRST)
def test_one_type_of_each_unit(tmp_path: Path, target: str, kind: str, transposed: bool) -> None:
    run(tmp_path, target, kind, transposed)


@pytest.mark.parametrize(("target", "kind"), FLOATS_8)
def test_bytes_are_floats_by_the_texts_own_arithmetic(
    tmp_path: Path, target: str, kind: str
) -> None:
    """Ties, numbers below the smallest normal one, what is too large, infinities, zeros, no numbers."""
    source = tmp_path / "convert.py"
    source.write_text(CONVERT.format(kind=kind))
    (kernel,) = tile2c.build(source, tmp_path / "out", target, backend="emulate").values()
    form = getattr(ml_dtypes, kind)
    exact = np.arange(256, dtype=np.uint8).view(form).astype(np.float32)
    finite = np.sort(exact[np.isfinite(exact)])
    halfway = (finite[1:] + finite[:-1]) / 2
    drawn = np.random.default_rng(0).standard_normal(4096).astype(np.float32) * 0.02
    x = np.concatenate([exact, halfway, np.float32([1e6, -1e6, np.inf, -np.inf]), drawn])[:4096]
    q, y = kernel(x)
    largest = float(ml_dtypes.finfo(form).max)
    want = np.clip(x, -largest, largest).astype(form).astype(np.float32)
    np.testing.assert_array_equal(np.asarray(y), want)
    np.testing.assert_array_equal(np.asarray(q).astype(np.float32), want)
    np.testing.assert_array_equal(np.signbit(np.asarray(y)), np.signbit(want))


def test_types_without_facts_are_refused(tmp_path: Path) -> None:
    choices = {"dtype": "float8_e4m3fn", "out_dtype": "float32"}
    for target in ("maca:xcore1000", "corex:ivcore11", "dcu:gfx936", "musa:mp_22", "ppu:ppu_10"):
        with pytest.raises(
            tile2c.TranspileError, match=f"float8_e4m3fn, which {target} does not have"
        ):
            tile2c.build(PRODUCTS, tmp_path, target, choices, backend="emulate")


@pytest.mark.slow
@pytest.mark.parametrize(("target", "kind", "transposed"), CASES)
def test_every_type(tmp_path: Path, target: str, kind: str, transposed: bool) -> None:
    run(tmp_path, target, kind, transposed)
