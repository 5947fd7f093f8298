"""NVIDIA's run-time compiler, for machines that have its library but no nvcc."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tile2c.runtime.errors import CompileError, CompilerMissing

NEWEST, OLDEST = 14, 11


class Nvrtc:
    """The library, loaded; `includes` are folders with cuda_fp16.h and the like."""

    def __init__(self, library: ctypes.CDLL, includes: Sequence[Path]) -> None:
        self._library = library
        self._includes = tuple(includes)
        major, minor = ctypes.c_int(), ctypes.c_int()
        library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = f"{major.value}.{minor.value}"

    @classmethod
    def find(cls) -> Nvrtc:
        """The newest library on the search path or in installed packages."""
        for name in _candidates():
            try:
                return cls(ctypes.CDLL(name), list(_include_folders()))
            except OSError:
                continue
        raise CompilerMissing(
            "neither nvcc nor NVRTC is installed: install the CUDA toolkit, "
            "or pip install nvidia-cuda-nvrtc nvidia-cuda-runtime"
        )

    def compile(self, text: str, file_name: str, flags: Sequence[str]) -> bytes:
        """The cubin of a text; raises CompileError with the compiler's log."""
        program = ctypes.c_void_p()
        source = text.encode("utf-8", "surrogateescape")
        self._call(
            "nvrtcCreateProgram", ctypes.byref(program), source, file_name.encode(), 0, None, None
        )
        options = [flag.encode() for flag in flags if flag.startswith(("-arch=", "-std=", "-D"))]
        options += [f"-I{folder}".encode() for folder in self._includes]
        array = (ctypes.c_char_p * len(options))(*options)
        try:
            if self._library.nvrtcCompileProgram(program, len(options), array):
                raise CompileError(f"{file_name}\n{self._text(program, 'ProgramLog')}")
            return self._bytes(program, "CUBIN")
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _text(self, program: ctypes.c_void_p, what: str) -> str:
        return self._bytes(program, what).rstrip(b"\0").decode("utf-8", "replace")

    def _bytes(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        content = ctypes.create_string_buffer(size.value)
        self._call(f"nvrtcGet{what}", program, content)
        return content.raw

    def _call(self, function: str, *arguments: object) -> None:
        status = getattr(self._library, function)(*arguments)
        if status:
            raise CompileError(f"{function} failed with status {status}")


def _candidates() -> Iterator[str]:
    versions = range(NEWEST, OLDEST - 1, -1)
    for version in versions:
        yield f"libnvrtc.so.{version}"
    yield "libnvrtc.so"
    for folder in _package_folders():
        for path in sorted(folder.glob("*/lib/libnvrtc.so.*"), reverse=True):
            _load_builtins(path.parent)
            yield str(path)


def _load_builtins(folder: Path) -> None:
    """NVRTC looks for its builtins on the search path only; loaded before, they are found."""
    for path in folder.glob("libnvrtc-builtins.so.*"):
        try:
            ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        except OSError:
            continue


def _package_folders() -> Iterator[Path]:
    """Where NVIDIA's Python packages lie."""
    for entry in sys.path:
        folder = Path(entry) / "nvidia"
        if folder.is_dir():
            yield folder


def _include_folders() -> Iterator[Path]:
    roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    candidates = [Path(root) / "include" for root in roots if root]
    for folder in _package_folders():
        candidates += sorted(folder.glob("*/include"), reverse=True)
    for candidate in candidates:
        if (candidate / "cuda_fp16.h").is_file():
            yield candidate
