"""A run of the command: plans every change to OUT first, then makes them all or none."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import field, replace
from pathlib import Path

from tile2c.transpile.diagnostics import Diagnostics, Severity
from tile2c.transpile.output import decide, holders, layout
from tile2c.transpile.output.commit import Changes, commit
from tile2c.transpile.output.entries import entry_for, map_text, modules_of
from tile2c.transpile.output.generated import Companion, GeneratedKernel, JsonValue
from tile2c.transpile.output.launchers import beside, launcher_files, with_launcher
from tile2c.transpile.output.manifest import (
    Entry,
    Manifest,
    format_manifest,
    read_manifest,
)
from tile2c.transpile.output.places import alone, remember
from tile2c.transpile.output.scope import Policy, Scope
from tile2c.transpile.record import record


@record(kw_only=True)
class Module:
    """A kernel file compiled: what goes beside it and what the manifest says of it."""

    arch: str
    suffix: str  # .cubin
    content: bytes
    compiler: str


# Compiles the text that a kernel's file will hold; None after a problem, which it reports itself.
Compile = Callable[[GeneratedKernel, str, str, Diagnostics], Module | None]


@record(kw_only=True)
class Written:
    """What a run did: files written, in order, then modules; files that it left or removed.

    `kept` are those of the unchanged ones that were edited by hand; a note says so of each.
    """

    files: tuple[str, ...]
    unchanged: tuple[str, ...]
    kept: tuple[str, ...]
    removed: tuple[str, ...]


@record(frozen=False)
class _Plan:
    changes: Changes
    entries: list[Entry]
    gone: list[str]
    manifest: Manifest
    files: dict[str, GeneratedKernel]
    conflicts: int = 0
    companions: list[str] = field(default_factory=list)  # files of launchers
    modules: list[str] = field(default_factory=list)  # that were compiled
    edited: set[str] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)  # files that hold what the run may not replace


@record(kw_only=True)
class Job:
    """What a run writes to one folder."""

    folder: Path
    kernels: Sequence[GeneratedKernel]
    scope: Scope


def write_folder(
    folder: Path,
    kernels: Sequence[GeneratedKernel],
    scope: Scope,
    policy: Policy,
    diagnostics: Diagnostics,
    compile_module: Compile | None = None,
) -> Written | None:
    """Writes the kernels of one run to OUT; None if anything is in the way, with nothing changed.

    Conflicts of a merge are errors too, but are written: see `Diagnostics.failed` afterwards.
    """
    job = Job(folder=folder, kernels=kernels, scope=scope)
    written = write_folders((job,), policy, (diagnostics,), compile_module)
    return written[0] if written else None


def write_folders(
    jobs: Sequence[Job],
    policy: Policy,
    diagnostics: Sequence[Diagnostics],
    compile_module: Compile | None = None,
) -> tuple[Written, ...] | None:
    """Writes several folders: all of them, or none if anything is in the way in one.

    diagnostics  where what is found in each folder goes
    """
    with ExitStack() as held:
        for folder in sorted({os.path.realpath(job.folder) for job in jobs}):
            held.enter_context(alone(Path(folder)))
        plans = [
            _planned(job, policy, own, compile_module)
            for job, own in zip(jobs, diagnostics, strict=True)
        ]
        if any(_errors(own) > plan.conflicts for plan, own in zip(plans, diagnostics, strict=True)):
            return None
        return tuple(_commit(job, plan) for job, plan in zip(jobs, plans, strict=True))


def _planned(
    job: Job, policy: Policy, diagnostics: Diagnostics, compile_module: Compile | None
) -> _Plan:
    folder, scope = job.folder, job.scope
    manifest = read_manifest(folder) or Manifest(scope.tile2c)
    files = holders.placed(job.kernels, scope, diagnostics)
    plan = _Plan(Changes(), [], [], manifest, files)
    for file, kernel in files.items():
        _plan_kernel(
            folder, file, kernel, manifest, scope, policy, diagnostics, plan, compile_module
        )
    _plan_removals(folder, manifest, files, scope, diagnostics, plan)
    _check_symbols(plan, diagnostics)
    return plan


def _check_symbols(plan: _Plan, diagnostics: Diagnostics) -> None:
    """Kernels and launchers of a folder link together: no two of them may share a name."""
    after = plan.manifest.replaced(plan.entries, plan.gone, "").kernels
    entries = {(str(entry["target"]), str(entry["name"])): entry for entry in after}
    for (target, name), entry in entries.items():
        other = entries.get((target, f"{name}_launch"))
        if other is not None and launcher_files(entry):
            file = str(entry["file"])
            diagnostics.error(
                "T2C602",
                f"the launcher of {file} would be called {name}_launch, as {other['file']} is",
                None,
                help="--no-launcher, or write them to different folders with -o",
                file=file,
            )


def _commit(job: Job, plan: _Plan) -> Written:
    folder, files = job.folder, plan.files
    after = plan.manifest.replaced(plan.entries, plan.gone, job.scope.tile2c)
    written = [*files, *plan.companions]
    before = {file for file in written if (folder / file).exists()}
    plan.changes.write(layout.MANIFEST, format_manifest(after))
    unchanged = tuple(
        file for file in written if file in before and not _changes(folder, file, plan.changes)
    )
    gone = [f for f in plan.gone if f in plan.changes.removals and (folder / f).exists()]
    commit(folder, plan.changes)
    remember(folder, {file: holders.source_path(k.manifest) for file, k in files.items()})
    return Written(
        files=(*(file for file in written if file not in unchanged), *plan.modules),
        unchanged=unchanged,
        kept=tuple(file for file in unchanged if file in plan.edited),
        removed=tuple(gone),
    )


def _errors(diagnostics: Diagnostics) -> int:
    return sum(item.severity is Severity.ERROR for item in diagnostics.items)


def _changes(folder: Path, file: str, changes: Changes) -> bool:
    return file in changes.writes and (folder / file).read_bytes() != changes.writes[file]


def _plan_kernel(
    folder: Path,
    file: str,
    kernel: GeneratedKernel,
    manifest: Manifest,
    scope: Scope,
    policy: Policy,
    diagnostics: Diagnostics,
    plan: _Plan,
    compile_module: Compile | None,
) -> None:
    held = manifest.entry_of(file)
    found = decide.find(folder, file, held)
    taken = found.text is not None  # a file that somebody removed is free again
    if taken and not holders.check_holder(
        file, kernel, held, scope, diagnostics, edited=found.edited, force=policy.force
    ):
        return
    refused = refused_elsewhere(folder, file, kernel, manifest, scope, policy, diagnostics)
    if refused:
        plan.refused += refused
        return
    kernel = with_launcher(kernel, file, held, scope, diagnostics)
    decision = decide.decide(kernel, file, found, policy, diagnostics)
    for companion in kernel.companions:
        path = beside(file, companion.name)
        _plan_companion(
            folder, path, file, kernel, companion, manifest, scope, policy, diagnostics, plan
        )
    if decision is None:
        return
    plan.conflicts += decision.conflicts > 0
    if decision.edited:
        plan.edited.add(file)
    if decision.saved is not None:
        plan.changes.write(_free_name(folder, f"{file}.orig"), decision.saved)
    plan.changes.write(file, decision.text)
    plan.changes.write(layout.base_file(file), decision.base)
    plan.changes.write(layout.map_file(file), map_text(file, kernel, decision.base))
    modules: list[JsonValue] = []
    if compile_module is not None and not decision.conflicts:
        module = compile_module(kernel, file, decision.text, diagnostics)
        if module is not None:
            modules.append(_plan_module(file, kernel, module, decision.text, plan))
    elif held is not None and decision.text == found.text:
        modules += modules_of(held)
    plan.entries.append(entry_for(kernel, file, decision.base, scope.defines, modules))
    if held is not None:
        kept = {str(module["file"]) for module in modules if isinstance(module, dict)}
        _remove_modules(held, kept, plan.changes)
        kept = {beside(file, companion.name) for companion in kernel.companions}
        _remove_launcher(folder, held, kept, diagnostics, plan)


def refused_elsewhere(
    folder: Path,
    file: str,
    kernel: GeneratedKernel,
    manifest: Manifest,
    scope: Scope,
    policy: Policy,
    diagnostics: Diagnostics,
) -> list[str]:
    """Files in which OUT has another kernel of this name and target; an error says so of each."""
    refused = []
    for entry in holders.elsewhere(manifest, file, kernel):
        other = str(entry["file"])
        found = decide.find(folder, other, entry)
        if found.text is not None and not holders.check_holder(
            other, kernel, entry, scope, diagnostics,
            edited=found.edited, force=policy.force, beside=True,
        ):  # fmt: skip
            refused.append(other)
    return refused


def _plan_companion(
    folder: Path,
    file: str,
    owner: str,
    kernel: GeneratedKernel,
    companion: Companion,
    manifest: Manifest,
    scope: Scope,
    policy: Policy,
    diagnostics: Diagnostics,
    plan: _Plan,
) -> None:
    """A file of the launcher, treated as the kernel's file `owner` is."""
    holder = next((entry for entry in manifest.kernels if file in launcher_files(entry)), None)
    other = holder is not None and holder["file"] != owner and not scope.whole
    if holder is not None and other and (folder / str(holder["file"])).exists():
        diagnostics.error(
            "T2C602",
            f"{file} belongs to {holder['file']}, not to {owner}",
            None,
            help="choose another folder with -o, or name both targets in one run",
            file=file,
        )
        return
    found = decide.find(folder, file, holder)
    text = replace(kernel, text=companion.text)
    decision = decide.decide(text, file, found, Policy(merge=policy.merge, force=policy.force),
                             diagnostics)  # fmt: skip
    if decision is None:
        return
    plan.conflicts += decision.conflicts > 0
    if decision.edited:
        plan.edited.add(file)
    if decision.saved is not None:
        plan.changes.write(_free_name(folder, f"{file}.orig"), decision.saved)
    plan.changes.write(file, decision.text)
    plan.changes.write(layout.base_file(file), decision.base)
    plan.companions.append(file)


def _remove_launcher(
    folder: Path, held: Entry, kept: set[str], diagnostics: Diagnostics, plan: _Plan
) -> None:
    """Removes the launcher's files that an entry had and has no longer; edited ones stay."""
    for file in launcher_files(held):
        if file in kept or file in plan.companions:
            continue
        if decide.find(folder, file, held).edited:
            diagnostics.warning(
                "T2C611",
                f"{file} stays because it was edited by hand, but {held['name']} has no launcher "
                "any longer",
                None,
                help=f"delete {file}, or ask for --launcher",
                file=file,
            )
            continue
        plan.gone.append(file)
        plan.changes.remove(file)
        plan.changes.remove(layout.base_file(file))


def _plan_module(
    file: str, kernel: GeneratedKernel, module: Module, text: str, plan: _Plan
) -> JsonValue:
    from tile2c.transpile.output.entries import module_entry

    name = layout.module_file(file, kernel.suffix, module.arch, module.suffix)
    plan.changes.writes[name] = module.content
    plan.modules.append(name)
    return module_entry(module.arch, name, module.content, module.compiler, text)


def _free_name(folder: Path, file: str) -> str:
    """`gemm.cu.orig`, or `.orig.1` and so on if that is taken."""
    name, count = file, 0
    while (folder / name).exists():
        count += 1
        name = f"{file}.{count}"
    return name


def _plan_removals(
    folder: Path,
    manifest: Manifest,
    files: dict[str, GeneratedKernel],
    scope: Scope,
    diagnostics: Diagnostics,
    plan: _Plan,
) -> None:
    for entry, moved in holders.own_entries_left(manifest, files, scope, plan.refused):
        file = str(entry["file"])
        found = decide.find(folder, file, entry)
        if found.edited:
            warn_kept(entry, moved, diagnostics)
            if moved:
                plan.gone.append(file)
            continue
        plan.gone.append(file)
        for path in (file, layout.base_file(file), layout.map_file(file)):
            plan.changes.remove(path)
        _remove_modules(entry, set(), plan.changes)
        _remove_launcher(folder, entry, set(), diagnostics, plan)


def warn_kept(entry: Entry, moved: bool, diagnostics: Diagnostics) -> None:
    """An edited file that a run would remove stays; the warning says why it is left over."""
    file = entry["file"]
    reason = (
        f"{entry['name']} for {entry['target']} now lies elsewhere"
        if moved
        else f"{holders.source_of(entry)} no longer has a kernel {entry['name']}"
    )
    diagnostics.warning(
        "T2C611",
        f"{file} stays because it was edited by hand, but {reason}",
        None,
        help=f"move the edits to where they belong and delete {file}",
        file=str(file),
    )


def _remove_modules(entry: Entry, kept: set[str], changes: Changes) -> None:
    for module in modules_of(entry):
        if isinstance(module, dict) and module.get("file") not in kept:
            changes.remove(str(module.get("file")))
