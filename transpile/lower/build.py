"""Builds expressions for reading: 0, 1 and literal arithmetic fold, the author's names never do."""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.ir.dtypes import BOOL, INT32, DType
from tile2c.transpile.ir.expr import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Const,
    Expr,
    Logical,
    Unary,
    Var,
    const,
)
from tile2c.transpile.record import inner_names


def literal(expr: Expr, value: int) -> bool:
    """Whether `expr` is this number, named or not."""
    return isinstance(expr, Const) and expr.dtype.kind != "float" and expr.value == value


def _plain(expr: Expr) -> int | None:
    """The value of an unnamed integer constant."""
    if isinstance(expr, Const) and expr.name is None and expr.dtype.is_integer:
        return int(expr.value)
    return None


def known(expr: Expr) -> int | None:
    """The integer value of constant arithmetic, named or not; None if it depends on anything."""
    if isinstance(expr, Const):
        return int(expr.value) if expr.dtype.kind != "float" else None
    if isinstance(expr, Binary):
        a, b = known(expr.a), known(expr.b)
        if a is None or b is None:
            return None
        return fold(expr.op, a, b)
    return None


def fold(op: BinaryOp, a: int, b: int) -> int | None:
    """The value of integer arithmetic, or None where it has none (division by zero)."""
    if op in ("//", "%", "truncdiv", "truncmod", "ceildiv") and b == 0:
        return None
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "//":
            return a // b
        case "%":
            return a % b
        case "ceildiv":
            return -(-a // b)
        case "truncdiv":
            return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        case "truncmod":
            return a - b * (abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))
        case "min":
            return min(a, b)
        case "max":
            return max(a, b)
    return None


def _binary(op: BinaryOp, a: Expr, b: Expr, dtype: DType | None = None) -> Expr:
    x, y = _plain(a), _plain(b)
    if x is not None and y is not None:
        folded = fold(op, x, y)
        if folded is not None:
            return const(folded, dtype=a.dtype)
    return Binary(dtype=dtype or a.dtype, op=op, a=a, b=b)


def add(*parts: Expr) -> Expr:
    """The sum; zeros fall away."""
    total: Expr = parts[0]
    for part in parts[1:]:
        if literal(part, 0):
            continue
        total = part if literal(total, 0) else _binary("+", total, part)
    return total


def sub(a: Expr, b: Expr) -> Expr:
    return a if literal(b, 0) else _binary("-", a, b)


def step_back(a: Expr, count: Expr) -> Expr:
    """a + count - 1, said plainly where count is a bare number."""
    number = _plain(count)
    if number is not None and not (isinstance(count, Const) and count.name):
        return add(a, const(number - 1))
    return sub(add(a, count), const(1))


def mul(a: Expr, b: Expr) -> Expr:
    if literal(a, 0) or literal(b, 0):
        return const(0)
    if literal(a, 1):
        return b
    return a if literal(b, 1) else _binary("*", a, b)


def times(a: Expr, product: Expr) -> Expr:
    """a * product, factor by factor: if `a` is wide, so is every step."""
    if isinstance(product, Binary) and product.op == "*":
        return times(times(a, product.a), product.b)
    return mul(a, product)


def div(a: Expr, b: Expr) -> Expr:
    """a / b for a not negative; an exact factor of a product divides out."""
    if literal(b, 1):
        return a
    x, y = known(a), _plain(b)
    if isinstance(a, Const) and x is not None and y and x % y == 0 and a.name is None:
        return const(x // y)
    return const(0) if literal(a, 0) else _binary("truncdiv", a, b)


def mod(a: Expr, b: Expr) -> Expr:
    """a % b for a not negative."""
    if literal(b, 1) or literal(a, 0):
        return const(0)
    return _binary("truncmod", a, b)


def ceil_div(a: Expr, b: Expr) -> Expr:
    """(a + b - 1) / b for a not negative."""
    step = _plain(b) if not (isinstance(b, Const) and b.name) else None
    if literal(b, 1):
        return a
    if step is not None:
        return div(add(a, const(step - 1)), b)
    return div(sub(add(a, b), const(1)), b)


def compare(op: CompareOp, a: Expr, b: Expr) -> Expr:
    return Compare(dtype=BOOL, op=op, a=a, b=b)


def less(a: Expr, b: Expr) -> Expr:
    return compare("<", a, b)


def both(conditions: list[Expr]) -> Expr:
    """All of the conditions; there must be one."""
    result = conditions[0]
    for condition in conditions[1:]:
        result = Logical(dtype=BOOL, op="and", a=result, b=condition)
    return result


_OPPOSITE: dict[str, CompareOp] = {
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "==": "!=",
    "!=": "==",
}


def negate(condition: Expr) -> Expr:
    """not condition, pushed inwards."""
    if isinstance(condition, Compare) and not condition.a.dtype.is_float:
        return replace(condition, op=_OPPOSITE[condition.op])
    if isinstance(condition, Logical):
        other = "or" if condition.op == "and" else "and"
        return replace(condition, op=other, a=negate(condition.a), b=negate(condition.b))  # type: ignore[arg-type]
    return Unary(dtype=BOOL, op="not", a=condition)


def for_host(expr: Expr) -> Expr:
    """An extent as host code and comments say it: numbers for names, C's division (sizes are >= 0)."""
    if isinstance(expr, Const):
        return replace(expr, name=None)
    if isinstance(expr, Binary):
        a, other = for_host(expr.a), for_host(expr.b)
        match expr.op:
            case "//" | "truncdiv":
                return div(a, other)
            case "%" | "truncmod":
                return mod(a, other)
            case "ceildiv":
                return ceil_div(a, other)
            case "+":
                return add(a, other)
            case "-":
                return sub(a, other)
            case "*":
                return mul(a, other)
        return replace(expr, a=a, b=other)
    return expr


def in_words(expr: Expr) -> Expr:
    """The same with the author's names kept."""
    if isinstance(expr, Binary):
        a, other = in_words(expr.a), in_words(expr.b)
        if expr.op in ("//", "%"):
            return replace(expr, op="truncdiv" if expr.op == "//" else "truncmod", a=a, b=other)
        if expr.op == "ceildiv":
            return ceil_div(a, other)
        return replace(expr, a=a, b=other)
    return expr


def local(name: str, dtype: DType = INT32) -> Var:
    """A C variable of ours."""
    return Var(dtype=dtype, name=name, kind="temporary")


def children(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside."""
    found: list[Expr] = []
    for name in inner_names(type(expr)):  # type: ignore[arg-type]  # a type has a hash
        value = getattr(expr, name)
        if isinstance(value, Expr):
            found.append(value)
        elif isinstance(value, tuple):
            found += [part for part in value if isinstance(part, Expr)]
    return tuple(found)


def walk(expr: Expr) -> list[Expr]:
    """The expression and everything in it, outside first."""
    found = [expr]
    for child in children(expr):
        found += walk(child)
    return found


def substitute(expr: Expr, values: dict[str, Expr]) -> Expr:
    """Variables replaced by name, everywhere inside."""
    if isinstance(expr, Var):
        return values.get(expr.name, expr)
    changes: dict[str, object] = {}
    for name in inner_names(type(expr)):  # type: ignore[arg-type]  # a type has a hash
        value = getattr(expr, name)
        if isinstance(value, Expr):
            new = substitute(value, values)
            if new is not value:
                changes[name] = new
        elif isinstance(value, tuple) and any(isinstance(part, Expr) for part in value):
            changes[name] = tuple(
                substitute(part, values) if isinstance(part, Expr) else part for part in value
            )
    return replace(expr, **changes) if changes else expr  # type: ignore[arg-type]


def mentions(expr: Expr, name: str) -> bool:
    """Whether the variable occurs inside."""
    return any(isinstance(part, Var) and part.name == name for part in walk(expr))
