"""How values are written in the residual program: numbers by their names where they have one."""

from __future__ import annotations

import ast
import math

from tile2c.transpile.diagnostics import Span
from tile2c.transpile.record import record
from tile2c.transpile.stage import expressions as ex
from tile2c.transpile.stage.buffers import Buffer
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.state import State, describe
from tile2c.transpile.stage.values import (
    Cell,
    DType,
    LanguageName,
    Value,
)

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.MatMult: "@",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.USub: "-",
    ast.UAdd: "+",
    ast.Invert: "~",
    ast.Not: "not",
    ast.And: "and",
    ast.Or: "or",
}


# What a normal form needs under its own name.
RESERVED = frozenset(("T", "tilelang", "range", "float"))


@record(frozen=False)
class Spelling(State):
    """Adds the way from a value to a residual expression."""

    def evaluate(self, node: ast.expr) -> Value:
        """The value of an expression; in `evaluate`."""
        raise NotImplementedError

    def expression(self, value: Value, node: ast.expr | None) -> Expr:
        """`value` as a residual expression, by the names that `node` uses where it can be."""
        if isinstance(value, Expr):
            return value if node is None or self.frame.calls else value.at(self.span(node))
        if isinstance(value, bool | int | float):
            return self._spell(node, value) if node is not None else ex.literal(value)
        value = self.known(value, node, "the kernel")
        span = self.span(node)
        match value:
            case DType():
                return ex.language(value.name, span)
            case str():
                return ex.literal(value, span)
            case LanguageName():
                return ex.language(value.path, span)
            case Buffer(scope="var" | "barrier"):
                return value.expr(span)
            case tuple() | list():
                elements = self._element_nodes(node, len(value))
                parts = tuple(self.expression(v, n) for v, n in zip(value, elements, strict=True))
                kind: ex.Kind = "tuple" if isinstance(value, tuple) else "list"
                return ex.compound(kind, "", parts, span)
            case Buffer():
                raise self.fail(
                    "T2C246",
                    f"{value.name} is a whole buffer; an expression needs one element of it",
                    node,
                    help=f"{value.name}[{', '.join('ijkl'[: len(value.shape)])}]",
                )
            case _:
                raise self.fail("T2C246", f"{describe(value)} is no value of the kernel", node)

    @staticmethod
    def _element_nodes(node: ast.expr | None, count: int) -> list[ast.expr | None]:
        if isinstance(node, ast.Tuple | ast.List) and len(node.elts) == count:
            if not any(isinstance(element, ast.Starred) for element in node.elts):
                return list(node.elts)
        return [None] * count

    def _spell(self, node: ast.expr, value: Value) -> Expr:
        spelled = self._spell_by_name(node, value)
        return spelled if spelled is not None else ex.literal(value, self.span(node))

    def _spell_by_name(self, node: ast.expr, value: Value) -> Expr | None:
        """The number with its names kept; None where it has none."""
        span = self.span(node)
        match node:
            case ast.Name():
                cell = self.frame.scope.find(node.id)
                if cell is None:
                    return None
                if cell.spelling is not None:
                    return cell.spelling.at(span)
                return self._constant(cell, value, span)
            case ast.UnaryOp() if not isinstance(node.op, ast.Not):
                inner = self._spell_by_name(node.operand, self.evaluate(node.operand))
                return ex.unary(OPERATORS[type(node.op)], inner, span) if inner else None
            case ast.BinOp() if not isinstance(node.op, ast.Pow | ast.MatMult):
                return self._spell_pair(node, OPERATORS[type(node.op)], node.left, node.right)
            case ast.IfExp():
                chosen = node.body if self.evaluate(node.test) else node.orelse
                return self._spell_by_name(chosen, value)
            case ast.Call(args=[left, right], keywords=[]):
                function = self.evaluate(node.func)
                if isinstance(function, LanguageName) and function.path in ("ceildiv", "cdiv"):
                    return self._spell_pair(node, "ceildiv", left, right)
        return None

    def _spell_pair(self, node: ast.expr, op: str, left: ast.expr, right: ast.expr) -> Expr | None:
        values = self.evaluate(left), self.evaluate(right)
        if not all(isinstance(value, int | float) for value in values):
            return None
        named = self._spell_by_name(left, values[0]), self._spell_by_name(right, values[1])
        if named == (None, None):
            return None
        args = (
            named[0] or ex.literal(values[0], self.span(left)),
            named[1] or ex.literal(values[1], self.span(right)),
        )
        span = self.span(node)
        return ex.call(op, args, span) if op == "ceildiv" else ex.binary(op, *args, span)

    def _constant(self, cell: Cell, value: Value, span: Span | None) -> Expr | None:
        """The number by its cell's name, which from now on the normal form defines."""
        if not cell.nameable or cell.name in self.taken or not isinstance(value, int | float):
            return None
        if cell.name in RESERVED or (isinstance(value, float) and not math.isfinite(value)):
            return None
        known = self.constants.setdefault(cell.name, cell)
        if type(known.value) is not type(value) or known.value != value:
            return None  # another scope holds the name
        return ex.constant(cell.name, value, span)
