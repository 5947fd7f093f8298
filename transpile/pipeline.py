"""The five forms in order: one call from input files to finished texts.

reads   input files, targets, `-D` values          writes  GeneratedKernel values, or a form's text
Nothing is written to disk here; `output` does that. Stages are imported when they are needed, so
that `--list` does not load what only rendering uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from shlex import quote
from typing import TYPE_CHECKING, Literal, TypeVar

from tile2c.transpile.diagnostics import Diagnostic, Diagnostics, InputError, Severity
from tile2c.transpile.record import record

if TYPE_CHECKING:
    from tile2c.transpile.ir import forms
    from tile2c.transpile.output.generated import GeneratedKernel
    from tile2c.transpile.stage import Defines, KernelListing, NormalKernel
    from tile2c.transpile.stage.device import Device

Form = Literal["normal", "ir", "plan"]
Result = TypeVar("Result")
FAST = (
    "fast_accumulation"  # -D fast_accumulation=True: sums of 8-bit floats stay in the matrix unit
)


@record(kw_only=True)
class Request:
    """What one run of the command asks for. `targets` are full names, `cuda:sm_80`."""

    inputs: tuple[Path, ...]
    targets: tuple[str, ...]
    defines: Defines
    kernels: tuple[str, ...] = ()  # only these; empty means every kernel of the files
    line_info: bool = False
    spelled: tuple[str, ...] = ()  # the `-D` options as written, for the texts' `again` line
    variants: tuple[tuple[Defines, tuple[str, ...]], ...] = ()  # several of both, in their place
    optional: frozenset[str] = frozenset()  # names of `-D` values that the files need not have
    licence: tuple[str, ...] = ()  # lines of comment on top of every text
    license_header: str = ""  # the file they came from, for the texts' `again` line
    several: bool | None = (
        None  # whether symbols end in the architecture; None: with several targets
    )
    command: str = ""  # what makes the texts again, where no options do
    device: Device | None = None  # that programs may ask for; None: the first target's

    def sets(self) -> tuple[tuple[Defines, tuple[str, ...]], ...]:
        """Every set of `-D` values that kernels are made with."""
        return self.variants or ((self.defines, self.spelled),)


@record(kw_only=True)
class EmittedText:
    """One form of one kernel as text."""

    name: str  # gemm
    file_name: str  # gemm.tile.py
    text: str


def generate(request: Request, diagnostics: Diagnostics) -> tuple[GeneratedKernel, ...]:
    """Every kernel for every target, in the order of the source. Problems go to `diagnostics`."""
    from tile2c.transpile import lower, render, targets
    from tile2c.transpile.lower.promises import promises
    from tile2c.transpile.lower.resources import resources
    from tile2c.transpile.render.author_names import with_author_names

    found: list[GeneratedKernel] = []
    several = len(request.targets) > 1 if request.several is None else request.several
    for kernel, function, names in _functions_by_target(request, diagnostics):
        for name in names:
            target, own = targets.find(name), Diagnostics()
            plan = _attempt(own, lower.lower, function, target, own)
            _tell(diagnostics, own)
            if plan is not None:
                text = render.render(
                    plan,
                    target,
                    kernel,
                    several=several,
                    line_info=request.line_info,
                    again=request.command
                    or again(kernel, ",".join(request.targets) if several else name, request),
                )
                known = text.manifest.get("requires") or []
                assert isinstance(known, list)
                promised = [text for text in promises(function) if text not in known]
                manifest = {**text.manifest, "requires": [*known, *promised]}
                manifest = with_author_names(manifest, function)
                spelled = request.sets()[kernel.variant][1] if request.variants else None
                text = replace(text, manifest=manifest, resources=resources(plan), defines=spelled)
                found.append(under_licence(text, kernel.licence))
    diagnostics.leave_consequences_out()
    return tuple(found)


def under_licence(kernel: GeneratedKernel, licence: tuple[str, ...]) -> GeneratedKernel:
    """The kernel's text below a licence comment, its lines moved down."""
    if not licence:
        return kernel
    head = "".join(f"{line}\n" for line in (*licence, ""))
    down = len(licence) + 1
    origins = tuple(
        replace(origin, first=origin.first + down, last=origin.last + down)
        for origin in kernel.origins
    )
    return replace(kernel, text=head + kernel.text, origins=origins)


def again(kernel: NormalKernel, target: str, request: Request) -> str:
    """The command that makes this kernel again, with those `-D` that mean something to it."""
    parts = [f"tile2c {quote(PurePosixPath(kernel.source_file).name)} -o . --target {target}"]
    for option in sorted(request.sets()[kernel.variant][1]):
        owner, _, name = option.partition("=")[0].partition("%")[0].rpartition(".")
        known = name in kernel.parameters or name in kernel.sizes or name == FAST
        if known and (not owner or kernel.name.startswith(owner)):
            parts.append(f"-D {quote(option)}")
    if request.line_info:
        parts.append("--line-info")
    if request.license_header:
        parts.append(f"--license-header {quote(PurePosixPath(request.license_header).name)}")
    return " ".join(parts)


def emit(request: Request, form: Form, diagnostics: Diagnostics) -> tuple[EmittedText, ...]:
    """The text of one form of every kernel; `plan` once for each target."""
    if form == "normal":
        return tuple(
            EmittedText(name=kernel.name, file_name=f"{kernel.name}.tile.py", text=kernel.text)
            for kernel in _normal_kernels(request, diagnostics)
        )
    return tuple(_emit_later(request, form, diagnostics))


def list_kernels(request: Request, diagnostics: Diagnostics) -> tuple[KernelListing, ...]:
    """What `--list` shows: every kernel of the files, ready or not."""
    from tile2c.transpile import read, stage

    found: list[KernelListing] = []
    met = stage.NamesMet()
    for path in request.inputs:
        source = _attempt(diagnostics, read.read_source, path, diagnostics)
        if source is not None:
            found += stage.list_kernels(
                source, _on_device(request, request.defines), diagnostics, met
            )
        else:
            met.complete = False
    met.check(request.defines, ())
    return tuple(found)


def _emit_later(request: Request, form: Form, diagnostics: Diagnostics) -> Iterator[EmittedText]:
    from tile2c.transpile import lower, targets
    from tile2c.transpile.ir import printer

    for kernel, function, names in _functions_by_target(request, diagnostics):
        if form == "ir":
            yield EmittedText(
                name=kernel.name,
                file_name=f"{kernel.name}.ir",
                text=printer.print_function(function),
            )
            continue
        for name in names:
            plan = _attempt(diagnostics, lower.lower, function, targets.find(name), diagnostics)
            if plan is not None:
                text = lower.print_plan(plan, name)
                yield EmittedText(name=kernel.name, file_name=f"{kernel.name}.plan", text=text)


def functions(
    request: Request, diagnostics: Diagnostics
) -> Iterator[tuple[NormalKernel, forms.Function]]:
    """Every kernel of the files with its tile IR; those with problems are left out.

    A program that asks for the device is answered for the first of the targets.
    """
    for kernel, function, problems in _built(request, diagnostics):
        if function is not None:
            _tell(diagnostics, problems)
            yield kernel, _with_options(request, kernel, function)
        else:
            diagnostics.items.extend(_blamed(request, kernel, problems).items)


def _built(
    request: Request, diagnostics: Diagnostics
) -> Iterator[tuple[NormalKernel, forms.Function | None, Diagnostics]]:
    """Every kernel with its tile IR and what is said about it, None for those with errors."""
    from tile2c.transpile.ir.build import build

    for kernel in _normal_kernels(request, diagnostics):
        own = Diagnostics()
        yield kernel, _attempt(own, build, kernel, own), own


def _blamed(request: Request, kernel: NormalKernel, problems: Diagnostics) -> Diagnostics:
    """The problems of a kernel; one message for them where values of `-D` bring them."""
    from tile2c.transpile.stage.defines import UnknownName
    from tile2c.transpile.stage.values import MISSING, Missing, Value
    from tile2c.transpile.stage.wrong_defines import one_message, to_blame

    if request.variants or not request.defines.values or not problems.failed:
        return problems
    values, one = request.defines, (kernel.name,)
    usual: dict[str, Value] = {}  # parameters of the last kernel that was made without errors

    def passes(others: Defines) -> bool:
        try:
            made = list(_built(replace(request, defines=others, kernels=one), Diagnostics()))
        except UnknownName:
            return False
        same = [found for found in made if found[0].name == kernel.name]
        good = bool(same) and all(function is not None for _, function, _ in same)
        if good:
            usual.update(same[0][0].parameters)
        return good

    def given(name: str) -> Value | Missing:
        return values.find(name, one)

    names = to_blame(values, frozenset(one), passes)
    if not names:
        return problems
    return one_message(problems, names, given, lambda name: usual.get(name, MISSING))


def _with_options(
    request: Request, kernel: NormalKernel, function: forms.Function
) -> forms.Function:
    """The function with what `-D` says of it beside its parameters and sizes."""
    if FAST in kernel.parameters or FAST in kernel.sizes:
        return function  # the program has one of that name
    values, _ = request.sets()[kernel.variant]
    return replace(function, fast_accumulation=values.find(FAST, (kernel.name,)) is True)


def _functions_by_target(
    request: Request, diagnostics: Diagnostics
) -> Iterator[tuple[NormalKernel, forms.Function, tuple[str, ...]]]:
    """Kernels with the targets that they are for: all of them, unless the program asks for the
    device; then there is one of each kernel for each target."""
    from tile2c.transpile.stage.device import Device

    pending = request.targets
    while pending:
        asked: set[str] = set()
        now = replace(request, targets=pending, device=Device(pending[0], asked))
        made = list(functions(now, diagnostics))
        these = pending[:1] if asked else pending
        yield from ((kernel, function, these) for kernel, function in made)
        pending = pending[len(these) :]


def _normal_kernels(request: Request, diagnostics: Diagnostics) -> Iterator[NormalKernel]:
    """The normal forms of all files. A name that no file knows raises UnknownName."""
    from tile2c.transpile import read, stage
    from tile2c.transpile.read.licence import licence_of

    met = stage.NamesMet()
    empty: list[Diagnostic] = []  # of files without a kernel
    some = False
    for path in request.inputs:
        source = _attempt(diagnostics, read.read_source, path, diagnostics)
        if source is not None:
            only, own = request.kernels, Diagnostics()
            defines = tuple(_on_device(request, values) for values, _ in request.sets())
            licence = _both(request.licence, licence_of(source))
            found = _attempt(own, stage.normalize, source, defines, only, own, met)
            whole = read.whole_file(source)
            for item in own.items:
                is_empty = item.code == "T2C118" and item.span == whole
                (empty.append if is_empty else diagnostics.add)(item)
            some = some or bool(found)
            yield from (replace(kernel, licence=licence) for kernel in found or ())
        else:
            met.complete = False
    some = some or diagnostics.failed
    for item in empty:  # one file of several may hold helpers only
        diagnostics.add(replace(item, severity=Severity.WARNING) if some else item)
    for values, _ in request.sets():
        met.check(values, request.kernels, request.optional)


def _both(project: tuple[str, ...], own: tuple[str, ...]) -> tuple[str, ...]:
    """The project's licence comment and the source's; one that both have, once."""
    if not own or set(own) <= set(project):
        return project
    return (*project, "//", *own) if project else own


def _on_device(request: Request, defines: Defines) -> Defines:
    """What is fixed, and the device that programs may ask for: that of the first target."""
    from tile2c.transpile.stage.device import Device

    if request.device is not None:
        return replace(defines, device=request.device)
    return replace(defines, device=Device(request.targets[0])) if request.targets else defines


def _tell(diagnostics: Diagnostics, found: Diagnostics) -> None:
    """Adds what is said of a kernel, but no warnings where statements of the file were refused: what is
    left makes no sense without them."""
    errors = [x for x in diagnostics.items if x.severity is Severity.ERROR and x.code < "T2C3"]
    wrong = {item.span.file for item in errors if item.span is not None}
    for item in found.items:
        if item.severity is Severity.ERROR or item.span is None or item.span.file not in wrong:
            diagnostics.add(item)


def _attempt(
    diagnostics: Diagnostics, step: Callable[..., Result], *arguments: object
) -> Result | None:
    """A step's result, or None after a problem that ends it; the problem is kept."""
    try:
        return step(*arguments)
    except InputError as error:
        diagnostics.add(error.diagnostic)
        return None
