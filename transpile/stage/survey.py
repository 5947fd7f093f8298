"""Finds out with which arguments the kernels of a file are called, without running it."""

from __future__ import annotations

import ast
from dataclasses import field

from tile2c.transpile.diagnostics import Diagnostics, InputError
from tile2c.transpile.read import Source
from tile2c.transpile.record import record
from tile2c.transpile.stage.device import Device
from tile2c.transpile.stage.language import Language
from tile2c.transpile.stage.program import importer, makes_kernels
from tile2c.transpile.stage.state import Frame
from tile2c.transpile.stage.tuning import first_config
from tile2c.transpile.stage.values import (
    MISSING,
    Closure,
    HostTensor,
    JitFunction,
    Missing,
    NotReady,
    Poisoned,
    Scope,
    Unknown,
    Value,
)

SURVEY_FUEL = 60_000


@record
class Found:
    """One call of a function that makes kernels; MISSING where it says nothing of a parameter."""

    node: ast.AST  # the function's definition
    arguments: dict[str, Value]


@record(frozen=False)
class Survey(Language):
    """An evaluator that notes calls instead of making kernels."""

    calls: list[Found] = field(default_factory=list)
    called: set[ast.AST] = field(default_factory=set)

    def run_closure(self, closure: Closure, bound: dict[str, Value], node: ast.AST) -> Value:
        self.called.add(closure.node)
        if makes_kernels(self, closure):
            self.note(closure, bound)
        return Language.run_closure(self, closure, bound, node)

    def call_jit(
        self, function: JitFunction, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        closure = function.inner
        if isinstance(closure, Closure):
            self.called.add(closure.node)
            self.note(closure, self.bind(closure, args, kwargs, node))
        return Unknown("a kernel's result", self.span(node))

    def call_tool(
        self, path: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        made = Language.call_tool(self, path, args, kwargs, node)
        tuned = path.endswith("from_kernel") and isinstance(made, JitFunction)
        if tuned and isinstance(made.inner, Closure):
            self.note(made.inner, dict(first_config(self, made.configs, {})))
        return made

    def note(self, closure: Closure, bound: dict[str, Value]) -> None:
        """Notes a call; what is not known fixes nothing."""
        arguments = {
            name: MISSING if isinstance(value, Unknown | HostTensor) else value
            for name, value in bound.items()
        }
        # A parameter left to its default says nothing either.
        for name, value in bound.items():
            if closure.defaults.get(name, MISSING) is value and not isinstance(value, Missing):
                arguments.pop(name)
        if len(self.calls) < 10_000:
            self.calls.append(Found(closure.node, arguments))


def survey(source: Source, device: Device) -> list[Found]:
    """The calls that the file itself makes: from the main guard, else from functions not called."""
    ev = Survey(Diagnostics(), exact=False, frame=Frame(Scope(None), source), fuel=SURVEY_FUEL)
    ev.importer = importer(ev)
    ev.main_guard, ev.device = True, device
    ev.execute_all(source.module.body)
    noted = {found.node for found in ev.calls}
    functions = [
        cell.value
        for cell in ev.frame.scope.cells.values()
        if isinstance(cell.value, Closure)
        and not isinstance(cell.value.node, ast.Lambda)
        and not makes_kernels(ev, cell.value)
    ]
    used = {name for function in functions for name in _names_in(function)}
    for function in sorted(functions, key=lambda closure: closure.name in used):
        if function.node not in ev.called and ev.fuel >= 0:
            _call_with_nothing(ev, function, noted)
    return ev.calls


def _names_in(function: Closure) -> set[str]:
    """The names that a function mentions, its own left out."""
    found = {part.id for part in ast.walk(function.node) if isinstance(part, ast.Name)}
    return found - {function.name}


def _call_with_nothing(ev: Survey, function: Closure, noted: set[ast.AST]) -> None:
    """Walks a function that the main guard does not reach; it speaks for kernels not met yet."""
    before = len(ev.calls)
    bound = {
        name: Unknown(f"{function.name} is not called") if isinstance(given, Missing) else given
        for name, given in ev.bind(function, [], {}, function.node).items()
    }
    try:
        Language.run_closure(ev, function, bound, function.node)
    except (InputError, NotReady, Poisoned):
        pass  # a survey only looks; what fails in it fixes nothing
    ev.calls[before:] = [found for found in ev.calls[before:] if found.node not in noted]
