"""A file's module level: runs it, and tells which of its functions make kernels."""

from __future__ import annotations

import ast
from collections.abc import Callable

from tile2c.transpile.diagnostics import InputError
from tile2c.transpile.read import Source
from tile2c.transpile.stage.evaluate import Evaluator
from tile2c.transpile.stage.host import Host
from tile2c.transpile.stage.state import Frame
from tile2c.transpile.stage.syntax import own_nodes
from tile2c.transpile.stage.values import (
    Closure,
    Instance,
    LanguageName,
    NotReady,
    Poisoned,
    Scope,
    ToolName,
    Value,
)


def run_module(ev: Host, source: Source) -> Scope:
    """Executes a module's statements tolerantly; what it cannot know stays Unknown."""
    scope = Scope(None)
    exact, ev.exact = ev.exact, False
    try:
        with ev.inside(Frame(scope, source)):
            ev.execute_all(source.module.body)
    finally:
        ev.exact = exact
    return scope


def importer(ev: Host) -> Callable[[Host, str], Value]:
    """Makes sibling modules into values, each once."""
    loaded: dict[str, Instance] = {}

    def load(host: Host, path: str) -> Value:
        source = host.frame.source.siblings[path]
        key = source.name
        if key not in loaded:
            loaded[key] = Instance(None, {})
            guard, host.main_guard = host.main_guard, False
            tracing, host.tracing = host.tracing, False
            try:
                scope = run_module(host, source)
            finally:
                host.main_guard, host.tracing = guard, tracing
            loaded[key].attributes.update({name: cell.value for name, cell in scope.cells.items()})
        return loaded[key]

    return load


def resolves_to(
    ev: Evaluator, node: ast.expr, scope: Scope, source: Source, names: set[str]
) -> bool:
    """Whether an expression is one of the language's names."""
    value = _value_of(ev, node, scope, source)
    return isinstance(value, LanguageName) and value.path in names


def _value_of(ev: Evaluator, node: ast.expr, scope: Scope, source: Source) -> Value:
    exact, ev.exact = ev.exact, False
    try:
        with ev.inside(Frame(scope, source)):
            return ev.evaluate(node)
    except (InputError, Poisoned, NotReady):
        return None
    finally:
        ev.exact = exact


def is_prim_func(ev: Evaluator, node: ast.AST, scope: Scope, source: Source) -> bool:
    """Whether a nested function is decorated with T.prim_func."""
    return isinstance(node, ast.FunctionDef) and any(
        resolves_to(
            ev, decorator.func if isinstance(decorator, ast.Call) else decorator, scope, source,
            {"prim_func"},
        )
        for decorator in node.decorator_list
    )  # fmt: skip


def contains_kernel(ev: Evaluator, closure: Closure) -> bool:
    """Whether a function holds a prim_func directly in its body."""
    if isinstance(closure.node, ast.Lambda):
        return False
    return any(
        is_prim_func(ev, node, closure.scope, closure.source) for node in own_nodes(closure.node)
    )


def launches(ev: Evaluator, closure: Closure) -> bool:
    """Whether a function opens T.Kernel itself: the mark of an eager kernel."""
    return any(
        isinstance(node, ast.Call)
        and resolves_to(ev, node.func, closure.scope, closure.source, {"Kernel", "ClusterKernel"})
        for node in own_nodes(closure.node)
    )


def has_tiles(ev: Evaluator, closure: Closure) -> bool:
    """Whether a function allocates tiles itself: a kernel, also where its launch is missing."""
    return any(
        isinstance(node, ast.Call)
        and resolves_to(
            ev, node.func, closure.scope, closure.source, {"alloc_shared", "alloc_fragment"}
        )
        for node in own_nodes(closure.node)
    )


def is_eager(ev: Evaluator, closure: Closure) -> bool:
    """Whether a function under `jit` is a kernel itself, not a factory of kernels."""
    return launches(ev, closure) and not makes_kernels(ev, closure)


def makes_kernels(ev: Evaluator, closure: Closure) -> bool:
    """Whether a function holds a prim_func, or a function under `jit`, at any depth."""
    return any(
        is_prim_func(ev, node, closure.scope, closure.source)
        or (node is not closure.node and _is_compiled(ev, node, closure))
        for node in ast.walk(closure.node)
        if isinstance(node, ast.FunctionDef) and node.decorator_list
    )


def _is_compiled(ev: Evaluator, node: ast.FunctionDef, closure: Closure) -> bool:
    """Whether a nested function stands under `tilelang.jit`."""
    for decorator in node.decorator_list:
        function = decorator.func if isinstance(decorator, ast.Call) else decorator
        value = _value_of(ev, function, closure.scope, closure.source)
        if isinstance(value, ToolName) and value.path.rpartition(".")[2] in ("jit", "lazy_jit"):
            return True
    return False
