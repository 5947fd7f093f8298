"""Which statement of the source a line of a kernel file came from: the map files, read back."""

from __future__ import annotations

import json
from pathlib import Path

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.output import header
from tile2c.transpile.output.align import base_line
from tile2c.transpile.output.commit import read_text
from tile2c.transpile.output.layout import MANIFEST, base_file, map_file
from tile2c.transpile.output.manifest import Entry, read_manifest
from tile2c.transpile.record import record


@record
class Place:
    """A stretch of the source; lines and columns count from 1."""

    file: str
    line: int
    col: int
    end_line: int
    end_col: int


@record(kw_only=True)
class Located:
    """A line of a kernel file: its kernel, and the statements around it, innermost first.

    `edited`: the line is not as it was generated; the places are those of the line at its place.
    """

    out: Path
    file: str  # relative to OUT
    entry: Entry
    text: str  # of the line
    lines: int  # of the file
    edited: bool
    places: tuple[Place, ...]


def locate(path: Path, line: int) -> Located | None:
    """What line `line` (from 1) of a kernel file is; None if no folder above has that file.

    Raises InputError where the manifest or the map cannot be read, or the file holds conflict marks.
    """
    held = _held(path)
    if held is None:
        return None
    out, file, entry = held
    whole = header.normalized(read_text(path) or "")
    if header.has_conflict_marks(whole):
        raise failure(
            "T2C603", f"{file} holds conflict marks", None, help=f"resolve the conflicts in {file}"
        )
    text = whole.split("\n")
    base = header.normalized(read_text(out / base_file(file)) or "").split("\n")
    number, same = (line, True) if text == base else base_line(base, text, line)
    return Located(
        out=out,
        file=file,
        entry=entry,
        text=text[line - 1] if 1 <= line <= len(text) else "",
        lines=len(text) - (text[-1:] == [""]),
        edited=not same,
        places=_around(out / map_file(file), number),
    )


def _held(path: Path) -> tuple[Path, str, Entry] | None:
    """The nearest folder above whose manifest lists the file, the file in it, and its entry."""
    path = path.resolve()
    for folder in path.parents:
        if (folder / MANIFEST).is_file():
            manifest = read_manifest(folder)
            file = path.relative_to(folder).as_posix()
            entry = manifest.entry_of(file) if manifest is not None else None
            if entry is not None:
                return folder, file, entry
    return None


def _around(path: Path, line: int) -> tuple[Place, ...]:
    """The places of all stretches around a line, the shortest stretch first."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        found = [
            (item["last"] - item["first"], order, item)
            for order, item in enumerate(data["lines"])
            if item["first"] <= line <= item["last"]
        ]
        return tuple(
            Place(*(item[key] for key in ("file", "line", "col", "end_line", "end_col")))
            for _, _, item in sorted(found, key=lambda entry: (entry[0], -entry[1]))
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise failure(
            "T2C616",
            f"{path.name} cannot be read: {error}",
            None,
            help="generate again: the map is written anew",
        ) from error
