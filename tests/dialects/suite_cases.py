"""The suite's own cases about threads, for targets that their modules do not name."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

TESTS = Path(__file__).parents[1]
MODULES = (
    "language/test_scans.py",
    "language/test_threads.py",
    "language/test_atomics.py",
    "language/test_fragments.py",
    "bug_reports/test_bug_reductions.py",
)


@dataclass(frozen=True)
class Case:
    """A test function that takes a target, and the rest of its arguments."""

    name: str
    function: Callable[..., None]
    arguments: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        return self.name

    def run(self, folder: Path, target: str) -> None:
        self.function(**{"tmp_path": folder, "target": target}, **dict(self.arguments))


def cases() -> Iterator[Case]:
    """Every case of these modules that is given a target, each choice of its other arguments once."""
    for path in MODULES:
        module = _loaded(TESTS / path)
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if name.startswith("test_") and "target" in inspect.signature(function).parameters:
                yield from _of(name, function)


def _of(name: str, function: Callable[..., None]) -> Iterator[Case]:
    marks = [mark for mark in getattr(function, "pytestmark", []) if mark.name == "parametrize"]
    choices = []
    for mark in marks:
        names = mark.args[0] if isinstance(mark.args[0], tuple | list) else mark.args[0].split(",")
        several = len(names) > 1
        found = []
        for value in mark.args[1]:
            values = value if several else (value,)
            pairs = zip((n.strip() for n in names), values, strict=True)
            found.append(tuple(pair for pair in pairs if pair[0] != "target"))
        choices.append(list(dict.fromkeys(found)))
    for chosen in product(*choices):
        arguments = tuple(pair for part in chosen for pair in part)
        words = "-".join(str(value).replace("\n", " ")[:30] for _, value in arguments)
        yield Case(f"{name.removeprefix('test_')}[{words}]", function, arguments)


def _loaded(path: Path) -> ModuleType:
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(f"cases_of_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
