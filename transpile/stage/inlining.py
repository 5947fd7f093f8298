"""Inlines macros and helper functions that device code calls."""

from __future__ import annotations

import ast
from dataclasses import field

from tile2c.transpile.record import record
from tile2c.transpile.stage import expressions as ex
from tile2c.transpile.stage.buffers import Buffer
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.host import Host
from tile2c.transpile.stage.invoke import Argument
from tile2c.transpile.stage.origins import Origin
from tile2c.transpile.stage.residual import Residual
from tile2c.transpile.stage.state import MOST_CALLS, Frame, is_variable
from tile2c.transpile.stage.trace_values import Reference, RuntimeRegion
from tile2c.transpile.stage.values import (
    Closure,
    LanguageName,
    MacroFunction,
    Missing,
    Poison,
    Scope,
    Value,
)


@record(frozen=False)
class Inliner(Host):
    """How a call in device code becomes the callee's statements."""

    residual: Residual = field(default_factory=Residual)
    regions: list[RuntimeRegion] = field(default_factory=list)
    region_floor: int = 0  # the run-time regions outside the macro that is inlined
    statement: ast.stmt | None = None  # that is traced now

    @property
    def here(self) -> Origin:
        """The origin of the statement that is traced now."""
        raise NotImplementedError

    def claim(self, name: str, kind: str) -> str:
        """A name in the residual program for `name` of the present scope."""
        raise NotImplementedError

    def inline(
        self,
        function: Closure | MacroFunction,
        args: list[Argument],
        keywords: dict[str, Argument],
        node: ast.Call,
    ) -> Value:
        closure = function.closure if isinstance(function, MacroFunction) else function
        if self.depth >= MOST_CALLS:
            raise self.fail("T2C113", f"{closure.name} calls itself too deeply", node)
        bound = self.bind(closure, list(args), dict(keywords), node)
        missing = [name for name, value in bound.items() if isinstance(value, Missing)]
        if missing:
            raise self.fail(
                "T2C116", f"{closure.name} is called without {', '.join(missing)}", node
            )
        scope = Scope(closure.scope)
        device = isinstance(function, MacroFunction)
        span = self.span(node)
        assert span is not None
        frame = Frame(
            scope,
            closure.source,
            (*closure.path, closure.name),
            (span, *self.frame.calls),
            device,
            frozenset(),
            closure.name,
        )
        annotations = self._annotations(closure)
        for name, argument in bound.items():
            self._bind_parameter(frame, name, argument, device, name in annotations)
        return self._run_inlined(closure, frame, device)

    def _run_inlined(self, closure: Closure, frame: Frame, device: bool) -> Value:
        floor, self.region_floor = self.region_floor, len(self.regions)
        outer = self.statement
        trailing, self.residual.trailing = self.residual.trailing, None
        self.depth += 1
        reported = len(self.diagnostics.items)
        try:
            with self.inside(frame):
                if isinstance(closure.node, ast.Lambda):
                    return self.evaluate(closure.node.body)
                result = self.run_body(closure.node.body)
                wrong = result is None and len(self.diagnostics.items) > reported
                return Poison() if wrong else result
        finally:
            self.depth -= 1
            self.region_floor = floor
            self.statement = outer
            self.residual.trailing = trailing

    def _annotations(self, closure: Closure) -> set[str]:
        """The parameters that are `T.Ref`: they receive what the argument names, not its value."""
        if isinstance(closure.node, ast.Lambda):
            return set()
        spec = closure.node.args
        found = set()
        for argument in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
            if isinstance(argument.annotation, ast.Attribute | ast.Name):
                scope = Frame(closure.scope, closure.source)
                with self.inside(scope):
                    value = self.evaluate(argument.annotation)
                if isinstance(value, LanguageName) and value.path == "Ref":
                    found.add(argument.arg)
        return found

    def _bind_parameter(
        self, frame: Frame, name: str, argument: Value, device: bool, by_reference: bool
    ) -> None:
        """Binds one parameter: device scalars by value, buffers and regions by reference."""
        node = argument.node if isinstance(argument, Argument) else None
        value = argument.value if isinstance(argument, Argument) else argument
        if isinstance(value, tuple) and value and isinstance(value[0], Argument):  # *args
            value = tuple(item.value for item in value)
        elif isinstance(value, dict):
            value = {k: v.value if isinstance(v, Argument) else v for k, v in value.items()}
        if by_reference and isinstance(value, Expr) and value.access is not None:
            self.define(frame.scope, name, Reference(value.access))
            return
        spelling = None
        if isinstance(value, bool | int | float) and node is not None:
            spelling = self._spell_by_name(node, value)
        if device and not by_reference:
            value = self._by_value(frame, name, value, node)
        self.define(frame.scope, name, value, spelling=spelling)

    def _by_value(self, frame: Frame, name: str, value: Value, node: ast.expr | None) -> Value:
        """A temporary for what could change or cost something before it is used."""
        if isinstance(value, Buffer) and is_variable(value):
            value = value.expr(self.span(node))
            plain = False
        elif isinstance(value, Expr):
            plain = value.kind in ("name", "size", "constant", "literal", "language")
        else:
            return value
        if plain:
            return value
        origin = self.here
        with self.inside(frame):
            target = ex.name(self.claim(name, "temporary"), value.span, value.dtype)
        self.residual.assign(target, value, origin)
        return target
