"""A kernel's entry in the manifest and its map file."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tile2c.transpile.output import header
from tile2c.transpile.output.commit import encoded
from tile2c.transpile.output.generated import GeneratedKernel, JsonValue
from tile2c.transpile.output.manifest import Entry, format_json


def entry_for(
    kernel: GeneratedKernel,
    file: str,
    base: str,
    defines: tuple[str, ...],
    modules: list[JsonValue],
) -> Entry:
    """The manifest's entry; its `sha256` is that of the base, line ends normalized."""
    entry: Entry = dict(kernel.manifest)
    entry.update(name=kernel.name, target=kernel.target, file=file, modules=modules)
    source = entry.get("source")
    if isinstance(source, dict):  # without folders: the same bytes wherever the source lies
        entry["source"] = {**source, "file": Path(str(source.get("file", ""))).name}
    entry["defines"] = list(defines if kernel.defines is None else sorted(kernel.defines))
    entry["sha256"] = hashlib.sha256(encoded(header.normalized(base))).hexdigest()
    return entry


def modules_of(entry: Entry) -> list[JsonValue]:
    """The compiled modules that an entry lists."""
    modules = entry.get("modules")
    return list(modules) if isinstance(modules, list) else []


def module_entry(arch: str, file: str, content: bytes, compiler: str, text: str) -> JsonValue:
    """One of an entry's `modules`; `text_sha256` tells which text it was compiled from."""
    return {
        "arch": arch,
        "file": file,
        "sha256": hashlib.sha256(content).hexdigest(),
        "compiler": compiler,
        "text_sha256": text_digest(text),
    }


def text_digest(text: str) -> str:
    """sha256 of a kernel file's text, line ends normalized."""
    return hashlib.sha256(encoded(header.normalized(text))).hexdigest()


def map_text(file: str, kernel: GeneratedKernel, base: str) -> str:
    """The map file: lines of the base and their places; columns count from 1, ends inclusive.

    The base of an edited file keeps its header while the text is the same: lines count under that.
    """
    down = _lines_above(base) - _lines_above(kernel.text)
    lines: list[JsonValue] = []
    for origin in kernel.origins:
        span = origin.span
        lines.append(
            {
                "first": origin.first + down,
                "last": origin.last + down,
                "file": Path(span.file).name,
                "line": span.line,
                "col": span.col + 1,
                "end_line": span.end_line,
                "end_col": span.end_col,
            }
        )
    return format_json({"version": 1, "file": file, "lines": lines}) + "\n"


def _lines_above(text: str) -> int:
    """How many lines end with the header."""
    parts = header.split(header.normalized(text))
    return len(parts.before) + len(parts.header)
