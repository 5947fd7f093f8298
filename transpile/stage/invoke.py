"""Calls: how the evaluator reaches functions, classes and known modules."""

from __future__ import annotations

import ast
from dataclasses import field

from tile2c.transpile.record import record
from tile2c.transpile.stage import host_functions, library, tuning
from tile2c.transpile.stage.attributes import Attributes
from tile2c.transpile.stage.buffers import Buffer, Region
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.state import MOST_CALLS, Frame, describe
from tile2c.transpile.stage.syntax import is_generator
from tile2c.transpile.stage.values import (
    MISSING,
    BoundMethod,
    Cell,
    Closure,
    DType,
    Foreign,
    HostClass,
    HostFunction,
    Instance,
    JitFunction,
    LanguageName,
    MacroFunction,
    Missing,
    PrimFunc,
    Scope,
    ToolName,
    Unknown,
    Value,
)
from tile2c.transpile.stage.vocabulary import nearest


@record
class Argument:
    """An argument of a call: its value, and its text where it is written out."""

    value: Value
    node: ast.expr | None


@record(frozen=False)
class Caller(Attributes):
    """Adds calls to the evaluator."""

    depth: int = 0
    keyword_nodes: dict[str, ast.expr] = field(default_factory=dict)

    def _eval_Call(self, node: ast.Call) -> Value:
        function = self.evaluate(node.func)
        if isinstance(function, LanguageName):
            return self.call_language(function.path, node)
        args, keywords = self.arguments(node)
        self.keyword_nodes = {k: a.node for k, a in keywords.items() if a.node is not None}
        if isinstance(function, Closure | MacroFunction) and self.tracing:
            return self.inline(function, args, keywords, node)
        return self.invoke(
            function,
            [argument.value for argument in args],
            {key: argument.value for key, argument in keywords.items()},
            node,
        )

    def arguments(self, node: ast.Call) -> tuple[list[Argument], dict[str, Argument]]:
        """The evaluated arguments of a call, stars unpacked."""
        args: list[Argument] = []
        for arg in node.args:
            if isinstance(arg, ast.Starred):
                value = self.evaluate(arg.value)
                if isinstance(value, Unknown):
                    continue
                args += [Argument(item, None) for item in self.iterate(value, arg)]
            else:
                args.append(Argument(self.evaluate(arg), arg))
        keywords: dict[str, Argument] = {}
        for keyword in node.keywords:
            value = self.evaluate(keyword.value)
            if keyword.arg is not None:
                keywords[keyword.arg] = Argument(value, keyword.value)
            elif isinstance(value, dict):
                keywords |= {str(key): Argument(item, None) for key, item in value.items()}
        return args, keywords

    def invoke(
        self, function: Value, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        """Calls a value of any kind at build time."""
        self.burn(node)
        match function:
            case HostFunction():
                return function.run(self, args, kwargs, node)
            case Closure():
                return self.call_closure(function, args, kwargs, node)
            case BoundMethod():
                return self.call_method(function, args, kwargs, node)
            case JitFunction():
                return self.call_jit(function, args, kwargs, node)
            case Foreign():
                return library.call_library(self, function.path, args, kwargs, node)
            case ToolName():
                return self.call_tool(function.path, args, kwargs, node)
            case HostClass():
                return self._instantiate(function, args, kwargs, node)
            case Unknown():
                return function
            case DType() if len(args) == 1 and isinstance(args[0], int | float):
                return self.call_language_values(function.name, args, kwargs, node)
            case DType() if args:
                return self.call_language_values(function.name, args, kwargs, node)
            case Instance():
                method = self.attribute(function, "__call__", node)
                return self.invoke(method, args, kwargs, node)
            case LanguageName():
                return self.call_language_values(function.path, args, kwargs, node)
        function = self.known(function, node, "this call")
        if not self.exact:
            return Unknown(f"{describe(function)} cannot be called", self.span(node))
        raise self.fail("T2C112", f"{describe(function)} cannot be called", node)

    def bind(
        self, closure: Closure, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> dict[str, Value]:
        """Parameter names to values, as Python binds them; MISSING where nothing is given."""
        spec = closure.node.args
        positional = [arg.arg for arg in (*spec.posonlyargs, *spec.args)]
        if closure.owner is not None:
            args = [closure.owner, *args]
        bound: dict[str, Value] = dict(zip(positional, args, strict=False))
        rest = args[len(positional) :]
        if spec.vararg is not None:
            bound[spec.vararg.arg] = tuple(rest)
        elif rest and self.exact:
            raise self.fail(
                "T2C112",
                f"{closure.name} takes {len(positional)} arguments but gets {len(args)}",
                node,
            )
        names = (*positional, *(arg.arg for arg in spec.kwonlyargs))
        extra = {key: value for key, value in kwargs.items() if key not in names}
        if spec.kwarg is not None:
            bound[spec.kwarg.arg] = extra
        elif extra and self.exact:
            near = nearest(min(extra), names)
            raise self.fail(
                "T2C112",
                f"{closure.name} has no parameter {min(extra)}",
                node,
                help=f"did you mean {near}?" if near else None,
            )
        bound |= {key: value for key, value in kwargs.items() if key in names}
        for name in names:
            if name not in bound:
                bound[name] = closure.defaults.get(name, MISSING)
        return {name: bound[name] for name in (*names, *(n for n in bound if n not in names))}

    def call_closure(
        self, closure: Closure, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        """Executes a function of the program."""
        bound = self.bind(closure, args, kwargs, node)
        missing = [name for name, value in bound.items() if isinstance(value, Missing)]
        if missing and self.exact:
            names = ", ".join(missing)
            raise self.fail("T2C116", f"{closure.name} is called without {names}", node)
        for name in missing:
            bound[name] = Unknown(f"{closure.name} is called without {name}", self.span(node))
        return self.run_closure(closure, bound, node)

    def run_closure(self, closure: Closure, bound: dict[str, Value], node: ast.AST) -> Value:
        """Executes a function with its parameters bound."""
        if self.depth >= MOST_CALLS:
            raise self.fail("T2C113", f"{closure.name} calls itself too deeply", node)
        scope = Scope(closure.scope)
        for name, value in bound.items():
            nameable = not self.tracing and not isinstance(closure.node, ast.Lambda)
            self.define(scope, name, value, nameable=nameable)
        calls = self.frame.calls
        if self.tracing and (span := self.span(node)) is not None:
            calls = (span, *calls)
        frame = Frame(
            scope, closure.source, (*closure.path, closure.name), calls, function=closure.name
        )
        self.depth += 1
        try:
            with self.inside(frame):
                if isinstance(closure.node, ast.Lambda):
                    return self.evaluate(closure.node.body)
                if is_generator(closure.node):
                    frame.yielded = []
                result = self.run_body(closure.node.body)
                return result if frame.yielded is None else frame.yielded
        finally:
            self.depth -= 1

    def define(
        self,
        scope: Scope,
        name: str,
        value: Value,
        *,
        nameable: bool = False,
        spelling: Expr | None = None,
    ) -> Cell:
        """Binds a name; numbers may then be used by it in device code when `nameable`."""
        scope = scope.outer.get(name, scope)
        self.order += 1
        nameable = nameable and isinstance(value, bool | int | float)
        cell = Cell(name, value, self.order, nameable, spelling)
        scope.cells[name] = cell
        return cell

    def _instantiate(
        self, cls: HostClass, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        instance = Instance(cls, {})
        init = self._instance_attribute(instance, "__init__", node, [None])
        if isinstance(init, Closure):
            given = self.bind(init, args, kwargs, node)
            instance.made_with = {k: v for k, v in given.items() if v is not instance}
            self.call_closure(init, args, kwargs, node)
        elif cls.fields:
            values = dict(zip((name for name, _ in cls.fields), args, strict=False)) | kwargs
            for name, default in cls.fields:
                value = values.get(name, default)
                if isinstance(value, Missing):
                    value = Unknown(f"{cls.name} is made without {name}", self.span(node))
                instance.attributes[name] = value
            instance.made_with = dict(instance.attributes)
        return instance

    # -- by heirs --------------------------------------------------------------------------------

    def call_method(
        self, method: BoundMethod, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        match method.owner:
            case Closure() | PrimFunc():
                return Unknown("it is not evaluated", self.span(node))
            case JitFunction():  # kernel.compile(...), factory.get_tir(...)
                if method.owner.configs is not None and method.name in tuning.CHAINED:
                    return method.owner
                if method.name in ("compile", "get_tir"):
                    return self.call_jit(method.owner, args, kwargs, node)
                return Unknown(f"{method.name}() is not evaluated", self.span(node))
            case Buffer() | Expr() | Region():
                return self.device_method(method, args, kwargs, node)
        return host_functions.call_method(self, method.owner, method.name, args, kwargs, node)

    def device_method(
        self, method: BoundMethod, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        raise NotImplementedError

    def call_language(self, path: str, node: ast.Call) -> Value:
        raise NotImplementedError

    def call_language_values(
        self, path: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        raise NotImplementedError

    def call_jit(
        self, function: JitFunction, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        raise NotImplementedError

    def call_tool(
        self, path: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        raise NotImplementedError

    def inline(
        self,
        function: Closure | MacroFunction,
        args: list[Argument],
        keywords: dict[str, Argument],
        node: ast.Call,
    ) -> Value:
        raise NotImplementedError

    def run_body(self, body: list[ast.stmt]) -> Value:
        raise NotImplementedError
