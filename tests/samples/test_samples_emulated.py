"""Every sample on every target: the generated text, run by the emulator with both checks on, gives what
the tile program means, at sizes with tails, odd ones and the smallest."""

from __future__ import annotations

import runpy
from inspect import signature
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
    "rms_norm": ({"N": 1000}, tuple((((m, 1000), F16), ((1000,), F16)) for m in (1, 5))),
    "rms_norm_odd": (
        {"N": 333, "block_M": 2, "threads": 96},
        tuple((((m, 333), F16), ((333,), F16)) for m in (1, 5)),
    ),
    "layer_norm": (
        {"N": 1000},
        tuple((((m, 1000), F16), ((1000,), F16), ((1000,), F16)) for m in (1, 5)),
    ),
    "layer_norm_odd": (
        {"N": 77, "block_M": 3, "threads": 64},
        ((((4, 77), F16), ((77,), F16), ((77,), F16)),),
    ),
    "online_softmax": (
        {"block_N": 256},
        tuple((((m, n), F16),) for m, n in ((1, 1), (5, 256), (6, 1000), (3, 777))),
    ),
    "column_sum": (
        {},
        tuple((((m, n), F32),) for m, n in ((1, 1), (129, 33), (128, 64), (300, 100))),
    ),
    "transpose_scale_bias": (
        {},
        tuple((((m, n), F16), ((n,), F16)) for m, n in ((1, 1), (64, 64), (72, 136), (65, 131))),
    ),
    "gemv": (
        {},
        tuple((((m, k), F16), ((k,), F16)) for m, k in ((1, 1), (9, 1024), (5, 2056), (6, 1111))),
    ),
    "cumsum": ({}, tuple((((m, n), F32),) for m, n in ((1, 1), (5, 256), (4, 1000), (7, 1027)))),
    "quantize_fp8": (
        {},
        tuple((((m, n), F16),) for m, n in ((1, 1), (17, 256), (16, 200), (3, 333))),
    ),
    "top_k": ({}, tuple((((m, 128), F32),) for m in (1, 33))),
    "top_k_odd": ({"N": 67, "k": 3, "threads": 64}, ((((5, 67), F32),),)),
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


NEAR = {"quantize_fp8": 0.13}  # what rounding to 8 bits may change
FNUZ = {"fp8": "float8_e4m3fnuz"}  # the 8-bit floats of CDNA3
CORES = {  # samples shown there, too
    "ascendc:ascend910b": ("add", "row_sum", "softmax", "gemm", "gemm_bias_relu"),
    "bang:mtp_592": ("rms_norm", "gemv", "column_sum", "gemm_bias_relu"),
}


def meaning(source: Path, defines: dict[str, object], arguments: dict[str, Any]) -> list[Any]:
    """What the tile program itself gives, in float64: every output."""
    spelled = parse_defines(tuple(f"{name}={value}" for name, value in defines.items()))
    request = pipeline.Request(inputs=(source,), targets=("cuda:sm_80",), defines=spelled)
    ((_, function),) = pipeline.functions(request, Diagnostics())
    return list(interpret.run(function, arguments, float64=True).values())


def reference(name: str, defines: dict[str, object], arrays: list[Any]) -> list[Any]:
    """What the sample's NumPy reference gives, its own parameters as they are in the sample."""
    space = runpy.run_path(str(SAMPLES / "references.py"))
    function = space[name]
    own = {key: value for key, value in defines.items() if key in signature(function).parameters}
    if defines.get("fp8") == FNUZ["fp8"]:
        own["largest"] = 240
    found = function(*arrays, **own)
    return list(found) if isinstance(found, tuple) else [found]


def targets_of(name: str) -> tuple[str, ...]:
    cores = [target for target, names in CORES.items() if name in names]
    return (*THREADED, *cores)


RUNS = [(case, target) for case in CASES for target in targets_of(case.removesuffix("_odd"))]


@pytest.mark.parametrize(("case", "target"), RUNS)
def test_sample_means_its_tile_program(tmp_path: Path, case: str, target: str) -> None:
    name = case.removesuffix("_odd")
    source, (defines, inputs) = SAMPLES / f"{name}.py", CASES[case]
    if name == "quantize_fp8" and target.startswith("hip"):
        defines = defines | FNUZ
    (kernel,) = tile2c.build(
        source, tmp_path, target, defines, backend="emulate", check="races,memory"
    ).values()
    names = [arg.name for arg in kernel.record.arguments]
    rng = np.random.default_rng(7)
    for shapes in inputs:
        arrays = [rng.standard_normal(shape).astype(dtype) for shape, dtype in shapes]
        found = kernel(*arrays)
        outputs = [
            np.asarray(x).astype(np.float64)
            for x in (found if isinstance(found, tuple) else (found,))
        ]
        depth = max(shape[-1] for shape, _ in shapes)
        rtol = NEAR.get(name, 2e-3 if arrays[0].dtype == F16 else 1e-5)
        for wanted in (
            meaning(source, defines, dict(zip(names, arrays, strict=False))),
            reference(name, defines, arrays),
        ):
            for got, want in zip(outputs, wanted, strict=True):
                np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * np.sqrt(depth))
