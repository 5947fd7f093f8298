"""Where this user's cache lies: what is kept there is made again when it is not there.

Much of it is run when it is read. So it counts only where no one else can have written it: the file and
its folder are the user's own and closed to the writing of others. Digests in names and heads are no
protection, as others can compute them too.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def user_cache(part: str) -> Path:
    """The folder of one kind of things, which need not exist; TILE2C_CACHE names another parent."""
    chosen = os.environ.get("TILE2C_CACHE")
    if chosen:
        return Path(chosen) / part
    from platformdirs import user_cache_path

    return user_cache_path("tile2c", appauthor=False) / part


def made_folder(folder: Path) -> bool:
    """Makes the folder if it is missing, for the user alone; whether what lies there can be trusted.

    Raises OSError where it cannot be made.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return is_ours(os.stat(folder))


def is_ours(state: os.stat_result) -> bool:
    """Whether a file or folder is the user's and closed to the writing of others.

    Where users have no numbers, as on Windows, the cache lies in the user's profile.
    """
    if not hasattr(os, "getuid"):
        return True
    return state.st_uid == os.getuid() and not state.st_mode & _OTHERS


def is_kept(path: Path) -> bool:
    """Whether the file is there and only the user can have written it; its folder is looked at too."""
    try:
        return is_ours(os.stat(path.parent)) and is_ours(os.stat(path))
    except OSError:
        return False


def read_kept(path: Path) -> bytes | None:
    """What the file holds; None where there is none, or where others can have written it."""
    try:
        with path.open("rb") as stream:
            trusted = is_ours(os.stat(path.parent)) and is_ours(os.fstat(stream.fileno()))
            return stream.read() if trusted else None
    except OSError:
        return None


def keep(made: str | Path, path: Path) -> None:
    """Puts a file in place whole, closed to others whatever the umask says. Raises OSError."""
    os.chmod(made, os.stat(made).st_mode & ~_OTHERS)
    os.replace(made, path)


def write_kept(path: Path, content: bytes) -> None:
    """Writes a file that others see whole or not at all. Raises OSError and leaves nothing then."""
    import contextlib
    import tempfile

    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with open(handle, "wb") as stream:
            stream.write(content)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
