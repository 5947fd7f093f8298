"""Tile programs given as text: built, run in the emulator with both checks, compared with their meaning."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tile2c
from tile2c.transpile import pipeline
from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.ir import interpret
from tile2c.transpile.stage.defines import parse_defines

HEAD = "import tilelang\nimport tilelang.language as T\n\n\n"
CUDA, HIP = "cuda:sm_80", "hip:gfx942"


def written(folder: Path, text: str) -> Path:
    """The program as a file; the two import lines are put in front."""
    path = folder / "program.py"
    path.write_text(HEAD + text, encoding="utf-8")
    return path


def checked(
    folder: Path,
    text: str,
    arguments: Mapping[str, Any],
    target: str = CUDA,
    *,
    rtol: float = 1e-5,
    atol: float = 1e-5,
    **defines: object,
) -> dict[str, Any]:
    """Runs the file's one kernel and compares every written tensor with the interpreter's.

    `arguments` holds every parameter, outputs too: what the kernel leaves alone keeps its value.
    Returns the tensors by name.
    """
    path = written(folder, text)
    meaning = meant(path, arguments, **defines)
    kernels = tile2c.build(
        path, folder / "out", target, defines, backend="emulate", check="races,memory"
    )
    (name,) = kernels
    given = {key: _copied(value) for key, value in arguments.items()}
    kernels[name](**given)
    for key, wanted in meaning.items():
        np.testing.assert_allclose(
            given[key].astype(np.float64), wanted.astype(np.float64), rtol, atol, err_msg=key
        )
    return given


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def meant(path: Path, arguments: Mapping[str, Any], **defines: object) -> dict[str, Any]:
    """What the tile program itself gives."""
    spelled = parse_defines(tuple(f"{name}={value}" for name, value in defines.items()))
    request = pipeline.Request(inputs=(path,), targets=(CUDA,), defines=spelled)
    ((_, function),) = pipeline.functions(request, Diagnostics())
    return interpret.run(function, arguments)


def text_of(folder: Path, text: str, target: str = CUDA, **defines: object) -> str:
    """The generated kernel file of a program with one kernel."""
    out = folder / "out"
    tile2c.build(written(folder, text), out, target, defines, backend="emulate")
    return written_text(out)


def written_text(out: Path) -> str:
    """The one kernel file of a folder, whatever its dialect."""
    (path,) = [x for x in out.iterdir() if x.is_file() and x.suffix != ".json"]
    return path.read_text(encoding="utf-8")


def refusal(folder: Path, text: str, target: str = CUDA, **defines: object) -> str:
    """The messages with which a program is refused; fails if it is not."""
    try:
        tile2c.build(written(folder, text), folder / "out", target, defines, backend="emulate")
    except tile2c.TranspileError as problem:
        return str(problem)
    raise AssertionError("the program was not refused")


def values(shape: tuple[int, ...] | int, dtype: str = "float32", seed: int = 0) -> Any:
    """Random numbers: small integers for integer types, normal ones for floats."""
    generator = np.random.default_rng(seed)
    kind = named(dtype)
    if np.dtype(kind).kind in "iu":
        low = 0 if np.dtype(kind).kind == "u" else -50
        return generator.integers(low, 50, shape).astype(kind)
    return generator.standard_normal(shape).astype(kind)


def named(dtype: str) -> Any:
    """The NumPy type of a language type."""
    if hasattr(np, dtype):
        return getattr(np, dtype)
    import ml_dtypes

    return getattr(ml_dtypes, dtype)


def empty(shape: tuple[int, ...] | int, dtype: str = "float32", fill: float = -7) -> Any:
    """An output that shows which elements were left alone."""
    return np.full(shape, fill, named(dtype))
