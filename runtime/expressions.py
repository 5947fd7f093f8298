"""Evaluates the manifest's expressions: grids, shapes, conditions on sizes and addresses.

They are integers, names, `+ - * / // %`, comparisons, `and or not`, `min max ceildiv`. An
expression is parsed, never handed to the interpreter; `/` divides as C does, because it stands for
C text.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import cache, reduce

Names = Mapping[str, int]
Evaluate = Callable[[Names], int]

LONGEST = 10_000  # characters; far more than any index of a kernel needs
DEEPEST = 200


class ExpressionError(ValueError):
    """An expression that cannot be understood or evaluated; the message quotes it."""


def _divided(left: int, right: int) -> int:
    """Division as C does it: towards zero."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _ceildiv(left: int, right: int) -> int:
    return -(-left // right)


_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _divided,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: dict[str, Callable[..., int]] = {"min": min, "max": max, "ceildiv": _ceildiv}


def evaluate(expression: str | int, names: Names) -> int:
    """The value of an expression; conditions give 0 or 1. Raises ExpressionError."""
    if isinstance(expression, int):
        return int(expression)
    try:
        return int(_compiled(expression)(names))
    except KeyError as error:
        raise ExpressionError(f"{expression!r}: {error.args[0]} is not known") from error
    except ZeroDivisionError as error:
        raise ExpressionError(f"{expression!r} divides by zero") from error


@cache
def names_of(expression: str | int) -> frozenset[str]:
    """The sizes and tensors that an expression asks for."""
    if isinstance(expression, int):
        return frozenset()
    tree = _parsed(expression)
    called = {node.func.id for node in ast.walk(tree) if _is_call_by_name(node)}  # type: ignore[attr-defined]
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return frozenset(names - called)


def solve(expression: str | int, value: int, names: Names) -> tuple[str, int] | None:
    """The one unknown name of `expression == value` and what it must be; None if that is not plain.

    Only expressions with one answer are turned round: a name, sums with known terms, products with
    known factors. `M // 2` has several answers, so M must be told by another shape.
    """
    unknown = names_of(expression) - set(names)
    if isinstance(expression, int) or len(unknown) != 1:
        return None
    found = _inverted(_parsed(expression).body, value, names)
    return None if found is None else (next(iter(unknown)), found)


def _inverted(node: ast.expr, value: int, names: Names) -> int | None:
    if isinstance(node, ast.Name):
        return value
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _known(node.left, names), _known(node.right, names)
    if isinstance(node.op, ast.Add) and right is not None:
        return _inverted(node.left, value - right, names)
    if isinstance(node.op, ast.Add) and left is not None:
        return _inverted(node.right, value - left, names)
    if isinstance(node.op, ast.Sub) and right is not None:
        return _inverted(node.left, value + right, names)
    factor = right if right is not None else left
    if isinstance(node.op, ast.Mult) and factor and value % factor == 0:
        return _inverted(node.left if right is not None else node.right, value // factor, names)
    return None


def _known(node: ast.expr, names: Names) -> int | None:
    try:
        return _build(node, "", 0)(names)
    except (KeyError, ZeroDivisionError):
        return None


def _is_call_by_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


@cache
def _parsed(expression: str) -> ast.Expression:
    if len(expression) > LONGEST:
        raise ExpressionError(f"an expression of {len(expression)} characters is too long")
    try:
        return ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"{expression!r} is not an expression") from error


@cache
def _compiled(expression: str) -> Evaluate:
    return _build(_parsed(expression).body, expression, 0)


def _build(node: ast.expr, text: str, depth: int) -> Evaluate:
    """A function of the names for one node; everything outside the small language is refused."""
    if depth > DEEPEST:
        raise ExpressionError(f"{text!r} is nested too deeply")
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        value = int(node.value)
        return lambda names: value
    if isinstance(node, ast.Name):
        name = node.id
        return lambda names: names[name]
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        apply = _BINARY[type(node.op)]
        left, right = (_build(side, text, depth + 1) for side in (node.left, node.right))
        return lambda names: apply(left(names), right(names))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        operand = _build(node.operand, text, depth + 1)
        if isinstance(node.op, ast.USub):
            return lambda names: -operand(names)
        return lambda names: not operand(names)
    if isinstance(node, ast.BoolOp):
        parts = [_build(part, text, depth + 1) for part in node.values]
        together = all if isinstance(node.op, ast.And) else any
        return lambda names: together(part(names) for part in parts)
    if isinstance(node, ast.Compare) and all(type(op) in _COMPARE for op in node.ops):
        return _comparison(node, text, depth)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return _call(node, node.func.id, text, depth)
    raise ExpressionError(f"{text!r}: {ast.unparse(node)} is not allowed in a manifest")


def _comparison(node: ast.Compare, text: str, depth: int) -> Evaluate:
    terms = [_build(term, text, depth + 1) for term in (node.left, *node.comparators)]
    tests = [_COMPARE[type(op)] for op in node.ops]

    def compare(names: Names) -> int:
        values = [term(names) for term in terms]
        pairs = zip(tests, values, values[1:], strict=False)
        return all(test(left, right) for test, left, right in pairs)

    return compare


def _call(node: ast.Call, name: str, text: str, depth: int) -> Evaluate:
    function = _FUNCTIONS.get(name)
    arguments = [_build(argument, text, depth + 1) for argument in node.args]
    if function is None or len(arguments) < 2 or (name == "ceildiv" and len(arguments) != 2):
        raise ExpressionError(f"{text!r}: {ast.unparse(node)} is not allowed in a manifest")
    return lambda names: reduce(function, (argument(names) for argument in arguments))
