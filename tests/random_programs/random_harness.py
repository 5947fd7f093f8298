"""Random programs through the whole way: many of them in one compilation of the emulator.

Most of the time of a small emulated kernel goes into the host's compiler, most of that into headers.
So the texts of a batch become one file, each in a namespace of its own.
"""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from number_rules import FLOATS, INTEGERS, STORED_FLOATS
from tile2c.runtime import emulate
from tile2c.runtime.backends.emulate import EmulateBackend
from tile2c.runtime.backends.protocol import Module
from tile2c.runtime.errors import CompileError, KernelError
from tile2c.runtime.kernel import Kernel
from tile2c.runtime.records import KernelRecord, read_records
from tile2c.transpile import lower, pipeline, render, targets
from tile2c.transpile.diagnostics import Diagnostics, InputError, Severity
from tile2c.transpile.ir import interpret
from tile2c.transpile.ir.forms import Function
from tile2c.transpile.lower.promises import promises
from tile2c.transpile.render.author_names import with_author_names
from tile2c.transpile.stage.defines import parse_defines
from tile_programs import Tensor, TileProgram, made

# Of a hundred seeds, how many are tried for which target.
MIX = (
    ("cuda:sm_80", 40),
    ("ascendc:ascend910b", 3),
    ("bang:mtp_592", 2),
    ("bang:mtp_372", 1),
    ("cuda:sm_90a", 14),
    ("hip:gfx942", 10),
    ("cuda:sm_75", 3),
    ("cuda:sm_89", 4),
    ("cuda:sm_70", 2),
    ("hip:gfx950", 3),
    ("hip:gfx1100", 3),
    ("dcu:gfx936", 3),
    ("maca:xcore1000", 3),
    ("corex:ivcore11", 3),
    ("musa:mp_22", 2),
    ("musa:mp_31", 2),
    ("ppu:ppu_15", 2),
)
WITHOUT_THREADS = ("ascendc:", "bang:")
UNTOUCHED = 7  # what outputs hold before the kernel runs
EPSILON = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-6, "float64": 1e-14}
TF32 = 2e-3


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one program: ok, refused, or a defect with its words."""

    seed: int
    target: str
    kind: str  # ok | refused | wrong | kernel error | crash | unlocated
    detail: str
    text: str

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.target}: {self.kind}\n{self.detail}\n\n{self.text}"


@dataclass(slots=True)
class _Ready:
    """A program that was transpiled."""

    seed: int
    program: TileProgram
    function: Function
    kernel_text: str
    manifest: dict[str, Any]


def target_of(seed: int) -> str:
    """The target for which a seed's program is tried where none is named."""
    place = seed * 37 % 100  # neighbours differ
    for target, share in MIX:
        if place < share:
            return target
        place -= share
    raise AssertionError("the shares of targets are less than a hundred")


def program_of(seed: int, target: str) -> TileProgram:
    """The seed's program, of a kind that the target can take."""
    return made(Random(seed), f"k{seed}", whole_tiles=target.startswith(WITHOUT_THREADS))


def run_batch(seeds: Sequence[int], target: str, folder: Path) -> list[Outcome]:
    """One outcome a seed: programs made from it, run with both checks, compared with their meaning."""
    programs = [(seed, program_of(seed, target)) for seed in seeds]
    return run_programs(programs, target, folder)


def run_programs(
    programs: Sequence[tuple[int, TileProgram]], target: str, folder: Path
) -> list[Outcome]:
    outcomes: list[Outcome] = []
    ready: list[_Ready] = []
    for seed, program in programs:
        try:
            found = _transpiled(seed, program, target, folder)
        except Exception:  # a crash is what is looked for
            found = Outcome(seed, target, "crash", traceback.format_exc(), program.text)
        if isinstance(found, Outcome):
            outcomes.append(found)
        else:
            ready.append(found)
    if ready:
        outcomes += _compiled(ready, target, folder)
    return sorted(outcomes, key=lambda outcome: outcome.seed)


def transpiled(seed: int, program: TileProgram, target: str, folder: Path) -> Outcome | None:
    """What is wrong with the program, or refused; None where there is a kernel."""
    try:
        found = _transpiled(seed, program, target, folder)
    except Exception:  # a crash is what is looked for
        return Outcome(seed, target, "crash", traceback.format_exc(), program.text)
    return found if isinstance(found, Outcome) else None


def _transpiled(seed: int, program: TileProgram, target: str, folder: Path) -> _Ready | Outcome:
    path = folder / f"k{seed}.py"
    path.write_text(program.text, encoding="utf-8")
    diagnostics = Diagnostics()
    request = pipeline.Request(inputs=(path,), targets=(target,), defines=parse_defines(()))
    found = list(pipeline.functions(request, diagnostics))
    chosen = targets.find(target)
    if found and not diagnostics.failed:
        ((normal, function),) = found
        try:
            plan = lower.lower(function, chosen, diagnostics)
        except InputError as error:
            diagnostics.add(error.diagnostic)
            plan = None
        if plan is not None:
            text = render.render(plan, chosen, normal, several=False, again="")
            manifest = {**text.manifest}
            known = manifest.get("requires") or []
            manifest["requires"] = [*known, *(p for p in promises(function) if p not in known)]
            manifest = with_author_names(manifest, function)
            if not diagnostics.failed:
                return _Ready(seed, program, function, text.text, manifest)
    errors = [item for item in diagnostics.items if item.severity is Severity.ERROR]
    told = "\n".join(f"{item.code} {item.span}: {item.message}" for item in errors)
    located = errors and all(item.span is not None for item in errors)
    return Outcome(seed, target, "refused" if located else "unlocated", told, program.text)


_INCLUDE = re.compile(r"^#include .*\n", re.MULTILINE)


def combined(texts: Sequence[tuple[str, str]]) -> str:
    """One file of several kernel texts: their includes, then each in its namespace."""
    includes = sorted({line for _, text in texts for line in _INCLUDE.findall(text)})
    parts = [f"namespace of_{name} {{\n{_INCLUDE.sub('', text)}\n}}\n" for name, text in texts]
    parts += [f"using namespace of_{name};\n" for name, _ in texts]  # the kernels' table is behind
    return "".join(includes) + "".join(parts)


class _BatchBackend(EmulateBackend):
    """Gives every kernel of the batch the module of all."""

    def __init__(self, shared: emulate.EmulatedModule) -> None:
        super().__init__(("memory", "races"))
        self.shared = shared

    def module(self, record: KernelRecord, folder: Path, *, may_compile: bool) -> Module:
        return self.shared


def _compiled(ready: list[_Ready], target: str, folder: Path) -> list[Outcome]:
    """Compiles the batch; what the compiler complains about is told and left out."""
    family, _, arch = target.partition(":")
    path = folder / f"batch_{ready[0].seed}_{len(ready)}.cu"
    path.write_text(
        combined([(f"k{item.seed}", item.kernel_text) for item in ready]), encoding="utf-8"
    )
    try:
        checks = frozenset(("races", "memory"))
        module = emulate.load(path, family=family, arch=arch, checks=checks, brief=True)
    except (KernelError, CompileError) as error:
        item = _named(error, path, ready)
        rest = [other for other in ready if other is not item]
        found = Outcome(item.seed, target, "does not compile", str(error), item.program.text)
        return [found, *(_compiled(rest, target, folder) if rest else [])]
    manifest = {
        "version": 1,
        "kernels": [{**item.manifest, "file": path.name} for item in ready],
    }
    (folder / "tile2c.json").write_text(json.dumps(manifest), encoding="utf-8")
    records = read_records(folder)
    backend = _BatchBackend(module)
    return [
        _ran(item, Kernel(record, folder, backend), target)
        for item, record in zip(ready, records, strict=True)
    ]


def _ran(item: _Ready, kernel: Kernel, target: str) -> Outcome:
    text = item.program.text
    try:
        arguments = inputs(item.program, item.seed)
        exact = interpret.run(item.function, arguments)
        wide = interpret.run(item.function, arguments, float64=True)
        given = {name: value.copy() for name, value in arguments.items()}
        kernel(**given)
    except KernelError as error:
        return Outcome(item.seed, target, "kernel error", f"{type(error).__name__}: {error}", text)
    except Exception:  # a crash is what is looked for
        return Outcome(item.seed, target, "crash", traceback.format_exc(), text)
    problems = [
        problem
        for tensor in item.program.tensors
        if tensor.name in exact
        and (
            problem := difference(tensor, given[tensor.name], exact[tensor.name], wide[tensor.name])
        )
    ]
    kind = "wrong" if problems else "ok"
    return Outcome(item.seed, target, kind, "\n".join(problems), text)


def _named(error: KernelError | CompileError, path: Path, ready: Sequence[_Ready]) -> _Ready:
    """Whose text the compiler complains about."""
    line = error.line if isinstance(error, KernelError) else None
    if line is None and (
        told := re.search(rf"{re.escape(path.name)}:(\d+):\d+: error", str(error))
    ):
        line = int(told[1])
    lines = path.read_text(encoding="utf-8").splitlines()[: line or 0]
    begun = [line for line in lines if line.startswith("namespace of_k")]
    return ready[max(len(begun) - 1, 0)]


def dtype_of(name: str) -> Any:
    if hasattr(np, name):
        return np.dtype(getattr(np, name))
    import ml_dtypes

    short = {"float8_e4m3": "float8_e4m3fn"}.get(name, name)
    return np.dtype(getattr(ml_dtypes, short))


def inputs(program: TileProgram, seed: int) -> dict[str, Any]:
    """Arguments by name: inputs at random, outputs marked, sums at zero."""
    generator = np.random.default_rng(seed)
    found = {}
    for tensor in program.tensors:
        shape, dtype = program.extents(tensor), dtype_of(tensor.dtype)
        if tensor.role == "in":
            found[tensor.name] = _values(generator, tensor, shape).astype(dtype)
        else:
            fill = 0 if tensor.role == "sum" else UNTOUCHED
            found[tensor.name] = np.full(shape, fill).astype(dtype)
    return found


def _values(generator: np.random.Generator, tensor: Tensor, shape: tuple[int, ...]) -> Any:
    if tensor.dtype in INTEGERS:
        return generator.integers(int(tensor.low), int(tensor.high) + 1, shape)
    assert tensor.dtype in (*FLOATS, *STORED_FLOATS)
    return generator.integers(-8, 9, shape) / 4


def difference(tensor: Tensor, got: Any, want: Any, wide: Any) -> str | None:
    """In words how an output differs from what it should be.

    Where the order of operations is free, the error that the program's own types make (against
    float64) is the measure of what is allowed.
    """
    a, b = got.astype(np.float64), want.astype(np.float64)
    allowed = 0.0
    if not tensor.exact or tensor.loose:
        finite = np.isfinite(b)
        most = float(np.abs(b[finite]).max(initial=0.0))
        own = float(np.abs(b - wide.astype(np.float64))[finite].max(initial=0.0))
        relative = EPSILON.get(tensor.dtype, 1e-6)
        allowed = 16 * own + 4 * relative * most + 1e-6
        if tensor.loose:
            allowed += TF32 * max(most, 1.0)
    wrong = ~((np.abs(a - b) <= allowed) | (a == b) | (np.isnan(a) & np.isnan(b)))
    if not wrong.any():
        return None
    where = tuple(int(x) for x in np.argwhere(wrong)[0])
    return (
        f"{tensor.name} {list(got.shape)} {tensor.dtype}: {int(wrong.sum())} of {wrong.size} differ, "
        f"first at {where}: {got[where]} instead of {want[where]} (allowed {allowed:.3g})"
    )
