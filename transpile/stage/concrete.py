"""Writes residual expressions as libcst nodes, and notes where each came from."""

from __future__ import annotations

import math
from collections.abc import Sequence

import libcst as cst
from tile2c.transpile.stage import expressions as ex
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.origins import Origin

_BINARY: dict[str, type[cst.BaseBinaryOp]] = {
    "+": cst.Add,
    "-": cst.Subtract,
    "*": cst.Multiply,
    "/": cst.Divide,
    "//": cst.FloorDivide,
    "%": cst.Modulo,
    "<<": cst.LeftShift,
    ">>": cst.RightShift,
    "&": cst.BitAnd,
    "|": cst.BitOr,
    "^": cst.BitXor,
}
_COMPARE: dict[str, type[cst.BaseCompOp]] = {
    "==": cst.Equal,
    "!=": cst.NotEqual,
    "<": cst.LessThan,
    "<=": cst.LessThanEqual,
    ">": cst.GreaterThan,
    ">=": cst.GreaterThanEqual,
}
_UNARY: dict[str, type[cst.BaseUnaryOp]] = {
    "-": cst.Minus,
    "~": cst.BitInvert,
    "not": cst.Not,
    "+": cst.Plus,
}


class ExpressionWriter:
    """Turns expressions into nodes; `origins` gets an entry for each that has a place."""

    def __init__(self, origins: dict[cst.CSTNode, Origin]) -> None:
        self.origins = origins
        self.written: set[str] = set()  # the sizes and constants that were used

    def node(self, expr: Expr, origin: Origin | None = None, least: int = 0) -> cst.BaseExpression:
        """The node of `expr`, in brackets when it binds less tightly than `least`."""
        node = self._plain(expr, origin)
        if ex.level(expr) < least:
            node = node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        if origin is not None:
            span = expr.span or origin.span
            self.origins[node] = Origin(span, "", origin.expanded_from)
        return node

    def _plain(self, expr: Expr, origin: Origin | None) -> cst.BaseExpression:
        levels = ex.operand_levels(expr)
        match expr.kind:
            case "literal":
                return literal_node(expr.value)
            case "constant" | "size":
                self.written.add(expr.op)
                return cst.Name(expr.op)
            case "name":
                return cst.Name(expr.op)
            case "language":
                return language_node(expr.op)
            case "tuple" | "list":
                elements = [cst.Element(self.node(arg, origin)) for arg in expr.args]
                return cst.List(elements) if expr.kind == "list" else tuple_node(elements)
            case "dict":
                nodes = [self.node(arg, origin) for arg in expr.args]
                return cst.Dict(
                    [cst.DictElement(*pair) for pair in zip(nodes[::2], nodes[1::2], strict=True)]
                )
            case "call":
                return self.call(expr.op, expr.args, expr.keywords, origin)
            case "index":
                return self._index(expr, origin)
            case "slice":
                raise AssertionError("a slice stands inside an index only")
        args = [self.node(arg, origin, least) for arg, least in zip(expr.args, levels, strict=True)]
        match expr.kind:
            case "unary":
                return cst.UnaryOperation(_UNARY[expr.op](), args[0])
            case "choice":
                return cst.IfExp(test=args[0], body=args[1], orelse=args[2])
            case _:
                return _binary(expr.op, *args)

    def call(
        self,
        function: str,
        args: Sequence[Expr],
        keywords: Sequence[tuple[str, Expr]],
        origin: Origin | None,
    ) -> cst.Call:
        """`T.function(*args, **keywords)`."""
        arguments = [cst.Arg(self.node(arg, origin)) for arg in args]
        arguments += [
            cst.Arg(
                self.node(value, origin),
                keyword=cst.Name(key),
                equal=cst.AssignEqual(
                    whitespace_before=cst.SimpleWhitespace(""),
                    whitespace_after=cst.SimpleWhitespace(""),
                ),
            )
            for key, value in keywords
        ]
        return cst.Call(language_node(function), arguments)

    def _index(self, expr: Expr, origin: Origin | None) -> cst.BaseExpression:
        buffer, *indices = expr.args
        if not indices:
            return self.node(buffer, origin)
        elements = []
        for index in indices:
            if index.kind == "slice":
                lo, hi = (self.node(arg, origin) for arg in index.args)
                elements.append(cst.SubscriptElement(cst.Slice(lo, hi)))
            else:
                elements.append(cst.SubscriptElement(cst.Index(self.node(index, origin))))
        return cst.Subscript(self.node(buffer, origin), elements)


def _binary(op: str, left: cst.BaseExpression, right: cst.BaseExpression) -> cst.BaseExpression:
    if op in _COMPARE:
        return cst.Comparison(left, [cst.ComparisonTarget(_COMPARE[op](), right)])
    if op in ("and", "or"):
        return cst.BooleanOperation(left, cst.And() if op == "and" else cst.Or(), right)
    return cst.BinaryOperation(left, _BINARY[op](), right)


def tuple_node(elements: Sequence[cst.Element]) -> cst.Tuple:
    """A tuple in brackets; of one element with its comma."""
    if len(elements) == 1:
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(""))
        elements = [elements[0].with_changes(comma=comma)]
    return cst.Tuple(elements)


def language_node(path: str) -> cst.BaseExpression:
    node: cst.BaseExpression = cst.Name("T")
    for part in path.split("."):
        node = cst.Attribute(node, cst.Name(part))
    return node


def literal_node(value: object) -> cst.BaseExpression:
    """A Python literal as a node; infinities become calls of T.infinity."""
    match value:
        case None | bool():
            return cst.Name(repr(value))
        case str():
            quoted = repr(value)
            if '"' not in value and "\\" not in quoted:
                quoted = f'"{value}"'
            return cst.SimpleString(quoted)
        case float() if math.isnan(value):
            return cst.Call(cst.Name("float"), [cst.Arg(cst.SimpleString('"nan"'))])
        case float() if math.isinf(value):
            infinity = cst.Call(language_node("infinity"), [cst.Arg(language_node("float32"))])
            return infinity if value > 0 else cst.UnaryOperation(cst.Minus(), infinity)
        case int() | float():
            digits = repr(abs(value))
            node = cst.Integer(digits) if isinstance(value, int) else cst.Float(digits)
            return cst.UnaryOperation(cst.Minus(), node) if _negative(value) else node
        case _:
            raise AssertionError(f"{value!r} is no literal")


def _negative(value: int | float) -> bool:
    return math.copysign(1, value) < 0 if isinstance(value, float) else value < 0
