"""What the user's own files give to `tile2c run`: inputs, and results to compare with.

Files named by `--inputs` and `--against` are executed; the tile program never is.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

from tile2c.transpile.cli.status import UsageProblem, suggestion
from tile2c.transpile.cli.together import no_such_file

if TYPE_CHECKING:
    import numpy as np
    from tile2c.runtime.records import KernelRecord


def function_of(option: str, text: str) -> Callable[..., Any]:
    """The function that `FILE.py:FUNCTION` names; executes the file."""
    file, _, name = text.rpartition(":")
    path = Path(file)
    if not file or path.suffix != ".py":
        meant = f"{text}:FUNCTION" if text.endswith(".py") else "FILE.py:FUNCTION"
        hint = f"{option} {'interpreter' if option == '--against' else 'FILE.npz'}, or {meant}"
        raise UsageProblem("T2C001", f"{option} {text}: not of the form FILE.py:FUNCTION", hint)
    if not path.is_file():
        raise no_such_file(path, option)
    spec = importlib.util.spec_from_file_location(f"tile2c_user_{path.stem}", path)
    assert spec is not None and spec.loader is not None  # a .py file always has both
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}"
        raise UsageProblem("T2C001", f"{option}: {file} cannot be run: {reason}") from error
    finally:
        sys.path.pop(0)
    function = getattr(module, name, None)
    if not callable(function):
        known = [key for key, value in vars(module).items() if inspect.isfunction(value)]
        raise UsageProblem(
            "T2C001", f"{option}: {file} has no function {name}", suggestion(name, known)
        )
    found: Callable[..., Any] = function
    return found


def given_inputs(
    text: str, record: KernelRecord, sizes: Mapping[str, int], seed: int
) -> dict[str, Any]:
    """Arrays and scalars by name from `FILE.npz`, or from a function.

    A function may take `sizes`, `seed`, `rng` and sizes by their names, and returns a dict by
    argument, or the values in the author's order without the outputs.
    """
    if text.endswith(".npz"):
        return _of_archive(text)
    import numpy as np

    function = function_of("--inputs", text)
    offered = {**sizes, "sizes": dict(sizes), "seed": seed, "rng": np.random.default_rng(seed)}
    asked = inspect.signature(function).parameters
    rest = any(p.kind is p.VAR_KEYWORD for p in asked.values())  # takes all that is offered
    wanted = {n: p for n, p in asked.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
    missing = [
        name for name, p in wanted.items() if name not in offered and p.default is inspect._empty
    ]
    if missing:
        raise UsageProblem(
            "T2C001",
            f"--inputs {text} takes {', '.join(missing)}, which tile2c run does not offer",
            f"it offers {', '.join(offered)}",
        )
    chosen = offered if rest else {name: offered[name] for name in wanted if name in offered}
    result = _called("--inputs", text, function, **chosen)
    return _by_name(result, [a.name for a in record.arguments if not a.is_out], text)


def _of_archive(text: str) -> dict[str, Any]:
    import numpy as np

    try:
        with np.load(text, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (FileNotFoundError, IsADirectoryError) as error:
        raise no_such_file(Path(text), "--inputs") from error
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise UsageProblem("T2C001", f"--inputs {text} cannot be read: {error}") from error


def expected_by(
    function: Callable[..., Any], text: str, record: KernelRecord, inputs: Mapping[str, Any]
) -> dict[str, np.ndarray[Any, Any]]:
    """What a user's NumPy function says of the outputs.

    It takes the inputs in the author's order and returns the outputs, one, several or by name.
    """
    outputs = [argument.name for argument in record.arguments if argument.written]
    arguments = [inputs[a.name] for a in record.arguments if not a.is_out]
    found = _by_name(_called("--against", text, function, *arguments), outputs, text)
    if not set(found) & set(outputs):
        known = ", ".join(outputs)
        raise UsageProblem("T2C001", f"--against {text} says nothing of {known}", None)
    return found


def _called(option: str, text: str, function: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """What the user's function returns; UsageProblem with its own words where it raises."""
    try:
        return function(*given, **named)
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)[1:]
        where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        reason = f"{type(error).__name__}: {error}{where}"
        raise UsageProblem("T2C001", f"{option} {text} cannot be called: {reason}") from error


def _by_name(result: Any, names: list[str], text: str) -> dict[str, Any]:
    if isinstance(result, Mapping):
        unknown = sorted(set(result) - set(names))
        if unknown:
            raise UsageProblem(
                "T2C001", f"{text} returns {', '.join(unknown)}, not known", f"known: {names}"
            )
        return dict(result)
    values = list(result) if isinstance(result, tuple | list) else [result]
    if len(values) != len(names):
        raise UsageProblem(
            "T2C001", f"{text} returns {len(values)} values, not the {len(names)}: {names}"
        )
    return dict(zip(names, values, strict=True))
