"""Definitions, imports and comprehensions of host code."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any

from tile2c.transpile.diagnostics import InputError
from tile2c.transpile.record import record
from tile2c.transpile.stage.host_arithmetic import MOST_ITEMS
from tile2c.transpile.stage.invoke import Caller
from tile2c.transpile.stage.values import (
    MISSING,
    ClassName,
    Closure,
    Decorated,
    Foreign,
    HostClass,
    Instance,
    LanguageName,
    NotReady,
    Poisoned,
    Scope,
    ToolName,
    Unknown,
    Value,
)

Flow = tuple[str, Value] | None  # ("return", value), ("break", None), ("continue", None)


@record(frozen=False)
class Definitions(Caller):
    """Adds what binds functions, classes and modules."""

    importer: Callable[[Any, str], Value] | None = None  # a sibling module's scope, by its name
    classes: list[HostClass] = field(default_factory=list)

    def _run_FunctionDef(self, node: ast.FunctionDef) -> Flow:
        value: Value = self.closure(node, node.name)
        for decorator in reversed(node.decorator_list):
            value = self.decorate(value, decorator)
        self.define(self.frame.scope, node.name, value)
        return None

    def closure(self, node: ast.FunctionDef | ast.Lambda, name: str) -> Closure:
        spec = node.args
        positional = [arg.arg for arg in (*spec.posonlyargs, *spec.args)]
        defaults: dict[str, Value] = {}
        if spec.defaults:
            for parameter, default in zip(
                positional[-len(spec.defaults) :], spec.defaults, strict=True
            ):
                defaults[parameter] = self.evaluate(default)
        for argument, value in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
            if value is not None:
                defaults[argument.arg] = self.evaluate(value)
        return Closure(node, self.frame.scope, self.frame.source, name, defaults, self.frame.path)

    def decorate(self, value: Value, decorator: ast.expr) -> Value:
        """What a decorator makes of a function."""
        try:
            function = self.evaluate(decorator)
            result = self.invoke(function, [value], {}, decorator)
        except (InputError, Poisoned, NotReady):
            if self.exact:
                raise
            return value
        return value if isinstance(result, Unknown) else result

    def _eval_Lambda(self, node: ast.Lambda) -> Value:
        return self.closure(node, "<lambda>")

    def _run_ClassDef(self, node: ast.ClassDef) -> Flow:
        scope = Scope(self.frame.scope)
        bases = tuple(self.evaluate(base) for base in node.bases)
        cls = HostClass(node.name, node, scope, self.frame.source, bases, self.frame.path)
        frame = self.frame
        path = (*frame.path, ClassName(node.name))
        self.frame = type(frame)(scope, frame.source, path, frame.calls)
        try:
            self.execute_all(node.body)
        finally:
            self.frame = frame
        for cell in scope.cells.values():  # methods do not see the names of their class
            inner = cell.value.function if isinstance(cell.value, Decorated) else cell.value
            if isinstance(inner, Closure):
                inner.scope = frame.scope
        cls.fields = tuple(
            (statement.target.id, scope.cells[statement.target.id].value)
            if statement.value is not None
            else (statement.target.id, MISSING)
            for statement in node.body
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
        )
        self.classes.append(cls)
        self.define(self.frame.scope, node.name, cls)
        return None

    def _run_Import(self, node: ast.Import) -> Flow:
        for alias in node.names:
            path = alias.name if alias.asname else alias.name.split(".")[0]
            value = self._module(path, node)
            self.define(self.frame.scope, alias.asname or alias.name.split(".")[0], value)
        return None

    def _run_ImportFrom(self, node: ast.ImportFrom) -> Flow:
        path = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self._import_all(path, node)
                continue
            submodule = path + alias.name if path.endswith(".") else f"{path}.{alias.name}"
            if self.importer is not None and submodule in self.frame.source.siblings:
                value = self.importer(self, submodule)
            else:
                module = self._module(path, node)
                if isinstance(module, LanguageName) and alias.name == "T":
                    self.diagnostics.warning(
                        "T2C208",
                        "T cannot be imported from tilelang.language; it is taken as the language",
                        self.span(node),
                        help="import tilelang.language as T",
                    )
                    value = module
                else:
                    value = self.attribute(module, alias.name, node)
            self.define(self.frame.scope, alias.asname or alias.name, value, nameable=True)
        return None

    def _import_all(self, path: str, at: ast.AST) -> None:
        module = self._module(path, at)
        if isinstance(module, Instance):
            for name, value in module.attributes.items():
                self.define(self.frame.scope, name, value, nameable=True)

    def _module(self, path: str, at: ast.AST) -> Value:
        """A module as a value: the language, its package, a sibling, or something not read."""
        if path == "tilelang" or path.startswith("tilelang."):
            value: Value = ToolName("")
            for part in path.split(".")[1:]:
                value = self.attribute(value, part, at)
            return value
        if path in ("tvm.script.tir", "tvm.script"):
            return LanguageName("") if path.endswith("tir") else Foreign(path)
        if self.importer is not None and path in self.frame.source.siblings:
            return self.importer(self, path)
        return Foreign(path)

    # -- generators ------------------------------------------------------------------------------

    def _eval_Yield(self, node: ast.Yield) -> Value:
        self._yield([self.evaluate(node.value) if node.value is not None else None], node)
        return None

    def _eval_YieldFrom(self, node: ast.YieldFrom) -> Value:
        self._yield(list(self.iterate(self.evaluate(node.value), node)), node)
        return None

    def _yield(self, values: list[Value], node: ast.expr) -> None:
        if self.frame.yielded is None:
            raise self.fail("T2C115", "`yield` is not supported here", node)
        self.frame.yielded += values
        if len(self.frame.yielded) > MOST_ITEMS:
            raise self.fail("T2C114", "this generator gives too many items", node)

    # -- comprehensions --------------------------------------------------------------------------

    def _eval_ListComp(self, node: ast.ListComp) -> Value:
        return list(self._comprehend(node.generators, lambda: self.evaluate(node.elt)))

    _eval_GeneratorExp = _eval_ListComp

    def _eval_SetComp(self, node: ast.SetComp) -> Value:
        return set(self._comprehend(node.generators, lambda: self.evaluate(node.elt)))

    def _eval_DictComp(self, node: ast.DictComp) -> Value:
        return dict(
            self._comprehend(
                node.generators,
                lambda: (
                    self.hashable(self.evaluate(node.key), node.key),
                    self.evaluate(node.value),
                ),
            )
        )

    def _comprehend(
        self, generators: list[ast.comprehension], element: Callable[[], Value]
    ) -> Iterator[Value]:
        outer = self.frame.scope
        self.frame.scope = Scope(outer)
        try:
            yield from self._comprehend_level(generators, element)
        finally:
            self.frame.scope = outer

    def _comprehend_level(
        self, generators: list[ast.comprehension], element: Callable[[], Value]
    ) -> Iterator[Value]:
        if not generators:
            yield element()
            return
        first, *rest = generators
        items = self.evaluate(first.iter)
        if isinstance(items, Unknown | Foreign) and not self.exact:
            return
        for item in self.iterate(items, first.iter):
            self._bind_comprehended(first.target, item)
            if all(self.truth(self.evaluate(test), test) for test in first.ifs):
                yield from self._comprehend_level(rest, element)

    def _bind_comprehended(self, target: ast.expr, item: Value) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            values = list(self.iterate(item, target))
            if len(values) != len(target.elts):
                raise self.fail(
                    "T2C112", f"{len(values)} values for {len(target.elts)} names", target
                )
            for element, value in zip(target.elts, values, strict=True):
                self._bind_comprehended(element, value)
        elif isinstance(target, ast.Name):
            self.define(self.frame.scope, target.id, item)

    def execute_all(self, body: list[ast.stmt]) -> Flow:
        """Executes statements; in `host`."""
        raise NotImplementedError
