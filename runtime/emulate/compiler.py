"""Builds emulated modules with the host's g++ and keeps them in the user's cache."""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tile2c.runtime.emulate.arch import Arch
from tile2c.runtime.emulate.text.rewrite import TextError, hide_includes, rewrite
from tile2c.runtime.errors import BackendUnavailable, KernelError
from tile2c.transpile.user_cache import is_kept, keep, made_folder, user_cache

_HERE = Path(__file__).parent
INCLUDE = _HERE / "include"
TOLD_AFTER = 1.0  # seconds
_LIBRARY_FOLDERS = ("core", "models")
_LANGUAGE = ["-std=c++17", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing", "-fwrapv",
             "-ffp-contract=off", "-fno-math-errno", "-w"]  # fmt: skip
_LIBRARY_FLAGS = [*_LANGUAGE, "-g1"]
# What runs once a launch need not be fast, and compiles in a third of the time.
_COLD = {"launch", "report", "signals", "arena", "mbarrier", "bulk", "cluster"}
# Large frames touch each page, so that one that is too large meets the page below its stack.
_FRAMES = "-fstack-clash-protection"
# Equal calls stay apart: the place of a call is its line in reports.
_PLAIN = [*_LANGUAGE, _FRAMES, "-O2", "-g1", "-fno-crossjumping", "-fno-tree-tail-merge"]
# The kernel calls our hooks before each load and store; it is not linked with the sanitizer.
_CHECKED = [*_LANGUAGE, _FRAMES, "-O1", "-g1", "-fsanitize=thread",
            "--param", "tsan-instrument-func-entry-exit=0", "-fsanitize=alignment"]  # fmt: skip


@cache
def find_compiler() -> str:
    """The host's C++ compiler. Raises BackendUnavailable when there is none."""
    wanted = os.environ.get("TILE2C_HOST_CXX")
    found = shutil.which(wanted or "g++")
    if found is None:
        raise BackendUnavailable(
            f"emulation compiles kernels with {wanted or 'g++'}, which is not on PATH; install it "
            "(Debian and Ubuntu: apt install g++, Fedora: dnf install gcc-c++) or name another "
            "GCC 11 or later in TILE2C_HOST_CXX"
        )
    return found


def compiler_state() -> str:
    """Changes when the host's compiler is another, as after an update."""
    compiler = Path(find_compiler()).resolve()
    state = compiler.stat()
    return f"{compiler} {state.st_size} {state.st_mtime_ns}"


def cache_folder() -> Path:
    """Where modules are kept; TILE2C_CACHE overrides the user's cache folder.

    Where it cannot be made, or others can write to it, a folder of this process alone: that costs time
    and nothing else.
    """
    folder = user_cache("emulate")
    try:
        if not made_folder(folder):
            return _passing_folder(folder, "is not used: others can write to it")
    except OSError as error:
        return _passing_folder(folder, f"cannot be made ({error.strerror or error})")
    return folder


@cache
def _passing_folder(wanted: Path, reason: str) -> Path:
    """A folder that is gone when the process ends."""
    print(
        f"tile2c: {wanted} {reason}, so what is compiled now is not kept; TILE2C_CACHE names another "
        "folder",
        file=sys.stderr,
        flush=True,
    )
    folder = tempfile.mkdtemp(prefix="tile2c-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _digest(parts: Iterable[bytes]) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(len(part).to_bytes(8, "little"))
        total.update(part)
    return total.hexdigest()[:24]


def _header_parts() -> Iterator[bytes]:
    """What every compiled file of the runtime depends on: compiler, flags, headers."""
    yield f"{compiler_state()} {' '.join(_LIBRARY_FLAGS)}".encode()
    for path in [_HERE / "abi.h", *_files(".h")]:
        yield path.relative_to(_HERE).as_posix().encode()
        yield path.read_bytes()


def _files(suffix: str) -> list[Path]:
    folders = (*_LIBRARY_FOLDERS, "include")
    return sorted(path for folder in folders for path in (_HERE / folder).rglob("*" + suffix))


@cache
def _sources_digest() -> str:
    """Changes when the compiler or a C++ file of the emulator does."""
    sources = (part for path in _files(".cpp") for part in (path.name.encode(), path.read_bytes()))
    return _digest([*_header_parts(), *sources])


def _run(
    command: list[str], text: str | None = None, folder: str | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(
        command,
        input=text,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=folder,
    )


def _object(source: Path, headers: str) -> Path:
    """One compiled file of the runtime; compiled again when it or any header has changed."""
    level = "-O0" if source.stem in _COLD else "-O2"
    command = [find_compiler(), *_LIBRARY_FLAGS, level, "-c", str(source)]
    state = _digest([headers.encode(), level.encode(), source.name.encode(), source.read_bytes()])
    target = cache_folder() / f"object-{source.stem}-{state}.o"
    if is_kept(target):
        return target
    with tempfile.TemporaryDirectory(dir=cache_folder()) as scratch:
        done = _run([*command, "-o", f"{scratch}/made.o"])
        if done.returncode:
            raise BackendUnavailable(
                f"the host's compiler cannot build the emulator: {done.stderr.strip()[:2000]}"
            )
        keep(f"{scratch}/made.o", target)
    return target


@contextmanager
def told_if_slow() -> Iterator[None]:
    """Says on standard error what takes so long, once it does."""

    def tell() -> None:
        text = "tile2c: compiling the emulator's own library, once for this user and version"
        print(text, file=sys.stderr, flush=True)

    timer = threading.Timer(TOLD_AFTER, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _library() -> Path:
    """The runtime, compiled once for each version of its sources."""
    target = cache_folder() / f"runtime-{_sources_digest()}.a"
    if is_kept(target):
        return target
    headers = _digest(_header_parts())
    sources = [path for name in _LIBRARY_FOLDERS for path in sorted((_HERE / name).glob("*.cpp"))]
    with told_if_slow(), ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        objects = list(pool.map(lambda source: _object(source, headers), sources))
    with tempfile.TemporaryDirectory(dir=cache_folder()) as scratch:
        made = f"{scratch}/runtime.a"
        done = _run(["ar", "rcs", made, *map(str, objects)])
        if done.returncode:
            raise BackendUnavailable(
                f"`ar` cannot build the emulator's library: {done.stderr.strip()[:2000]}"
            )
        keep(made, target)
    return target


def _forget_library() -> None:
    """Removes what the runtime is made of: a file of the cache may be damaged, as by a full disk."""
    for path in [*cache_folder().glob("object-*.o"), *cache_folder().glob("runtime-*.a")]:
        path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """One kernel file for one architecture, with or without checks."""

    file: str  # as the caller named it, for messages
    text: str
    arch: Arch
    checked: bool
    brief: bool = False  # no optimisation, for kernels that are small and run once
    instances: tuple[str, ...] = ()  # of kernel templates

    @property
    def flags(self) -> list[str]:
        flags = _CHECKED if self.checked else _PLAIN
        if self.arch.folder == "hip":  # _Float16 of GCC 12: each operation rounds
            flags = [*flags, "-fexcess-precision=16"]
        return ["-O0" if flag.startswith("-O") else flag for flag in flags] if self.brief else flags


def _macros(request: BuildRequest) -> list[str]:
    arch = request.arch
    numbers = (
        ("EMU_WARP", str(arch.warp)),
        ("EMU_STATIC_LIMIT", str(arch.static_shared)),
        ("EMU_TOTAL_LIMIT", str(arch.total_shared)),
        ("EMU_ARCH_NAME", f'"{arch.name}"'),
    )
    return [f"-D{name}={value}" for name, value in (*arch.macros, *numbers)]


_ERROR = re.compile(
    r"^(?P<file>[^:\n]*):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$", re.MULTILINE
)
_KERNEL_LINE = re.compile(r"\bkernel:(\d+)\b")


def _refuse(request: BuildRequest, output: str) -> KernelError:
    """The first complaint of the compiler, at the author's line."""
    first = _ERROR.search(output)
    if first is None:
        return KernelError(
            f"the emulator cannot compile it: {output.strip()[:500]}", file=request.file
        )
    line = int(first["line"])
    if first["file"] != "kernel":
        inside = _KERNEL_LINE.search(output)
        line = int(inside.group(1)) if inside else 0
    text = first["text"]
    called = re.search(r"declared with attribute error: (.*)$", text)
    if called:
        text = called.group(1)
    return KernelError(
        f"does not compile for the emulator: {text}", file=request.file, line=line or None
    )


def _preprocess(request: BuildRequest) -> str:
    hidden = f'#line 1 "kernel"\n{hide_includes(request.text)}'
    if "#define" not in request.text and "#if" not in request.text:
        return hidden
    command = [find_compiler(), "-E", "-x", "c++", "-std=c++17", *_macros(request), "-"]
    done = _run(command, hidden)
    if done.returncode:
        raise _refuse(request, done.stderr)
    return done.stdout


def build(request: BuildRequest) -> Path:
    """The module for a request, from the cache or compiled now.

    Raises KernelError when the text holds what the emulator does not model, BackendUnavailable
    without a compiler.
    """
    flags = request.flags
    identity = (
        request.text,
        *request.instances,
        *flags,
        *_macros(request),
        *_own_headers(request.arch),
    )
    identity = (*identity, _sources_digest(), _text_step_digest())
    target = cache_folder() / f"kernel-{_digest(part.encode() for part in identity)}.so"
    if is_kept(target):
        return target
    try:
        source = rewrite(_preprocess(request), request.arch.name, request.instances)
    except TextError as error:
        raise KernelError(error.message, file=request.file, line=error.line) from None
    include = _HERE / "include"
    library = _library()
    # a header from elsewhere includes ours by their folder
    seen = [f"-I{include}"] if Path(request.arch.header).is_absolute() else []
    with tempfile.TemporaryDirectory(dir=cache_folder()) as scratch:
        made, compiled = f"{scratch}/kernel.so", f"{scratch}/kernel.o"
        compile_it = [
            find_compiler(), *flags, *_macros(request), f"-I{include / request.arch.folder}", *seen,
            "-include", str(include / request.arch.header), "-x", "c++", "-c", "kernel", "-o", compiled,
        ]  # fmt: skip
        link_it = [find_compiler(), "-shared", "-Wl,-Bsymbolic", compiled, str(library), "-o", made]
        # Its name is what line tables call it.
        Path(scratch, "kernel").write_text(source, encoding="utf-8")
        done = _run(compile_it, folder=scratch)
        if not done.returncode and _run(link_it, folder=scratch).returncode:
            _forget_library()
            _library()
            done = _run(link_it, folder=scratch)
        if done.returncode:
            raise _refuse(request, done.stderr)
        keep(made, target)
    return target


def _own_headers(arch: Arch) -> list[str]:
    """The headers of a target that comes from elsewhere: modules depend on them as well."""
    paths = [Path(arch.header)] if Path(arch.header).is_absolute() else []
    if Path(arch.folder).is_absolute():
        paths += sorted(path for path in Path(arch.folder).rglob("*") if path.is_file())
    return [path.read_text(encoding="utf-8") for path in paths]


@cache
def _text_step_digest() -> str:
    files = sorted((_HERE / "text").glob("*.py"))
    return _digest(path.read_bytes() for path in [*files, _HERE / "compiler.py"])
