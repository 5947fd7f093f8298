"""Builds the programs of this folder for `ascendc` and runs them beside their meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np
import tile2c
from numpy.typing import NDArray
from tile2c.transpile import read, stage, targets
from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.ir.build import build
from tile2c.transpile.ir.expr import Binary, Const, Expr
from tile2c.transpile.ir.forms import Function
from tile2c.transpile.ir.interpret import run
from tile2c.transpile.lower import cores
from tile2c.transpile.lower.cores.plan import CoresPlan
from tile2c.transpile.render.cores import render
from tile2c.transpile.stage.defines import parse_defines
from tile2c.transpile.targets.cores import CoresTarget

PROGRAMS = Path(__file__).parent / "programs"
SAMPLES = Path(__file__).parents[2] / "samples"
TYPES = {"bfloat16": ml_dtypes.bfloat16}
TOLERANCE = {
    "float16": 2e-3,
    "float32": 2e-5,
    "bfloat16": 1e-2,
    "int32": 0,
    "int16": 0,
    "int8": 0,
    "uint8": 0,
}
HEADER = "import tilelang\nimport tilelang.language as T\n\n"


@dataclass(frozen=True, slots=True)
class Lowered:
    """One program on its way: its meaning, its plan, its text."""

    function: Function
    plan: CoresPlan | None
    text: str
    diagnostics: Diagnostics


def program(name: str) -> Path:
    folders = (PROGRAMS, PROGRAMS.with_name("bang_programs"), SAMPLES)
    return next(path for folder in folders if (path := folder / f"{name}.py").exists())


def lowered(path: Path, defines: Mapping[str, object], name: str = "ascendc:ascend910b") -> Lowered:
    """The only kernel of a file, lowered and rendered; text is empty where it was refused."""
    diagnostics = Diagnostics()
    source = read.read_source(path, diagnostics)
    assert source is not None
    options = parse_defines([f"{name}={value!r}" for name, value in defines.items()])
    (kernel,) = stage.normalize(source, options, (), diagnostics)
    function = build(kernel, diagnostics)
    assert function is not None, diagnostics.items
    target = targets.find(name)
    assert isinstance(target, CoresTarget)
    plan = cores.lower(function, target, diagnostics)
    text = "" if plan is None else render(plan, target, kernel, again="tile2c").text
    return Lowered(function, plan, text, diagnostics)


def built(
    path: Path, out: Path, defines: Mapping[str, object], target: str = "ascendc:ascend910b"
) -> tile2c.runtime.load.Kernels:  # type: ignore[name-defined]
    """The kernels as the command writes them, in the emulator with both checks on."""
    return tile2c.build(
        path, out, target=target, defines=defines, backend="emulate", check="races,memory"
    )


def _size(extent: Expr, sizes: Mapping[str, int]) -> int:
    """The number that an extent of a tensor stands for."""
    if isinstance(extent, Binary):
        assert extent.op == "*"
        return _size(extent.a, sizes) * _size(extent.b, sizes)
    return int(extent.value) if isinstance(extent, Const) else sizes[extent.name]  # type: ignore[attr-defined]


def arguments(
    function: Function, sizes: Mapping[str, int], written: set[str]
) -> dict[str, NDArray[np.generic] | float | int]:
    """Random inputs, and zeros where only the kernel writes."""
    random = np.random.default_rng(1)
    found: dict[str, NDArray[np.generic] | float | int] = {}
    for param in function.params:
        if param.tensor is None:
            assert param.scalar is not None
            found[param.name] = 1.5 if param.scalar.dtype.is_float else 3
            continue
        shape = [_size(extent, sizes) for extent in param.tensor.shape]
        name = param.tensor.dtype.name
        dtype = np.dtype(TYPES.get(name, name))
        if param.name in written:
            found[param.name] = np.zeros(shape, dtype)
        elif param.tensor.dtype.is_float:
            found[param.name] = (random.standard_normal(shape) * 2).astype(dtype)
        else:
            found[param.name] = random.integers(-50, 50, shape).astype(dtype)
    return found


def compare(
    path: Path,
    out: Path,
    defines: Mapping[str, object],
    all_sizes: list[dict[str, int]],
    target: str = "ascendc:ascend910b",
) -> None:
    """Runs the kernel and the interpreter at each of the sizes and compares what they write."""
    form = lowered(path, defines, target)
    function = form.function
    assert form.plan is not None, form.diagnostics.items
    kernel = built(path, out, defines, target)[function.name]
    outputs = {p.name for p in form.plan.params if getattr(p, "role", "") == "out"}
    for sizes in all_sizes:
        given = arguments(function, sizes, outputs)
        expected = run(function, {k: v for k, v in given.items() if k not in outputs})
        kernel(*given.values())
        for name, wanted in expected.items():
            dtype = next(p.tensor.dtype for p in function.params if p.tensor and p.name == name)
            tolerance = TOLERANCE[dtype.name]
            np.testing.assert_allclose(
                np.asarray(given[name]).astype(np.float64),
                np.asarray(wanted).astype(np.float64),
                rtol=tolerance,
                atol=4 * tolerance,
                err_msg=f"{name} at {sizes}",
            )
