"""`--check`: whether OUT holds what a run would write. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.output import decide, header, holders, layout
from tile2c.transpile.output.differences import short_diff
from tile2c.transpile.output.entries import entry_for, modules_of
from tile2c.transpile.output.generated import GeneratedKernel, JsonValue
from tile2c.transpile.output.launchers import beside, with_launcher
from tile2c.transpile.output.manifest import Entry, Manifest, read_manifest
from tile2c.transpile.output.scope import Policy, Scope
from tile2c.transpile.output.write import refused_elsewhere, warn_kept

REGENERATE = "run the same command without --check"

# Keys of an entry that do not make it stale: they follow the file's text, or where things lie.
_FREE = frozenset({"sha256", "modules", "tile2c", "defines"})
_FREE_SOURCE = frozenset({"line", "sha256"})


def check_folder(
    folder: Path,
    kernels: Sequence[GeneratedKernel],
    scope: Scope,
    diagnostics: Diagnostics,
    *,
    pristine: bool = False,
) -> None:
    """Reports every file of OUT that is missing, stale or holds conflict marks as an error."""
    manifest = read_manifest(folder)
    if manifest is None:
        diagnostics.error(
            "T2C608", f"{folder.as_posix()} has no {layout.MANIFEST}", None, help=REGENERATE
        )
        return
    files = holders.placed(kernels, scope, diagnostics)
    refused: list[str] = []
    for file, kernel in files.items():
        held = manifest.entry_of(file)
        found = decide.find(folder, file, held)
        edited = found.edited
        others = refused_elsewhere(folder, file, kernel, manifest, scope, Policy(), diagnostics)
        refused += others
        if not others and holders.check_holder(
            file, kernel, held, scope, diagnostics, edited=edited
        ):
            kernel = with_launcher(kernel, file, held, scope, diagnostics)
            _check_kernel(folder, file, kernel, held, found, scope, diagnostics, pristine)
            for companion in kernel.companions:
                path = beside(file, companion.name)
                found = decide.find(folder, path, held)
                other = replace(kernel, text=companion.text)
                _check_text(path, other, found, diagnostics, pristine)
    _check_left(folder, manifest, files, scope, diagnostics, pristine, refused)


def _check_kernel(
    folder: Path,
    file: str,
    kernel: GeneratedKernel,
    held: Entry | None,
    found: decide.Found,
    scope: Scope,
    diagnostics: Diagnostics,
    pristine: bool,
) -> None:
    for module in modules_of(held) if held is not None else ():
        path = str(module.get("file")) if isinstance(module, dict) else ""
        if not (folder / path).is_file():
            help = "run the same command with --compile"
            diagnostics.error("T2C608", f"{path} is missing", None, help=help, file=path)
    if not _check_text(file, kernel, found, diagnostics, pristine):
        return
    text = header.sign(kernel.text)
    expected = entry_for(kernel, file, text, scope.defines, [])
    if held is None or _settled(held) != _settled(expected):
        what = "has no entry for" if held is None else "has a stale entry for"
        keys = "" if held is None else f" ({_differing(_settled(held), _settled(expected))})"
        diagnostics.error(
            "T2C609", f"{layout.MANIFEST} {what} {file}{keys}", None, help=REGENERATE, file=file
        )


def _check_text(
    file: str,
    kernel: GeneratedKernel,
    found: decide.Found,
    diagnostics: Diagnostics,
    pristine: bool,
) -> bool:
    """Compares one file with what a run would write; False if there is nothing to compare."""
    if found.text is None or found.base is None:  # one message, though both may be missing
        path = file if found.text is None else layout.base_file(file)
        diagnostics.error("T2C608", f"{path} is missing", None, help=REGENERATE, file=path)
        return False
    if header.has_conflict_marks(found.text):
        diagnostics.error(
            "T2C603",
            f"{file} holds conflict marks",
            None,
            help=f"resolve the conflicts in {file}",
            file=file,
        )
        return False
    text = header.sign(kernel.text)
    if header.body(found.base) != header.body(text):
        stale = f"{file} is stale: {holders.source_of(kernel.manifest)} now gives another text"
        help = REGENERATE
        if found.edited:
            stale = f"{stale}, and it was edited by hand"
            help = f"{REGENERATE}: {decide.TWO_WAYS.format(file=file)}"
        names = (f"{file} before", f"{file} as generated now")
        # What is stale; the edits are not in it. A header that differs does not count.
        diff = short_diff(header.normalized(found.base), header.headed(text, found.base), *names)
        diagnostics.error("T2C609", stale, None, help=help, file=file, diff=diff)
    elif found.edited:
        diff = short_diff(header.normalized(found.base), header.normalized(found.text),
                          f"{file} as generated", f"{file} as edited")  # fmt: skip
        _report_edit(file, diff, pristine, diagnostics)
    return True


def _differing(held: dict[str, JsonValue], expected: dict[str, JsonValue]) -> str:
    """The keys of an entry whose values changed, in the order of the manifest."""
    keys = [*expected, *(key for key in held if key not in expected)]
    return ", ".join(key for key in keys if held.get(key) != expected.get(key))


def _report_edit(
    file: str, diff: tuple[str, ...], pristine: bool, diagnostics: Diagnostics
) -> None:
    if pristine:
        diagnostics.error(
            "T2C610",
            f"{file} was edited by hand",
            None,
            help="leave out --pristine to accept edited files whose base is current",
            file=file,
            diff=diff,
        )
    else:
        diagnostics.note("T2C610", f"{file} was edited by hand; its base is current", file=file)


def _settled(entry: Entry) -> dict[str, JsonValue]:
    """An entry without what does not count as stale."""
    kept = {key: value for key, value in entry.items() if key not in _FREE}
    source = kept.get("source")
    if isinstance(source, dict):
        kept["source"] = {key: v for key, v in source.items() if key not in _FREE_SOURCE}
    return kept


def _check_left(
    folder: Path,
    manifest: Manifest,
    files: dict[str, GeneratedKernel],
    scope: Scope,
    diagnostics: Diagnostics,
    pristine: bool,
    refused: Sequence[str],
) -> None:
    for entry, moved in holders.own_entries_left(manifest, files, scope, refused):
        file = str(entry["file"])
        edited = decide.find(folder, file, entry).edited
        if edited and not moved and not pristine:
            warn_kept(entry, moved, diagnostics)
            continue
        reason = (
            f"{entry['name']} for {entry['target']} lies elsewhere now"
            if moved
            else f"{holders.source_of(entry)} no longer has a kernel {entry['name']}"
        )
        diagnostics.error(
            "T2C609", f"{file} is left over: {reason}", None, help=REGENERATE, file=file
        )
