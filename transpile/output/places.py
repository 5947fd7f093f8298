"""Remembers, for this user, which source each kernel file of OUT came from.

OUT itself names a source by its file name alone, so that its bytes are the same in every folder.
Two sources of the same name are told apart by this memory, and `tile2c run` finds the tile program
by it. It lies in the user's cache; without it nothing breaks.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from tile2c.transpile.user_cache import user_cache


def _memory(folder: Path) -> Path:
    name = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:32]
    return user_cache("sources") / f"{name}.json"


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Lets one run at a time change a folder, so that runs side by side keep each other's entries.

    Without a cache to hold the lock, or on a system without `flock`, runs are not held apart.
    """
    with contextlib.ExitStack() as held:
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            path = _memory(folder).with_suffix(".lock")
            path.parent.mkdir(parents=True, exist_ok=True)
            stream = held.enter_context(path.open("w"))
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def recall(folder: Path) -> dict[str, str]:
    """Absolute paths of sources by kernel file, as far as they still exist."""
    try:
        data = json.loads(_memory(folder).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(data, dict):
        return {}
    return {str(file): str(path) for file, path in data.items() if os.path.isfile(str(path))}


def source_near(folder: Path, file: str, name: str) -> Path | None:
    """The source of a kernel file: as remembered, else one of this name here or near OUT."""
    remembered = recall(folder).get(file)
    if remembered is not None:
        return Path(remembered)
    for near in (Path(), folder, folder.resolve().parent):
        if name and (near / name).is_file():
            return near / name
    return None


def remember(folder: Path, sources: Mapping[str, str]) -> None:
    """Keeps the sources of these kernel files; a memory that cannot be written is done without."""
    before = recall(folder)
    after = {**before, **{file: os.path.realpath(path) for file, path in sources.items()}}
    if after == before:
        return
    path = _memory(folder)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}")
        try:
            temporary.write_text(json.dumps(after, sort_keys=True), encoding="utf-8")
            os.replace(temporary, path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
