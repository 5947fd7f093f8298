"""Expressions of the thread index, thread by thread: who runs a statement, and which elements it touches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from tile2c.transpile.ir.expr import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Logical,
    Select,
    Unary,
    Var,
)
from tile2c.transpile.record import record

_BINARY: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, c: a + c,
    "-": lambda a, c: a - c,
    "*": lambda a, c: a * c,
    "//": lambda a, c: a // c,
    "%": lambda a, c: a % c,
    "ceildiv": lambda a, c: -(-a // c),
    "min": min,
    "max": max,
    "&": lambda a, c: a & c,
    "|": lambda a, c: a | c,
    "^": lambda a, c: a ^ c,
    "<<": lambda a, c: a << c if 0 <= c < 64 else 0,
    ">>": lambda a, c: a >> c if 0 <= c < 64 else 0,
}
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "==": lambda a, c: a == c,
    "!=": lambda a, c: a != c,
    "<": lambda a, c: a < c,
    "<=": lambda a, c: a <= c,
    ">": lambda a, c: a > c,
    ">=": lambda a, c: a >= c,
}
_SHARES: dict[str, Callable[[int], int]] = {"warpgroup_index": lambda thread: thread // 128}


@record(frozen=False)
class PerThread:
    """The threads of a block by their indices; `names` maps thread variables to dimensions."""

    extents: tuple[int, int, int]
    names: Mapping[str, int]
    known: dict[str, Expr] = field(default_factory=dict)  # temporaries of thread indices alone

    @property
    def count(self) -> int:
        x, y, z = self.extents
        return x * y * z

    def values(self, expr: Expr) -> tuple[int, ...] | None:
        """The integer that each thread sees, in order of the threads; None if it depends on more."""
        if not self._only_threads(expr):
            return None
        x, y, _ = self.extents
        try:
            return tuple(
                self._value(expr, (t % x, t // x % y, t // (x * y))) for t in range(self.count)
            )
        except ZeroDivisionError:
            return None

    def _only_threads(self, expr: Expr) -> bool:
        match expr:
            case Const():
                return not isinstance(expr.value, float)
            case Var():
                return expr.name in self.names or expr.name in self.known
            case Binary():
                return (
                    expr.op in _BINARY and self._only_threads(expr.a) and self._only_threads(expr.b)
                )
            case Compare() | Logical():
                return self._only_threads(expr.a) and self._only_threads(expr.b)
            case Unary():
                return self._only_threads(expr.a)
            case Cast():
                return (
                    expr.dtype.is_integer and expr.dtype.bits >= 32 and self._only_threads(expr.a)
                )
            case Select():
                return all(map(self._only_threads, (expr.condition, expr.a, expr.b)))
            case Call():
                return expr.function in _SHARES and self._only_threads(expr.args[0])
        return False

    def _value(self, expr: Expr, at: tuple[int, int, int]) -> int:
        match expr:
            case Const():
                return int(expr.value)
            case Var() if expr.name in self.names:
                return at[self.names[expr.name]]
            case Var():
                return self._value(self.known[expr.name], at)
            case Binary():
                return _BINARY[expr.op](self._value(expr.a, at), self._value(expr.b, at))
            case Compare():
                return int(_COMPARE[expr.op](self._value(expr.a, at), self._value(expr.b, at)))
            case Logical():
                left = self._value(expr.a, at)
                if bool(left) == (expr.op == "or"):
                    return left
                return self._value(expr.b, at)
            case Unary():
                inner = self._value(expr.a, at)
                return -inner if expr.op == "-" else ~inner if expr.op == "~" else int(not inner)
            case Cast():
                return self._value(expr.a, at)
            case Call():
                return _SHARES[expr.function](self._value(expr.args[0], at))
            case Select():
                return self._value(expr.a if self._value(expr.condition, at) else expr.b, at)
        raise TypeError(type(expr).__name__)


Cells = tuple[tuple[int | None, ...] | None, ...]


def apart(first: Cells, second: Cells) -> bool:
    """Whether no element is touched by one thread in `first` and by another in `second`.

    One entry a dimension of the buffer: the index that each thread uses there (None: the thread does
    not take part), or None where it depends on more than the thread.
    """
    return any(
        a is not None and c is not None and _disjoint(a, c)
        for a, c in zip(first, second, strict=False)
    )


def _disjoint(a: tuple[int | None, ...], c: tuple[int | None, ...]) -> bool:
    users: dict[int, set[int]] = {}
    for thread, index in enumerate(a):
        if index is not None:
            users.setdefault(index, set()).add(thread)
    return all(
        index is None or users.get(index, {thread}) == {thread} for thread, index in enumerate(c)
    )
