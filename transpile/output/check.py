"""`--check`: whether OUT holds what a run would write. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.output import decide, header, holders, layout
from tile2c.transpile.output.entries import entry_for, modules_of
from tile2c.transpile.output.generated import GeneratedKernel, JsonValue
from tile2c.transpile.output.manifest import Entry, Manifest, read_manifest
from tile2c.transpile.output.scope import Scope
from tile2c.transpile.output.write import warn_kept

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
    for file, kernel in files.items():
        held = manifest.entry_of(file)
        found = decide.find(folder, file, held)
        edited = found.edited
        if holders.check_holder(file, kernel, held, scope, diagnostics, edited=edited):
            _check_kernel(folder, file, kernel, held, found, scope, diagnostics, pristine)
    _check_left(folder, manifest, files, scope, diagnostics, pristine)


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
    if found.text is None or found.base is None:  # one message, though both may be missing
        path = file if found.text is None else layout.base_file(file)
        diagnostics.error("T2C608", f"{path} is missing", None, help=REGENERATE, file=path)
    for module in modules_of(held) if held is not None else ():
        path = str(module.get("file")) if isinstance(module, dict) else ""
        if not (folder / path).is_file():
            help = "run the same command with --compile"
            diagnostics.error("T2C608", f"{path} is missing", None, help=help, file=path)
    if found.text is None or found.base is None:
        return
    if header.has_conflict_marks(found.text):
        diagnostics.error(
            "T2C603",
            f"{file} holds conflict marks",
            None,
            help=f"resolve the conflicts in {file}",
            file=file,
        )
        return
    text = header.sign(kernel.text)
    if header.body(found.base) != header.body(text):
        stale = f"{file} is stale: {holders.source_of(kernel.manifest)} now gives another text"
        help = REGENERATE
        if found.edited:
            stale = f"{stale}, and it was edited by hand"
            help = f"{REGENERATE}: {decide.TWO_WAYS.format(file=file)}"
        diagnostics.error("T2C609", stale, None, help=help, file=file)
    elif header.body(found.text) != header.body(found.base):
        _report_edit(file, pristine, diagnostics)
    expected = entry_for(kernel, file, text, scope.defines, [])
    if held is None or _settled(held) != _settled(expected):
        what = "has no entry for" if held is None else "has a stale entry for"
        diagnostics.error(
            "T2C609", f"{layout.MANIFEST} {what} {file}", None, help=REGENERATE, file=file
        )


def _report_edit(file: str, pristine: bool, diagnostics: Diagnostics) -> None:
    if pristine:
        diagnostics.error(
            "T2C610",
            f"{file} was edited by hand",
            None,
            help="leave out --pristine to accept edited files whose base is current",
            file=file,
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
) -> None:
    for entry, moved in holders.own_entries_left(manifest, files, scope):
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
