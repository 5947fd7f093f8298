"""Which entry of the manifest a generated kernel replaces, and which ones are in its way."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path, PurePosixPath

from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.output.generated import GeneratedKernel, JsonValue
from tile2c.transpile.output.layout import kernel_file
from tile2c.transpile.output.manifest import Entry, Manifest
from tile2c.transpile.output.scope import Scope

DIFFERENT_FOLDER = "choose another folder with -o, or remove {file} first"
RENAMED = (
    'if {old} is {new} now, write "file": "{new}" into the "source" of {file} in tile2c.json; '
    "else {otherwise}"
)
LOSES_EDITS = ", which loses the edits made in it"
REPLACE = "choose another folder with -o, or --force to replace it"
REPLACE_EDITED = f"{REPLACE} after saving the edited file as {{file}}.orig"
REPLACE_BESIDE = f"{REPLACE}; {{file}}, which was edited, stays as it is"


def source_of(entry: Entry) -> str:
    """The source file's name in an entry, without folders."""
    return PurePosixPath(source_path(entry)).name


def source_path(entry: Entry) -> str:
    """The source file as the entry has it; in a new one, as the command line had it."""
    source = entry.get("source")
    return str(source.get("file", "")) if isinstance(source, dict) else ""


def placed(
    kernels: Sequence[GeneratedKernel], scope: Scope, diagnostics: Diagnostics
) -> dict[str, GeneratedKernel]:
    """The kernels by their files; two that share one are reported."""
    files: dict[str, GeneratedKernel] = {}
    for kernel in kernels:
        file = kernel_file(kernel.name, kernel.target, kernel.suffix, several=scope.several)
        other = files.setdefault(file, kernel)
        if other is not kernel:
            diagnostics.error(
                "T2C602",
                f"{file} would hold two kernels: {kernel.name} of {source_of(kernel.manifest)} "
                f"({kernel.target}) and {other.name} of {source_of(other.manifest)} "
                f"({other.target})",
                None,
                help="choose one with --kernel, or write them to different folders with -o",
                file=file,
            )
    return files


def check_holder(
    file: str,
    kernel: GeneratedKernel,
    held: Entry | None,
    scope: Scope,
    diagnostics: Diagnostics,
    *,
    edited: bool,
    force: bool = False,
    beside: bool = False,
) -> bool:
    """Whether this run may have `file`; if another source, target or `-D` holds it, says so.

    `force` takes it from another specialisation of the same kernel, never from another kernel.
    With `beside` the run writes the kernel into another file, and `file` would go.
    """
    if held is None or scope.whole:
        return True
    help = DIFFERENT_FOLDER + (LOSES_EDITS if edited else "")
    source = source_of(kernel.manifest)
    if other := scope.stranger(file):
        what = f"holds {held['name']} of {other}, not of {source_path(kernel.manifest)}"
    elif source_of(held) != source:
        what = f"holds {held['name']} of {source_of(held)}, not of {source}"
        path = Path(source_path(kernel.manifest))
        if held["name"] == kernel.name and not path.with_name(source_of(held)).exists():
            help = RENAMED.format(old=source_of(held), new=source, file=file, otherwise=help)
    elif held["target"] != kernel.target:
        what = f"holds {held['name']} for {held['target']}, not for {kernel.target}"
    elif held["name"] != kernel.name:
        what = f"holds the kernel {held['name']}, not {kernel.name}"
    elif not force and (difference := _specialisation(held, kernel, scope)):
        what = f"holds {held['name']} with {difference}"
        help = (REPLACE_BESIDE if beside else REPLACE_EDITED) if edited else REPLACE
    else:
        return True
    diagnostics.error("T2C602", f"{file} {what}", None, help=help.format(file=file), file=file)
    return False


def elsewhere(manifest: Manifest, file: str, kernel: GeneratedKernel) -> Iterator[Entry]:
    """Entries of the kernel's name and target in another file than this run's.

    A run with several targets uses sub-folders, one with a single target does not. A folder has one
    kernel of a name and target, so what such an entry holds must be this run's as well.
    """
    for entry in manifest.kernels:
        same = (entry["name"], entry["target"]) == (kernel.name, kernel.target)
        if same and entry["file"] != file:
            yield entry


def _specialisation(held: Entry, kernel: GeneratedKernel, scope: Scope) -> str | None:
    """How the `-D` values of the held entry make another kernel of it; None if they do not.

    A value that changed in the source is an ordinary new version; one that the command line changed
    is another specialisation.
    """
    defines = scope.defines if kernel.defines is None else sorted(kernel.defines)
    if scope.whole or held.get("defines", []) == list(defines):
        return None
    before, now = _fixed(held), _fixed(kernel.manifest)
    changed = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    if not changed:
        return None
    was = ", ".join(_spelled(name, before.get(name)) for name in changed)
    asked = ", ".join(_spelled(name, now.get(name)) for name in changed)
    return f"{was}, not with {asked}"


def _fixed(entry: Entry) -> dict[str, JsonValue]:
    """Compile-time values by name; a run-time size counts as `dynamic`."""
    sizes, parameters = entry.get("sizes"), entry.get("parameters")
    found: dict[str, JsonValue] = {}
    for name in sizes if isinstance(sizes, list) else ():
        found[str(name)] = "dynamic"
    if isinstance(parameters, dict):
        found.update(parameters)
    return found


def _spelled(name: str, value: JsonValue) -> str:
    return f"no {name}" if value is None else f"{name} = {value}"


def own_entries_left(
    manifest: Manifest,
    files: dict[str, GeneratedKernel],
    scope: Scope,
    refused: Collection[str] = (),
) -> Iterator[tuple[Entry, bool]]:
    """Entries of this run's sources and targets that it did not generate, except those `refused`.

    With each: whether its kernel was generated into another file (a run with several targets uses
    sub-folders), rather than being gone from the source.
    """
    generated = {(k.target, k.name) for k in files.values()}
    names: frozenset[str] | None = None
    for entry in manifest.kernels:
        if entry["file"] in files or entry["file"] in refused:
            continue
        if (str(entry["target"]), str(entry["name"])) in generated:
            yield entry, True
            continue
        if scope.whole:
            yield entry, False
            continue
        if source_of(entry) not in scope.sources:
            continue
        if scope.stranger(str(entry["file"])):
            continue
        if entry["target"] in scope.targets and not scope.only:
            names = scope.unready() if names is None else names
            if not any(_is_or_extends(str(entry["name"]), name) for name in names):
                yield entry, False


def _is_or_extends(name: str, base: str) -> bool:
    """Whether a file's name is a kernel's or that of one of its specialisations."""
    return name == base or name.startswith(f"{base}_")
