"""`tile2c build`: generates every kernel that the project file names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile2c.transpile.cli.report import Format, Reporter, status_of
from tile2c.transpile.cli.status import Status, UsageProblem
from tile2c.transpile.cli.together import check_switches, no_such_file
from tile2c.transpile.diagnostics import Diagnostic, Diagnostics, InputError
from tile2c.transpile.diagnostics.diagnostic import Note, failure
from tile2c.transpile.record import record

if TYPE_CHECKING:
    from tile2c.transpile.output.generated import GeneratedKernel
    from tile2c.transpile.output.scope import Policy, Scope
    from tile2c.transpile.output.write import Job
    from tile2c.transpile.pipeline import Request
    from tile2c.transpile.project import KernelSet, Project

AGAIN = "tile2c build"


@record(kw_only=True)
class Options:
    """The command line, understood."""

    project: str | None
    into: str | None
    check: bool
    pristine: bool
    merge: bool
    force: bool
    compile_modules: bool
    list_outputs: bool
    depfile: str | None
    format: Format


def build(arguments: list[str]) -> int:
    """Does what the command line asks for and returns the exit status."""
    from tile2c.transpile.cli.project_options import command

    with command().make_context("tile2c build", arguments) as context:
        values: dict[str, Any] = dict(context.params)
    options = Options(**values)
    _check_together(options)
    reporter, diagnostics = Reporter(options.format), Diagnostics()
    project = _project(options, diagnostics)
    jobs: list[Job] = []
    if project is not None:
        try:
            jobs = _jobs(project, diagnostics, reporter)
        except InputError as error:
            diagnostics.add(error.diagnostic)
    if project is None or diagnostics.failed:
        reporter.show_all(diagnostics.items)
        return status_of(diagnostics)
    if options.list_outputs:
        print("\n".join(_outputs(jobs)))
        reporter.show_all(diagnostics.items)
        return Status.DONE
    found = [Diagnostics() for _ in jobs]
    if options.check:
        _check(options, jobs, found, reporter)
    else:
        _write(options, jobs, found, reporter)
    for job, own in zip(jobs, found, strict=True):
        diagnostics.items += [_placed(item, job, jobs) for item in own.items]
    reporter.show_all(diagnostics.items)
    if options.depfile is not None and not diagnostics.failed:
        _write_depfile(Path(options.depfile), project, jobs)
    return status_of(diagnostics)


def _check_together(options: Options) -> None:
    check_switches(
        check=options.check,
        pristine=options.pristine,
        merge=options.merge,
        force=options.force,
        compile_modules=options.compile_modules,
    )


def _project(options: Options, diagnostics: Diagnostics) -> Project | None:
    from tile2c.transpile import project

    path = project.find(Path()) if options.project is None else Path(options.project)
    if path is None:
        raise UsageProblem(
            "T2C003",
            "there is no tile2c.toml here or above, nor a pyproject.toml with [tool.tile2c]",
            "`tile2c build -h` shows one",
        )
    if not path.is_file():
        raise no_such_file(path, "--project")
    into = None if options.into is None else Path(options.into)
    return project.read(Path(os.path.relpath(path)), diagnostics, into)


def _jobs(project: Project, diagnostics: Diagnostics, reporter: Reporter) -> list[Job]:
    """What goes to each output folder, everything generated."""
    from tile2c import __version__
    from tile2c.transpile.output.scope import Scope
    from tile2c.transpile.output.write import Job

    jobs: list[Job] = []
    used: set[str] = set()  # names of values that some source has
    for folder in project.folders():
        sets = [part for part in project.sets if part.out == folder]
        targets = tuple(dict.fromkeys(name for part in sets for name in part.targets))
        kernels: list[GeneratedKernel] = []
        for part in sets:
            request = _request(part, project, len(targets) > 1)
            kernels += _generated(part, request, diagnostics, reporter)
            for values, _ in request.variants:
                used |= {f"{owner}.{name}" if owner else name for owner, name in values.used}
        scope = Scope(
            tile2c=__version__,
            sources=tuple(dict.fromkeys(path.name for part in sets for path in part.sources)),
            targets=targets,
            whole=True,
            paths=frozenset(os.path.realpath(path) for part in sets for path in part.sources),
            format=_formatter(project, folder),
        )
        if not diagnostics.failed:
            kernels = _formatted(kernels, scope)
        jobs.append(Job(folder=folder, kernels=kernels, scope=scope))
    for name, span in project.shared.items():
        if name not in used and not diagnostics.failed:
            message = f"no source of the project has a parameter or size {name}"
            diagnostics.error("T2C632", message, span)
    return jobs


def _request(part: KernelSet, project: Project, several: bool) -> Request:
    from tile2c.transpile.pipeline import Request
    from tile2c.transpile.stage.defines import parse_defines

    return Request(
        inputs=part.sources,
        targets=part.targets,
        defines=parse_defines(()),
        kernels=part.names,
        variants=tuple((parse_defines(variant), variant) for variant in part.variants),
        optional=frozenset(project.shared),
        licence=part.licence,
        several=several,
        command=AGAIN,
    )


def _generated(
    part: KernelSet, request: Request, diagnostics: Diagnostics, reporter: Reporter
) -> list[GeneratedKernel]:
    from tile2c.transpile import pipeline
    from tile2c.transpile.cli.progress import busy

    names = ", ".join(path.name for path in part.sources)
    with busy(f"transpiling {names}", reporter), _names_located(part):
        made = pipeline.generate(request, diagnostics)
    return [replace(kernel, launcher=part.launcher) for kernel in made]


@contextmanager
def _names_located(part: KernelSet) -> Iterator[None]:
    """A name that no source has, at the place where the project file says it."""
    from tile2c.transpile.stage.defines import UnknownName

    try:
        yield
    except UnknownName as error:
        kernel = error.option == "--kernel"
        where = (part.named if kernel else part.defined).get(error.name, part.span)
        what = "kernel" if kernel else "parameter or size"
        sources = " or ".join(path.name for path in part.sources)
        help = f"did you mean {error.nearest}?" if error.nearest else None
        missing = f"{sources} has no {what} {error.name}"
        message = f"{error.name}: {error.why}" if error.why else missing
        raise failure("T2C632", message, where, help=help) from error


def _formatter(project: Project, out: Path) -> Callable[[str, str], str] | None:
    """The project's formatter as a function of a text and its file in `out`, None without one."""
    if not project.formatter:
        return None
    from tile2c.transpile.output.formatting import FormatterFailed, formatted

    place = Path(os.path.relpath(out, project.folder))

    def apply(text: str, file: str) -> str:
        try:
            return formatted(text, (place / file).as_posix(), project.formatter, project.folder)
        except FormatterFailed as error:
            raise failure("T2C635", str(error), project.formatter_span) from error

    return apply


def _formatted(kernels: list[GeneratedKernel], scope: Scope) -> list[GeneratedKernel]:
    from tile2c.transpile.output.formatting import format_kernel
    from tile2c.transpile.output.layout import kernel_file

    if scope.format is None:
        return kernels
    found: list[GeneratedKernel] = []
    for kernel in kernels:
        file = kernel_file(kernel.name, kernel.target, kernel.suffix, several=scope.several)
        found.append(format_kernel(kernel, scope.format(kernel.text, file)))
    return found


def _check(
    options: Options, jobs: Sequence[Job], found: Sequence[Diagnostics], reporter: Reporter
) -> None:
    from tile2c.transpile.output.check import check_folder

    for job, own in zip(jobs, found, strict=True):
        try:
            check_folder(job.folder, job.kernels, job.scope, own, pristine=options.pristine)
        except InputError as error:
            own.add(error.diagnostic)
        if not own.failed:
            count = len(job.kernels)
            counted = "1 kernel file" if count == 1 else f"{count} kernel files"
            reporter.done(f"{job.folder.as_posix()} is up to date: {counted}")


def _write(
    options: Options, jobs: Sequence[Job], found: Sequence[Diagnostics], reporter: Reporter
) -> None:
    from tile2c.transpile.output.write import write_folders

    compile_module = None
    if options.compile_modules:
        from tile2c.transpile.cli.modules import compiler

        compile_module = compiler(reporter)
    try:
        every = write_folders(jobs, _policy(options), found, compile_module)
    except InputError as error:
        found[0].add(error.diagnostic)
        return
    if every is None:
        reporter.done("nothing was written")
        return
    for job, written in zip(jobs, every, strict=True):
        folder = job.folder
        for file in written.files:
            reporter.done(f"wrote {(folder / file).as_posix()}")
        for file in written.removed:
            reporter.done(f"removed {(folder / file).as_posix()}")
        count = len(set(written.unchanged) - set(written.kept))
        if count:
            files = "1 file is" if count == 1 else f"{count} files are"
            reporter.done(f"{folder.as_posix()}: {files} up to date")


def _policy(options: Options) -> Policy:
    from tile2c.transpile.output.scope import Policy

    if not options.merge:
        return Policy(force=options.force)
    from tile2c.transpile.cli.modules import verify_merge

    return Policy(merge=True, verify=verify_merge)


def _placed(item: Diagnostic, job: Job, jobs: Sequence[Job]) -> Diagnostic:
    """A problem of a folder: its file as it is found from here, its folder where there are several."""
    if item.file is None:
        return item
    notes = item.notes
    if len(jobs) > 1:
        notes = (*notes, Note(f"this is in {job.folder.as_posix()}"))
    return replace(item, file=(job.folder / item.file).as_posix(), notes=notes)


def _outputs(jobs: Sequence[Job]) -> list[str]:
    """Every file that a build writes and a program's build may use, in order."""
    from tile2c.transpile.output import holders, layout
    from tile2c.transpile.output.launchers import beside, with_launcher

    found: list[str] = []
    for job in jobs:
        own = Diagnostics()
        for file, kernel in holders.placed(job.kernels, job.scope, own).items():
            whole = with_launcher(kernel, file, None, job.scope, own)
            found.append((job.folder / file).as_posix())
            found += [
                (job.folder / beside(file, part.name)).as_posix() for part in whole.companions
            ]
        found.append((job.folder / layout.MANIFEST).as_posix())
    return found


def _write_depfile(path: Path, project: Project, jobs: Sequence[Job]) -> None:
    """A rule as make has it: the outputs, and every file that they are made from."""
    from tile2c.transpile.output.commit import Changes, commit
    from tile2c.transpile.read import read_source

    inputs: dict[str, None] = {project.file.as_posix(): None}
    for part in project.sets:
        for source in part.sources:
            pending = [read_source(source, Diagnostics())]
            while pending:
                one = pending.pop()
                if one is not None and one.path.as_posix() not in inputs:
                    inputs[one.path.as_posix()] = None
                    pending += one.siblings.values()
    inputs.update({path.as_posix(): None for path in project.inputs})
    rule = " ".join(map(_escaped, _outputs(jobs)))
    needs = " \\\n  ".join(map(_escaped, inputs))
    changes = Changes()
    changes.write(path.name, f"{rule}: \\\n  {needs}\n")
    commit(path.parent, changes)


def _escaped(name: str) -> str:
    """A file's name as make reads it."""
    for letter in ("\\", " ", "#"):
        name = name.replace(letter, f"\\{letter}")
    return name.replace("$", "$$")
