"""Writes planned changes to a folder: every file whole or not at all.

First all new contents go to temporary files, so that a full disk or a forbidden folder changes
nothing; then each replaces its file in one step, kernel files before bases; then files that are
gone are removed; the manifest comes last, so that it never lacks a file that is still there.
A run that is killed in between leaves a state from which the same command goes on.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import field
from pathlib import Path

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.output.layout import MANIFEST
from tile2c.transpile.record import record


@record(frozen=False)
class Changes:
    """New contents by path relative to the folder, in the order of writing; paths to remove."""

    writes: dict[str, bytes] = field(default_factory=dict)
    removals: list[str] = field(default_factory=list)

    def write(self, file: str, text: str) -> None:
        self.writes[file] = encoded(text)

    def remove(self, file: str) -> None:
        if file not in self.removals:
            self.removals.append(file)


def encoded(text: str) -> bytes:
    """The bytes of a text that `read_text` gave, whatever encoding they are in."""
    return text.encode("utf-8", "surrogateescape")


def read_text(path: Path) -> str | None:
    """A file's text with its own line ends, None if there is no such file."""
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _failed(path, error) from error


def commit(folder: Path, changes: Changes) -> None:
    """Applies the changes; contents that are already there are left alone. Raises InputError."""
    staged: list[tuple[Path, Path]] = []
    created: list[Path] = []
    try:
        for file, content in changes.writes.items():
            path = Path(os.path.realpath(folder / file))
            if _holds(path, content):
                continue
            created += _make_folders(path.parent)
            staged.append((_staged(path, content), path))
        last = Path(os.path.realpath(folder / MANIFEST))
        staged.sort(key=lambda pair: pair[1] == last)
        while staged and staged[0][1] != last:
            os.replace(*staged[0])
            staged.pop(0)
        for file in changes.removals:
            (folder / file).unlink(missing_ok=True)
            _drop_empty(folder, (folder / file).parent)
        if staged:
            os.replace(*staged[0])
            staged.pop(0)
    except OSError as error:
        for temporary, _ in staged:
            temporary.unlink(missing_ok=True)
        for made in reversed(created):
            with contextlib.suppress(OSError):
                made.rmdir()
        raise _failed(folder, error) from error


def _holds(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except FileNotFoundError:
        return False


def _make_folders(folder: Path) -> list[Path]:
    missing: list[Path] = []
    while not folder.exists():
        missing.insert(0, folder)
        folder = folder.parent
    for path in missing:
        path.mkdir(exist_ok=True)
    return missing


def _staged(path: Path, content: bytes) -> Path:
    """A finished temporary file beside `path`, with the mode that `path` has or would get."""
    for left_over in path.parent.glob(f".{path.name}.*.tmp"):
        if left_over.name.count(".") == path.name.count(".") + 3:  # not that of a longer name
            left_over.unlink(missing_ok=True)  # of a run that was killed
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        temporary.chmod(_mode_of(path))
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _mode_of(path: Path) -> int:
    try:
        return path.stat().st_mode & 0o7777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _drop_empty(folder: Path, path: Path) -> None:
    """Removes folders below `folder` that a removal left empty."""
    while path != folder and folder in path.parents:
        try:
            path.rmdir()
        except OSError:
            return
        path = path.parent


def _failed(path: Path, error: OSError) -> Exception:
    place = error.filename or path
    return failure("T2C606", f"{place}: {error.strerror or error}", None)
