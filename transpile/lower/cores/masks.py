"""Choices by condition: a comparison writes one bit for each element, a select reads them.

Conditions on loop variables compare 0, 1, 2, ... with a number that the scalar unit computes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir import walk
from tile2c.transpile.ir.dtypes import BOOL, DTYPES, FLOAT32, INT32, DType
from tile2c.transpile.ir.expr import (
    Binary,
    Cast,
    Compare,
    CompareOp,
    Const,
    Expr,
    Logical,
    Select,
    Unary,
    Var,
    const,
)
from tile2c.transpile.lower.cores.layouts import is_zero
from tile2c.transpile.lower.cores.plan import Branch, Step
from tile2c.transpile.lower.cores.regions import without
from tile2c.transpile.lower.cores.units import calls_of
from tile2c.transpile.lower.cores.values import Kind, Value, join
from tile2c.transpile.lower.facts import linear
from tile2c.transpile.lower.rewrite import rewrite
from tile2c.transpile.record import record

if TYPE_CHECKING:
    from tile2c.transpile.lower.cores.expressions import Vectors

_MIRROR: dict[CompareOp, CompareOp] = {
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
    "==": "==",
    "!=": "!=",
}


@record
class _Test:
    """A comparison ready to run: `value op other`."""

    op: str
    value: Value
    other: Value


def _spread(condition: Compare) -> Logical | None:
    """A comparison with the smaller or larger of two numbers as two comparisons: i >= min(a, b)."""
    if not condition.a.dtype.is_integer or condition.op in ("==", "!="):
        return None
    a, b, op = condition.a, condition.b, condition.op
    if isinstance(a, Binary) and a.op in ("min", "max"):
        a, b, op = b, a, _MIRROR[op]
    if not isinstance(b, Binary) or b.op not in ("min", "max"):
        return None
    either = (b.op == "min") == (op in (">", ">="))
    sides = [replace(condition, op=op, a=a, b=side) for side in (b.a, b.b)]
    return Logical(dtype=BOOL, op="or" if either else "and", a=sides[0], b=sides[1])


class Masks:
    """Lowers `a if condition else b` for the expressions of one parallel loop."""

    def __init__(self, vectors: Vectors) -> None:
        self.v = vectors

    def select(self, expr: Select, want: Value | None) -> Value:
        a, b = self.v.evaluate(expr.a), self.v.evaluate(expr.b)
        out = self.pick(expr.condition, a, b, want, last=True)
        self.v.free(a, b, kept=out)
        return out

    def pick(self, condition: Expr, a: Value, b: Value, want: Value | None, *, last: bool) -> Value:
        """a where the condition holds, else b. Unless `last`, both are still needed afterwards."""
        if isinstance(condition, Var) and condition.name in self.v.conditions:
            condition = self.v.conditions[condition.name]
        if isinstance(condition, Unary) and condition.op == "not":
            return self.pick(condition.a, b, a, want, last=last)
        if isinstance(condition, Logical) or (
            isinstance(condition, Binary) and condition.op in ("&", "|")
        ):
            either = condition.op in ("or", "|")
            inner = self.pick(condition.b, a, b, None, last=False)
            sides = (a, inner) if either else (inner, b)
            out = self.pick(condition.a, *sides, want, last=last)
            self.v.free(inner, kept=out)
            return out
        if not self.v.varies(condition):
            return self.branch(condition, a, b, want, last)
        if isinstance(condition, Compare) and (spread := _spread(condition)) is not None:
            return self.pick(spread, a, b, want, last=last)
        if not isinstance(condition, Compare):
            raise failure(
                "T2C542",
                "this condition is no comparison, which is what the vector unit can test",
                condition.span,
                help="compare with a number: T.if_then_else(x[i, j] != 0, ...)",
            )
        same = self._same_everywhere(condition)
        if same is not None:
            return self.branch(same, a, b, want, last)
        return self.masked(self.test(condition), a, b, want, last)

    # ---- one condition for all elements

    def branch(self, condition: Expr, a: Value, b: Value, want: Value | None, last: bool) -> Value:
        lowered = self.v.scalars.lower(condition, self.v.facts, self.v.calls.emit)
        kind = join(a.kind, b.kind)
        kind = "one" if kind == "scalar" else kind
        out = self.out(kind, a, b, want, last)
        sides = []
        for value in (a, b):
            steps: list[Step] = []
            outer = self.v.calls
            self.v.calls = calls_of(self.v.tiles, outer.shape, steps.append)
            self.v.settle(replace(value, scratch=False, inside=False), out, None)
            self.v.calls = outer
            sides.append(tuple(steps))
        if sides[0] or sides[1]:
            then, orelse = sides
            if not then:
                lowered, then, orelse = Unary(dtype=BOOL, op="not", a=lowered), orelse, ()
            self.v.calls.emit(Branch(condition=lowered, then=then, orelse=orelse))
        return out

    # ---- comparisons

    def test(self, condition: Compare) -> _Test:
        dtype = condition.a.dtype
        compares = self.v.tiles.target.can("Compare", dtype.name) or dtype.bits <= 16
        if dtype.is_integer and not (self._reads_tiles(condition) and compares):
            return self.index_test(condition)
        wide = self.v.tiles.target.widen.get(dtype.name)
        if not self.v.tiles.target.can("Compare", dtype.name) and dtype.bits <= 16:
            wide = "float32"
        a, b = condition.a, condition.b
        if wide is not None:
            a, b = Cast(dtype=DTYPES[wide], a=a), Cast(dtype=DTYPES[wide], a=b)
        left, right = self.v.evaluate(a), self.v.evaluate(b)
        if left.kind == "scalar":
            return _Test(_MIRROR[condition.op], right, left)
        return _Test(condition.op, left, right)

    def _same_everywhere(self, condition: Compare) -> Expr | None:
        """A comparison of indices in which the loop variables cancel: i < i + n."""
        if not condition.a.dtype.is_integer or self._reads_tiles(condition):
            return None
        form = linear(Binary(dtype=INT32, op="-", a=condition.a, b=condition.b))
        if any(self.v.is_loop(var) for atom, _ in form.terms for var in walk.variables(atom)):
            return None
        own = {var: 0 for part in (condition.a, condition.b) for var in walk.variables(part)}
        loops = {var: 0 for var in own if self.v.is_loop(var)}
        rest = _difference(_fixed(condition.b, loops), _fixed(condition.a, loops))
        return replace(condition, a=const(0), b=rest)

    def _reads_tiles(self, condition: Compare) -> bool:
        loads = any(load.buffer.name in self.v.layouts for load in walk.loads(condition))
        return loads or any(var.name in self.v.bound for var in walk.variables(condition))

    def index_test(self, condition: Compare) -> _Test:
        """A comparison of indices: the loop variables on one side, the rest on the other."""
        if self._reads_tiles(condition):
            raise failure(
                "T2C543",
                f"the vector unit does not compare {condition.a.dtype} elements",
                condition.span,
                help="convert first: T.cast(x[i, j], 'int32')",
            )
        difference = Binary(dtype=INT32, op="-", a=condition.a, b=condition.b)
        form = linear(difference)
        own = {var: c for var, c in form.terms if isinstance(var, Var) and self.v.is_loop(var)}
        rest = _difference(_fixed(condition.b, own), _fixed(condition.a, own))
        for atom, _ in form.terms:
            if atom not in own and any(self.v.is_loop(var) for var in walk.variables(atom)):
                raise failure(
                    "T2C544",
                    "this condition is not linear in the loop variables",
                    condition.span,
                    help="compare sums of loop variables, sizes and constants",
                )
        op = condition.op
        if all(factor < 0 for factor in own.values()):
            own = {var: -factor for var, factor in own.items()}
            op = _MIRROR[op]
            rest = _negative(rest)
        value = self._combination(own)
        number = self.v.scalars.lower(rest, self.v.facts, self.v.calls.emit)
        other = Cast(dtype=FLOAT32, a=number)
        limit: Expr = other
        if isinstance(number, Const):
            limit = Const(dtype=FLOAT32, value=float(number.value))
        return _Test(op, value, Value(kind="scalar", dtype=FLOAT32, expr=limit))

    def _combination(self, own: dict[Var, int]) -> Value:
        """The sum of loop variables times factors, in float32: exact for indices in a tile."""
        total: Value | None = None
        for var, factor in own.items():
            value = self.v.index_values(var, FLOAT32)
            if factor not in (1, -1) or (total is None and factor < 0):
                value = self.v.scaled(value, float(factor), None)
                factor = 1
            if total is None:
                total = value
            else:
                function = "Add" if factor > 0 else "Sub"
                total = self.v.two(function, FLOAT32, total, value, None)
        assert total is not None
        return total

    # ---- selects

    def masked(self, test: _Test, a: Value, b: Value, want: Value | None, last: bool) -> Value:
        op, opposite = self.v.calls.sided(test.op, test.value.dtype)
        if opposite:
            a, b = b, a
        test = replace(test, op=op)
        whole = join(test.value.kind, test.other.kind)
        kind = join(whole, a.kind, b.kind)
        by_rows = whole == "row" and kind == "tile"
        mask = self.compare(test, "row" if by_rows else kind, a.dtype)
        sources = []
        for number, value in enumerate((a, b)):
            fits = value.kind == kind or (by_rows and value.kind == "row")
            number_fits = value.kind == "scalar" and self.v.calls.takes_number(number, a.dtype)
            if (fits and self._dense(value)) or number_fits:
                sources.append(value)
            else:
                sources.append(self._settled(value, kind))
        made = tuple(
            value for value, given in zip(sources, (a, b), strict=True) if value is not given
        )
        out = self.out(kind, a, b, want, last)
        self.v.calls.choose(out, mask, *sources)
        self.v.tiles.give_back(mask.at.tile)
        self.v.free(*made, kept=out)
        return out

    def compare(self, test: _Test, kind: Kind, chosen: DType) -> Value:
        """The mask of a comparison."""
        left, right = test.value, test.other
        if left.kind != kind or not self._dense(left):
            left = self._settled(left, kind)
        if right.kind != "scalar" and (right.kind != kind or not self._dense(right)):
            right = self._settled(right, kind)
        self.v.consume(left, right)
        mask = self.v.calls.compared(test.op, left, right, kind, chosen)
        self.v.free(left, right)
        return mask

    def out(self, kind: Kind, a: Value, b: Value, want: Value | None, last: bool) -> Value:
        if last:
            found = self.v.result(kind, a.dtype, want, a, b)
            if kind != "tile" or self._dense(found):
                return found
        return self.v.scratch(kind, a.dtype)

    def _dense(self, value: Value) -> bool:
        if value.ref is not None and value.ref.offset is not None:
            return False
        return value.kind != "tile" or value.pitch == self.v.calls.shape.pitch

    def _settled(self, value: Value, kind: Kind) -> Value:
        """The value in a scratch tile of that shape."""
        out = self.v.scratch(kind, value.dtype)
        self.v.settle(value, out, None)
        return out


def _fixed(expr: Expr, own: dict[Var, int]) -> Expr:
    """A side of a comparison without its loop variables."""
    for var in own:
        shorter = without(expr, var)
        if var in walk.variables(shorter):  # it occurs several times
            shorter = _at_zero(expr, var)
        expr = shorter
    return expr


def _at_zero(expr: Expr, var: Var) -> Expr:
    zero = const(0, dtype=var.dtype)
    return rewrite(expr, lambda part: zero if part == var else None)


def _difference(a: Expr, b: Expr) -> Expr:
    """a - b, without subtractions of 0."""
    if is_zero(b):
        return a
    if isinstance(a, Const) and isinstance(b, Const):
        return const(int(a.value) - int(b.value))
    return _negative(b) if is_zero(a) else Binary(dtype=INT32, op="-", a=a, b=b)


def _negative(expr: Expr) -> Expr:
    if isinstance(expr, Const):
        return const(-int(expr.value))
    if isinstance(expr, Binary) and expr.op == "-":
        return _difference(expr.b, expr.a)
    return Unary(dtype=expr.dtype, op="-", a=expr)
