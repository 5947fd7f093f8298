"""Compares extents: an expression as a sum of products with integer factors.

What is not `+`, `-`, `*` stays one symbol, told apart by its text. Two expressions with the same
sum are equal; different sums say nothing unless they differ by a number.
"""

from __future__ import annotations

from tile2c.transpile.stage.expressions import Expr, binary, literal, name, text, unary

Product = tuple[str, ...]  # sorted symbols; () is the number 1
Sum = dict[Product, int]
MOST_TERMS = 200


def linear(expr: Expr, fold: bool) -> Sum:
    """The sum of products of `expr`; `fold` puts numbers in the place of named constants."""
    total = _linear(expr, fold)
    return {product: factor for product, factor in total.items() if factor}


def _linear(expr: Expr, fold: bool) -> Sum:
    if expr.kind in ("literal", "constant") and isinstance(expr.value, int):
        if expr.kind == "literal" or fold:
            return {(): int(expr.value)}
        return {(expr.op,): 1}
    if expr.kind == "unary" and expr.op == "-":
        return _scale(_linear(expr.args[0], fold), -1)
    if expr.kind == "binary" and expr.op in ("+", "-", "*"):
        left, right = (_linear(arg, fold) for arg in expr.args)
        if expr.op == "*":
            if len(left) * len(right) <= MOST_TERMS:
                return _multiply(left, right)
        else:
            return _add(left, _scale(right, -1) if expr.op == "-" else right)
    if fold and (known := _folded(expr)) is not None:
        return {(): known}
    return {(text(expr),): 1}


def _folded(expr: Expr) -> int | None:
    """The value of a division whose operands are numbers once constants are put in."""
    if expr.device or expr.sizes or len(expr.args) != 2:
        return None
    left, right = (number(arg) for arg in expr.args)
    if left is None or right is None:
        return None
    match expr.op:
        case "//" if right:
            return left // right
        case "%" if right:
            return left % right
        case "ceildiv" if right:
            return -(-left // right)
        case "min":
            return min(left, right)
        case "max":
            return max(left, right)
        case "<<" if 0 <= right < 64:
            return left << right
        case ">>" if 0 <= right < 64:
            return left >> right
        case _:
            return None


def number(expr: Expr) -> int | None:
    """The value of an expression that is a number once constants are put in."""
    total = linear(expr, fold=True)
    if not total:
        return 0
    return total[()] if set(total) == {()} else None


def equal(left: Expr, right: Expr) -> bool:
    """Whether both are the same for all values of what is in them."""
    return difference(left, right, fold=True) == {}


def difference(left: Expr, right: Expr, fold: bool) -> Sum:
    total = _add(linear(left, fold), _scale(linear(right, fold), -1))
    return {product: factor for product, factor in total.items() if factor}


def extent(lo: Expr, hi: Expr, leaves: dict[str, Expr]) -> Expr:
    """`hi - lo`, as the author spelled it where `hi` is `lo + extent`, else as a sum.

    `leaves` turns a symbol's text back into its expression; it is filled from both ends.
    """
    if hi.kind == "binary" and hi.op == "+" and text(hi.args[0]) == text(lo):
        return hi.args[1]
    total = difference(hi, lo, fold=False)
    folded = difference(hi, lo, fold=True)
    if set(folded) <= {()} and not (len(total) == 1 and set(total.values()) == {1}):
        return literal(folded.get((), 0), hi.span)  # block_K - 0 keeps its name, else a number
    collect_leaves(lo, leaves)
    collect_leaves(hi, leaves)
    return _spell(total, leaves)


def collect_leaves(expr: Expr, leaves: dict[str, Expr]) -> None:
    """Notes the symbols that `linear` makes of `expr`."""
    if expr.kind in ("unary", "binary") and expr.op in ("+", "-", "*"):
        for arg in expr.args:
            collect_leaves(arg, leaves)
    leaves.setdefault(text(expr), expr)


def _spell(total: Sum, leaves: dict[str, Expr]) -> Expr:
    result: Expr | None = None
    for product, factor in sorted(total.items(), key=lambda item: (item[0] == (), item[0])):
        term = _spell_product(product, abs(factor), leaves)
        if result is None:
            result = unary("-", term) if factor < 0 else term
        else:
            result = binary("-" if factor < 0 else "+", result, term)
    return result if result is not None else literal(0)


def _spell_product(product: Product, factor: int, leaves: dict[str, Expr]) -> Expr:
    term: Expr | None = None
    for symbol in product:
        leaf = leaves.get(symbol) or name(symbol)
        term = leaf if term is None else binary("*", term, leaf)
    if term is None:
        return literal(factor)
    return term if factor == 1 else binary("*", term, literal(factor))


def _add(left: Sum, right: Sum) -> Sum:
    total = dict(left)
    for product, factor in right.items():
        total[product] = total.get(product, 0) + factor
    return total


def _scale(total: Sum, factor: int) -> Sum:
    return {product: value * factor for product, value in total.items()}


def _multiply(left: Sum, right: Sum) -> Sum:
    total: Sum = {}
    for a, x in left.items():
        for b, y in right.items():
            product = tuple(sorted(a + b))
            total[product] = total.get(product, 0) + x * y
    return total
