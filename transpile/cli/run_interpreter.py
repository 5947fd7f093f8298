"""`--against interpreter`: what the tile program itself says of the outputs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile2c.transpile.cli.report import Reporter
from tile2c.transpile.cli.status import UsageProblem
from tile2c.transpile.cli.together import no_such_file
from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.output.places import source_near

if TYPE_CHECKING:
    from tile2c.runtime.records import KernelRecord
    from tile2c.transpile.ir import forms
    from tile2c.transpile.stage import NormalKernel


def interpreted(
    record: KernelRecord,
    out: Path,
    source: str | None,
    arguments: Mapping[str, Any],
    reporter: Reporter,
    meaning: forms.Function | None = None,
) -> dict[str, Any]:
    """The outputs by name, computed statement by statement with NumPy."""
    from tile2c.transpile.ir import interpret

    function = meaning or _function(record, source_of(record, out, source), reporter)
    try:
        return interpret.run(function, dict(arguments))
    except interpret.MeaningError as error:
        raise failure("T2C704", f"the tile program has no meaning here: {error}", None) from error
    except MemoryError as error:
        raise failure("T2C704", f"the interpreter runs out of memory: {error}", None) from error


def source_of(record: KernelRecord, out: Path, given: str | None) -> Path:
    """The tile program: the file given, or the manifest's: remembered, or near OUT."""
    if given is not None:
        path = Path(given)
        if not path.is_file():
            raise no_such_file(path, "--source")
        return path
    near = source_near(out, record.file, record.source)
    if near is not None:
        return near
    raise UsageProblem(
        "T2C003", f"{record.source} is neither here nor beside {out}", "pass --source INPUT.py"
    )


def known_meaning(record: KernelRecord, out: Path, source: str | None) -> forms.Function | None:
    """The kernel's tile IR where its program is there and has one; nothing is told otherwise."""
    from tile2c.transpile.diagnostics import InputError

    path = source_near(out, record.file, record.source) if source is None else Path(source)
    if path is None or not path.is_file():
        return None
    try:
        return _found(record, path, Diagnostics())
    except (InputError, UsageProblem):
        return None


def _function(record: KernelRecord, source: Path, reporter: Reporter) -> forms.Function:
    """The kernel's tile IR; what is wrong with the program is told."""
    diagnostics = Diagnostics()
    function = _found(record, source, diagnostics)
    if function is not None:
        return function
    reporter.show_all(diagnostics.items)
    raise UsageProblem(
        "T2C004", f"{source} has no kernel {record.name} with the -D values of {record.file}"
    )


def _found(record: KernelRecord, source: Path, diagnostics: Diagnostics) -> forms.Function | None:
    """The tile IR of the program's kernel with the `-D` values that the text was written with."""
    from tile2c.transpile import pipeline
    from tile2c.transpile.cli.generate import names_checked, parsed_defines

    request = pipeline.Request(
        inputs=(source,), targets=(record.target,), defines=parsed_defines(record.defines)
    )
    with names_checked():
        for kernel, function in pipeline.functions(request, diagnostics):
            if kernel.name == record.name or _is_specialisation(record, kernel):
                return function
    return None


def _is_specialisation(record: KernelRecord, kernel: NormalKernel) -> bool:
    """Whether a project made this kernel beside others of it, so that its name says its values."""
    same = {**kernel.parameters} == {**record.parameters} and kernel.sizes == record.sizes
    return same and record.name.startswith(f"{kernel.name}_")
