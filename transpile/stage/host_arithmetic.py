"""Python's operators on host values, bounded before they run: no huge number or container."""

from __future__ import annotations

import operator
from collections.abc import Callable

from tile2c.transpile.stage.values import Value

MOST_BITS = 4096
MOST_ITEMS = 100_000


class TooLarge(Exception):
    """The result would be larger than any kernel needs."""


_BINARY: dict[str, Callable[[Value, Value], Value]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "@": operator.matmul,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_UNARY: dict[str, Callable[[Value], Value]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
    "not": operator.not_,
}


def apply(op: str, left: Value, right: Value) -> Value:
    """`left op right`. Raises TooLarge, and what Python raises for the operands."""
    check(op, left, right)
    result = _BINARY[op](left, right)
    if isinstance(result, int) and result.bit_length() > MOST_BITS:
        raise TooLarge
    return result


def apply_unary(op: str, operand: Value) -> Value:
    return _UNARY[op](operand)


def check(op: str, left: Value, right: Value) -> None:
    """Raises TooLarge where the operation itself would take too long or too much memory."""
    if op == "**" and isinstance(left, int) and isinstance(right, int):
        if left.bit_length() * max(right, 0) > MOST_BITS:
            raise TooLarge
    elif op == "<<" and isinstance(right, int):
        if right > MOST_BITS:
            raise TooLarge
    elif op == "*":
        for sequence, times in ((left, right), (right, left)):
            if isinstance(sequence, str | bytes | list | tuple) and isinstance(times, int):
                if len(sequence) * max(times, 0) > MOST_ITEMS:
                    raise TooLarge
    elif op == "+" and isinstance(left, str | list | tuple) and isinstance(right, type(left)):
        if len(left) + len(right) > MOST_ITEMS:
            raise TooLarge
    elif op == "%" and isinstance(left, str | bytes):
        if any(char.isdigit() or char == "*" for char in str(left)):
            raise TooLarge  # a width; never seen in kernels
        weigh(right)
    if op in ("==", "!=", "<", "<=", ">", ">="):
        weigh(left)
        weigh(right)


def weigh(value: Value) -> None:
    """Raises TooLarge when walking `value` would visit too many items: shared ones count again."""
    stack, seen = [value], 0
    while stack:
        item = stack.pop()
        seen += 1
        if seen > MOST_ITEMS:
            raise TooLarge
        if isinstance(item, str | bytes):
            seen += len(item) // 64
        elif isinstance(item, list | tuple | set | frozenset):
            if seen + len(item) + len(stack) > MOST_ITEMS:
                raise TooLarge
            stack.extend(item)
        elif isinstance(item, dict):
            if seen + 2 * len(item) + len(stack) > MOST_ITEMS:
                raise TooLarge
            stack.extend(item.keys())
            stack.extend(item.values())
