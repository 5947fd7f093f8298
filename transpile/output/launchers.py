"""The launcher's files of a kernel: when there are any, where they lie, how the manifest lists them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.output import header
from tile2c.transpile.output.generated import Companion, GeneratedKernel, JsonValue
from tile2c.transpile.output.manifest import Entry, is_inside
from tile2c.transpile.output.scope import Scope

if TYPE_CHECKING:
    from tile2c.transpile.targets import Target

KEY = "launcher"


def with_launcher(
    kernel: GeneratedKernel,
    file: str,
    held: Entry | None,
    scope: Scope,
    diagnostics: Diagnostics,
) -> GeneratedKernel:
    """The kernel with its launcher, if it is to have one.

    True and False are asked for; None keeps a launcher up to date that is there already.
    """
    wanted = scope.launcher if kernel.launcher is None else kernel.launcher
    if not (wanted or (wanted is None and launcher_files(held))):
        return kernel
    from tile2c.transpile import targets
    from tile2c.transpile.render import launcher

    target = targets.find(kernel.target)
    refusal = _refusal(kernel, target)
    if refusal is not None:
        if wanted:
            diagnostics.warning("T2C622", f"{file} has no launcher: {refusal}", None, file=file)
        return kernel
    parts = header.split(header.normalized(kernel.text))
    lines = parts.header
    entry: Entry = {**kernel.manifest, "file": file}
    source = entry.get("source")
    if isinstance(source, dict):
        entry["source"] = {**source, "file": PurePosixPath(str(source.get("file", ""))).name}
    again = header.entry(lines, "again") or ""
    made = launcher.write(
        entry,
        target,
        title=header.title(lines) or f"// {kernel.name}",
        again=again if kernel.launcher else f"{again} --launcher",
        licence="".join(parts.before),
    )
    texts = {made.names.header: made.header, made.names.source: made.source}
    if scope.format is not None:
        texts = {name: scope.format(text, beside(file, name)) for name, text in texts.items()}
    companions = tuple(Companion(name=name, text=text) for name, text in texts.items())
    listed: JsonValue = {
        "header": beside(file, made.names.header),
        "source": beside(file, made.names.source),
        "function": made.names.launch,
    }
    return replace(kernel, companions=companions, manifest={**kernel.manifest, KEY: listed})


def _refusal(kernel: GeneratedKernel, target: Target) -> str | None:
    """Why no program can launch this kernel; None if one can."""
    if target.host is None:
        return f"{target.name} kernels get none"
    arguments = kernel.manifest.get("args")
    for argument in arguments if isinstance(arguments, list) else ():
        if isinstance(argument, dict) and argument.get("kind") == "scalar":
            reason = target.host.refused.get(str(argument.get("dtype")))
            if reason is not None:
                return f"{argument.get('name')} is a {argument.get('dtype')}, and {reason}"
    return None


def beside(file: str, name: str) -> str:
    """A file in the folder of another one."""
    return str(PurePosixPath(file).with_name(name))


def launcher_files(entry: Entry | None) -> tuple[str, ...]:
    """The files that an entry lists besides its kernel's, relative to OUT."""
    found = entry.get(KEY) if entry is not None else None
    if not isinstance(found, dict):
        return ()
    files = (found.get("header"), found.get("source"))
    return tuple(file for file in files if isinstance(file, str) and is_inside(file))
