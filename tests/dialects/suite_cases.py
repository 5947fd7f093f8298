"""The suite's own cases about reductions, scans, shuffles and atomics, for targets that they do not name.

A case is a test function that runs a program with `checked` of language_programs.py, and whose
program, or what it names in its module, spells one of these operations. It runs with `checked` bent to
another target.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

TESTS = Path(__file__).parents[1]
FOLDERS = ("language", "bug_reports")
OPERATIONS = re.compile(
    r"\bT\.(reduce_?\w*|cumsum|cummax|atomic_\w+|shfl\w*|warp_reduce\w*|ballot\w*|activemask|match_\w+|"
    r"(any|all)_(of|sync)|alloc_reducer|finalize_reducer|tvm_thread_allreduce|tvm_warp_shuffle\w*|"
    r"syncthreads_\w+)\b"
)
# Modules that are about threads as a whole: loops that sum, fragments of many layouts.
ALL_OF = ("test_scans", "test_threads", "test_atomics", "test_fragments", "test_bug_reductions")


@dataclass(frozen=True)
class Case:
    """A test function, its arguments, and the module whose `checked` is bent."""

    name: str
    function: Callable[..., None]
    arguments: tuple[tuple[str, Any], ...]
    module: ModuleType

    def __str__(self) -> str:
        return self.name

    def run(self, folder: Path, target: str) -> None:
        given = dict(self.arguments) | {"tmp_path": folder}
        if "target" in inspect.signature(self.function).parameters:
            given["target"] = target
        usual = self.module.checked

        def checked(folder: Path, text: str, arguments: Any, _: str = "", **more: Any) -> Any:
            return usual(folder, text, arguments, target, **more)

        self.module.checked = checked  # type: ignore[attr-defined]
        try:
            self.function(**given)
        finally:
            self.module.checked = usual  # type: ignore[attr-defined]


def cases() -> Iterator[Case]:
    """Every case of the suite, each choice of its other arguments once."""
    paths = sorted(path for name in FOLDERS for path in (TESTS / name).glob("test_*.py"))
    for path in paths:
        if "checked" not in path.read_text(encoding="utf-8"):
            continue
        module = _loaded(path)
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if name.startswith("test_") and _counts(function, module, path.stem in ALL_OF):
                yield from _of(f"{path.stem.removeprefix('test_')}-{name}", function, module)


def _counts(function: FunctionType, module: ModuleType, all_of: bool) -> bool:
    parts = _parts(function, module, set())
    if not any(isinstance(part, FunctionType) and part.__name__ == "checked" for part in parts):
        return False
    own = [
        part for part in parts if not isinstance(part, FunctionType) or part is not module.checked
    ]
    return all_of or any(OPERATIONS.search(_text(part)) for part in own)


def _parts(value: Any, module: ModuleType, seen: set[int]) -> list[Any]:
    """The function and what it names in its module: functions, texts, and containers of texts."""
    found = [value]
    if not isinstance(value, FunctionType):
        return found
    seen.add(id(value))
    if value.__module__ == module.__name__:
        for name in _names(value.__code__):
            other = getattr(module, name, None)
            if (
                isinstance(other, FunctionType | str | dict | tuple | list)
                and id(other) not in seen
            ):
                seen.add(id(other))
                found += _parts(other, module, seen)
    marks = getattr(value, "pytestmark", [])
    return [*found, *(mark.args for mark in marks)]


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _text(part: Any) -> str:
    return inspect.getsource(part) if isinstance(part, FunctionType) else repr(part)


def _of(name: str, function: Callable[..., None], module: ModuleType) -> Iterator[Case]:
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
        choices.append(_once(found))
    needed = set(inspect.signature(function).parameters) - {"tmp_path", "target"}
    for chosen in product(*choices):
        arguments = tuple(pair for part in chosen for pair in part)
        if needed - {key for key, _ in arguments}:
            return  # it wants more of pytest than a folder
        words = "-".join(str(value).replace("\n", " ")[:30] for _, value in arguments)
        yield Case(f"{name.replace('-test_', '-')}[{words}]", function, arguments, module)


def _once(found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return list({repr(choice): choice for choice in found}.values())


def _loaded(path: Path) -> ModuleType:
    for folder in (str(path.parent), str(TESTS / "language")):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(f"cases_of_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
