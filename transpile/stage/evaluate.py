"""Evaluates expressions of the program that is read: to host values, or to residual expressions.

Two attitudes share this engine. *Exact*: what is needed and unknown is a located error. *Survey*
(`exact=False`): anything may be Unknown. Work is bounded by fuel, sizes are checked beforehand.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace

from tile2c.transpile.record import record
from tile2c.transpile.stage import expressions as ex
from tile2c.transpile.stage import host_arithmetic
from tile2c.transpile.stage.buffers import Buffer
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.linear import number
from tile2c.transpile.stage.spelling import OPERATORS, Spelling
from tile2c.transpile.stage.state import MOST_DEPTH, describe, is_variable
from tile2c.transpile.stage.values import (
    DType,
    Expired,
    Foreign,
    Poison,
    Unknown,
    Value,
)

_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))


@record(frozen=False)
class Evaluator(Spelling):
    """Adds expressions; subscripts, calls and statements are added by heirs."""

    def evaluate(self, node: ast.expr) -> Value:
        self.burn(node)
        method = getattr(self, "_eval_" + type(node).__name__, None)
        if method is None:
            raise self.fail("T2C115", f"{type(node).__name__} is not supported here", node)
        value = method(node)
        if isinstance(value, Expr):
            if value.depth > MOST_DEPTH:
                raise self.fail("T2C114", "this expression grows too deep", node)
            if value.span is None:
                value = replace(value, span=self.span(node))
        return value

    # -- literals, names, displays ---------------------------------------------------------------

    def _eval_Constant(self, node: ast.Constant) -> Value:
        return node.value

    def _eval_Name(self, node: ast.Name) -> Value:
        cell = self.frame.scope.find(node.id)
        if cell is None:
            return self.global_name(node)
        value = cell.value
        if isinstance(value, Expired):
            self.known(value, node, "")
        return value

    def global_name(self, node: ast.Name) -> Value:
        raise NotImplementedError

    def _eval_Tuple(self, node: ast.Tuple) -> Value:
        return tuple(self._elements(node.elts))

    def _eval_List(self, node: ast.List) -> Value:
        return list(self._elements(node.elts))

    def _eval_Set(self, node: ast.Set) -> Value:
        return set(self._elements(node.elts))

    def _elements(self, nodes: Iterable[ast.expr]) -> Iterator[Value]:
        for node in nodes:
            if isinstance(node, ast.Starred):
                yield from self.iterate(self.evaluate(node.value), node)
            else:
                yield self.evaluate(node)

    def _eval_Dict(self, node: ast.Dict) -> Value:
        result: dict[Value, Value] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                inner = self.known(self.evaluate(value), value, "this dict")
                result.update(inner if isinstance(inner, dict) else {})
            else:
                result[self.hashable(self.evaluate(key), key)] = self.evaluate(value)
        return result

    def hashable(self, value: Value, node: ast.AST) -> Value:
        host_arithmetic.weigh(value)
        try:
            hash(value)
        except TypeError as error:
            raise self.fail("T2C112", f"this fails at build time: {error}", node) from None
        return value

    def _eval_JoinedStr(self, node: ast.JoinedStr) -> Value:
        pieces: list[str] = []
        for part in node.values:
            if isinstance(part, ast.Constant):
                pieces.append(str(part.value))
                continue
            assert isinstance(part, ast.FormattedValue)
            value = self.evaluate(part.value)
            form = self._eval_JoinedStr(part.format_spec) if part.format_spec else ""  # type: ignore[arg-type]
            if isinstance(form, Unknown) or isinstance(value, Unknown):
                return value if isinstance(value, Unknown) else form
            pieces.append(self._format(value, form, part))
        return "".join(pieces)

    def _format(self, value: Value, form: str, node: ast.AST) -> str:
        if isinstance(value, str | int | float):
            if len(form) > 6:
                raise self.fail("T2C114", "this format is too wide", node)
            try:
                return format(value, form)
            except ValueError as error:
                raise self.fail("T2C112", f"this fails at build time: {error}", node) from None
        host_arithmetic.weigh(value)
        return ex.text(value) if isinstance(value, Expr) else describe(value)

    def _eval_NamedExpr(self, node: ast.NamedExpr) -> Value:
        raise self.fail("T2C245", "`:=` is not part of the tile language", node)

    # -- operators -------------------------------------------------------------------------------

    def _eval_BinOp(self, node: ast.BinOp) -> Value:
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        return self.operate(OPERATORS[type(node.op)], left, right, node, node.left, node.right)

    def operate(
        self,
        op: str,
        left: Value,
        right: Value,
        node: ast.AST,
        left_node: ast.expr | None,
        right_node: ast.expr | None,
    ) -> Value:
        """`left op right` on values of any kind."""
        for value, at in ((left, left_node), (right, right_node)):
            if isinstance(value, Poison | Expired):
                self.known(value, at, "this expression")
        residual = any(isinstance(v, Expr) or is_variable(v) for v in (left, right))
        if residual and op in _COMPARISONS and (left is None or right is None):
            return op == "!="
        if residual:
            return self._residual_operation(op, left, right, node, left_node, right_node)
        for value in (left, right):
            if isinstance(value, Unknown):
                return value
            if isinstance(value, Foreign):
                return Unknown(f"{value.path} is not evaluated", self.span(node))
        return self._host_operation(op, left, right, node)

    def _host_operation(self, op: str, left: Value, right: Value, node: ast.AST) -> Value:
        if op in ("==", "!=") and (isinstance(left, DType) or isinstance(right, DType)):
            same = self.as_dtype(left) == self.as_dtype(right) is not None
            return same == (op == "==")
        for value in (left, right):
            if isinstance(value, Buffer):
                raise self.fail(
                    "T2C246",
                    f"{value.name} is a whole buffer; `{op}` needs an element of it",
                    node,
                    help="T.gemm(A, B, C) multiplies tiles and adds to C"
                    if op == "@"
                    else "loop over the elements with T.Parallel",
                )
        try:
            return host_arithmetic.apply(op, left, right)
        except host_arithmetic.TooLarge:
            raise self.fail("T2C114", f"the result of `{op}` is too large", node) from None
        except (ArithmeticError, TypeError, ValueError) as error:
            if not self.exact:
                return Unknown(f"it fails: {error}", self.span(node))
            raise self.fail("T2C112", f"this fails at build time: {error}", node) from None

    def as_dtype(self, value: Value) -> str | None:
        raise NotImplementedError

    def _residual_operation(
        self,
        op: str,
        left: Value,
        right: Value,
        node: ast.AST,
        left_node: ast.expr | None,
        right_node: ast.expr | None,
    ) -> Expr:
        if op == "**":
            for value in (left, right):
                self.need_decided(value, node, "`**` is computed when the kernel is built, and it")
            raise self.fail(
                "T2C235",
                "`**` is not defined on values of the kernel",
                node,
                help=f"T.pow({self._quoted(left_node)}, {self._quoted(right_node)})",
            )
        if op == "@":
            raise self.fail("T2C243", "`@` is not defined in kernels", node, help="T.gemm(A, B, C)")
        args = self.expression(left, left_node), self.expression(right, right_node)
        if op in ("//", "%", "/") and args[1].kind == "literal" and args[1].value == 0:
            raise self.fail("T2C238", f"`{op}` by zero", right_node or node)
        return ex.binary(op, *args, self.span(node))

    def _quoted(self, node: ast.expr | None) -> str:
        return self.frame.source.cut(self.frame.source.span(node)) if node is not None else "x"

    def _eval_UnaryOp(self, node: ast.UnaryOp) -> Value:
        value, op = self.evaluate(node.operand), OPERATORS[type(node.op)]
        if isinstance(value, Expr) or is_variable(value):
            operand = self.expression(value, node.operand)
            return operand if op == "+" else ex.unary(op, operand, self.span(node))
        if op == "not":
            truth = self.truth(value, node.operand)
            return (
                Unknown("its operand is unknown", self.span(node)) if truth is None else not truth
            )
        if isinstance(value, Unknown):
            return value
        self.known(value, node.operand, "this expression")
        try:
            return host_arithmetic.apply_unary(op, value)
        except TypeError as error:
            raise self.fail("T2C112", f"this fails at build time: {error}", node) from None

    def _eval_Compare(self, node: ast.Compare) -> Value:
        result: Value = True
        left_node, left = node.left, self.evaluate(node.left)
        for op_node, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(right_node)
            if type(op_node) in OPERATORS:
                op = OPERATORS[type(op_node)]
                step = self.operate(op, left, right, node, left_node, right_node)
            else:
                step = self._identity_test(op_node, left, right, node)
            if isinstance(step, Expr):
                result = step if result is True else ex.binary("and", result, step, self.span(node))
            elif isinstance(step, Unknown):
                return step
            elif not step:
                return False
            left_node, left = right_node, right
        return result

    def _identity_test(self, op: ast.cmpop, left: Value, right: Value, node: ast.AST) -> Value:
        negated = isinstance(op, ast.IsNot | ast.NotIn)
        if isinstance(op, ast.Is | ast.IsNot):
            if isinstance(left, Unknown) or isinstance(right, Unknown):
                return left if isinstance(left, Unknown) else right
            return (left is right or (isinstance(left, DType) and left == right)) != negated
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            return left if isinstance(left, Unknown) else right
        if isinstance(right, Expr | Buffer) or isinstance(left, Expr):
            self.need_decided(left, node, "this test is decided when the kernel is built, and it")
            raise self.fail("T2C243", "`in` is not defined on values of the kernel", node)
        host_arithmetic.weigh(right)
        try:
            inside = left in right or (
                isinstance(left, DType) and any(self.as_dtype(r) == left.name for r in right)
            )
        except TypeError as error:
            raise self.fail("T2C112", f"this fails at build time: {error}", node) from None
        return inside != negated

    def _eval_BoolOp(self, node: ast.BoolOp) -> Value:
        op = OPERATORS[type(node.op)]
        result: Value = None
        for position, part in enumerate(node.values):
            value = self.evaluate(part)
            if isinstance(value, Expr) or is_variable(value):
                right = self.expression(value, part)
                if isinstance(result, Expr):
                    right = ex.binary(op, result, right, self.span(node))
                result = right
                continue
            truth = self.truth(value, part)
            if truth is None:
                return Unknown("an operand is unknown", self.span(part))
            if isinstance(result, Expr):
                if truth == (op == "or"):  # a residual left side has no effect worth keeping
                    return truth
                continue
            if truth == (op == "or") or position == len(node.values) - 1:
                return value
        return result

    def _eval_IfExp(self, node: ast.IfExp) -> Value:
        test = self.evaluate(node.test)
        if isinstance(test, Expr) and (test.device or self.tracing) and number(test) is None:
            return self._choice(node, test)
        if is_variable(test):
            return self._choice(node, self.expression(test, node.test))
        truth = self.truth(test, node.test)
        if truth is None:
            return Unknown("its condition is unknown", self.span(node.test))
        return self.evaluate(node.body if truth else node.orelse)

    def _choice(self, node: ast.IfExp, test: Expr) -> Expr:
        sides = [self.expression(self.evaluate(side), side) for side in (node.body, node.orelse)]
        return ex.compound("choice", "", (test, *sides), self.span(node))

    # -- by heirs --------------------------------------------------------------------------------

    def iterate(self, value: Value, node: ast.AST) -> Iterator[Value]:
        raise NotImplementedError
