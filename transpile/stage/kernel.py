"""Traces one prim_func, or one eager function, into the statements of its normal form."""

from __future__ import annotations

import ast
from dataclasses import field

from tile2c.transpile.diagnostics import InputError, Span
from tile2c.transpile.record import record
from tile2c.transpile.stage import expressions as ex
from tile2c.transpile.stage.buffers import Buffer
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.host import names_bound_once
from tile2c.transpile.stage.language import Language
from tile2c.transpile.stage.residual import Statement
from tile2c.transpile.stage.state import Frame
from tile2c.transpile.stage.suggest import launch_of, tensor_type
from tile2c.transpile.stage.trace_values import TensorType
from tile2c.transpile.stage.values import (
    Closure,
    DType,
    HostFunction,
    LanguageName,
    Missing,
    NotReady,
    Poison,
    Poisoned,
    PrimFunc,
    Scope,
    Value,
)


@record
class Parameter:
    """A run-time argument: its name, its annotation, the comment behind it."""

    name: str
    annotation: Expr
    span: Span | None
    comment: str | None = None


@record(frozen=False)
class Traced:
    """What is left of a kernel's function."""

    closure: Closure
    parameters: list[Parameter]
    body: list[Statement]
    footer: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)  # above the function
    docstring: list[str] = field(default_factory=list)
    passed: tuple[str, ...] = ()  # sizes in no tensor's shape: arguments behind the author's


def trace_prim_func(ev: Language, prim: PrimFunc) -> Traced:
    """Traces `@T.prim_func`. Problems are collected; NotReady is raised."""
    closure = prim.closure
    assert isinstance(closure.node, ast.FunctionDef)
    scope = Scope(closure.scope)
    _reserve(ev, closure.node)
    parameters = _prim_parameters(ev, closure, scope)
    _trace_body(ev, closure, scope)
    return _traced(ev, closure, parameters)


def trace_eager(ev: Language, closure: Closure, bound: dict[str, Value]) -> Traced:
    """Traces an eager function; `bound` holds its build-time parameters."""
    node = closure.node
    assert isinstance(node, ast.FunctionDef)
    scope = Scope(closure.scope)
    _reserve(ev, node)
    for name, value in bound.items():
        ev.define(scope, name, value, nameable=True)
    declared = _EagerParameters(closure, scope)
    declared.from_signature(ev)
    ev.eager = declared
    _trace_body(ev, closure, scope)
    _check_outputs(ev, node)
    parameters = [declared.found[name] for name in declared.order if name in declared.found]
    parameters += [
        Parameter(
            output.name, _annotation(TensorType("Tensor", output.shape, output.dtype)), output.span
        )
        for output in ev.outputs
    ]
    return _traced(ev, closure, parameters)


def _reserve(ev: Language, node: ast.FunctionDef) -> None:
    """The names that the function binds more than once stay its own: no constant takes them."""
    stored = {
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }
    ev.taken |= stored - names_bound_once(node.body)


def _trace_body(ev: Language, closure: Closure, scope: Scope) -> None:
    node = closure.node
    assert isinstance(node, ast.FunctionDef)
    frame = Frame(
        scope,
        closure.source,
        (*closure.path, closure.name),
        device=True,
        once=names_bound_once(node.body),
        function=closure.name,
    )
    ev.tracing = True
    try:
        with ev.inside(frame):
            flow = ev.trace_block(node.body, _signature_end(node))
            if flow is not None and flow[0] == "return":
                ev.returned = list(flow[1]) if isinstance(flow[1], tuple | list) else [flow[1]]
    finally:
        ev.tracing = False
    if not ev.launches and (block_loops := launch_of(node)) is not None:
        loop, launch = block_loops
        with ev.inside(frame):
            raise ev.fail(
                "T2C404",
                f"{closure.name} loops over blocks, but only a launch has any: put this loop's body into one",
                loop.iter,
                help=launch,
            )
    if not ev.launches and not ev.diagnostics.failed:
        with ev.inside(frame):
            ev.diagnostics.add(
                ev.fail(
                    "T2C404",
                    f"{closure.name} launches nothing: there is no T.Kernel in it",
                    node.body[-1],
                    help="with T.Kernel(T.ceildiv(N, block), threads=128) as bx:",
                ).diagnostic
            )


def _signature_end(node: ast.FunctionDef) -> int:
    """The last line of the signature, so that comments in it are not the body's."""
    ends = [
        part.end_lineno or 0 for part in ast.walk(node.args) if isinstance(part, ast.expr | ast.arg)
    ]
    return max([node.lineno, *ends])


def _traced(ev: Language, closure: Closure, parameters: list[Parameter]) -> Traced:
    assert len(ev.residual.blocks) == 1
    comments, docstring = _comments(closure)
    return Traced(
        closure, parameters, ev.residual.blocks[0], ev.residual.footers[0], comments, docstring
    )


def _comments(closure: Closure) -> tuple[list[str], list[str]]:
    """The comments above a kernel, its docstring among them, and the docstring's lines alone."""
    node = closure.node
    assert isinstance(node, ast.FunctionDef)
    functions = [node, *reversed(_enclosing(closure.source.module, node))]
    docstring: list[str] = []
    blocks: list[list[str]] = []
    for function in functions:
        text = ast.get_docstring(function)
        if text and not docstring:
            docstring = text.splitlines()
        first = min([function.lineno, *(d.lineno for d in function.decorator_list)])
        blocks.insert(0, list(closure.source.comments_above(first)))
    comments = [line for block in blocks for line in block]
    return [*comments, *(f"# {line}".rstrip() for line in docstring)], docstring


def _enclosing(module: ast.Module, node: ast.AST) -> list[ast.FunctionDef]:
    """The functions around `node`, outermost first."""
    path: list[ast.FunctionDef] = []
    body: list[ast.AST] = list(module.body)
    while body:
        inner = next(
            (
                part
                for part in body
                if isinstance(part, ast.FunctionDef | ast.ClassDef | ast.If | ast.With | ast.Try)
                and part is not node
                and any(child is node for child in ast.walk(part))
            ),
            None,
        )
        if inner is None:
            return path
        if isinstance(inner, ast.FunctionDef):
            path.append(inner)
        body = list(ast.iter_child_nodes(inner))
    return path


# -- parameters -----------------------------------------------------------------------------------


def _prim_parameters(ev: Language, closure: Closure, scope: Scope) -> list[Parameter]:
    assert isinstance(closure.node, ast.FunctionDef)
    parameters: list[Parameter] = []
    spec = closure.node.args
    shapes = Scope(closure.scope)  # shapes may name the kernel's own numbers, also later ones
    args = (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)
    with ev.inside(Frame(shapes, closure.source)):
        for arg in args:
            if _is_number(ev, arg.annotation) and closure.scope.find(arg.arg) is None:
                ev.define(shapes, arg.arg, ex.size(arg.arg, ev.span(arg)))
        for arg in args:
            kind = _annotated(ev, arg.annotation)
            if kind is None and arg.annotation is None:
                _untyped(ev, closure, arg)
            if kind is None:
                ev.define(scope, arg.arg, Poison())
                continue
            parameters.append(_declare(ev, scope, arg.arg, arg, kind))
    return parameters


def _is_number(ev: Language, annotation: ast.expr | None) -> bool:
    """Whether an annotation is an element type: the parameter is a number."""
    if not isinstance(annotation, ast.Attribute | ast.Name):
        return False
    try:
        return isinstance(ev.evaluate(annotation), DType)
    except (InputError, NotReady, Poisoned):
        return False


def _annotated(ev: Language, annotation: ast.expr | None) -> TensorType | DType | None:
    """The type that an annotation names; None where it names none, after an error if it should."""
    if annotation is None:
        return None
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = _quoted_annotation(annotation)
    try:
        value = ev.evaluate(annotation)
        value = ev.known(value, annotation, "a parameter's type")
        if isinstance(value, LanguageName) and value.path == "ptr":
            return TensorType("ptr", (), "handle")
        if isinstance(value, TensorType | DType):
            return value
        raise ev.fail("T2C211", "this is no type of a parameter", annotation)
    except InputError as problem:
        ev.diagnostics.add(problem.diagnostic)
    except Poisoned:
        pass
    return None


def _quoted_annotation(annotation: ast.Constant) -> ast.expr:
    try:
        inner = ast.parse(str(annotation.value), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return annotation
    for part in ast.walk(inner):
        ast.copy_location(part, annotation)
    return inner


def _untyped(ev: Language, closure: Closure, arg: ast.arg) -> None:
    ev.diagnostics.error(
        "T2C247",
        f"parameter {arg.arg} of {closure.name} has no type",
        closure.source.span(arg),
        help=f"{arg.arg}: {tensor_type(closure.node, arg.arg)}",
    )


def _declare(
    ev: Language, scope: Scope, name: str, node: ast.AST, kind: TensorType | DType
) -> Parameter:
    """Binds a run-time parameter."""
    span = ev.span(node)
    with_scope = ev.frame.scope
    ev.frame.scope = scope
    residual = ev.claim(name, "buffer")
    ev.frame.scope = with_scope
    if isinstance(kind, DType):
        ev.define(scope, name, ex.name(residual, span, kind.name))
        annotation = ex.language(kind.name, span)
    else:
        annotation = _annotation(kind, span)
        if kind.kind in ("ptr", "handle"):
            ev.define(scope, name, ex.name(residual, span, "handle"))
        else:
            buffer = Buffer(residual, "global", kind.shape, kind.dtype, span, kind.strides)
            ev.define(scope, name, buffer)
    line = getattr(node, "end_lineno", 0)
    comment = ev.frame.source.comments.get(line)
    behind = comment.text if comment is not None and not comment.own_line else None
    return Parameter(residual, annotation, span, behind)


def _annotation(kind: TensorType, span: Span | None = None) -> Expr:
    if kind.kind in ("ptr", "handle"):
        return ex.language("ptr", span)
    args = [ex.compound("tuple", "", kind.shape, span, device=False)]
    if kind.strides is not None:
        args.append(ex.compound("tuple", "", kind.strides, span, device=False))
    args.append(ex.language(kind.dtype, span))
    return ex.call(kind.kind, tuple(args), span, device=False)


@record(frozen=False)
class _EagerParameters:
    """The run-time parameters of an eager function, as their annotations are met."""

    closure: Closure
    scope: Scope
    order: list[str] = field(default_factory=list)
    found: dict[str, Parameter] = field(default_factory=dict)

    def from_signature(self, ev: Language) -> None:
        spec = self.closure.node.args
        for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
            self.order.append(arg.arg)
            cell = self.scope.cells.get(arg.arg)
            if cell is None or not isinstance(cell.value, Missing):
                continue
            with ev.inside(Frame(self.scope, self.closure.source)):
                if arg.annotation is not None:
                    kind = _annotated(ev, arg.annotation)
                    if kind is not None:
                        self.found[arg.arg] = _declare(ev, self.scope, arg.arg, arg, kind)
        self._check_untyped(ev)

    def _check_untyped(self, ev: Language) -> None:
        declared = declared_in_body(self.closure.node)
        spec = self.closure.node.args
        for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
            cell = self.scope.cells.get(arg.arg)
            missing = cell is not None and isinstance(cell.value, Missing)
            if missing and arg.arg not in declared:
                _untyped(ev, self.closure, arg)
                ev.define(self.scope, arg.arg, Poison())

    def declare(self, ev: Language, node: ast.AnnAssign) -> None:
        assert isinstance(node.target, ast.Name)
        name = node.target.id
        if name not in self.order:
            raise ev.fail("T2C247", f"{name} is no parameter of {self.closure.name}", node.target)
        kind = _annotated(ev, node.annotation)
        if kind is None:
            ev.define(self.scope, name, Poison())
        else:
            self.found[name] = _declare(ev, self.scope, name, node, kind)


def declared_in_body(node: ast.AST) -> set[str]:
    """The names that `x: T.Tensor[...]` statements of a function declare."""
    return {
        part.target.id
        for part in ast.walk(node)
        if isinstance(part, ast.AnnAssign)
        and part.value is None
        and isinstance(part.target, ast.Name)
    }


def signature_types(ev: Language, closure: Closure) -> set[str]:
    """The parameters whose annotation in the signature is a type of the language."""
    found: set[str] = set()
    if isinstance(closure.node, ast.Lambda):
        return found
    spec = closure.node.args
    with ev.inside(Frame(closure.scope, closure.source)):
        for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
            if arg.annotation is None or isinstance(arg.annotation, ast.Constant):
                continue
            base = arg.annotation
            if isinstance(base, ast.Call | ast.Subscript):
                base = base.func if isinstance(base, ast.Call) else base.value
            try:
                value = ev.evaluate(base)
            except (InputError, Poisoned, NotReady):
                continue
            tensor = getattr(value, "path", "") in ("Tensor", "StridedTensor", "Buffer", "ptr")
            if isinstance(value, DType) or (tensor and not isinstance(value, HostFunction)):
                found.add(arg.arg)
    return found


def _check_outputs(ev: Language, node: ast.FunctionDef) -> None:
    """Every `T.empty` is returned, and nothing else."""
    if ev.diagnostics.failed:
        return
    returned = ev.returned or []
    for output in ev.outputs:
        if not any(value is output for value in returned):
            ev.diagnostics.error(
                "T2C218",
                f"{output.name} is made by T.empty but not returned",
                output.span,
                help=f"return {', '.join(buffer.name for buffer in ev.outputs)}",
            )
    for value in returned:
        if not any(value is output for output in ev.outputs):
            name = value.name if isinstance(value, Buffer) else "something else"
            ev.diagnostics.error(
                "T2C218",
                f"{name} is returned, but only what T.empty made can be",
                _span_of_return(ev, node),
            )
    # The caller gets them in the order of the return statement.
    ev.outputs = [value for value in returned if isinstance(value, Buffer)]


def _span_of_return(ev: Language, node: ast.FunctionDef) -> Span | None:
    last = node.body[-1]
    return ev.frame.source.span(last)
