"""Runs the compile command of a kernel file's header, and keeps what it made in a cache.

The header of each file says how it is compiled; nothing else has to be known about its target.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tile2c.runtime.errors import CompileError, CompilerMissing
from tile2c.transpile.output import header
from tile2c.transpile.user_cache import made_folder, read_kept, user_cache, write_kept

_ARCH_FLAGS = ("-arch=", "--gpu-architecture=", "--offload-arch=", "--cuda-gpu-arch=")
_VERSION = re.compile(r"\b[vV]?(\d+(?:\.\d+)+)\b")
TIMEOUT = 600  # seconds; no compiler needs that long for one kernel


@dataclass(frozen=True, slots=True)
class Command:
    """A compile command without the file that it reads and the one that it writes."""

    program: str
    flags: tuple[str, ...]
    suffix: str  # of the module: .cubin

    def for_arch(self, arch: str | None) -> Command:
        """The same command for another architecture of the same text; None changes nothing."""
        if arch is None:
            return self
        flags = tuple(
            f"{flag.partition('=')[0]}={arch}" if flag.startswith(_ARCH_FLAGS) else flag
            for flag in self.flags
        )
        return Command(self.program, flags, self.suffix)

    @property
    def key(self) -> str:
        """The command as one string, for digests and messages."""
        return shlex.join((self.program, *self.flags))


def command_of(text: str, file_name: str) -> Command:
    """The command in the header of a kernel file; raises CompileError without one."""
    line = header.compile_command(text)
    if line is None:
        raise CompileError(f"{file_name}: its header has no `compile` line")
    words = shlex.split(line)
    flags: list[str] = []
    suffix = ".bin"
    rest = iter(words[1:])
    for word in rest:
        if word == "-o":
            suffix = Path(next(rest, suffix)).suffix
        elif word == "-cubin":
            flags.append(word)
            suffix = ".cubin"
        elif Path(word).name != Path(file_name).name:
            flags.append(word)
    return Command(words[0], tuple(flags), suffix)


def available(text: str, file_name: str) -> bool:
    """Whether the compiler that the header names is on the search path."""
    try:
        return shutil.which(command_of(text, file_name).program) is not None
    except CompileError:
        return False


def compile_text(text: str, file_name: str, *, arch: str | None = None) -> tuple[bytes, str]:
    """Compiles a kernel's text alone in an empty folder; the module and the compiler's version."""
    command = command_of(text, file_name).for_arch(arch)
    program = shutil.which(command.program)
    if program is None:
        raise CompilerMissing(f"{command.program} is not on the search path, {file_name} needs it")
    with tempfile.TemporaryDirectory(prefix="tile2c-") as folder:
        source = Path(folder, Path(file_name).name)
        module = Path(folder, f"module{command.suffix}")
        source.write_bytes(text.encode("utf-8", "surrogateescape"))
        flags = map(os.path.expandvars, command.flags)  # -I$MACA_PATH/include
        words = [program, *flags, source.name, "-o", module.name]
        try:
            done = subprocess.run(
                words,
                cwd=folder,
                env=_environment(command.program),
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CompileError(f"{command.key} {file_name}: {error}") from error
        if done.returncode or not module.exists():
            log = (done.stderr + done.stdout).strip() or f"exit status {done.returncode}"
            raise CompileError(f"{command.key} {file_name}\n{log}")
        return module.read_bytes(), version_of(program)


def _environment(program: str) -> dict[str, str] | None:
    """What a compiler needs to find in its environment; None leaves it as it is.

    hipcc asks the devices which vendor's text it gets, unless it is told; there may be none.
    """
    if program != "hipcc":
        return None
    return {"HIP_PLATFORM": "amd", **os.environ}


def compiled(text: str, file_name: str, *, arch: str | None = None) -> bytes:
    """The module of a text, from the user's cache if it was compiled before.

    CUDA text goes to NVRTC where its compiler is not installed.
    """
    command = command_of(text, file_name).for_arch(arch)
    program = shutil.which(command.program)
    if program is not None:
        return _cached(
            (header.body(text), command.key, version_of(program)),
            command.suffix,
            lambda: compile_text(text, file_name, arch=arch)[0],
        )
    if command.program != "nvcc":
        raise CompilerMissing(f"{command.program} is not on the search path, {file_name} needs it")
    from tile2c.runtime.nvrtc import Nvrtc

    library = Nvrtc.find()
    return _cached(
        (header.body(text), command.key, f"nvrtc {library.version}"),
        command.suffix,
        lambda: library.compile(text, file_name, command.flags),
    )


def _cached(parts: tuple[str, ...], suffix: str, make: Callable[[], bytes]) -> bytes:
    """What `make` gives, kept under a digest of `parts`; another process may do the same."""
    content = "\0".join(parts).encode("utf-8", "surrogateescape")
    name = hashlib.sha256(content).hexdigest()[:32]
    path = user_cache("modules") / f"{name}{suffix}"
    kept = read_kept(path)
    if kept is not None:
        return kept
    module = make()
    with suppress(OSError):  # a cache that cannot be written costs time, nothing else
        if made_folder(path.parent):
            write_kept(path, module)
    return module


@cache
def version_of(program: str) -> str:
    """The compiler and its version as it tells it: `nvcc 13.0.88`."""
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return Path(program).name
    versions = _VERSION.findall(done.stdout)
    longest = max(versions, key=len, default="")  # nvcc tells 13.0 and 13.0.88
    return f"{Path(program).name} {longest}".strip()
