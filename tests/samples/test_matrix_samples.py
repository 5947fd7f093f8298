"""The samples of matrix operations on every target: equal to the tile program and to NumPy."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tile2c
from matrix_cases import CASES
from tile2c.transpile import pipeline
from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.ir import interpret
from tile2c.transpile.stage.defines import parse_defines

SAMPLES = Path(__file__).parents[2] / "samples"
TARGETS = ("cuda:sm_80", "cuda:sm_90a", "hip:gfx942")


def reference(name: str) -> Any:
    """A function of samples/references.py."""
    spec = importlib.util.spec_from_file_location("references", SAMPLES / "references.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


@pytest.mark.parametrize("case", CASES)
def test_tile_program_computes_its_reference(case: str) -> None:
    found = CASES[case]
    source = SAMPLES / f"{found.sample}.py"
    request = pipeline.Request(
        inputs=(source,),
        targets=("cuda:sm_80",),
        defines=parse_defines(tuple(f"{name}={value}" for name, value in found.choices.items())),
    )
    ((_, function),) = pipeline.functions(request, Diagnostics())
    names = [param.name for param in function.params]
    for arrays in found.arrays():
        given = dict(zip(names, arrays, strict=False))
        (got,) = interpret.run(function, given, float64=True).values()
        want = reference(found.sample)(*arrays, **found.reference)
        # The tile program holds float16 for what it keeps in float16 tiles; here nothing is rounded.
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_matrix_sample_means_its_tile_program(tmp_path: Path, case: str, target: str) -> None:
    found = CASES[case]
    if not target.startswith(found.family):
        pytest.skip("its matrix unit has other 8-bit floats")
    source = SAMPLES / f"{found.sample}.py"
    (kernel,) = tile2c.build(
        source, tmp_path, target, found.choices, backend="emulate", check="races,memory"
    ).values()
    for arrays in found.arrays():
        want = reference(found.sample)(*arrays, **found.reference)
        result = kernel(*arrays)
        got = np.asarray(arrays[-1] if result is None else result).astype(np.float64)
        scale = max(1.0, float(np.abs(want).max()))
        np.testing.assert_allclose(got, want, rtol=4e-3, atol=4e-3 * scale)
