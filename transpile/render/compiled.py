"""Templates as code, kept in the user's cache: Jinja needs as long to compile those of one kernel
as the whole of its lowering takes.

Only ever a cache. The digest at a file's head covers the code itself and all that it was made from,
so that what is stale or damaged is made anew; a file is put in place whole, so that runs side by
side do not meet halves; where nothing can be written, nothing is kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import marshal
import os
import sys
from importlib.util import MAGIC_NUMBER
from pathlib import Path

from jinja2 import BytecodeCache, compiler
from jinja2.bccache import Bucket
from tile2c.transpile.user_cache import user_cache

_DIGEST = 32  # bytes


class CompiledTemplates(BytecodeCache):
    """`syntax`: the environment's settings, which the code depends on."""

    def __init__(self, syntax: dict[str, bool]) -> None:
        state = os.stat(compiler.__file__)
        made_by = (sorted(syntax.items()), state.st_size, state.st_mtime_ns)
        self._made_by = MAGIC_NUMBER + repr(made_by).encode()
        self._folder = user_cache("templates")

    def load_bytecode(self, bucket: Bucket) -> None:
        try:
            data = self._file(bucket).read_bytes()
        except OSError:
            return
        code = data[_DIGEST:]
        if data[:_DIGEST] == self._digest(bucket, code):
            bucket.code = marshal.loads(code)

    def dump_bytecode(self, bucket: Bucket) -> None:
        code = marshal.dumps(bucket.code)
        path = self._file(bucket)
        temporary = path.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(self._digest(bucket, code) + code)
            os.replace(temporary, path)

    def _file(self, bucket: Bucket) -> Path:
        """One for a template, whose path is in the key, and a version of Python."""
        return self._folder / f"{bucket.key}.{sys.implementation.cache_tag}"

    def _digest(self, bucket: Bucket, code: bytes) -> bytes:
        parts = (self._made_by, bucket.checksum.encode(), code)
        return hashlib.sha256(b"\0".join(parts)).digest()
