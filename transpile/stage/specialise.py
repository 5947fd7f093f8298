"""From a file to its kernels: which functions make some, and with which values each is made."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from keyword import iskeyword

from tile2c.transpile.diagnostics import Diagnostics, Span
from tile2c.transpile.read import Source
from tile2c.transpile.record import record
from tile2c.transpile.stage import class_kernels
from tile2c.transpile.stage.defines import Defines, Dynamic
from tile2c.transpile.stage.device import Device
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.kernel import (
    Traced,
    declared_in_body,
    signature_types,
    trace_eager,
    trace_prim_func,
)
from tile2c.transpile.stage.language import Language
from tile2c.transpile.stage.program import (
    contains_kernel,
    has_tiles,
    importer,
    is_prim_func,
    launches,
    makes_kernels,
    run_module,
)
from tile2c.transpile.stage.state import Frame
from tile2c.transpile.stage.suggest import old_access
from tile2c.transpile.stage.survey import Found
from tile2c.transpile.stage.syntax import own_nodes
from tile2c.transpile.stage.tuning import first_config
from tile2c.transpile.stage.values import (
    MISSING,
    ClassName,
    Closure,
    Decorated,
    DType,
    JitFunction,
    Missing,
    PrimFunc,
    Scope,
    Unknown,
    Value,
)

GENERIC = frozenset(("main", "kernel", "func", "prim_func", "inner"))


def base_name(source: Source, path: Sequence[str], function: str) -> str:
    """The prim_func's name, or where that is generic the nearest enclosing one that is not.

    A method's name takes its class's in front: `Scale.kernel` makes `scale_kernel`.
    """
    if function not in GENERIC:
        return function
    names = (*path, function)
    for place in reversed(range(len(names))):
        if isinstance(names[place], ClassName):
            continue
        if place and isinstance(names[place - 1], ClassName):
            return method_name(names[place - 1], names[place])
        if names[place] not in GENERIC:
            return names[place]
    stem = re.sub(r"\W", "_", source.stem)
    return stem if stem.isidentifier() and not iskeyword(stem) else f"_{stem}"


def method_name(cls: str, method: str) -> str:
    """`row_sum_build` of `RowSum` and `_build`."""
    return f"{_snake_case(cls)}_{_snake_case(method)}"


def _snake_case(name: str) -> str:
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])", "_", name)
    return parts.strip("_").lower()


@record
class Root:
    """A module-level thing that makes kernels: a factory, an eager function or a prim_func."""

    name: str
    style: str  # "factory", "eager", "prim_func"; "method" of a class that makes kernels
    node: ast.FunctionDef
    kernels: frozenset[str]  # the names by which -D may mean its kernels
    parameters: tuple[str, ...] = ()  # of a factory; the build-time ones of an eager function
    defaults: Mapping[str, Value] = field(default_factory=dict)


@record(frozen=False)
class Made:
    """One kernel with the values that it was made with, traced."""

    root: Root
    ev: Language
    traced: Traced
    parameters: dict[str, Value]
    path: tuple[str, ...]  # enclosing functions and classes
    function: str


def evaluator(
    source: Source, defines: Defines, diagnostics: Diagnostics, kernels: frozenset[str]
) -> tuple[Language, Scope]:
    """A fresh evaluator with the module's names."""
    ev = Language(diagnostics, exact=True, frame=Frame(Scope(None), source))
    ev.importer = importer(ev)
    ev.defines, ev.kernel_names, ev.device = defines, kernels, defines.device
    scope = run_module(ev, source)
    ev.frame = Frame(scope, source)
    return ev, scope


def find_roots(source: Source, diagnostics: Diagnostics, device: Device) -> list[Root]:
    """What makes kernels in this file, in the order of the text."""
    ev, scope = evaluator(source, Defines(device=device), diagnostics, frozenset())
    roots: list[Root] = []
    for cell in scope.cells.values():
        closure = _closure(cell.value)
        if closure is not None and closure.source is source:
            root = _root_of(ev, cell.name, cell.value, closure)
            roots += [root] if root is not None else []
    met = [id(root.node) for root in roots]
    inside = {node for node in met if met.count(node) == 1}  # of several, the method makes each
    for method in class_kernels.methods(scope, source):
        if not inside & {id(part) for part in ast.walk(method.closure.node)}:
            root = _root_of_method(ev, method)
            roots += [root] if root is not None else []
    if not roots and ev.stopped is not None:
        diagnostics.add(ev.stopped)
    unique = {root.node: root for root in roots}
    return sorted(_outermost(list(unique.values())), key=lambda root: root.node.lineno)


def _outermost(roots: list[Root]) -> list[Root]:
    """The roots without those that another one makes: `kernel = scale(100, 64)` of the module is
    what the factory `scale` returns, and the survey's calls make it again with its parameters."""
    made = {
        id(part)
        for root in roots
        for part in ast.walk(root.node)
        if part is not root.node and isinstance(part, ast.FunctionDef)
    }
    return [root for root in roots if id(root.node) not in made]


def compiled_functions(source: Source) -> list[Closure]:
    """The functions of this file that stand under `tilelang.jit`, whatever they do."""
    _, scope = evaluator(source, Defines(), Diagnostics(), frozenset())
    values = [cell.value for cell in scope.cells.values()]
    found = [_closure(value) for value in values if isinstance(value, JitFunction)]
    return [closure for closure in found if closure is not None and closure.source is source]


def _closure(value: Value) -> Closure | None:
    match value:
        case JitFunction():
            return _closure(value.inner)
        case PrimFunc():
            return value.closure
        case Closure():
            return value
        case _:
            return None


def _root_of(ev: Language, name: str, value: Value, closure: Closure) -> Root | None:
    node, source = closure.node, closure.source
    if not isinstance(node, ast.FunctionDef):
        return None
    if isinstance(value, PrimFunc) or (
        isinstance(value, JitFunction) and isinstance(value.inner, PrimFunc)
    ):
        return Root(name, "prim_func", node, frozenset((name, base_name(source, (), node.name))))
    spec = node.args
    names = tuple(arg.arg for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs))
    if isinstance(value, JitFunction) and not makes_kernels(ev, closure):
        if not launches(ev, closure) and not has_tiles(ev, closure):
            return None
        run_time = declared_in_body(node) | signature_types(ev, closure)
        kept = tuple(n for n in names if n not in run_time and n not in _undeclared(closure, names))
        return Root(name, "eager", node, frozenset((name,)), kept, closure.defaults)
    if not makes_kernels(ev, closure):
        return None
    inner = frozenset(
        part.name
        for part in ast.walk(node)
        if isinstance(part, ast.FunctionDef)
        and is_prim_func(ev, part, closure.scope, closure.source)
    )
    inner |= {base_name(source, (name,), function) for function in inner}
    return Root(name, "factory", node, inner | {name}, names, closure.defaults)


def _root_of_method(ev: Language, method: class_kernels.Method) -> Root | None:
    """A method that makes kernels; `-D` may mean them by the class's name."""
    value = method.value.function if isinstance(method.value, Decorated) else method.value
    root = _root_of(ev, f"{method.cls.name}.{method.name}", value, method.closure)
    if root is None or root.style == "prim_func":
        return None
    own = root.parameters[1:] if method.takes_object else root.parameters
    objects = class_kernels.made_with(method.cls) if method.takes_object else {}
    kernels = root.kernels - {root.name} | {method.cls.name, method.name}
    kernels |= {method_name(method.cls.name, method.name)}
    names = tuple(dict.fromkeys((*objects, *own)))
    style = root.style if root.style == "eager" else "method"
    defaults = {k: v for k, v in {**objects, **root.defaults}.items() if v is not MISSING}
    return replace(root, style=style, kernels=kernels, parameters=names, defaults=defaults)


def _undeclared(closure: Closure, names: tuple[str, ...]) -> set[str]:
    """Parameters of an eager function that are indexed like tensors yet have no type."""
    indexed = {
        part.value.id
        for part in ast.walk(closure.node)
        if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name)
    }
    indexed |= {
        old_access(part) or "" for part in ast.walk(closure.node) if isinstance(part, ast.Call)
    }
    return {name for name in names if name in indexed and name not in closure.defaults}


def make(
    source: Source,
    root: Root,
    arguments: dict[str, Value],
    calls: list[Found],
    defines: Defines,
    diagnostics: Diagnostics,
) -> list[Made]:
    """The kernels of one root for one set of arguments. Raises NotReady."""
    ev, scope = evaluator(source, defines, diagnostics, root.kernels)
    value, objects = _value_of(ev, scope, source, root, arguments)
    if root.style == "prim_func":
        prim = value.inner if isinstance(value, JitFunction) else value
        assert isinstance(prim, PrimFunc)
        return _traced(ev, root, prim, {})
    closure = _closure(value)
    assert closure is not None
    bound = bind_parameters(ev, root, closure, value, arguments)
    if root.style == "eager":
        shown = {name: v for name, v in bound.items() if not isinstance(v, Missing)}
        bound |= {n: MISSING for n in _names(closure) if n not in {*root.parameters, *bound}}
        traced = trace_eager(ev, closure, bound)
        return [Made(root, ev, traced, _fixed(shown), closure.path, closure.name)]
    result = _run_factory(ev, closure, bound, root)
    made = list(_kernels_in(ev, root, result, {**objects, **bound}, calls))
    if not made and not diagnostics.failed:
        name = source.span(root.node)
        head = Span(name.file, name.line, name.col, name.line, len(source.lines[name.line - 1]))
        diagnostics.error("T2C118", f"{root.name} makes no kernel with these parameters", head)
    return made


def _value_of(
    ev: Language, scope: Scope, source: Source, root: Root, arguments: Mapping[str, Value]
) -> tuple[Value, dict[str, Value]]:
    """What makes the kernels; and what its object was made with, where it is a method."""
    for name, cell in scope.cells.items():
        closure = _closure(cell.value)
        if closure is not None and closure.node is root.node:
            return scope.cells[name].value, {}
    for method in class_kernels.methods(scope, source):
        if method.closure.node is root.node:
            return class_kernels.bound_method(ev, method, arguments, root.kernels)
    raise AssertionError(f"{root.name} is gone")


def _run_factory(ev: Language, closure: Closure, bound: dict[str, Value], root: Root) -> Value:
    """What a factory returns; the kernels in it where it is a test or a script that returns none."""
    ev.created.clear()
    if any(isinstance(node, ast.Return) and node.value for node in own_nodes(closure.node)):
        result = ev.run_closure(closure, bound, root.node)
        return result if not isinstance(result, Unknown) else list(ev.created)
    ev.exact = False
    try:
        ev.run_closure(closure, bound, root.node)
    finally:
        ev.exact = True
    compiled = [made for made in ev.created if isinstance(made, JitFunction)]
    inside = {id(node) for made in compiled for node in ast.walk(_definition(made))}
    return [made for made in ev.created if made in compiled or id(_definition(made)) not in inside]


def _definition(value: PrimFunc | JitFunction) -> ast.AST:
    closure = _closure(value)
    assert closure is not None
    return closure.node


def _names(closure: Closure) -> list[str]:
    spec = closure.node.args
    return [arg.arg for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]


def bind_parameters(
    ev: Language, root: Root, closure: Closure, value: Value, arguments: dict[str, Value]
) -> dict[str, Value]:
    """-D, then the call, then the default, then the first tuning config, else a run-time size."""
    own = _names(closure)
    bound: dict[str, Value] = {}
    if closure.owner is not None:
        bound[own.pop(0)] = closure.owner
    names = [name for name in own if root.style != "eager" or name in root.parameters]
    configs = value.configs if isinstance(value, JitFunction) else None
    for name in names:
        fixed = ev.defines.find(name, root.kernels)
        given = arguments.get(name, closure.defaults.get(name, MISSING))
        if (isinstance(given, Missing) or given is None) and configs is not None:
            given = first_config(ev, configs, bound).get(name, MISSING)
        if isinstance(fixed, Dynamic):
            given = MISSING
        elif not isinstance(fixed, Missing):
            given = fixed
        if isinstance(given, Expr) and given.kind == "size":
            given = ev.declare_size(given.op, given.dtype or "int32", root.node, dynamic=True)
        if isinstance(given, Missing):
            given = ev.declare_size(name, "int32", root.node, dynamic=False)
        bound[name] = given
    if closure.node.args.vararg is not None:
        bound[closure.node.args.vararg.arg] = ()
    if closure.node.args.kwarg is not None:
        bound[closure.node.args.kwarg.arg] = {}
    return bound


def _kernels_in(
    ev: Language, root: Root, value: Value, bound: dict[str, Value], calls: list[Found]
) -> Iterator[Made]:
    """The kernels that a factory's result stands for."""
    match value:
        case PrimFunc() | JitFunction(inner=PrimFunc()):
            prim = value if isinstance(value, PrimFunc) else value.inner
            yield from _traced(ev, root, prim, bound)  # type: ignore[arg-type]
        case tuple() | list() | dict():
            for item in value.values() if isinstance(value, dict) else value:
                yield from _kernels_in(_copy(ev), root, item, bound, calls)
        case JitFunction(inner=Closure() as inner):
            yield from _nested(ev, root, inner, value, bound, calls)
        case Closure():
            yield from _nested(ev, root, value, value, bound, calls)


def _nested(
    ev: Language,
    root: Root,
    closure: Closure,
    value: Value,
    bound: dict[str, Value],
    calls: list[Found],
) -> Iterator[Made]:
    """A factory that a factory returned, with each set of arguments that the file gives it."""
    compiled = isinstance(value, JitFunction) and has_tiles(ev, closure)
    eager = (compiled or launches(ev, closure)) and not contains_kernel(ev, closure)
    run_time = declared_in_body(closure.node) | signature_types(ev, closure) if eager else set()
    if eager:
        run_time |= _undeclared(closure, tuple(_names(closure)))
    parameters = tuple(name for name in _names(closure) if name not in run_time)
    inner = Root(
        root.name,
        "eager" if eager else "factory",
        root.node,
        root.kernels,
        parameters,
        closure.defaults,
    )
    for arguments in distinct(found.arguments for found in calls if found.node is closure.node):
        own = bind_parameters(ev, inner, closure, value, arguments)
        together = bound | own
        if eager:
            own |= {name: MISSING for name in run_time}
            traced = trace_eager(ev, closure, own)
            yield Made(root, ev, traced, _fixed(together), closure.path, closure.name)
        else:
            result = ev.run_closure(closure, own, root.node)
            yield from _kernels_in(ev, root, result, together, calls)


def _copy(ev: Language) -> Language:
    """An evaluator for another kernel of the same factory call: same sizes, nothing traced."""
    copy = Language(ev.diagnostics, exact=True, frame=ev.frame, fuel=ev.fuel, order=ev.order)
    copy.importer, copy.defines, copy.kernel_names = ev.importer, ev.defines, ev.kernel_names
    copy.declared_sizes, copy.dynamic_sizes = ev.declared_sizes, ev.dynamic_sizes
    return copy


def _traced(ev: Language, root: Root, prim: PrimFunc, bound: dict[str, Value]) -> list[Made]:
    traced = trace_prim_func(ev, prim)
    return [Made(root, ev, traced, _fixed(bound), prim.closure.path, prim.closure.name)]


def _fixed(bound: Mapping[str, Value]) -> dict[str, Value]:
    """The parameters that have a plain value, types by their names."""
    result: dict[str, Value] = {}
    for name, value in bound.items():
        if isinstance(value, DType):
            result[name] = value.name
        elif isinstance(value, bool | int | float | str) or value is None:
            result[name] = value
        elif isinstance(value, tuple | list) and all(isinstance(v, int | str) for v in value):
            result[name] = list(value)
    return result


def distinct(calls: Iterator[dict[str, Value]]) -> list[dict[str, Value]]:
    """Each set of arguments once, in order of appearance; one empty set where there is no call."""
    found: dict[str, dict[str, Value]] = {}
    for arguments in calls:
        found.setdefault(_key(arguments), arguments)
    return list(found.values()) or [{}]


def _key(arguments: dict[str, Value]) -> str:
    parts = []
    for name, value in sorted(arguments.items()):
        shown = value.op if isinstance(value, Expr) else repr(value)
        parts.append(f"{name}={'?' if isinstance(value, Missing) else shown}")
    return ",".join(parts)
