"""What `tile2c run` says about a file that was edited, or whose source has changed since."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tile2c.transpile.diagnostics import InputError, Note

if TYPE_CHECKING:
    from tile2c.runtime.errors import KernelError
    from tile2c.runtime.records import KernelRecord

_LINE = re.compile(r"\bline (\d+)")


def statements(error: KernelError) -> tuple[Note, ...]:
    """The tile statements of the lines that an error names, each once, in its order."""
    from tile2c.transpile.cli.where import statement_of

    lines = [error.line, *(int(number) for number in _LINE.findall(error.message))]
    found: dict[str, int] = {}
    for line in lines:
        try:
            text = None if line is None else statement_of(Path(error.file), line)
        except InputError:  # without a map the error is as good as it was
            return ()
        if text is not None and line is not None:
            found.setdefault(text, line)
    return tuple(Note(f"line {line} comes from {text}") for text, line in found.items())


def remarks(out: Path, record: KernelRecord, source: Path | None) -> Iterator[str]:
    """That the file is not as generated, and that its source is not the one it came from."""
    from tile2c.transpile.output.decide import find
    from tile2c.transpile.output.manifest import read_manifest

    manifest = read_manifest(out)
    entry = manifest.entry_of(record.file) if manifest is not None else None
    if find(out, record.file, entry).edited:
        yield f"{record.file} was edited by hand; it runs as it is"
    held = entry.get("source") if entry is not None else None
    sha256 = held.get("sha256") if isinstance(held, dict) else None
    if source is not None and hashlib.sha256(source.read_bytes()).hexdigest() != sha256:
        yield (
            f"{source.name} has changed since {record.file} was generated; "
            "tile2c with --check tells whether that matters"
        )
