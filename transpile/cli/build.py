"""`tile2c.build`: the command's work for Python callers, with exceptions instead of a status."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tile2c.transpile.cli.generate import Options, check_together, request_of, write
from tile2c.transpile.cli.report import Reporter, lines_of
from tile2c.transpile.cli.status import UsageProblem
from tile2c.transpile.diagnostics import Diagnostic, Diagnostics, InputError, render

if TYPE_CHECKING:
    from tile2c.runtime.load import Kernels


class TranspileError(ValueError):
    """The input cannot be transpiled; `diagnostics` says why, the message shows them."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        self.diagnostics = diagnostics
        shown = [render.as_text(item, lines_of) for item in render.ordered(diagnostics)]
        super().__init__("\n".join(shown))


def build_folder(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    target: str | tuple[str, ...] | None,
    defines: Mapping[str, object],
    kernels: tuple[str, ...],
    load_options: Mapping[str, Any],
    merge: bool,
    force: bool,
    launcher: bool | None,
    license_header: str | os.PathLike[str] | None,
    line_info: bool,
    modules: bool,
) -> Kernels:
    """Writes the folder and loads it. Raises TranspileError, or what `load` raises.

    Where there is no device the kernels are there all the same; calling one raises then.
    """
    from tile2c.runtime.load import load

    targets = () if target is None else (target,) if isinstance(target, str) else tuple(target)
    options = Options(
        inputs=(os.fspath(source),),
        out=os.fspath(out),
        targets=targets,
        defines=tuple(f"{name}={_spelled(value)}" for name, value in defines.items()),
        kernels=kernels,
        merge=merge,
        force=force,
        launcher=launcher,
        license_header=None if license_header is None else os.fspath(license_header),
        line_info=line_info,
        compile_modules=modules,
    )
    diagnostics = Diagnostics()
    try:
        check_together(options)
        request = request_of(options)
        write(options, request, diagnostics, Reporter("json"))
    except UsageProblem as problem:
        text = f"{problem.message}; {problem.help}" if problem.help else problem.message
        raise (FileNotFoundError if problem.code == "T2C003" else ValueError)(text) from problem
    except InputError as error:
        raise TranspileError((error.diagnostic,)) from error
    if diagnostics.failed:
        raise TranspileError(tuple(diagnostics.items))
    chosen = request.targets[0] if len(request.targets) == 1 else None
    return load(out, target=chosen, absent="later", **load_options)


def _spelled(value: object) -> str:
    """A value as `-D` takes it: words as they are, everything else as a Python literal."""
    if isinstance(value, str) and value.replace("_", "a").replace(".", "a").isalnum():
        return value
    if type(value).__module__.partition(".")[0] == "numpy":  # numbers and element types of NumPy
        return str(getattr(value, "name", value))
    if isinstance(value, type):
        return value.__name__
    return repr(value)
