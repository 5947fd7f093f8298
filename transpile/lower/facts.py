"""What is known about sizes and indices, and yes/no questions about them.

Easy questions are answered by intervals of linear forms, the rest by isl (https://libisl.sourceforge.io):
linear forms with `//` and `%` by constants are exact there. What it cannot say becomes a symbol. "Not
proven" means a guard or a barrier, never a guess.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from math import gcd, prod

from tile2c.transpile.ir.dtypes import BOOL, INT32
from tile2c.transpile.ir.expr import Binary, Cast, Compare, Const, Expr, Logical, Unary, Var, const
from tile2c.transpile.ir.forms import For, Pipelined
from tile2c.transpile.lower.build import fold, known, substitute, walk
from tile2c.transpile.record import record

_ARITHMETIC = (Binary, Cast, Const, Unary, Var)

# Bound on isl's work for one question, in its own operations: bytes of output must not depend on time.
_MAX_OPERATIONS = 20_000


@record
class Linear:
    """sum(coefficient * atom) + constant; an atom is a variable or something opaque."""

    terms: tuple[tuple[Expr, int], ...]
    constant: int


def linear(expr: Expr) -> Linear:
    """The expression as a linear form; products of variables and the like are atoms."""
    terms: dict[Expr, int] = {}
    constant = _collect(expr, 1, terms)
    return Linear(tuple((atom, c) for atom, c in terms.items() if c), constant)


def keeps_number(expr: Cast) -> bool:
    """Whether an integer is the same number in the other type.

    64 bits are taken to fit into 32; what may be negative does not fit where there is no sign.
    """
    source, dtype = expr.a.dtype, expr.dtype
    if not (source.is_integer and dtype.is_integer):
        return False
    if (source.kind, dtype.kind) == ("int", "uint"):
        return isinstance(expr.a, Const) and expr.a.value >= 0 and dtype.bits >= 32
    spare = dtype.bits - source.bits
    return dtype.bits >= 32 or spare > 0 or (spare == 0 and source.kind == dtype.kind)


def _collect(expr: Expr, factor: int, terms: dict[Expr, int]) -> int:
    if isinstance(expr, Const):
        return factor * int(expr.value)
    if isinstance(expr, Cast) and keeps_number(expr):
        return _collect(expr.a, factor, terms)
    signed = expr.dtype.kind == "int"  # else what is below 0 would be a large number
    if isinstance(expr, Unary) and expr.op == "-" and signed:
        return _collect(expr.a, -factor, terms)
    if isinstance(expr, Binary):
        if expr.op == "+" or (expr.op == "-" and signed):
            first = _collect(expr.a, factor, terms)
            return first + _collect(expr.b, factor if expr.op == "+" else -factor, terms)
        if expr.op == "*":
            for one, other in ((expr.a, expr.b), (expr.b, expr.a)):
                fixed = linear(one)
                if not fixed.terms:
                    return _collect(other, factor * fixed.constant, terms)
        value = known(expr)
        if value is not None:
            return factor * value
    terms[expr] = terms.get(expr, 0) + factor
    return 0


@record
class Facts:
    """Ranges of variables, divisors of sizes, and conditions that hold here. Immutable: scopes add."""

    ranges: Mapping[str, tuple[Expr, Expr]] = field(default_factory=dict)  # low <= var <= high
    divisors: Mapping[str, int] = field(default_factory=dict)
    conditions: tuple[Expr, ...] = ()
    meanings: Mapping[str, Expr] = field(default_factory=dict)  # names of arithmetic: what it is

    def with_range(self, var: Var, low: Expr, stop: Expr) -> Facts:
        """Also low <= var < stop."""
        low, high = self.spelled(low), Binary(dtype=INT32, op="-", a=self.spelled(stop), b=const(1))
        return replace(self, ranges={**self.ranges, var.name: (low, high)})

    def with_meaning(self, var: Var, value: Expr) -> Facts:
        """Also var == value, for arithmetic on integers; other values say nothing."""
        plain = var.dtype.is_integer and var.dtype.bits >= 32  # narrow ones wrap
        if not plain or not all(isinstance(x, _ARITHMETIC) for x in walk(value)):
            return self
        return replace(self, meanings={**self.meanings, var.name: self.spelled(value)})

    def spelled(self, expr: Expr) -> Expr:
        """The expression with what is known by name spelled out."""
        return substitute(expr, dict(self.meanings)) if self.meanings else expr

    def with_loop(self, loop: For | Pipelined) -> Facts:
        """Also the range of a serial loop's variable, whichever way it counts."""
        if isinstance(loop, For) and loop.step < 0:
            low = Binary(dtype=INT32, op="+", a=loop.stop, b=const(1))
            stop = Binary(dtype=INT32, op="+", a=loop.start, b=const(1))
            return self.with_range(loop.var, low, stop)
        return self.with_range(loop.var, loop.start, loop.stop)

    def with_at_least(self, var: Var, low: int) -> Facts:
        """Also var >= low."""
        return self.with_condition(Compare(dtype=BOOL, op=">=", a=var, b=const(low)))

    def with_condition(self, condition: Expr) -> Facts:
        """Also `condition`."""
        return replace(self, conditions=(*self.conditions, self.spelled(condition)))

    def with_divisor(self, var: Var, divisor: int) -> Facts:
        """Also: var is a multiple of `divisor`."""
        return replace(self, divisors={**self.divisors, var.name: divisor})

    def divisible(self, expr: Expr, by: int) -> bool:
        """Whether `expr` is always a multiple of `by`."""
        if by == 1:
            return True
        form = linear(self.spelled(expr))
        return form.constant % by == 0 and all(
            self._divides(atom, by // gcd(coefficient, by)) for atom, coefficient in form.terms
        )

    def _divides(self, atom: Expr, by: int) -> bool:
        """Whether something that is no sum is always a multiple of `by`."""
        if isinstance(atom, Var):
            return self.divisors.get(atom.name, 1) % by == 0
        if isinstance(atom, Binary) and atom.op in ("%", "truncmod"):
            return self.divisible(atom.a, by) and self.divisible(atom.b, by)
        if isinstance(atom, Binary) and atom.op == "*":
            return self.divisible(atom.a, by) or self.divisible(atom.b, by)
        return by == 1

    def less(self, a: Expr, b: Expr) -> bool:
        """Whether a < b always."""
        return self.at_least(Binary(dtype=INT32, op="-", a=b, b=a), 1)

    def at_least(self, expr: Expr, low: int) -> bool:
        """Whether expr >= low always."""
        expr = self.spelled(expr)
        if isinstance(expr, Binary) and expr.op in ("min", "max"):
            every = all if expr.op == "min" else any
            if every(self.at_least(side, low) for side in (expr.a, expr.b)):
                return True
        bound = self._lowest(linear(expr))
        if bound is not None and bound >= low:
            return True
        if self._counterexample(expr, low):
            return False
        return self._ask_isl(expr, low)

    def holds(self, condition: Expr) -> bool:
        """Whether a condition is always true."""
        if isinstance(condition, Logical) and condition.op == "and":
            return self.holds(condition.a) and self.holds(condition.b)
        if not isinstance(condition, Compare) or condition.a.dtype.kind != "int":
            return False
        a, c = condition.a, condition.b
        match condition.op:
            case "<":
                return self.less(a, c)
            case ">":
                return self.less(c, a)
            case "<=":
                return self.at_least(Binary(dtype=INT32, op="-", a=c, b=a), 0)
            case ">=":
                return self.at_least(Binary(dtype=INT32, op="-", a=a, b=c), 0)
        return False

    def non_negative(self, expr: Expr) -> bool:
        return self.at_least(expr, 0)

    def equal(self, a: Expr, b: Expr) -> bool:
        """Whether a and b are the same linear form."""
        difference = linear(self.spelled(Binary(dtype=INT32, op="-", a=a, b=b)))
        return not difference.terms and difference.constant == 0

    # ---- intervals

    def _lowest(self, form: Linear) -> int | None:
        total = form.constant
        for atom, coefficient in form.terms:
            bound = self._bound(atom, lowest=coefficient > 0)
            if bound is None:
                return None
            total += coefficient * bound
        return total

    def _bound(self, atom: Expr, *, lowest: bool) -> int | None:
        if isinstance(atom, Var):
            if atom.name in self.ranges:
                low, high = self.ranges[atom.name]
                return self._numeric(low if lowest else high, lowest)
            if atom.kind == "size" and lowest:
                return 0
            return None
        if isinstance(atom, Binary) and atom.op in ("//", "truncdiv", "ceildiv", "%", "truncmod"):
            by = linear(atom.b)
            if by.terms and lowest and self.at_least(atom.b, 0):  # by 0 it would have no meaning
                floored = atom.op == "%" or self.at_least(atom.a, 0)
                return 0 if floored else None
            if by.terms or by.constant <= 0:
                return None
            if atom.op in ("%", "truncmod"):
                if atom.op == "truncmod" and self._numeric(atom.a, True) is None:
                    return None
                return 0 if lowest else by.constant - 1
            inner = self._numeric(atom.a, lowest)
            if inner is None or (inner < 0 and atom.op == "truncdiv"):
                return None
            return -(-inner // by.constant) if atom.op == "ceildiv" else inner // by.constant
        if isinstance(atom, Binary) and atom.op in ("min", "max"):
            sides = [self._numeric(side, lowest) for side in (atom.a, atom.b)]
            found = [side for side in sides if side is not None]
            pick = min if atom.op == "min" else max
            if len(found) == 2:
                return pick(found)
            if len(found) == 1 and lowest == (atom.op == "max"):
                return found[0]
        if isinstance(atom, Binary) and atom.op == "*":
            factors = [self._least(side) for side in (atom.a, atom.b)]
            if not lowest:  # both are at least 0, so the largest factors make the largest product
                highest = [self._numeric(side, False) for side in (atom.a, atom.b)]
                factors = highest if all(low is not None and low >= 0 for low in factors) else []
            if len(factors) == 2 and all(x is not None and x >= 0 for x in factors):
                return prod(x for x in factors if x is not None)
        return None

    def _least(self, expr: Expr) -> int | None:
        """A number that the expression is never below."""
        found = self._numeric(expr, True)
        return 0 if (found is None or found < 0) and self.at_least(expr, 0) else found

    def _numeric(self, expr: Expr, lowest: bool) -> int | None:
        form = linear(expr)
        if lowest:
            return self._lowest(form)
        negated = Linear(tuple((atom, -c) for atom, c in form.terms), -form.constant)
        bound = self._lowest(negated)
        return None if bound is None else -bound

    # ---- counterexamples

    def _counterexample(self, expr: Expr, low: int) -> bool:
        """Whether a few sample sizes, with every variable at one end of its range, refute expr >= low.

        Most questions whose answer is no are settled here, without asking isl.
        """
        return any(
            (value := _evaluate(expr, at)) is not None and value < low for at in self._samples(expr)
        )

    def _samples(self, expr: Expr) -> Iterator[dict[str, int]]:
        """Values of the expression's variables, within their ranges and under the conditions."""
        names = {var.name for var in _variables(expr)}
        for size in _SAMPLE_SIZES:
            for highest in (True, False):
                at: dict[str, int] = {}
                if all(self._sample(name, size, highest, at) for name in sorted(names)):
                    if all(_holds(condition, at) for condition in self.conditions):
                        yield at

    def _sample(self, name: str, size: int, highest: bool, at: dict[str, int]) -> bool:
        """Sets a variable, after those its range depends on; False if the range is empty or unknown."""
        if name in at:
            return True
        if name not in self.ranges:
            divisor = self.divisors.get(name, 1)
            at[name] = -(-size // divisor) * divisor
            return True
        first, last = self.ranges[name]
        needed = {var.name for var in (*_variables(first), *_variables(last))} - {name}
        if not all(self._sample(other, size, highest, at) for other in sorted(needed)):
            return False
        ends = (_evaluate(first, at), _evaluate(last, at))
        if ends[0] is None or ends[1] is None or ends[0] > ends[1]:
            return False
        at[name] = ends[1] if highest else ends[0]
        return True

    # ---- isl

    def _ask_isl(self, expr: Expr, low: int) -> bool:
        writer = _IslWriter()
        goal = writer.affine(expr)
        parts = [f"{goal} < {low}"]
        pending, done = list(writer.fresh), set[str]()
        while pending:  # the ranges of what the goal mentions, and of what they mention
            var = pending.pop()
            if var.name in done:
                continue
            done.add(var.name)
            name = writer.names[var]
            if var.name in self.ranges:
                first, last = self.ranges[var.name]
                parts += [f"{name} >= {writer.affine(first)}", f"{name} <= {writer.affine(last)}"]
            elif var.kind == "size":
                parts.append(f"{name} >= 0")
            if var.name in self.divisors:
                parts.append(f"{name} mod {self.divisors[var.name]} = 0")
            pending += [other for other in writer.fresh if other.name not in done]
        parts += [text for text in (writer.condition(c) for c in self.conditions) if text]
        if not writer.names:  # nothing varies
            value = _evaluate(expr, {var.name: 0 for var in _variables(expr)})
            return value is not None and value >= low
        return _empty(f"{{ [{', '.join(writer.names.values())}] : {' and '.join(parts)} }}")


# Sizes to try: none, one, an odd one past a tile, one between tiles; multiples of promised
# divisors are taken.
_SAMPLE_SIZES = (0, 1, 129, 1000)


def _variables(expr: Expr) -> list[Var]:
    return [part for part in walk(expr) if isinstance(part, Var)]


def _evaluate(expr: Expr, at: Mapping[str, int]) -> int | None:
    """The integer value at these variables, or None for what has no value here."""
    if isinstance(expr, Const):
        return int(expr.value)
    if isinstance(expr, Var):
        return at.get(expr.name)
    if isinstance(expr, Cast) and keeps_number(expr):
        return _evaluate(expr.a, at)
    if isinstance(expr, Unary) and expr.op == "-":
        value = _evaluate(expr.a, at)
        return None if value is None else -value
    if isinstance(expr, Binary):
        a, b = _evaluate(expr.a, at), _evaluate(expr.b, at)
        return None if a is None or b is None else fold(expr.op, a, b)
    return None


def _holds(condition: Expr, at: Mapping[str, int]) -> bool:
    """Whether a condition surely holds at these variables."""
    if isinstance(condition, Logical):
        sides = (_holds(condition.a, at), _holds(condition.b, at))
        return all(sides) if condition.op == "and" else any(sides)
    if isinstance(condition, Compare):
        a, b = _evaluate(condition.a, at), _evaluate(condition.b, at)
        return a is not None and b is not None and _COMPARE[condition.op](a, b)
    return False


_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class _IslWriter:
    """Writes expressions in isl's notation; what it cannot say becomes a symbol."""

    def __init__(self) -> None:
        self.names: dict[Expr, str] = {}
        self.fresh: list[Var] = []

    def symbol(self, expr: Expr) -> str:
        if expr not in self.names:
            self.names[expr] = f"x{len(self.names)}"
            if isinstance(expr, Var):
                self.fresh.append(expr)
        return self.names[expr]

    def affine(self, expr: Expr) -> str:
        form = linear(expr)
        parts = [f"{c} * {self._atom(atom)}" for atom, c in form.terms]
        return f"({' + '.join([*parts, str(form.constant)])})"

    def _atom(self, atom: Expr) -> str:
        if isinstance(atom, Binary) and atom.op in ("//", "%", "ceildiv"):
            by = linear(atom.b)
            if not by.terms and by.constant > 0:
                inner = self.affine(atom.a)
                if atom.op == "%":
                    return f"({inner} mod {by.constant})"
                up = by.constant - 1 if atom.op == "ceildiv" else 0
                return f"floor(({inner} + {up}) / {by.constant})"
        return self.symbol(atom)

    def condition(self, expr: Expr) -> str:
        """A condition in isl's notation, or "" if it cannot be said."""
        if isinstance(expr, Compare) and expr.a.dtype.is_integer:
            sign = {"==": "=", "!=": "!="}.get(expr.op, expr.op)
            return f"{self.affine(expr.a)} {sign} {self.affine(expr.b)}"
        if isinstance(expr, Logical) and expr.op == "and":
            sides = [self.condition(expr.a), self.condition(expr.b)]
            return " and ".join(f"({side})" for side in sides if side)
        return ""


_answers: dict[str, bool] = {}  # a pure function's cache: text of a set -> whether it is empty


def _empty(text: str) -> bool:
    """Whether isl proves the set empty within its limit."""
    if text not in _answers:
        import islpy as isl

        context = isl.DEFAULT_CONTEXT
        context.set_max_operations(_MAX_OPERATIONS)
        try:
            _answers[text] = bool(isl.Set(text).is_empty())
        except isl.Error:
            _answers[text] = False
        finally:
            context.set_max_operations(0)
            context.reset_operations()
    return _answers[text]
