"""Templates as code, kept in the user's cache: Jinja needs as long to compile those of one kernel
as the whole of its lowering takes.

Only ever a cache. What is read is executed, so a file counts only if it and its folder are the
user's own and no one else can write to them. The digest at a file's head is no protection against
others, who could compute it as well: it covers the code itself and all that it was made from, so
that what is stale or damaged is made anew. A file is put in place whole, so that runs side by side
do not meet halves; where nothing can be written, nothing is kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import marshal
import os
import stat
import sys
from importlib.util import MAGIC_NUMBER
from pathlib import Path

import jinja2
from jinja2 import BytecodeCache, compiler
from jinja2.bccache import Bucket
from tile2c.transpile.user_cache import user_cache

_DIGEST = 32  # bytes


class CompiledTemplates(BytecodeCache):
    """`syntax`: the environment's settings, which the code depends on."""

    def __init__(self, syntax: dict[str, bool]) -> None:
        made_by = (sorted(syntax.items()), jinja2.__version__, _state_of_compiler())
        self._made_by = MAGIC_NUMBER + repr(made_by).encode()
        self._folder = user_cache("templates")

    def load_bytecode(self, bucket: Bucket) -> None:
        try:
            if not _is_ours(os.stat(self._folder)):
                return
            with self._file(bucket).open("rb") as stream:
                if not _is_ours(os.fstat(stream.fileno())):
                    return
                data = stream.read()
        except OSError:
            return
        code = data[_DIGEST:]
        if data[:_DIGEST] == self._digest(bucket, code):
            bucket.code = marshal.loads(code)

    def dump_bytecode(self, bucket: Bucket) -> None:
        code = marshal.dumps(bucket.code)
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if _is_ours(os.stat(self._folder)):
                _put(self._file(bucket), self._digest(bucket, code) + code)

    def _file(self, bucket: Bucket) -> Path:
        """One for a template, whose path is in the key, and a version of Python."""
        return self._folder / f"{bucket.key}.{sys.implementation.cache_tag}"

    def _digest(self, bucket: Bucket, code: bytes) -> bytes:
        parts = (self._made_by, bucket.checksum.encode(), code)
        return hashlib.sha256(b"\0".join(parts)).digest()


def _state_of_compiler() -> tuple[int, int] | None:
    """Changes with a Jinja that is edited in place; None where it is no file, as in a zip."""
    try:
        state = os.stat(compiler.__file__)
    except OSError:
        return None
    return state.st_size, state.st_mtime_ns


def _is_ours(state: os.stat_result) -> bool:
    """Whether a file or folder is the user's and closed to the writing of others.

    Where users have no numbers, as on Windows, the cache lies in the user's profile.
    """
    if not hasattr(os, "getuid"):
        return True
    return state.st_uid == os.getuid() and not state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _put(path: Path, content: bytes) -> None:
    """Writes a file that others see whole or not at all. Raises OSError and leaves nothing then."""
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
