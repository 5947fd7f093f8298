"""Builds a sample with a switch at each thing that may be missing, and tries each of them."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tile2c
from defects import Defect, switched
from tile2c.runtime.errors import KernelError
from tile2c.runtime.kernel import Kernel

SAMPLES = Path(__file__).parents[2] / "samples"
F16, F32 = np.float16, np.float32
Inputs = tuple[tuple[tuple[int, ...], Any], ...]


@dataclass(frozen=True)
class Case:
    """A sample with its choices, and sets of inputs at which between them everything bites."""

    kernel: str
    shapes: tuple[Inputs, ...]
    choices: dict[str, object] = field(default_factory=dict)
    elsewhere: Case | None = None  # where guards bite that here only save work


def expected(kernel: str, inputs: list[Any]) -> Any:
    """The result in float64."""
    a = [x.astype(np.float64) for x in inputs]
    if kernel == "add":
        return a[0] + a[1]
    if kernel == "row_sum":
        return a[0].sum(1)
    if kernel == "softmax":
        e = np.exp(a[0] - a[0].max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)
    product = a[0] @ a[1]
    return np.maximum(product + a[2], 0) if kernel == "gemm_bias_relu" else product


def data(case: Case) -> list[list[Any]]:
    rng = np.random.default_rng(0)
    # Far below zero: padding that slips into a maximum changes it.
    shift = 30000 if case.kernel == "softmax" else 1
    return [
        [(rng.standard_normal(shape) * 8 - shift).astype(dtype) for shape, dtype in inputs]
        for inputs in case.shapes
    ]


def right(kernel: Kernel, name: str, inputs: list[Any]) -> bool:
    """Whether the kernel as it stands gives the right numbers; KernelError where a check finds more."""
    got = np.asarray(kernel(*inputs)).astype(np.float64)
    want = expected(name, inputs)
    tolerance = 2e-2 * max(1.0, float(np.abs(want).max()))
    return bool(np.allclose(got, want, rtol=2e-2, atol=tolerance))


def reported(kernel: Kernel, name: str, sets: Sequence[list[Any]]) -> bool:
    """Whether a check fails, or a number is wrong, on any of the sets of inputs."""
    try:
        return not all(right(kernel, name, inputs) for inputs in sets)
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
    tile2c.build(SAMPLES / f"{case.kernel}.py", folder, target, case.choices, backend="emulate")
    (path,) = (p for p in folder.iterdir() if p.suffix in (".cu", ".hip", ".cpp"))
    text, defects = switched(path.read_text())
    path.write_text(text)
    (kernel,) = tile2c.load(folder, "emulate", check="races,memory").values()
    library: Path = kernel.prepare().library  # type: ignore[attr-defined]
    switch = ctypes.c_int.in_dll(ctypes.CDLL(str(library)), "removed_thing")
    sets = data(case)
    for inputs in sets:
        assert right(kernel, case.kernel, inputs)
    assert defects
    found = {}
    for defect in defects:
        switch.value = defect.number
        found[defect] = reported(kernel, case.kernel, sets)
    switch.value = 0
    return found
