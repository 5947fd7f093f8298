"""Integer expressions as sums of products: values known at build time, proven equality.

Machine overflow is left out of account, as in every index proof.
"""

from __future__ import annotations

from collections.abc import Mapping

from tile2c.transpile.ir.expr import Binary, Cast, Const, Expr, Unary

Monomial = tuple[tuple[Expr, int], ...]  # atoms with their powers, in a fixed order
Polynomial = Mapping[Monomial, int]


def constant_value(expr: Expr) -> int | float | bool | None:
    """The value of an expression that holds no variable; None where there is one."""
    match expr:
        case Const():
            return expr.value
        case Unary(op="-"):
            a = constant_value(expr.a)
            return None if a is None else -a
        case Cast():
            a = constant_value(expr.a)
            if a is None or not expr.dtype.is_integer:
                return a
            return int(a)
        case Binary():
            a, b = constant_value(expr.a), constant_value(expr.b)
            return None if a is None or b is None else _fold(expr.op, a, b)
        case _:
            return None


def constant_int(expr: Expr) -> int | None:
    """As `constant_value`, for integers; also where variables cancel out (`n - n + 4`)."""
    value = constant_value(expr)
    if value is not None:
        return int(value) if isinstance(value, (int, bool)) else None
    found = polynomial(expr)
    return _only_constant(found)


def difference(a: Expr, b: Expr) -> int | None:
    """a - b where that is one number whatever the variables are."""
    left = dict(polynomial(a))
    for monomial, factor in polynomial(b).items():
        left[monomial] = left.get(monomial, 0) - factor
    return _only_constant({monomial: factor for monomial, factor in left.items() if factor})


def proven_equal(a: Expr, b: Expr) -> bool:
    return a == b or difference(a, b) == 0


def polynomial(expr: Expr) -> Polynomial:
    """The expression multiplied out; what is not `+ - *` of integers is an atom."""
    match expr:
        case Const() if isinstance(expr.value, (int, bool)):
            return {(): int(expr.value)} if expr.value else {}
        case Cast() if expr.dtype.is_integer and expr.a.dtype.is_integer:
            return polynomial(expr.a)
        case Unary(op="-"):
            return {monomial: -factor for monomial, factor in polynomial(expr.a).items()}
        case Binary(op="+" | "-"):
            total = dict(polynomial(expr.a))
            sign = 1 if expr.op == "+" else -1
            for monomial, factor in polynomial(expr.b).items():
                total[monomial] = total.get(monomial, 0) + sign * factor
            return {monomial: factor for monomial, factor in total.items() if factor}
        case Binary(op="*"):
            return _product(polynomial(expr.a), polynomial(expr.b))
        case Binary():
            value = constant_value(expr)
            if isinstance(value, int):
                return {(): value} if value else {}
    return {((expr, 1),): 1}


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    total: dict[Monomial, int] = {}
    for left, factor in a.items():
        for right, other in b.items():
            powers = dict(left)
            for atom, power in right:
                powers[atom] = powers.get(atom, 0) + power
            monomial = tuple(sorted(powers.items(), key=repr))
            total[monomial] = total.get(monomial, 0) + factor * other
    return {monomial: factor for monomial, factor in total.items() if factor}


def _only_constant(found: Polynomial) -> int | None:
    if not found:
        return 0
    return found[()] if list(found) == [()] else None


def _fold(op: str, a: int | float, b: int | float) -> int | float | None:
    both = isinstance(a, int) and isinstance(b, int)
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return a / b if b else None
        case "//":
            return a // b if b else None
        case "%":
            return a % b if b else None
        case "ceildiv":
            return -(-a // b) if b else None
        case "min":
            return min(a, b)
        case "max":
            return max(a, b)
        case "pow":
            power = a**b
            return power if isinstance(power, (int, float)) else None
        case "truncdiv" if both and b:
            return int(abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)
        case "truncmod" if both and b:
            return int(abs(a) % abs(b)) * (-1 if a < 0 else 1)
    if isinstance(a, int) and isinstance(b, int):
        match op:
            case "&":
                return a & b
            case "|":
                return a | b
            case "^":
                return a ^ b
            case "<<" if 0 <= b < 64:
                return a << b
            case ">>" if 0 <= b < 64:
                return a >> b
    return None
