"""Expressions of the normal form, node by node."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import libcst as cst
from tile2c.transpile.ir.build import arithmetic, elements, functions
from tile2c.transpile.ir.build.context import Builder, Poison, Stop, Value
from tile2c.transpile.ir.expr import Buffer, CompareOp, Load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tile2c.transpile.ir.expr import BinaryOp

OPERATORS: dict[type[cst.BaseBinaryOp], BinaryOp] = {
    cst.Add: "+",
    cst.Subtract: "-",
    cst.Multiply: "*",
    cst.Divide: "/",
    cst.FloorDivide: "//",
    cst.Modulo: "%",
    cst.BitAnd: "&",
    cst.BitOr: "|",
    cst.BitXor: "^",
    cst.LeftShift: "<<",
    cst.RightShift: ">>",
}
COMPARISONS: dict[type[cst.BaseCompOp], CompareOp] = {
    cst.Equal: "==",
    cst.NotEqual: "!=",
    cst.LessThan: "<",
    cst.LessThanEqual: "<=",
    cst.GreaterThan: ">",
    cst.GreaterThanEqual: ">=",
}


def expression(b: Builder, node: cst.BaseExpression) -> Value:
    """Builds one expression; `Stop` after a reported problem."""
    with b.within(node):
        return _expression(b, node)


def expressions(b: Builder, nodes: Sequence[cst.BaseExpression]) -> list[Value]:
    """Builds several, so that a problem in one does not hide those of the others."""
    found: list[Value] = []
    for node in nodes:
        try:
            found.append(expression(b, node))
        except Stop:
            continue
    if len(found) < len(nodes):
        raise Stop
    return found


def _expression(b: Builder, node: cst.BaseExpression) -> Value:
    match node:
        case cst.Integer():
            return arithmetic.literal(b, node.evaluated_value, node)
        case cst.Float():
            return arithmetic.literal(b, node.evaluated_value, node)
        case cst.Name():
            return _name(b, node)
        case cst.BinaryOperation():
            return _binary(b, node)
        case cst.UnaryOperation():
            return _unary(b, node)
        case cst.Comparison():
            return _comparison(b, node)
        case cst.BooleanOperation():
            with always(b, node):
                left, right = expressions(b, (node.left, node.right))
            op = "and" if isinstance(node.operator, cst.And) else "or"
            return arithmetic.logical(b, op, left, right, node)
        case cst.IfExp():
            test = expression(b, node.test)
            with always(b, node):
                left, right = expressions(b, (node.body, node.orelse))
            return arithmetic.select(b, test, left, right, node, lazy=True)
        case cst.Subscript():
            return _element(b, node)
        case cst.Call():
            return functions.call(b, node)
    b.fail("T2C243", f"{_kind(node)} cannot stand in device code", node)


@contextmanager
def always(b: Builder, node: cst.BaseExpression) -> Iterator[None]:
    """Refuses effects inside an expression whose parts are evaluated only sometimes."""
    before = len(b.pending)
    yield
    if len(b.pending) > before:
        b.fail(
            "T2C231",
            "an operation with an effect stands in an expression that is evaluated only sometimes",
            node,
            help="give it a statement of its own, under an `if`",
        )


def _name(b: Builder, node: cst.Name) -> Value:
    if node.value in ("True", "False"):
        return arithmetic.literal(b, node.value == "True", node)
    found = b.scopes.find(node.value)
    match found:
        case Value():
            return found
        case Poison():
            raise Stop
        case Buffer() if found.scope == "variable":
            return Value(Load(dtype=found.dtype, buffer=found, index=(), span=b.span(node)))
        case Buffer():
            b.fail(
                "T2C246",
                f"{found.name} is a whole buffer: an expression needs one element of it",
                node,
                help=f"{found.name}[{', '.join('ijkl'[: len(found.shape)] or 'i')}]",
            )
    undefined(b, node)


def undefined(b: Builder, node: cst.Name) -> NoReturn:
    """Reports a name that means nothing here; says so where it did mean something before."""
    region = b.scopes.gone.get(node.value)
    if region is not None:
        b.fail(
            "T2C239",
            f"`{node.value}` was bound inside {region} and means nothing after it",
            node,
            help=f"declare it before: {node.value} = T.alloc_var(dtype, init)",
        )
    b.fail("T2C230", f"`{node.value}` is not defined", node)


def _binary(b: Builder, node: cst.BinaryOperation) -> Value:
    left, right = expressions(b, (node.left, node.right))
    if isinstance(node.operator, cst.Power):
        return arithmetic.power(b, left, right, node)
    op = OPERATORS.get(type(node.operator))
    if op is None:
        b.fail("T2C243", "`@` is not for device values", node, help="T.gemm(A, B, C)")
    return arithmetic.binary(b, op, left, right, node)


def _unary(b: Builder, node: cst.UnaryOperation) -> Value:
    if isinstance(node.operator, cst.Minus) and isinstance(node.expression, cst.Integer):
        return arithmetic.literal(b, -node.expression.evaluated_value, node)  # the lowest number
    value = expression(b, node.expression)
    match node.operator:
        case cst.Minus():
            return arithmetic.negate(b, value, node)
        case cst.BitInvert():
            return arithmetic.invert(b, value, node)
        case cst.Not():
            return arithmetic.negation(b, value, node)
        case _:
            return value


def _comparison(b: Builder, node: cst.Comparison) -> Value:
    sides = expressions(b, (node.left, *(part.comparator for part in node.comparisons)))
    found: Value | None = None
    for part, left, right in zip(node.comparisons, sides, sides[1:], strict=False):
        op = COMPARISONS.get(type(part.operator))
        if op is None:
            b.fail("T2C243", "`in` and `is` are not for device values", node)
        one = arithmetic.compare(b, op, left, right, node)
        found = one if found is None else arithmetic.logical(b, "and", found, one, node)
    assert found is not None  # the grammar has at least one comparison
    return found


def _element(b: Builder, node: cst.Subscript) -> Value:
    target = elements.element(b, node)
    if target.buffer.scope == "barrier":
        elements.no_barrier(b, target.buffer, node)
    dtype = target.buffer.dtype
    return Value(Load(dtype=dtype, buffer=target.buffer, index=target.index, span=b.span(node)))


def _kind(node: cst.BaseExpression) -> str:
    words = {
        "SimpleString": "a string",
        "FormattedString": "a string",
        "Tuple": "a tuple",
        "List": "a list",
        "Dict": "a dict",
        "Lambda": "a lambda",
        "Attribute": "an attribute",
    }
    return words.get(type(node).__name__, f"`{type(node).__name__}`")
