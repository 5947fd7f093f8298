"""The manifest's expressions as C++: 64-bit integers, sizes that are never negative."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import field

from tile2c.transpile.record import record

_BINARY = {ast.Add: ("+", 12), ast.Sub: ("-", 12), ast.Mult: ("*", 13)}
_DIVISION = {
    ast.Div: ("/", "divided"),
    ast.FloorDiv: ("/", "floor_divided"),
    ast.Mod: ("%", "floor_modulo"),
}
_COMPARE = {
    ast.Eq: ("==", 10),
    ast.NotEq: ("!=", 10),
    ast.Lt: ("<", 11),
    ast.LtE: ("<=", 11),
    ast.Gt: (">", 11),
    ast.GtE: (">=", 11),
}
_CALLS = {"min": "least", "max": "most", "ceildiv": "ceil_divided"}
_ATOM, _PREFIX, _PRODUCT, _AND, _OR = 16, 14, 13, 5, 4


@record(frozen=False)
class CExpressions:
    """Prints expressions; `helpers` collects the functions that the printed text calls.

    `names` maps sizes and integer scalars to C++ names, `tensors` those whose name stands for an
    address.
    """

    names: Mapping[str, str]
    tensors: Mapping[str, str]
    signed: frozenset[str] = frozenset()  # scalars, which may be negative
    helpers: set[str] = field(default_factory=set)

    def __call__(self, expression: str | int, *, within: int = 0) -> str:
        """The expression, in brackets where operators of precedence `within` need them."""
        tree = ast.parse(str(expression).strip(), mode="eval").body
        text, level = self._print(tree)
        return f"({text})" if level < within else text

    def may_be_negative(self, expression: str | int) -> bool:
        """Whether sizes that are not negative may give a number that is."""
        tree = ast.parse(str(expression).strip(), mode="eval")
        return any(
            isinstance(node, ast.Sub | ast.USub)
            or (isinstance(node, ast.Name) and node.id in self.signed)
            for node in ast.walk(tree)
        )

    def inside(self, expression: str | int) -> str:
        """As a factor or a side of a comparison."""
        return self(expression, within=_PREFIX)

    def both(self, expression: str | int) -> str:
        """As a part of a conjunction."""
        return self(expression, within=_AND + 1)

    def _print(self, node: ast.expr) -> tuple[str, int]:
        match node:
            case ast.Constant(value=int() as value):
                return str(int(value)), _ATOM
            case ast.Name(id=name):
                return self._name(name), _ATOM
            case ast.BinOp():
                return self._binary(node)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"-{self._side(operand, _PREFIX)}", _PREFIX
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"!{self._side(operand, _PREFIX)}", _PREFIX
            case ast.BoolOp(op=op, values=values):
                word, level = (" && ", _AND) if isinstance(op, ast.And) else (" || ", _OR)
                # Compilers warn of `a || b && c`: a mixture always gets brackets.
                return word.join(self._side(value, level + 2) for value in values), level
            case ast.Compare():
                return self._comparison(node)
            case ast.Call(func=ast.Name(id=name), args=args) if name in _CALLS:
                return self._call(name, args), _ATOM
        raise ValueError(f"{ast.unparse(node)} is not allowed in a manifest")

    def _name(self, name: str) -> str:
        if name in self.tensors:
            self.helpers.add("address")
            return f"address({self.tensors[name]})"
        return self.names[name]

    def _side(self, node: ast.expr, within: int) -> str:
        text, level = self._print(node)
        return f"({text})" if level < within else text

    def _binary(self, node: ast.BinOp) -> tuple[str, int]:
        kind = type(node.op)
        if kind in _BINARY:
            word, level = _BINARY[kind]
            # a * (b / c) is not a * b / c: a quotient on the right keeps its brackets.
            brackets = kind is ast.Sub or (kind is ast.Mult and _begins_with_quotient(node.right))
            right = level + brackets
            return f"{self._side(node.left, level)} {word} {self._side(node.right, right)}", level
        word, helper = _DIVISION[kind]
        by_number = isinstance(node.right, ast.Constant) and int(node.right.value) > 0  # type: ignore[arg-type]
        if by_number and (kind is ast.Div or not self._may_be_negative(node.left)):
            left, right_text = self._side(node.left, _PRODUCT), self._side(node.right, _PREFIX)
            return f"{left} {word} {right_text}", _PRODUCT
        self.helpers.add(helper)
        return f"{helper}({self._print(node.left)[0]}, {self._print(node.right)[0]})", _ATOM

    def _may_be_negative(self, node: ast.expr) -> bool:
        return any(
            isinstance(part, ast.Sub | ast.USub)
            or (isinstance(part, ast.Name) and part.id in self.signed)
            for part in ast.walk(node)
        )

    def _comparison(self, node: ast.Compare) -> tuple[str, int]:
        terms = [node.left, *node.comparators]
        parts = []
        for op, left, right in zip(node.ops, terms, terms[1:], strict=False):
            word, level = _COMPARE[type(op)]
            parts.append(f"{self._side(left, level + 1)} {word} {self._side(right, level + 1)}")
            last = level
        return " && ".join(parts), last if len(parts) == 1 else _AND

    def _call(self, name: str, args: list[ast.expr]) -> str:
        helper = _CALLS[name]
        self.helpers.add(helper)
        text = self._print(args[0])[0]
        for arg in args[1:]:
            text = f"{helper}({text}, {self._print(arg)[0]})"
        return text


def _begins_with_quotient(node: ast.expr) -> bool:
    """Whether a product has a quotient or a rest in it that what stands in front would join."""
    while isinstance(node, ast.BinOp) and isinstance(
        node.op, ast.Mult | ast.Div | ast.FloorDiv | ast.Mod
    ):
        if type(node.op) in _DIVISION:
            return True
        node = node.left
    return False
