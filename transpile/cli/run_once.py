"""One run of a kernel for `tile2c run`: with these arguments, told, compared if asked."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile2c.transpile.cli.report import Reporter
from tile2c.transpile.cli.status import Status, UsageProblem
from tile2c.transpile.diagnostics import Diagnostic, Severity
from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.record import record

if TYPE_CHECKING:
    from tile2c.runtime.errors import KernelError
    from tile2c.runtime.kernel import Kernel
    from tile2c.runtime.records import KernelRecord
    from tile2c.transpile.cli.run import RunOptions
    from tile2c.transpile.ir import forms

EMULATE = "emulate"


@record(kw_only=True)
class Outcome:
    """How a run ended, and the entry points that it launched."""

    status: Status
    entries: tuple[str, ...] = ()


def once(
    options: RunOptions,
    kernel: Kernel,
    arguments: dict[str, Any],
    sizes: dict[str, int],
    reporter: Reporter,
    meaning: forms.Function | None = None,
) -> Outcome:
    """Runs the kernel with copies of what it writes; prints what it did and how it compares."""
    from tile2c.runtime.errors import BackendUnavailable, CompileError, KernelError
    from tile2c.transpile.cli.run_inputs import copied

    expected = _expected(options, kernel.record, arguments, reporter, meaning)
    results = {
        argument.name: copied(arguments[argument.name])
        for argument in kernel.record.arguments
        if argument.written
    }
    named = {**arguments, **results}
    keywords = _size_keywords(kernel.record, sizes)
    try:
        with _interruptible(kernel):
            entries = kernel.entries(**named, **keywords)
            print(_title(kernel, sizes, entries), flush=True)
            kernel(**named, **keywords)
            _print_checks(options)
            if options.time:
                _print_times(kernel, named, sizes)
    except KernelError as error:
        from tile2c.transpile.cli.run_edited import statements

        notes = statements(error)
        help = real_inputs(options, kernel.record, error)
        reporter.show(Diagnostic(Severity.ERROR, "T2C701", str(error), None, notes, help))
        return Outcome(status=Status.INPUT)
    except CompileError as error:
        reporter.problem("T2C620", str(error), None)
        return Outcome(status=Status.INPUT)
    except BackendUnavailable as error:
        reporter.problem("T2C702", str(error), None)
        return Outcome(status=Status.INPUT)
    except (ValueError, TypeError, OSError) as error:
        reporter.problem("T2C703", str(error), None)
        return Outcome(status=Status.INPUT)
    if expected is None:
        _print_results(kernel.record, results)
        return Outcome(status=Status.DONE, entries=entries)
    status = _compare(options, kernel.record, results, expected, meaning)
    return Outcome(status=status, entries=entries)


def entry_names(record: KernelRecord) -> tuple[str, ...]:
    """The entry points of a kernel, each once, in the order of its launches."""
    return tuple(dict.fromkeys(launch.entry for launch in record.launches))


def _title(kernel: Kernel, sizes: dict[str, int], entries: tuple[str, ...]) -> str:
    """`gemm (cuda:sm_80) in the emulator: M = 168, …; entry gemm`; an only entry goes unsaid."""
    where = "in the emulator" if kernel.backend.name == EMULATE else f"on {kernel.backend.name}"
    told = ", ".join(f"{name} = {value}" for name, value in sizes.items())
    text = f"{kernel.name} ({kernel.target}) {where}{': ' + told if told else ''}"
    if not entries:
        return f"{text}; nothing to launch"
    if len(entry_names(kernel.record)) == 1:
        return text
    names = tuple(dict.fromkeys(entries))
    return f"{text}; {'entry' if len(names) == 1 else 'entries'} {', '.join(names)}"


def real_inputs(options: RunOptions, record: KernelRecord, error: KernelError) -> str | None:
    """That whole numbers were random, where a kernel that takes them as places fails a check."""
    from tile2c.runtime.errors import AccessError, RaceError

    places = [
        argument.name
        for argument in record.arguments
        if argument.kind == "tensor"
        and argument.role != "out"
        and argument.dtype in ("int32", "int64", "uint32", "uint64")
    ]
    if options.inputs is not None or not places or not isinstance(error, RaceError | AccessError):
        return None
    names = " and ".join(places)
    return f"{names} held random numbers; if they are places, --inputs FILE.npz gives real ones"


@contextmanager
def _interruptible(kernel: Kernel) -> Iterator[None]:
    """An emulated kernel may never end, and no Python runs meanwhile: ctrl-C ends the process."""
    if kernel.backend.name != EMULATE or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _size_keywords(record: KernelRecord, sizes: dict[str, int]) -> dict[str, int]:
    return {name: sizes[name] for name in record.sizes if name in sizes}


def _expected(
    options: RunOptions,
    record: KernelRecord,
    arguments: dict[str, Any],
    reporter: Reporter,
    meaning: forms.Function | None,
) -> dict[str, Any] | None:
    if options.against is None:
        return None
    copies = {
        name: value.copy() if hasattr(value, "copy") else value for name, value in arguments.items()
    }
    if options.against == "interpreter":
        from tile2c.transpile.cli.run_interpreter import interpreted

        try:
            out = Path(options.out)
            return interpreted(record, out, options.source, copies, reporter, meaning)
        except ValueError as error:  # shapes that contradict each other
            raise failure("T2C703", str(error), None) from error
    from tile2c.transpile.cli.run_files import expected_by, function_of

    function = function_of("--against", options.against)
    return expected_by(function, options.against, record, copies)


def _compare(
    options: RunOptions,
    record: KernelRecord,
    results: dict[str, Any],
    expected: dict[str, Any],
    meaning: forms.Function | None,
) -> Status:
    from tile2c.transpile.cli.run_compare import compare
    from tile2c.transpile.cli.run_roundings import roundings, with_products_in

    came = {} if meaning is None else roundings(meaning)
    if _rounds_to_tf32(Path(options.out) / record.file):
        came = {name: with_products_in("tfloat32", came.get(name)) for name in results}
    wrong = False
    for name, result in results.items():
        if name not in expected:
            continue
        dtype = record.argument(name).dtype
        limits = (options.rtol, options.atol)
        try:
            found = compare(name, dtype, result, expected[name], *limits, came.get(name))
        except (ValueError, TypeError) as error:
            raise UsageProblem("T2C001", f"--against {options.against}: {error}") from error
        print("\n".join(found.lines()))
        wrong |= found.wrong > 0
    return Status.INPUT if wrong else Status.DONE


def _rounds_to_tf32(text: Path) -> bool:
    """Whether the head of the text says that it multiplies float32 in TF32."""
    head, _, _ = text.read_text(encoding="utf-8", errors="replace").partition("#include")
    return "TF32" in head


def _print_checks(options: RunOptions) -> None:
    """That checks were on and found nothing: silence could mean that they were off."""
    from tile2c.runtime.load import parsed_checks

    clean = {"races": "no race", "memory": "no bad access"}
    if names := parsed_checks(options.check):
        print(f"checks: {', '.join(text for name, text in clean.items() if name in names)}")


def _print_results(record: KernelRecord, results: dict[str, Any]) -> None:
    """Without anything to compare with: enough of each output to see that it is sane."""
    import numpy as np

    for name, result in results.items():
        shape = ", ".join(str(extent) for extent in result.shape)
        text = "empty"
        if result.size:
            wide = result.astype(np.float64)
            text = f"mean {wide.mean():.6g}, from {wide.min():.6g} to {wide.max():.6g}"
        print(f"{name}[{shape}] {record.argument(name).dtype}: {text}")


def _print_times(kernel: Kernel, named: dict[str, Any], sizes: dict[str, int]) -> None:
    emulated = kernel.backend.name == EMULATE
    keywords = _size_keywords(kernel.record, sizes)
    times = sorted(kernel.time(**named, **keywords, repeat=5 if emulated else 100))
    middle = times[len(times) // 2]
    note = " (emulated: says nothing about a device)" if emulated else ""
    print(f"time: median {middle:.4g} ms, best {times[0]:.4g} ms of {len(times)} runs{note}")
