"""`tile2c run OUT`: runs one kernel as it stands in OUT, and compares it if asked to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile2c.transpile.cli.report import Reporter
from tile2c.transpile.cli.status import Status, UsageProblem, suggestion
from tile2c.transpile.cli.together import folder_above, no_such_file, refuse_marks
from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.record import record

if TYPE_CHECKING:
    from tile2c.runtime.kernel import Kernel
    from tile2c.runtime.records import KernelRecord
    from tile2c.transpile.ir import forms

EMULATE = "emulate"


@record(kw_only=True)
class RunOptions:
    """The command line of `tile2c run`."""

    out: str
    kernel: str | None
    target: str | None
    backend: str | None
    sizes: str | None
    seed: int
    inputs: str | None
    against: str | None
    source: str | None
    check: str | None
    rtol: float | None
    atol: float | None
    time: bool


def run(arguments: Sequence[str]) -> int:
    """Does what `tile2c run` asks for and returns the exit status."""
    from tile2c.transpile.cli.run_options import command

    with command().make_context("tile2c run", list(arguments)) as context:
        options = RunOptions(**context.params)
    reporter = Reporter("text")
    record = _record(options)
    _check_options(options, record)
    kernel = _loaded(options, record, reporter)
    refuse_marks(Path(options.out) / kernel.record.file)
    return _run(options, kernel, reporter)


def _run(options: RunOptions, kernel: Kernel, reporter: Reporter) -> int:
    """Runs at each set of sizes; ends at the first run that fails."""
    from tile2c.transpile.cli.run_interpreter import known_meaning
    from tile2c.transpile.cli.run_once import entry_names, once

    ran: set[str] = set()
    meaning = known_meaning(kernel.record, Path(options.out), options.source)
    for number, (arguments, sizes) in enumerate(_runs(options, kernel.record, meaning)):
        if number == 0:
            _tell(options, kernel.record, reporter)
        outcome = once(options, kernel, arguments, sizes, reporter, meaning)
        if outcome.status is not Status.DONE:
            return outcome.status
        ran.update(outcome.entries)
    left = [name for name in entry_names(kernel.record) if name not in ran]
    for line in _with_conditions(kernel.record, left) if ran else ():
        print(f"not run: {line}")
    return Status.DONE


def _with_conditions(record: KernelRecord, entries: list[str]) -> Iterator[str]:
    """`lse (N % 8 == 0)`: entries, each with what a call has to meet for it to be launched."""
    for entry in entries:
        launches = [launch for launch in record.launches if launch.entry == entry]
        told = [str(launch.when) for launch in launches if launch.when is not None]
        yield f"{entry} ({' or '.join(dict.fromkeys(told)) or 'where no other entry is launched'})"


def _check_options(options: RunOptions, record: KernelRecord) -> None:
    from tile2c.runtime.backends.choose import DEVICES
    from tile2c.runtime.load import parsed_checks
    from tile2c.transpile.cli.run_sizes import given_sizes

    known = (*DEVICES, EMULATE)
    where = "" if options.backend is not None else " in TILE2C_BACKEND"
    asked = os.environ.get("TILE2C_BACKEND") or None if where else options.backend
    if asked is not None and asked not in known:
        hint = suggestion(asked, known)
        raise UsageProblem("T2C001", f"unknown backend {asked!r}{where}", hint)
    try:
        parsed_checks(options.check)
    except ValueError as error:
        raise UsageProblem("T2C001", f"--check: {error}") from error
    if options.check and options.backend not in (None, EMULATE):
        raise UsageProblem(
            "T2C001",
            f"--check needs the emulator, not --backend {options.backend}",
            f"--backend {EMULATE}",
        )
    given_sizes(options.sizes, record)
    if options.source is not None and not Path(options.source).is_file():
        raise no_such_file(Path(options.source), "--source")


def _folder_for(name: str) -> str:
    return "out" if Path(name).is_file() or name.endswith(".py") else name


def _input_for(name: str) -> str:
    return name if name.endswith(".py") else "INPUT.py"


def _kernel_file(path: Path) -> str | None:
    """What to type for a kernel file in the place of its folder."""
    from tile2c.runtime.records import read_records

    for folder in path.parents if path.is_file() else ():
        try:
            records = read_records(folder)
        except (FileNotFoundError, ValueError):
            continue
        name = path.relative_to(folder).as_posix()
        for item in records:
            if item.file == name:
                return f"tile2c run {folder} --kernel {item.name} --target {item.target}"
    return None


def _record(options: RunOptions) -> KernelRecord:
    """The one kernel that is meant; UsageProblem if that is not clear."""
    from tile2c.runtime.records import read_records

    try:
        records = read_records(Path(options.out))
    except FileNotFoundError as error:
        how = (
            _kernel_file(Path(options.out))
            or folder_above(Path(options.out), "run")
            or f"`tile2c {_input_for(options.out)} -o {_folder_for(options.out)}` writes one"
        )
        raise UsageProblem("T2C003", str(error), how) from error
    except ValueError as error:
        raise failure("T2C607", str(error), None) from error
    names = sorted({record.name for record in records})
    if options.kernel is None and len(names) != 1:
        raise UsageProblem(
            "T2C004", f"{options.out} holds {len(names)} kernels", f"--kernel {' | '.join(names)}"
        )
    name = names[0] if options.kernel is None else options.kernel
    if name not in names:
        raise UsageProblem("T2C004", f"no kernel {name} in {options.out}", suggestion(name, names))
    same = [record for record in records if record.name == name]
    targets = [record.target for record in same]
    if options.target is None:
        return same[0]
    found = [record for record in same if options.target in (record.target, record.family)]
    if not found:
        hint = suggestion(options.target, targets)
        raise UsageProblem("T2C002", f"{name} is not there for {options.target}", hint)
    return found[0]


def _loaded(options: RunOptions, record: KernelRecord, reporter: Reporter) -> Kernel:
    """The kernel on the device, or on the emulator where there is none."""
    from tile2c.runtime.errors import BackendUnavailable
    from tile2c.runtime.load import load

    backend = options.backend or os.environ.get("TILE2C_BACKEND") or None
    if options.check:
        backend = EMULATE
    _check_family(options, record, backend)
    if backend is None:
        try:
            return load(options.out, None, options.target)[record.name]
        except BackendUnavailable as error:
            reason = str(error).partition(". backend=")[0]  # the rest is for callers from Python
            reporter.done(f"no device, so the emulator runs the kernel ({reason})")
            backend = EMULATE
    try:
        target = options.target if backend != EMULATE else _emulated_target(options, record)
        return load(options.out, backend, target, check=options.check)[record.name]
    except BackendUnavailable as error:
        raise failure("T2C702", str(error), None) from error


def _check_family(options: RunOptions, record: KernelRecord, backend: str | None) -> None:
    """A device runs the kernels of its own family."""
    from tile2c.runtime.backends.choose import DEVICES

    targets = _targets_meant(options, record)
    families = sorted({target.partition(":")[0] for target in targets})
    if backend not in DEVICES or backend in families:
        return
    raise UsageProblem(
        "T2C001",
        f"{record.name} is there for {', '.join(targets)}, which the backend {backend} does not run",
        f"--backend {' | '.join((*families, EMULATE))}",
    )


def _targets_meant(options: RunOptions, record: KernelRecord) -> list[str]:
    """The targets that OUT has the kernel for, as far as --target allows."""
    from tile2c.runtime.records import read_records

    same = [item for item in read_records(Path(options.out)) if item.name == record.name]
    return sorted(
        item.target for item in same if options.target in (None, item.target, item.family)
    )


def _emulated_target(options: RunOptions, record: KernelRecord) -> str:
    targets = _targets_meant(options, record)
    if len(targets) > 1:
        raise UsageProblem(
            "T2C001",
            f"{record.name} is there for {', '.join(targets)}, and the emulator needs one",
            f"--target {' | '.join(targets)}",
        )
    return targets[0]


def _runs(
    options: RunOptions, record: KernelRecord, meaning: forms.Function | None
) -> Iterator[tuple[dict[str, Any], dict[str, int]]]:
    """Arguments and sizes of each run: one, or more where nothing is given and entries ask."""
    from tile2c.transpile.cli.run_files import given_inputs
    from tile2c.transpile.cli.run_inputs import arguments_for, sizes_of_inputs
    from tile2c.transpile.cli.run_loops import loop_steps
    from tile2c.transpile.cli.run_sizes import default_sizes, given_sizes, other_sizes

    told = given_sizes(options.sizes, record)
    steps = {} if meaning is None else loop_steps(meaning)
    sizes = {**default_sizes(record, steps), **told}
    given: dict[str, Any] = {}
    if options.inputs is not None:
        given = given_inputs(options.inputs, record, sizes, options.seed)
        sizes = {**sizes, **sizes_of_inputs(record, given), **told}
    yield arguments_for(record, sizes, options.seed, given), sizes
    if not told and not given:
        for others in other_sizes(record, sizes):
            yield arguments_for(record, others, options.seed, {}), others


def _tell(options: RunOptions, record: KernelRecord, reporter: Reporter) -> None:
    from tile2c.transpile.cli.run_edited import remarks
    from tile2c.transpile.cli.run_interpreter import source_of

    out = Path(options.out)
    compared = options.against == "interpreter"
    source = source_of(record, out, options.source) if compared else None
    for remark in remarks(out, record, source):
        reporter.done(remark)
