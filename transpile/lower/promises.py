"""What the author promised of sizes, as conditions that every call has to meet.

A promise (`T.assume`, `-D M%16=0`) leaves guards out of the text, so a call that breaks it must not run:
the manifest's `requires` holds it, and whoever launches checks it.
"""

from __future__ import annotations

from tile2c.transpile.ir.expr import Binary, Compare, Const, Expr, Logical, Var
from tile2c.transpile.ir.forms import Function


def promises(function: Function) -> tuple[str, ...]:
    """Conditions on sizes in the manifest's notation, in the author's order."""
    found = [_condition(condition) for condition in function.assumptions]
    return tuple(dict.fromkeys(text for text in found if text))


def _condition(expr: Expr) -> str:
    """The condition, or "" for one over anything but sizes (loop variables, loaded values)."""
    if isinstance(expr, Compare):
        a, b = _number(expr.a), _number(expr.b)
        return f"{a} {expr.op} {b}" if a and b else ""
    if isinstance(expr, Logical) and expr.op == "and":
        a, b = _condition(expr.a), _condition(expr.b)
        return f"{a} and {b}" if a and b else ""
    return ""


def _number(expr: Expr) -> str:
    if isinstance(expr, Const):
        return str(int(expr.value))
    if isinstance(expr, Var) and expr.kind == "size":
        return expr.name
    if isinstance(expr, Binary) and expr.op in ("+", "-", "*", "//", "%"):
        a, b = _number(expr.a), _number(expr.b)
        sides = [f"({x})" if " " in x else x for x in (a, b)]
        return f"{sides[0]} {expr.op} {sides[1]}" if a and b else ""
    return ""
