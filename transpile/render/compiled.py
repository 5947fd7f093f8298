"""Templates as code, kept in the user's cache: Jinja needs as long to compile those of one kernel
as the whole of its lowering takes.

Only ever a cache. What is read is executed, so a file counts only if no one else can have written it
(`user_cache.py`). The digest at its head covers the code itself and all that it was made from, so that
what is stale or damaged is made anew; where nothing can be written, nothing is kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import marshal
import os
import sys
from importlib.util import MAGIC_NUMBER
from pathlib import Path

import jinja2
from jinja2 import BytecodeCache, compiler
from jinja2.bccache import Bucket
from tile2c.transpile.user_cache import made_folder, read_kept, user_cache, write_kept

_DIGEST = 32  # bytes


class CompiledTemplates(BytecodeCache):
    """`syntax`: the environment's settings, which the code depends on."""

    def __init__(self, syntax: dict[str, bool]) -> None:
        made_by = (sorted(syntax.items()), jinja2.__version__, _state_of_compiler())
        self._made_by = MAGIC_NUMBER + repr(made_by).encode()
        self._folder = user_cache("templates")

    def load_bytecode(self, bucket: Bucket) -> None:
        data = read_kept(self._file(bucket))
        if data is None:
            return
        code = data[_DIGEST:]
        if data[:_DIGEST] == self._digest(bucket, code):
            bucket.code = marshal.loads(code)

    def dump_bytecode(self, bucket: Bucket) -> None:
        code = marshal.dumps(bucket.code)
        with contextlib.suppress(OSError):
            if made_folder(self._folder):
                write_kept(self._file(bucket), self._digest(bucket, code) + code)

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
