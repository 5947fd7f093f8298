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

PRODUCTS = Path(__file__).parents[1] / "hip" / "gemms.py"
# A piece of the call that the text makes for the type; none: plain arithmetic.
UNITS = {
    "dcu:gfx936": {"int8": "mmac_i32", "bfloat16": "16x16x16bf16"},
    "musa:mp_31": {"int8": "wmma_m16n16k32", "uint8": "wmma_m16n16k32", "bfloat16": "m16n16k16"},
    "musa:mp_22": {"int8": "imma_m32n32k32", "bfloat16": "bfmma_m32n32k16"},
    "maca:xcore1000": {"int8": "16x16x16i8", "bfloat16": "16x16x16bf16"},
    "ppu:ppu_10": {"int8": "tc01.mma", "uint8": "s32.u8.u8", "bfloat16": "f32.bf16.bf16"},
    "ppu:ppu_15": {"int8": "tc02.mma", "bfloat16": "tc02.mma"},
}
CASES = list(product(UNITS, ("int8", "uint8", "bfloat16"), (False, True)))
FIRST = [
    (target, ("int8", "bfloat16")[number % 2], number % 3 == 0)
    for number, target in enumerate(UNITS)
]


def run(folder: Path, target: str, kind: str, transposed: bool) -> None:
    total = "float32" if kind == "bfloat16" else "int32"
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
    unit = UNITS[target].get(kind)
    assert unit is None or unit in path.read_text()
    rng = np.random.default_rng(0)
    shapes = (70, 96), (72, 96) if transposed else (96, 72)
    if kind == "bfloat16":
        a, b = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in shapes)
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


@pytest.mark.slow
@pytest.mark.parametrize(("target", "kind", "transposed"), CASES)
def test_every_type(tmp_path: Path, target: str, kind: str, transposed: bool) -> None:
    run(tmp_path, target, kind, transposed)
