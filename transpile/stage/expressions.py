"""Residual expressions: what is left of a device expression once build-time values are known.

They keep the author's tree. `constant` leaves print by name and fold in proofs; a `size` is known
only when the kernel is launched. Everything is immutable; spans point at the author's text.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from tile2c.transpile.diagnostics import Span
from tile2c.transpile.record import record

if TYPE_CHECKING:
    from tile2c.transpile.stage.buffers import Access

Number = int | float | bool
Kind = Literal[
    "literal",  # value
    "constant",  # op: its name, value
    "size",  # op: its name
    "name",  # op: a parameter, temporary, loop variable or buffer
    "language",  # op: T.op, without a call: a dtype, T.GemmWarpPolicy.Square
    "unary",  # op, (operand,)
    "binary",  # op, (left, right); comparisons and `and`, `or` too
    "choice",  # (condition, value, otherwise)
    "call",  # T.op(*args, **keywords)
    "index",  # (buffer, *indices): an element, or a region where a slice is among them
    "slice",  # (lo, hi)
    "tuple",  # (*elements)
    "list",
    "dict",  # (key, value, key, value, ...)
]

LEVEL = {
    **dict.fromkeys(("or",), 1),
    **dict.fromkeys(("and",), 2),
    **dict.fromkeys(("not",), 3),
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), 4),
    **dict.fromkeys(("|",), 5),
    **dict.fromkeys(("^",), 6),
    **dict.fromkeys(("&",), 7),
    **dict.fromkeys(("<<", ">>"), 8),
    **dict.fromkeys(("+", "-"), 9),
    **dict.fromkeys(("*", "/", "//", "%", "@"), 10),
    **dict.fromkeys(("u-", "u~", "u+"), 11),
    **dict.fromkeys(("**",), 12),
}
ATOM = 13


@record(eq=False)
class Expr:
    """One node of a residual expression."""

    kind: Kind
    op: str = ""
    args: tuple[Expr, ...] = ()
    keywords: tuple[tuple[str, Expr], ...] = ()
    value: Number | str | None = None
    span: Span | None = None
    dtype: str | None = None  # where it is known without inference
    sizes: frozenset[str] = frozenset()  # the run-time sizes in it
    device: bool = True  # False: nothing but numbers, constants and sizes
    depth: int = 1
    access: Access | None = None  # of an element or region of a buffer

    def at(self, span: Span | None) -> Expr:
        return replace(self, span=span)


def literal(value: Number | str, span: Span | None = None) -> Expr:
    return Expr("literal", value=value, span=span, device=False)


def constant(name: str, value: Number, span: Span | None = None) -> Expr:
    return Expr("constant", name, value=value, span=span, device=False)


def size(name: str, span: Span | None = None, dtype: str = "int32") -> Expr:
    return Expr("size", name, span=span, sizes=frozenset((name,)), device=False, dtype=dtype)


def name(text: str, span: Span | None = None, dtype: str | None = None) -> Expr:
    return Expr("name", text, span=span, dtype=dtype)


def language(attribute: str, span: Span | None = None) -> Expr:
    return Expr("language", attribute, span=span, device=False)


def compound(
    kind: Kind,
    op: str,
    args: tuple[Expr, ...],
    span: Span | None = None,
    *,
    keywords: tuple[tuple[str, Expr], ...] = (),
    dtype: str | None = None,
    device: bool | None = None,
) -> Expr:
    """A node over others; sizes, depth and whether it is device code follow from them."""
    parts = (*args, *(value for _, value in keywords))
    return Expr(
        kind,
        op,
        args,
        keywords,
        span=span,
        dtype=dtype,
        sizes=frozenset().union(*(part.sizes for part in parts)),
        device=any(part.device for part in parts) if device is None else device,
        depth=1 + max((part.depth for part in parts), default=0),
    )


def binary(op: str, left: Expr, right: Expr, span: Span | None = None) -> Expr:
    return compound("binary", op, (left, right), span)


def unary(op: str, operand: Expr, span: Span | None = None) -> Expr:
    return compound("unary", op, (operand,), span)


def call(
    function: str,
    args: tuple[Expr, ...],
    span: Span | None = None,
    *,
    keywords: tuple[tuple[str, Expr], ...] = (),
    dtype: str | None = None,
    device: bool | None = None,
) -> Expr:
    return compound("call", function, args, span, keywords=keywords, dtype=dtype, device=device)


def region_slice(lo: Expr, extent: Expr, span: Span | None = None) -> Expr:
    """`lo:lo + extent`, or `0:extent`."""
    hi = extent if is_zero(lo) else binary("+", lo, extent, span)
    return compound("slice", "", (lo, hi), span)


def is_zero(expr: Expr) -> bool:
    return expr.kind == "literal" and expr.value == 0 and not isinstance(expr.value, bool)


def level(expr: Expr) -> int:
    """How tightly the printed form binds; `ATOM` never needs brackets."""
    if expr.kind == "binary":
        return LEVEL[expr.op]
    if expr.kind == "unary":
        return LEVEL["not"] if expr.op == "not" else LEVEL["u" + expr.op]
    if expr.kind == "choice":
        return 0
    if (
        expr.kind == "literal"
        and isinstance(expr.value, int | float)
        and number_text(expr.value).startswith("-")
    ):
        return LEVEL["u-"]
    return ATOM


def operand_levels(expr: Expr) -> tuple[int, ...]:
    """The least level at which each operand stands without brackets."""
    if expr.kind == "binary":
        own = LEVEL[expr.op]
        if own == LEVEL["=="]:
            return own + 1, own + 1
        if expr.op in ("and", "or"):
            return own, own + 1
        return own, own + 1
    if expr.kind == "unary":
        return (level(expr),)
    if expr.kind == "choice":
        return 1, 1, 0  # printed as value if condition else otherwise
    return (0,) * len(expr.args)


def number_text(value: Number) -> str:
    """The literal's text. Infinities have none: they are spelled by `infinity`."""
    if isinstance(value, float) and not math.isfinite(value):
        return "-T.infinity(T.float32)" if value < 0 else "T.infinity(T.float32)"
    return repr(value)


def text(expr: Expr, least: int = 0) -> str:
    """The expression as Python text; in brackets when it binds less tightly than `least`."""
    plain = _plain_text(expr)
    return f"({plain})" if level(expr) < least else plain


def _plain_text(expr: Expr) -> str:
    match expr.kind:
        case "literal":
            value = expr.value
            return repr(value) if isinstance(value, str) else number_text(value or 0)
        case "constant" | "size" | "name":
            return expr.op
        case "language":
            return f"T.{expr.op}"
        case "unary":
            space = " " if expr.op == "not" else ""
            return f"{expr.op}{space}{text(expr.args[0], level(expr))}"
        case "binary":
            left, right = (text(a, n) for a, n in zip(expr.args, operand_levels(expr), strict=True))
            return f"{left} {expr.op} {right}"
        case "choice":
            test, value_, otherwise = (
                text(a, n) for a, n in zip(expr.args, operand_levels(expr), strict=True)
            )
            return f"{value_} if {test} else {otherwise}"
        case "call":
            parts = [text(arg) for arg in expr.args]
            parts += [f"{key}={text(value)}" for key, value in expr.keywords]
            return f"T.{expr.op}({', '.join(parts)})"
        case "index":
            return f"{text(expr.args[0])}[{', '.join(text(arg) for arg in expr.args[1:])}]"
        case "slice":
            return f"{text(expr.args[0])}:{text(expr.args[1])}"
        case "tuple":
            inner = ", ".join(text(arg) for arg in expr.args)
            return f"({inner},)" if len(expr.args) == 1 else f"({inner})"
        case "dict":
            pairs = zip(expr.args[::2], expr.args[1::2], strict=True)
            return "{" + ", ".join(f"{text(key)}: {text(value)}" for key, value in pairs) + "}"
        case "list":
            return f"[{', '.join(text(arg) for arg in expr.args)}]"


def names_in(expr: Expr) -> set[str]:
    """Every name in it, of whatever kind."""
    found: set[str] = set()
    stack = [expr]
    while stack:
        part = stack.pop()
        if part.kind in ("constant", "size", "name"):
            found.add(part.op)
        stack += part.args
        stack += [value for _, value in part.keywords]
    return found
