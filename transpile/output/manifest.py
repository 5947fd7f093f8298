"""`tile2c.json`: one entry per kernel file, in the order of their names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.output.generated import JsonValue
from tile2c.transpile.output.layout import MANIFEST
from tile2c.transpile.record import record

VERSION = 1
COLUMNS = 100

Entry = dict[str, JsonValue]

# The contract's order; keys that are not listed come before `sha256`, sorted.
_ORDER = (
    "name",
    "target",
    "file",
    "entry",
    "source",
    "parameters",
    "sizes",
    "args",
    "launch",
    "workspace",
    "modules",
)
_LAST = ("defines", "sha256")


@record
class Manifest:
    """The entries of OUT; `tile2c` is the version that last wrote them."""

    tile2c: str
    kernels: tuple[Entry, ...] = ()

    def entry_of(self, file: str) -> Entry | None:
        """The entry that holds a kernel file, by its path relative to OUT."""
        return next((entry for entry in self.kernels if entry.get("file") == file), None)

    def replaced(self, entries: Iterable[Entry], gone: Iterable[str], tile2c: str) -> Manifest:
        """With these entries in place of those of the same files, and without the files `gone`."""
        kept = {str(entry["file"]): entry for entry in self.kernels}
        for file in gone:
            kept.pop(file, None)
        kept.update((str(entry["file"]), entry) for entry in entries)
        return Manifest(tile2c, tuple(kept[file] for file in sorted(kept)))


def is_inside(file: str) -> bool:
    """Whether an entry's file is below OUT: nothing else is ever read, replaced or removed."""
    path = PurePosixPath(file)
    return bool(path.name) and not path.is_absolute() and ".." not in path.parts


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of OUT, None if there is none; raises InputError if it cannot be understood."""
    path = folder / MANIFEST
    try:
        content = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, str(error)) from error
    try:
        data = json.loads(content)
    except RecursionError as error:
        raise _unreadable(path, "it nests too deeply") from error
    except ValueError as error:
        marks = "it holds conflict marks" if "<<<<<<<" in content else str(error)
        raise _unreadable(path, marks) from error
    if not isinstance(data, dict) or not isinstance(data.get("kernels"), list):
        raise _unreadable(path, 'it has no list "kernels"')
    if data.get("version") != VERSION:
        raise _unreadable(path, f"its version is {data.get('version')!r}, not {VERSION}")
    for entry in data["kernels"]:
        if not isinstance(entry, dict) or not all(
            isinstance(entry.get(key), str) for key in ("name", "target", "file")
        ):
            raise _unreadable(path, "an entry lacks its name, target or file")
        if not is_inside(entry["file"]):
            raise _unreadable(path, f"the file {entry['file']} is not in the folder")
    return Manifest(str(data.get("tile2c", "")), tuple(data["kernels"]))


def _unreadable(path: Path, reason: str) -> Exception:
    return failure(
        "T2C607",
        f"{path.name} cannot be read: {reason}",
        None,
        help=f"repair {path.name}, or delete it and generate again",
    )


def format_manifest(manifest: Manifest) -> str:
    """The manifest's text: the same bytes for the same entries, readable in a diff."""
    data: dict[str, JsonValue] = {
        "version": VERSION,
        "tile2c": manifest.tile2c,
        "kernels": [_ordered(entry) for entry in manifest.kernels],
    }
    return format_json(data) + "\n"


def _ordered(entry: Mapping[str, JsonValue]) -> Entry:
    others = sorted(key for key in entry if key not in _ORDER and key not in _LAST)
    return {key: entry[key] for key in (*_ORDER, *others, *_LAST) if key in entry}


def format_json(value: JsonValue, indent: int = 0) -> str:
    """JSON in which whatever fits stands on one line."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + indent <= COLUMNS or not isinstance(value, dict | list) or not value:
        return flat
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        items = [
            f"{pad}{json.dumps(key, ensure_ascii=False)}: {format_json(item, indent + 2)}"
            for key, item in value.items()
        ]
        return "{\n" + ",\n".join(items) + "\n" + " " * indent + "}"
    items = [pad + format_json(item, indent + 2) for item in value]
    return "[\n" + ",\n".join(items) + "\n" + " " * indent + "]"
