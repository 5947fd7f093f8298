"""The launcher's files of a kernel: when there are any, where they lie, how the manifest lists them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.output import header
from tile2c.transpile.output.generated import Companion, GeneratedKernel, JsonValue
from tile2c.transpile.output.manifest import Entry, is_inside

KEY = "launcher"


def with_launcher(
    kernel: GeneratedKernel,
    file: str,
    held: Entry | None,
    wanted: bool | None,
    diagnostics: Diagnostics,
) -> GeneratedKernel:
    """The kernel with its launcher, if it is to have one.

    wanted  True and False are asked for; None keeps a launcher up to date that is there already
    """
    if not (wanted or (wanted is None and launcher_files(held))):
        return kernel
    from tile2c.transpile import targets
    from tile2c.transpile.render import launcher

    target = targets.find(kernel.target)
    if target.host is None:
        if wanted:
            diagnostics.warning(
                "T2C622", f"{file} has no launcher: {target.name} kernels get none", None, file=file
            )
        return kernel
    lines = header.split(header.normalized(kernel.text)).header
    entry: Entry = {**kernel.manifest, "file": file}
    source = entry.get("source")
    if isinstance(source, dict):
        entry["source"] = {**source, "file": PurePosixPath(str(source.get("file", ""))).name}
    again = next((line[12:].strip() for line in lines if line.startswith("//   again ")), "")
    made = launcher.write(
        entry,
        target,
        title=lines[0].rstrip("\n") if lines else f"// {kernel.name}",
        again=f"{again} --launcher",
    )
    companions = (
        Companion(name=made.names.header, text=made.header),
        Companion(name=made.names.source, text=made.source),
    )
    listed: JsonValue = {
        "header": beside(file, made.names.header),
        "source": beside(file, made.names.source),
        "function": made.names.launch,
    }
    return replace(kernel, companions=companions, manifest={**kernel.manifest, KEY: listed})


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
