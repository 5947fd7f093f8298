"""`--compile`, and whether a merged text still compiles: both ask the compilers that are there."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tile2c.transpile.cli.progress import busy
from tile2c.transpile.cli.report import Reporter
from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.output.generated import GeneratedKernel
from tile2c.transpile.output.write import Compile, Module


def compiler(reporter: Reporter) -> Compile:
    """A function that compiles the text of one kernel file for its manifest entry."""

    def compile_module(
        kernel: GeneratedKernel, file: str, text: str, diagnostics: Diagnostics
    ) -> Module | None:
        from tile2c.runtime import compilers
        from tile2c.runtime.errors import CompileError, CompilerMissing

        name = Path(file).name
        try:
            with busy(f"compiling {file}", reporter):
                content, version = compilers.compile_text(text, name)
                suffix = compilers.command_of(text, name).suffix
        except CompilerMissing as error:
            diagnostics.error(
                "T2C621", str(error), None, help="install it, or leave --compile out", file=file
            )
            return None
        except CompileError as error:
            diagnostics.error("T2C620", f"{file} does not compile: {error}", None, file=file)
            return None
        arch = kernel.target.partition(":")[2]
        return Module(arch=arch, suffix=suffix, content=content, compiler=version)

    return compile_module


def verify_merge(kernel: GeneratedKernel, file: str, text: str) -> str | None:
    """What a compiler says against a merged text; None if it compiles or no compiler can tell.

    A compiler that refuses the newly generated text too cannot judge the merge.
    """
    name = Path(file).name
    for attempt in (_with_vendor, _with_emulator):
        complaint = attempt(kernel, name, text)
        if complaint == "":
            return None
        if complaint is not None and attempt(kernel, name, kernel.text) == "":
            return complaint
    return None


def _with_vendor(kernel: GeneratedKernel, name: str, text: str) -> str | None:
    """The compiler's complaint, empty if it has none, None if the compiler is not there."""
    from tile2c.runtime import compilers
    from tile2c.runtime.errors import CompileError

    if not compilers.available(text, name):
        return None
    try:
        compilers.compile_text(text, name)
    except CompileError as error:
        return str(error)
    return ""


def _with_emulator(kernel: GeneratedKernel, name: str, text: str) -> str | None:
    try:
        from tile2c.runtime import emulate
    except ImportError:
        return None
    from tile2c.runtime.errors import BackendUnavailable

    family, _, arch = kernel.target.partition(":")
    with tempfile.TemporaryDirectory(prefix="tile2c-") as folder:
        path = Path(folder, name)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        try:
            emulate.load(path, family=family, arch=arch, checks=frozenset())
        except BackendUnavailable:
            return None
        except Exception as error:
            return str(error) or type(error).__name__
    return ""
