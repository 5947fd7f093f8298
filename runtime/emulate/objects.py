"""One translation unit to one object or module, for models that are compiled together with a text."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tile2c.runtime.errors import CompileError
from tile2c.transpile.user_cache import made_folder, write_kept

TIMEOUT = 300  # seconds


def compile_unit(
    compiler: str,
    flags: Sequence[str],
    text: str,
    target: Path,
    objects: Sequence[str],
    file_name: str,
) -> None:
    """Compiles `text` to `target`, whole or not at all. Raises CompileError with the messages."""
    with tempfile.TemporaryDirectory(prefix="tile2c-") as folder:
        source = Path(folder, "unit.cpp")
        source.write_bytes(text.encode("utf-8", "surrogateescape"))
        made = Path(folder, "made")
        words = [compiler, *flags, str(source), *objects, "-o", str(made)]
        try:
            done = subprocess.run(
                words, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CompileError(f"{file_name}: {error}") from error
        if done.returncode:
            raise CompileError(f"{file_name} does not compile for emulation\n{done.stderr.strip()}")
        made_folder(target.parent)
        write_kept(target, made.read_bytes())


def digest(parts: Sequence[str]) -> str:
    """A name for what depends on all of the parts."""
    content = "\0".join(parts).encode("utf-8", "surrogateescape")
    return hashlib.sha256(content).hexdigest()[:32]
