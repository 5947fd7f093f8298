"""The main spelling: `tile2c INPUT.py [INPUT.py ...] -o OUT`."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile2c.transpile.cli.report import Format, Reporter, status_of
from tile2c.transpile.cli.status import Status, UsageProblem, nearest
from tile2c.transpile.cli.together import check_folder_name, check_switches, no_such_file
from tile2c.transpile.diagnostics import Diagnostic, Diagnostics, InputError
from tile2c.transpile.record import record

if TYPE_CHECKING:
    from tile2c.transpile.output.generated import GeneratedKernel
    from tile2c.transpile.output.scope import Policy, Scope
    from tile2c.transpile.output.write import Compile, Written
    from tile2c.transpile.pipeline import Form, Request
    from tile2c.transpile.stage.defines import Defines

DEFAULT_TARGET = "cuda"
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029]")
SHORT = 0.6  # how alike short names have to be


@record(kw_only=True)
class Options:
    """The command line, understood but not checked against the input files."""

    inputs: tuple[str, ...]
    out: str | None
    targets: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    emit: Form | None = None
    line_info: bool = False
    compile_modules: bool = False
    launcher: bool | None = None
    license_header: str | None = None
    check: bool = False
    pristine: bool = False
    merge: bool = False
    force: bool = False
    format: Format = "text"
    list_kernels: bool = False
    list_targets: bool = False
    cmake_dir: bool = False
    version: bool = False


def generate(arguments: Sequence[str]) -> int:
    """Does what the command line asks for and returns the exit status."""
    from tile2c.transpile.cli.options import command

    parser = command()
    if not arguments:
        return _without_arguments(parser)
    with parser.make_context("tile2c", list(arguments)) as context:
        values: dict[str, Any] = dict(context.params)
    options = Options(**values)
    if options.version:
        return _print_version()
    if options.cmake_dir:
        from tile2c import runtime

        print((Path(runtime.__file__).resolve().parent / "cmake").as_posix())
        return Status.DONE
    if options.list_targets:
        from tile2c.transpile.cli.listing import print_targets

        return print_targets(as_json=options.format == "json")
    check_together(options)
    request = request_of(options)
    if options.list_kernels:
        from tile2c.transpile.cli.listing import print_kernels

        return print_kernels(request, Reporter(options.format))
    if options.emit is not None:
        return _emit(options, options.emit, request)
    return _write_or_check(options, request)


def _without_arguments(parser: Any) -> int:
    import click

    with click.Context(parser, info_name="tile2c") as context:
        print(parser.get_help(context), file=sys.stderr)
    return Status.USAGE


def _print_version() -> int:
    from tile2c import __version__

    print(f"tile2c {__version__}")
    return Status.DONE


def check_together(options: Options) -> None:
    """Refuses options that contradict each other or lack another one."""
    if not options.inputs:
        raise UsageProblem("T2C001", "no input file", "tile2c INPUT.py -o OUT")
    for name in options.inputs:
        _check_input(name)
    check_switches(
        check=options.check,
        pristine=options.pristine,
        merge=options.merge,
        force=options.force,
        compile_modules=options.compile_modules,
    )
    if options.emit is not None and (options.check or options.compile_modules):
        other = "--check" if options.check else "--compile"
        raise UsageProblem(
            "T2C001", f"--emit writes no kernels, so {other} cannot go with it", f"without {other}"
        )
    if options.out is None and options.emit is None and not options.list_kernels:
        names = " ".join(options.inputs)
        raise UsageProblem("T2C001", "no output folder", f"tile2c {names} -o out/")
    if options.out is not None:
        check_folder_name(options.out)


def request_of(options: Options) -> Request:
    from tile2c.transpile.pipeline import Request

    return Request(
        inputs=tuple({os.path.realpath(name): Path(name) for name in options.inputs}.values()),
        targets=target_names(options.targets),
        defines=parsed_defines(options.defines),
        kernels=options.kernels,
        line_info=options.line_info,
        spelled=tuple(options.defines),
        licence=_licence(options.license_header),
        license_header=options.license_header or "",
    )


def _licence(name: str | None) -> tuple[str, ...]:
    """The lines of `--license-header FILE` as a comment."""
    from tile2c.transpile.read.licence import as_comment

    if name is None:
        return ()
    try:
        return as_comment(Path(name).read_bytes().decode("utf-8"))
    except UnicodeDecodeError as error:
        raise UsageProblem("T2C003", f"--license-header {name}: not text in UTF-8") from error
    except (FileNotFoundError, IsADirectoryError) as error:
        raise no_such_file(Path(name), "--license-header") from error
    except OSError as error:
        raise UsageProblem("T2C003", f"--license-header {name}: {error.strerror}") from error


def _check_input(name: str) -> None:
    path = Path(name)
    hint: str | None
    if path.is_file():
        if _CONTROL.search(path.name):  # it stands in comments of every file
            told = f"the name {path.name!r} holds a control character"
            raise UsageProblem("T2C003", told, "rename the file")
        try:
            path.open("rb").close()
        except OSError as error:
            raise UsageProblem("T2C003", f"{name} cannot be read: {error.strerror}") from error
        return
    if path.is_dir():
        hint = f"-o {name}" if (path / "tile2c.json").is_file() else f"tile2c {name}/*.py -o …"
        raise UsageProblem("T2C003", f"{name} is a folder, not a file", hint)
    if name == "-":
        raise UsageProblem("T2C003", "standard input is not read", "tile2c INPUT.py -o OUT")
    if path.exists():
        raise UsageProblem("T2C003", f"{name} is not a regular file", "tile2c INPUT.py -o OUT")
    if not path.suffix and path.with_suffix(".py").is_file():
        raise UsageProblem("T2C003", f"no such file: {name}", f"did you mean {name}.py?")
    if not path.suffix and path.parent == Path():
        raise UsageProblem("T2C003", f"no such file or verb: {name}", _meant(name))
    raise no_such_file(path)


def _meant(name: str) -> str:
    """What to type for a word that is neither a file nor a verb."""
    from tile2c.transpile.cli.main import VERBS
    from tile2c.transpile.cli.options import command

    if name == "help":
        return "`tile2c -h` explains the options, `tile2c VERB -h` those of a verb"
    if any(f"--{name}" in option.opts for option in command().params):
        return f"did you mean --{name}?"
    verb = nearest(name, VERBS, alike=SHORT)
    return f"did you mean {verb}?" if verb else f"an output folder is said by -o {name}"


def target_names(values: Sequence[str]) -> tuple[str, ...]:
    """Full names of the targets asked for, each once, in the order given."""
    from tile2c.transpile import targets

    found: list[str] = []
    for value in ",".join(values or (DEFAULT_TARGET,)).split(","):
        try:
            name = targets.find(value.strip()).name
        except targets.UnknownTarget as error:
            known = [target.name for target in targets.all_targets()]
            families = ", ".join(dict.fromkeys(name.partition(":")[0] for name in known))
            alone = ":" not in value
            near = targets.meant(value) or nearest(
                value.strip(),
                families.split(", ") if alone else known,
                alike=SHORT if alone else 0.4,
            )
            listed = f"families: {families}; `tile2c --targets` lists their chips"
            hint = f"did you mean {near}?" if near else listed
            raise UsageProblem("T2C002", f"unknown target {value.strip()!r}", hint) from error
        if name not in found:
            found.append(name)
    return tuple(found)


def parsed_defines(values: Sequence[str]) -> Defines:
    """The `-D` values as the stage wants them; UsageProblem for what cannot be read."""
    from tile2c.transpile.stage.defines import DefineError, parse_defines

    try:
        return parse_defines(tuple(values))
    except DefineError as error:
        hint = "-D block_M=64, -D gemm.block_M=64, -D N=dynamic or -D M%16=0"
        raise UsageProblem("T2C006", str(error), hint) from error


@contextmanager
def names_checked() -> Iterator[None]:
    """Turns a `--kernel` or `-D` name that no input file knows into a problem of usage."""
    from tile2c.transpile.stage.defines import UnknownName

    try:
        yield
    except UnknownName as error:
        message, _, hint = str(error).partition("; ")
        code = "T2C004" if error.option == "--kernel" else "T2C005"
        raise UsageProblem(code, message, hint or None) from error


def _emit(options: Options, form: Form, request: Request) -> int:
    from tile2c.transpile.output.commit import Changes, commit
    from tile2c.transpile.pipeline import emit

    diagnostics = Diagnostics()
    with names_checked():
        texts = emit(request, form, diagnostics)
    Reporter(options.format).show_all(diagnostics.items)
    if diagnostics.failed:
        return status_of(diagnostics)
    if form == "normal" and options.out is not None:
        changes = Changes()
        for text in texts:
            changes.write(text.file_name, text.text)
        commit(Path(options.out), changes)
        for text in texts:
            Reporter(options.format).done(
                f"wrote {(Path(options.out) / text.file_name).as_posix()}"
            )
        return Status.DONE
    print("\n".join(text.text.rstrip("\n") + "\n" for text in texts), end="")
    return Status.DONE


def _write_or_check(options: Options, request: Request) -> int:
    reporter = Reporter(options.format)
    diagnostics = Diagnostics()
    assert options.out is not None
    out = Path(options.out)
    written = None
    kernels: tuple[GeneratedKernel, ...] = ()
    try:
        kernels = _generated(request, diagnostics, reporter)
        if options.check:
            _check_kernels(options, request, kernels, diagnostics)
        else:
            written = _write_kernels(options, request, kernels, diagnostics, reporter)
    except InputError as error:
        diagnostics.add(error.diagnostic)
    for file in written.files if written else ():
        reporter.done(f"wrote {(out / file).as_posix()}")
    for file in written.unchanged if written else ():
        if written is not None and file not in written.kept:
            reporter.done(f"{(out / file).as_posix()} is up to date")
    for file in written.removed if written else ():
        reporter.done(f"removed {(out / file).as_posix()}")
    reporter.show_all(_in_folder(item, out) for item in diagnostics.items)
    if options.check and not diagnostics.failed:
        counted = "1 kernel file" if len(kernels) == 1 else f"{len(kernels)} kernel files"
        reporter.done(f"{out.as_posix()} is up to date: {counted}")
    elif kernels and written is None and not options.check:
        reporter.done(f"nothing was written to {out.as_posix()}")
    return status_of(diagnostics)


def _in_folder(item: Diagnostic, out: Path) -> Diagnostic:
    """For tools: a file of OUT as it is found from here."""
    return item if item.file is None else replace(item, file=(out / item.file).as_posix())


def _check_kernels(
    options: Options,
    request: Request,
    kernels: tuple[GeneratedKernel, ...],
    diagnostics: Diagnostics,
) -> None:
    """`--check`: problems of the input, or differences between OUT and what a run would write."""
    from tile2c.transpile.output.check import check_folder

    if not diagnostics.failed and options.out is not None:
        scope = _scope(options, request)
        check_folder(Path(options.out), kernels, scope, diagnostics, pristine=options.pristine)


def write(
    options: Options, request: Request, diagnostics: Diagnostics, reporter: Reporter
) -> Written | None:
    """Generates and writes; None if nothing was written, for the reasons in `diagnostics`."""
    kernels = _generated(request, diagnostics, reporter)
    return _write_kernels(options, request, kernels, diagnostics, reporter)


def _write_kernels(
    options: Options,
    request: Request,
    kernels: tuple[GeneratedKernel, ...],
    diagnostics: Diagnostics,
    reporter: Reporter,
) -> Written | None:
    from tile2c.transpile.output.write import write_folder

    if diagnostics.failed or options.out is None:
        return None
    return write_folder(
        Path(options.out),
        kernels,
        _scope(options, request),
        _policy(options),
        diagnostics,
        _compiler(options, reporter),
    )


def _generated(
    request: Request, diagnostics: Diagnostics, reporter: Reporter
) -> tuple[GeneratedKernel, ...]:
    from tile2c.transpile import pipeline
    from tile2c.transpile.cli.progress import busy

    with busy("transpiling", reporter), names_checked():
        return pipeline.generate(request, diagnostics)


def _scope(options: Options, request: Request) -> Scope:
    from tile2c import __version__
    from tile2c.transpile.output.places import recall
    from tile2c.transpile.output.scope import Scope

    return Scope(
        tile2c=__version__,
        sources=tuple(path.name for path in request.inputs),
        targets=request.targets,
        defines=tuple(sorted(options.defines)),
        only=bool(request.kernels),
        unready=lambda: _unready(request),
        launcher=options.launcher,
        paths=frozenset(os.path.realpath(path) for path in request.inputs),
        known=recall(Path(options.out)) if options.out is not None else {},
    )


def _unready(request: Request) -> frozenset[str]:
    """Kernels that are in the sources but were skipped because they need a `-D`."""
    from tile2c.transpile.pipeline import list_kernels

    listed = list_kernels(request, Diagnostics())
    return frozenset(kernel.name for kernel in listed if kernel.ready is not True)


def _policy(options: Options) -> Policy:
    from tile2c.transpile.output.scope import Policy

    if not options.merge:
        return Policy(force=options.force)
    from tile2c.transpile.cli.modules import verify_merge

    return Policy(merge=True, verify=verify_merge)


def _compiler(options: Options, reporter: Reporter) -> Compile | None:
    if not options.compile_modules:
        return None
    from tile2c.transpile.cli.modules import compiler

    return compiler(reporter)
