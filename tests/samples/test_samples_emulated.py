"""Every sample on every target: the generated text, run by the emulator with both checks on, gives what
the tile program means, at sizes with tails, odd ones and the smallest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tile2c
from tile2c.transpile import pipeline
from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.ir import interpret
from tile2c.transpile.stage.defines import parse_defines

SAMPLES = Path(__file__).parents[2] / "samples"
THREADED = ("cuda:sm_80", "cuda:sm_90a", "hip:gfx942")
TARGETS = (*THREADED, "ascendc:ascend910b")
F16, F32 = np.float16, np.float32

# kernel -> defines, then shapes and types of its inputs; -D values in front
CASES: dict[str, tuple[dict[str, object], tuple[tuple[tuple[tuple[int, ...], Any], ...], ...]]] = {
    "add": ({}, tuple((((n,), F32), ((n,), F32)) for n in (1, 255, 1024, 2051))),
    "row_sum": ({}, tuple((((m, n), F32),) for m, n in ((1, 1), (9, 513), (17, 100), (8, 1024)))),
    "softmax": ({"N": 1000}, tuple((((m, 1000), F16),) for m in (1, 5))),
    "softmax_odd": (
        {"N": 333, "block_M": 2, "threads": 96},
        tuple((((m, 333), F16),) for m in (1, 5)),
    ),
    "gemm": (
        {},
        tuple(
            (((m, k), F16), ((k, n), F16))
            for m, n, k in (
                (1, 1, 1),
                (129, 136, 40),
                (128, 128, 64),
                (77, 131, 33),
                (264, 200, 72),
            )
        ),
    ),
    "gemm_bias_relu": (
        {},
        tuple(
            (((m, k), F16), ((k, n), F16), ((n,), F16))
            for m, n, k in ((128, 128, 32), (130, 264, 104), (65, 67, 69))
        ),
    ),
}


def meaning(source: Path, defines: dict[str, object], arguments: dict[str, Any]) -> Any:
    """What the tile program itself gives, in float64."""
    spelled = parse_defines(tuple(f"{name}={value}" for name, value in defines.items()))
    request = pipeline.Request(inputs=(source,), targets=("cuda:sm_80",), defines=spelled)
    ((_, function),) = pipeline.functions(request, Diagnostics())
    (result,) = interpret.run(function, arguments, float64=True).values()
    return result


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_sample_means_its_tile_program(tmp_path: Path, case: str, target: str) -> None:
    name = case.removesuffix("_odd")
    if target.startswith("ascendc") and name.startswith("gemm"):
        pytest.skip("the cube core is refused: see test_gemm_on_vector_cores_is_refused")
    source, (defines, inputs) = SAMPLES / f"{name}.py", CASES[case]
    (kernel,) = tile2c.build(
        source, tmp_path, target, defines, backend="emulate", check="races,memory"
    ).values()
    names = [arg.name for arg in kernel.record.arguments]
    rng = np.random.default_rng(7)
    for shapes in inputs:
        arrays = [rng.standard_normal(shape).astype(dtype) for shape, dtype in shapes]
        got = np.asarray(kernel(*arrays)).astype(np.float64)
        want = meaning(source, defines, dict(zip(names, arrays, strict=False)))
        depth = max(shape[-1] for shape, _ in shapes)
        rtol = 2e-3 if arrays[0].dtype == F16 else 1e-5
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * np.sqrt(depth))


def test_gemm_on_vector_cores_is_refused(tmp_path: Path) -> None:
    with pytest.raises(tile2c.TranspileError) as problem:
        tile2c.build(SAMPLES / "gemm.py", tmp_path, "ascendc:ascend910b", backend="emulate")
    (found,) = [item for item in problem.value.diagnostics if item.severity == "error"]
    assert found.span is not None and found.span.file.endswith("gemm.py")
    assert "T.gemm" in found.message
