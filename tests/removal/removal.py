"""Builds a sample with a switch at each thing that may be missing, and tries each of them."""

from __future__ import annotations

import ctypes
import os
import runpy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import tile2c
from defects import Defect, switched
from tile2c.runtime.errors import KernelError
from tile2c.runtime.kernel import Kernel

SAMPLES = Path(__file__).parents[2] / "samples"
F16, F32 = np.float16, np.float32
NEAR = {"quantize_fp8": 0.13}  # what rounding to 8 bits may change
# Far below zero: padding that slips into a maximum or into squares changes it.
SHIFT = {"softmax": 30000, "online_softmax": 30000, "top_k": 30000, "layer_norm": 100}
Inputs = tuple[tuple[tuple[int, ...], Any], ...]


@dataclass(frozen=True)
class Case:
    """A sample with its choices, and sets of inputs at which between them everything bites."""

    kernel: str
    shapes: tuple[Inputs, ...]
    choices: dict[str, object] = field(default_factory=dict)
    elsewhere: Case | None = None  # where guards bite that here only save work
    arrays: Callable[[], list[list[Any]]] | None = None  # inputs that are no random numbers
    folder: Path = SAMPLES
    reference: Callable[..., Any] | None = None  # where the samples' references have none


# Row operations: the same on all targets with threads.
ROWS = {
    "rms_norm": Case("rms_norm", ((((2, 1000), F16), ((1000,), F16)),), {"N": 1000}),
    "rms_norm_rows": Case(
        "rms_norm", ((((5, 77), F16), ((77,), F16)),), {"N": 77, "block_M": 2, "threads": 64}
    ),
    "layer_norm": Case(
        "layer_norm", ((((2, 1000), F16), ((1000,), F16), ((1000,), F16)),), {"N": 1000}
    ),
    "online_softmax": Case(
        "online_softmax", ((((5, 776), F16),), (((3, 777), F16),)), {"block_N": 256}
    ),
    "column_sum": Case("column_sum", ((((131, 36), F32),), (((129, 33), F32),))),
    "transpose_scale_bias": Case(
        "transpose_scale_bias",
        ((((72, 136), F16), ((136,), F16)), (((65, 131), F16), ((131,), F16))),
    ),
    "gemv": Case("gemv", ((((6, 1032), F16), ((1032,), F16)), (((5, 1031), F16), ((1031,), F16)))),
    "cumsum": Case("cumsum", ((((6, 516), F32),), (((5, 515), F32),))),
    "quantize_fp8": Case("quantize_fp8", ((((18, 136), F16),), (((17, 131), F16),))),
    "top_k": Case("top_k", ((((18, 128), F32),),)),
    "top_k_odd": Case("top_k", ((((5, 67), F32),),), {"N": 67, "threads": 64, "k": 3}),
}


def expected(kernel: str, choices: dict[str, object], inputs: list[Any]) -> list[Any]:
    """The results in float64: what the sample's reference gives."""
    function = runpy.run_path(str(SAMPLES / "references.py"))[kernel]
    own = {key: value for key, value in choices.items() if key in signature(function).parameters}
    if choices.get("fp8") == "float8_e4m3fnuz":
        own["largest"] = 240
    found = function(*inputs, **own)
    return list(found) if isinstance(found, tuple) else [found]


def data(case: Case) -> list[list[Any]]:
    if case.arrays is not None:
        return case.arrays()
    rng = np.random.default_rng(0)
    shift = SHIFT.get(case.kernel, 1)
    sets = [
        [(rng.standard_normal(shape) * 8 - shift).astype(dtype) for shape, dtype in inputs]
        for inputs in case.shapes
    ]
    if (
        case.kernel == "top_k"
    ):  # zeros among the largest: what lies past a row's end is equal to them
        sets += [[np.minimum(x + shift, 0) for x in inputs] for inputs in sets]
    return sets


def right(kernel: Kernel, case: Case, inputs: list[Any]) -> bool:
    """Whether the kernel as it stands gives the right numbers; KernelError where a check finds more."""
    given = [x.copy() for x in inputs]
    found = kernel(*given)
    if found is None:  # the last argument is the output
        found = given[-1]
    outputs = found if isinstance(found, tuple) else (found,)
    wanted = (
        expected(case.kernel, case.choices, inputs)
        if case.reference is None
        else [case.reference(*inputs)]
    )
    for output, want in zip(outputs, wanted, strict=True):
        got = np.asarray(output).astype(np.float64)
        near = NEAR.get(case.kernel, 2e-2)
        tolerance = near * max(1.0, float(np.abs(want).max()))
        if not np.allclose(got, want, rtol=near, atol=tolerance):
            return False
    return True


def reported(kernel: Kernel, case: Case, sets: Sequence[list[Any]]) -> bool:
    """Whether a check fails, or a number is wrong, on any of the sets of inputs."""
    try:
        return not all(right(kernel, case, inputs) for inputs in sets)
    except KernelError:
        return True


def missed(case: Case, target: str, folder: Path) -> list[str]:
    """What of the kernel may be taken out without a report."""
    found = _tried(case, target, folder / "out")
    if found and case.elsewhere is not None:
        others = _tried(case.elsewhere, target, folder / "elsewhere")
        there = {defect.what: hit for defect, hit in others.items()}
        found = {d: hit or there.get(d.what, False) for d, hit in found.items()}
    return [str(defect) for defect, hit in found.items() if not hit]


def _tried(case: Case, target: str, folder: Path) -> dict[Defect, bool]:
    """Each defect of the kernel, and whether it is reported."""
    os.environ.setdefault("TILE2C_EMULATE_SECONDS", "20")
    tile2c.build(case.folder / f"{case.kernel}.py", folder, target, case.choices, backend="emulate")
    (path,) = (p for p in folder.iterdir() if p.suffix in (".cu", ".hip", ".cpp", ".mlu"))
    text, defects = switched(path.read_text())
    path.write_text(text)
    (kernel,) = tile2c.load(folder, "emulate", check="races,memory").values()
    library: Path = kernel.prepare().library  # type: ignore[attr-defined]
    switch = ctypes.c_int.in_dll(ctypes.CDLL(str(library)), "removed_thing")
    sets = data(case)
    for inputs in sets:
        assert right(kernel, case, inputs)
    assert defects
    found = {}
    for defect in defects:
        switch.value = defect.number
        found[defect] = reported(kernel, case, sets)
    switch.value = 0
    return found
