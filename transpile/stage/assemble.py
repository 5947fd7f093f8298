"""Puts a traced kernel, its sizes and its constants together as a module: the normal form."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst
from tile2c.transpile.stage import expressions as ex
from tile2c.transpile.stage.concrete import language_node, literal_node
from tile2c.transpile.stage.kernel import Parameter, Traced
from tile2c.transpile.stage.language import Language
from tile2c.transpile.stage.origins import Origin
from tile2c.transpile.stage.residual import Statement, trailing
from tile2c.transpile.stage.values import Cell

_BLANK = cst.EmptyLine(indent=False)
_HEADER = "import tilelang.language as T\n"


def assemble(ev: Language, traced: Traced, name: str) -> tuple[cst.Module, tuple[str, ...]]:
    """The module and its run-time sizes."""
    function = _function(ev, traced, name)
    used = ev.residual.write.written
    sizes = tuple(size for size in ev.declared_sizes if size in used)
    if passed := _passed(ev, traced, sizes):
        traced.parameters += passed
        shaped = {size for parameter in traced.parameters for size in parameter.annotation.sizes}
        traced.passed += tuple(one.name for one in passed if one.name not in shaped)
        function = _function(ev, traced, name)
    names = {parameter.name for parameter in traced.parameters}
    sizes = tuple(size for size in sizes if size not in names)
    constants = sorted(
        (cell for name_, cell in ev.constants.items() if name_ in used), key=lambda cell: cell.order
    )
    body: list[Statement] = [_import()]
    statements = [_size(ev, size) for size in sizes] + [_constant(cell) for cell in constants]
    if statements:
        statements[0] = statements[0].with_changes(leading_lines=[_BLANK])
    body += [*statements, function]
    return cst.Module(body), sizes


def _import() -> cst.SimpleStatementLine:
    alias = cst.ImportAlias(
        cst.Attribute(cst.Name("tilelang"), cst.Name("language")), cst.AsName(cst.Name("T"))
    )
    return cst.SimpleStatementLine([cst.Import([alias])])


def _size(ev: Language, name: str) -> cst.SimpleStatementLine:
    args = [cst.Arg(literal_node(name))]
    if ev.declared_sizes[name] != "int32":
        args.append(cst.Arg(language_node(ev.declared_sizes[name])))
    return _assign(name, cst.Call(language_node("dynamic"), args))


def _constant(cell: Cell) -> cst.SimpleStatementLine:
    line = _assign(cell.name, literal_node(cell.value))
    return line.with_changes(trailing_whitespace=trailing(cell.comment))


def _assign(name: str, value: cst.BaseExpression) -> cst.SimpleStatementLine:
    return cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name))], value)])


def _passed(ev: Language, traced: Traced, sizes: Sequence[str]) -> list[Parameter]:
    """The sizes that are no dimension or stride of a tensor by themselves: the caller passes them,
    as arguments behind the author's."""
    declared = traced.closure.node.args
    count = len([*declared.posonlyargs, *declared.args, *declared.kwonlyargs])
    if len(traced.parameters) < count and ev.diagnostics.failed:
        return []  # an argument whose type is wrong may be the one that tells
    return [
        Parameter(size, ex.language(ev.declared_sizes[size]), None)
        for size in sizes
        if not any(_tells(parameter, size) for parameter in traced.parameters)
        and size not in {parameter.name for parameter in traced.parameters}
    ]


def _tells(parameter: Parameter, size: str) -> bool:
    for group in parameter.annotation.args:
        if any(part.kind == "size" and part.op == size for part in group.args):
            return True
    return False


def _function(ev: Language, traced: Traced, name: str) -> cst.FunctionDef:
    origins = ev.residual.origins
    origin = _head_origin(traced)
    decorator = cst.Decorator(language_node("prim_func"))
    body = traced.body
    suite = ev.residual.suite(body, None, origin, traced.footer)
    lead = [_BLANK, _BLANK, *(cst.EmptyLine(comment=cst.Comment(c)) for c in traced.comments)]
    parameters = [
        _parameter(ev, parameter, origin, last=position == len(traced.parameters) - 1)
        for position, parameter in enumerate(traced.parameters)
    ]
    before: cst.BaseParenthesizableWhitespace = cst.SimpleWhitespace("")
    if parameters:
        before = _new_line(None, indented=True)
    function = cst.FunctionDef(
        cst.Name(name),
        cst.Parameters(parameters),
        suite,
        decorators=[decorator],
        leading_lines=lead,
        whitespace_before_params=before,
    )
    origins[function] = origin
    return function


def _head_origin(traced: Traced) -> Origin:
    source, node = traced.closure.source, traced.closure.node
    span = source.span(node)
    return Origin(span, f"def {traced.closure.name}")


def _parameter(ev: Language, parameter: Parameter, origin: Origin, *, last: bool) -> cst.Param:
    place = origin if parameter.span is None else Origin(parameter.span, parameter.name)
    node = cst.Param(
        cst.Name(parameter.name),
        cst.Annotation(ev.residual.write.node(parameter.annotation, place)),
        comma=cst.Comma(whitespace_after=_new_line(parameter.comment, indented=not last)),
    )
    ev.residual.origins[node] = place
    return node


def _new_line(comment: str | None, *, indented: bool) -> cst.ParenthesizedWhitespace:
    trailing = cst.TrailingWhitespace()
    if comment is not None:
        trailing = cst.TrailingWhitespace(cst.SimpleWhitespace("  "), cst.Comment(comment))
    return cst.ParenthesizedWhitespace(
        trailing, indent=True, last_line=cst.SimpleWhitespace("    " if indented else "")
    )
