"""Kernels that methods of classes make: objects are made with `-D CLASS.NAME`, calls or defaults."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tile2c.transpile.record import record
from tile2c.transpile.stage.defines import Dynamic
from tile2c.transpile.stage.values import (
    MISSING,
    Closure,
    Decorated,
    HostClass,
    HostTensor,
    Instance,
    JitFunction,
    Missing,
    Scope,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from tile2c.transpile.read import Source
    from tile2c.transpile.stage.language import Language


@record
class Method:
    """A function of a class: its value as the class has it, and the closure inside."""

    cls: HostClass
    name: str
    value: Value
    closure: Closure

    @property
    def takes_object(self) -> bool:
        return not isinstance(self.value, Decorated)


def methods(scope: Scope, source: Source) -> Iterator[Method]:
    """The methods of a module's own classes, in the order of the text."""
    for cell in scope.cells.values():
        if not isinstance(cell.value, HostClass) or cell.value.source is not source:
            continue
        for inner in cell.value.scope.cells.values():
            value = inner.value.function if isinstance(inner.value, Decorated) else inner.value
            closure = value.inner if isinstance(value, JitFunction) else value
            if isinstance(closure, Closure) and isinstance(closure.node, ast.FunctionDef):
                yield Method(cell.value, inner.name, inner.value, closure)


def made_with(cls: HostClass) -> dict[str, Value]:
    """What an object is made with: the names, and their defaults."""
    init = cls.scope.cells.get("__init__")
    if init is None or not isinstance(init.value, Closure):
        return dict(cls.fields)
    spec = init.value.node.args
    names = [arg.arg for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)][1:]
    return {name: init.value.defaults.get(name, MISSING) for name in names}


def known_arguments(bound: Mapping[str, Value]) -> dict[str, Value]:
    """A call's arguments that fix something, those of the object that it is a method of too."""
    owner = next(iter(bound.values()), None)
    found = dict(owner.made_with) if isinstance(owner, Instance) else {}
    found |= {name: value for name, value in bound.items() if value is not owner}
    return {k: v for k, v in found.items() if not isinstance(v, Unknown | HostTensor)}


def bound_method(
    ev: Language, method: Method, arguments: Mapping[str, Value], kernels: frozenset[str]
) -> tuple[Value, dict[str, Value]]:
    """The method of an object that is made for it, and what the object was made with."""
    if not method.takes_object:
        return method.value.function, {}
    given: dict[str, Value] = {}
    for name, default in made_with(method.cls).items():
        fixed = ev.defines.find(name, kernels)
        value = arguments.get(name, default)
        if isinstance(fixed, Dynamic):
            value = MISSING
        elif not isinstance(fixed, Missing):
            value = fixed
        if isinstance(value, Missing):
            value = ev.declare_size(name, "int32", method.cls.node, dynamic=False)
        given[name] = value
    made = ev.invoke(method.cls, [], given, method.cls.node)
    return ev.attribute(made, method.name, method.cls.node), given
