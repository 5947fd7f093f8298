"""The module of a normalized kernel: sizes, constants, parameters, launches."""

from __future__ import annotations

import re

import libcst as cst
from tile2c.transpile.diagnostics import Diagnostics
from tile2c.transpile.ir.build import arithmetic
from tile2c.transpile.ir.build.arguments import Arguments, language_name, tuple_items, type_of
from tile2c.transpile.ir.build.checks import check_function
from tile2c.transpile.ir.build.context import Builder, Names, Poison, Stop, Value
from tile2c.transpile.ir.build.expressions import expression, expressions
from tile2c.transpile.ir.build.launch import launches
from tile2c.transpile.ir.build.literals import Host, natural_type
from tile2c.transpile.ir.build.notes import own_line_comments
from tile2c.transpile.ir.build.source import NormalKernel
from tile2c.transpile.ir.dtypes import BOOL, FLOAT32, INT32
from tile2c.transpile.ir.expr import Binary, Buffer, Cast, Compare, Const, Expr, Var, const
from tile2c.transpile.ir.forms import Function, Param
from tile2c.transpile.ir.walk import expressions as expressions_of
from tile2c.transpile.ir.walk import parts, statements, variables

_WORDS = re.compile(r'''#.*|"""(?s:.*?)"""|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|([^\W\d]\w*)''')


def build(kernel: NormalKernel, diagnostics: Diagnostics) -> Function | None:
    """The tile IR of a kernel; None if errors were found, which are then in `diagnostics`."""
    before = sum(item.severity == "error" for item in diagnostics.items)
    b = Builder(kernel, diagnostics, Names(_identifiers(kernel.text)))
    function = _module(b)
    after = sum(item.severity == "error" for item in diagnostics.items)
    if function is None or after > before:
        return None
    if not _are_whole(kernel, function, diagnostics):
        return None
    check_function(function, diagnostics, b.reducers)
    return function


def _are_whole(kernel: NormalKernel, function: Function, diagnostics: Diagnostics) -> bool:
    """Whether sizes that the caller passes are used as whole numbers: nothing else says their type."""
    for launch in function.launches:
        for stmt in statements(launch.body):
            for expr in expressions_of(stmt):
                for part in parts(expr):
                    if not isinstance(part, Cast) or not part.dtype.is_float:
                        continue
                    for var in variables(part.a):
                        if var.kind == "scalar" and var.name in kernel.passed:
                            diagnostics.error(
                                "T2C116",
                                f"{var.name} has to be known: it meets floating-point numbers, and "
                                "nothing tells its type",
                                part.span or stmt.span,
                                help=f"-D {var.name}=VALUE",
                            )
                            return False
    return True


def _module(b: Builder) -> Function | None:
    found: Function | None = None
    for node in b.kernel.module.body:
        if isinstance(node, cst.FunctionDef) and node.name.value == b.kernel.name:
            found = _function(b, node)
        elif isinstance(node, cst.SimpleStatementLine):
            for part in node.body:
                if isinstance(part, cst.Assign):
                    _definition(b, part)
    if found is None and not b.diagnostics.failed:
        b.error("T2C404", f"the module has no function `{b.kernel.name}`", None)
    return found


def _definition(b: Builder, node: cst.Assign) -> None:
    """`M = T.dynamic("M")` or `block_M = 128`."""
    target = node.targets[0].target
    if len(node.targets) != 1 or not isinstance(target, cst.Name):
        return
    name = target.value
    try:
        with b.within(node):
            _within_range(b, name, node.value)
            if isinstance(node.value, cst.Call) and language_name(node.value.func) == "dynamic":
                _size(b, name, node.value)
                return
            value = expression(b, node.value)
    except Stop:
        b.scopes.bind(name, Poison())
        return
    if value.host is None:
        b.error("T2C243", f"`{name}` has to be a number known when the kernel is built", node)
        return
    _constant(b, name, value.host, node)


def _within_range(b: Builder, name: str, node: cst.BaseExpression) -> None:
    """Values from the command line have no place in the file: the message names what has them."""
    value = node.expression if isinstance(node, cst.UnaryOperation) else node
    if isinstance(value, cst.Integer) and value.evaluated_value >= 2**63:
        b.fail("T2C237", f"{name} is {value.value}, which no integer type holds", node)


def _size(b: Builder, name: str, node: cst.Call) -> None:
    args = Arguments(b, node, "T.dynamic")
    args.text("name", 0, name)
    dtype = INT32
    given = args.find("dtype", 1)
    if given is not None:
        if isinstance(given, cst.SimpleString):
            dtype = natural_type(2**40 if given.evaluated_value == "int64" else 0)
        else:
            dtype = type_of(given) or INT32
    args.finish()
    var = Var(dtype=dtype, name=b.names.unique(name), kind="size", span=b.span(node))
    b.sizes.append(var)
    b.scopes.bind(name, Value(var))


def _constant(b: Builder, name: str, number: Host, node: cst.CSTNode) -> None:
    dtype = FLOAT32 if isinstance(number, float) else natural_type(number)
    found = Const(dtype=dtype, value=number, name=b.names.unique(name), span=b.span(node))
    b.constants.append(found)
    b.scopes.bind(name, Value(found, number))


def _function(b: Builder, node: cst.FunctionDef) -> Function | None:
    with b.within(node), b.scopes.region("the kernel"):
        b.kernel_level = len(b.scopes.levels)
        found_params: dict[str, Param] = {}
        for param in sorted(node.params.params, key=_is_tensor):  # shapes may name numbers
            try:
                found_params[param.name.value] = _param(b, param)
            except Stop:
                continue
        if len(found_params) < len(node.params.params):
            return None
        params = [found_params[param.name.value] for param in node.params.params]
        body = [part for part in node.body.body if isinstance(part, cst.BaseStatement)]
        found = launches(b, body)
        if not found:
            if not b.diagnostics.failed:
                b.error(
                    "T2C404",
                    f"`{b.kernel.name}` launches nothing",
                    node.name,
                    help="put its body into `with T.Kernel(blocks, threads=128) as bx:`",
                )
            return None
        promised = tuple(_promise(b, name, b.kernel.promises[name]) for name in b.kernel.promises)
        return Function(
            name=b.kernel.name,
            params=tuple(params),
            sizes=tuple(b.sizes),
            constants=tuple(b.constants),
            launches=tuple(found),
            assumptions=(*b.assumptions, *(expr for expr in promised if expr is not None)),
            comments=own_line_comments(node.leading_lines),
            sources=tuple(dict.fromkeys(b.sources)),
            docstring=tuple(line.rstrip() for line in b.kernel.docstring),
            summary=b.kernel.summary,
            span=b.span(node),
        )


def _is_tensor(node: cst.Param) -> bool:
    return node.annotation is None or type_of(node.annotation.annotation) is None


def _promise(b: Builder, name: str, divisor: int) -> Expr | None:
    size = next((var for var in b.sizes if var.name == name), None)
    if size is None:
        return None
    rest = Binary(dtype=size.dtype, op="%", a=size, b=const(divisor, dtype=size.dtype))
    return Compare(dtype=BOOL, op="==", a=rest, b=const(0, dtype=size.dtype))


def _param(b: Builder, node: cst.Param) -> Param:
    name, annotation = node.name.value, node.annotation
    span = b.span(node)
    if annotation is None:
        b.fail(
            "T2C247",
            f"parameter `{name}` of `{b.kernel.name}` has no type",
            node,
            help=f"{name}: T.Tensor((M, K), dtype)",
        )
    given = annotation.annotation
    dtype = type_of(given)
    if dtype is not None:
        var = Var(dtype=dtype, name=b.names.unique(name), kind="scalar", span=span)
        b.scopes.bind(name, Value(var))
        return Param(name=name, scalar=var, span=span)
    function = language_name(given.func) if isinstance(given, cst.Call) else None
    if not isinstance(given, cst.Call) or function not in ("Tensor", "StridedTensor"):
        b.fail("T2C247", f"the type of parameter `{name}` is not a tensor or number", given)
    args = Arguments(b, given, f"T.{function}")
    shape = _extents(b, args.node_of("shape", 0), f"an extent of {name}")
    strides = None
    if function == "StridedTensor":
        strides = _extents(b, args.node_of("strides", 1), f"a stride of {name}")
        if len(strides) != len(shape):
            b.fail("T2C247", f"{name} has {len(shape)} extents but {len(strides)} strides", given)
    held = args.dtype("dtype", 2 if strides is not None else 1)
    args.finish()
    tensor = Buffer(
        name=b.names.unique(name), scope="global", shape=shape, dtype=held, strides=strides,
        span=span,
    )  # fmt: skip
    b.scopes.bind(name, tensor)
    return Param(name=name, tensor=tensor, span=span)


def _extents(b: Builder, node: cst.BaseExpression, what: str) -> tuple[Expr, ...]:
    items = tuple_items(node)
    values = expressions(b, items)
    return tuple(
        arithmetic.whole(b, value, item, what) for value, item in zip(values, items, strict=True)
    )


def _identifiers(text: str) -> set[str]:
    """The words of a module, keywords among them, but not those of its comments and strings."""
    return {word for word in _WORDS.findall(text) if word}
