"""One sample on one target, at a small size: is there a text, does it compile, does it mean its program."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tile2c
from sample_sizes import SMALL, Small
from text_compilers import compiles, has_compiler
from tile2c.transpile import pipeline, targets
from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.ir import interpret
from tile2c.transpile.stage.defines import parse_defines

SAMPLES = Path(__file__).parents[2] / "samples"
NAMES = sorted(path.stem for path in SAMPLES.glob("*.py") if path.stem != "references")
NEAR = {"quantize_fp8": 0.13}  # what rounding to 8 bits may change
FLOAT8 = {"quantize_fp8": "fp8", "fp8_gemm": "dtype"}  # samples with an 8-bit float, its parameter


@dataclass(frozen=True)
class Cell:
    """What is known of a sample on a target; `refused` is the code of the error in place of a text."""

    refused: str = ""
    compiled: bool | None = None  # None: not tried
    equal: bool | None = None  # races and memory checked
    told: str = ""  # what went wrong

    def __str__(self) -> str:
        if self.refused:
            return self.refused
        compiled = {None: "", True: "c", False: "C?"}[self.compiled]
        return compiled + {None: "", True: "e", False: "E?"}[self.equal]

    def joined(self, other: Cell) -> Cell:
        """Two looks at one cell, each of which may have left out something."""
        return Cell(
            self.refused,  # what is refused was not looked at further, and what is not, is not
            other.compiled if self.compiled is None else self.compiled,
            other.equal if self.equal is None else self.equal,
            self.told or other.told,
        )


def choices_of(sample: str, target: str) -> dict[str, object]:
    """The parameters, with the 8-bit float that the chip has."""
    choices = dict(SMALL[sample].choices)
    if sample in FLOAT8:
        choices[FLOAT8[sample]] = float8_of(target)
    return choices


def float8_of(target: str) -> str:
    """The chip's 8-bit float; the usual one for a chip that has none."""
    fnuz = "float8_e4m3fnuz"
    return fnuz if fnuz in targets.find(target).dialect.types else "float8_e4m3fn"


def cell(sample: str, target: str, *, emulated: bool = True, compiled: bool = True) -> Cell:
    """Makes the text, compiles it where there is a compiler, runs it with both checks on."""
    with tempfile.TemporaryDirectory(prefix="tile2c-cell-") as folder:
        try:
            kernel = _kernel(sample, target, Path(folder))
        except tile2c.TranspileError as error:
            codes = [item.code for item in error.diagnostics if item.severity == "error"]
            return Cell(refused=codes[0])
        told = compiles(Path(folder), target) if compiled and has_compiler(target) else None
        found = Cell(compiled=None if told is None else not told, told=told or "")
        if not emulated:
            return found
        try:
            wrong = differences(kernel, sample, target)
        except Exception as error:  # whatever it is, it is what the table is for
            wrong = f"{type(error).__name__}: {error}"
        return found.joined(Cell(equal=not wrong, told=wrong))


def _kernel(sample: str, target: str, folder: Path) -> Any:
    (kernel,) = tile2c.build(
        SAMPLES / f"{sample}.py",
        folder,
        target,
        choices_of(sample, target),
        backend="emulate",
        check="races,memory",
    ).values()
    return kernel


def differences(kernel: Any, sample: str, target: str) -> str:
    """How the outputs differ from those of the interpreter in float64; nothing where they do not."""
    small: Small = SMALL[sample]
    arrays = small.arrays(float8_of(target))
    names = [argument.name for argument in kernel.record.arguments]
    given = dict(zip(names, arrays, strict=False))
    wanted = _meaning(sample, target, given)
    found = kernel(*arrays)
    outputs = found if isinstance(found, tuple) else (found,)
    returned = iter(() if found is None else outputs)  # the others were given, and changed in place
    near = NEAR.get(sample, 1e-5 if arrays[0].dtype == np.float32 else 4e-3)
    for name, want in wanted.items():
        got = np.asarray(given[name] if name in given else next(returned)).astype(np.float64)
        want = np.asarray(want).astype(np.float64)
        scale = near * max(1.0, float(np.abs(want).max()))
        if not np.allclose(got, want, rtol=near, atol=scale):
            return f"{name} differs by {np.abs(got - want).max()}"
    return ""


def _meaning(sample: str, target: str, arguments: dict[str, Any]) -> dict[str, Any]:
    words = tuple(f"{name}={value}" for name, value in choices_of(sample, target).items())
    source = SAMPLES / f"{sample}.py"
    request = pipeline.Request(inputs=(source,), targets=(target,), defines=parse_defines(words))
    ((_, function),) = pipeline.functions(request, Diagnostics())
    return dict(interpret.run(function, arguments, float64=True))
