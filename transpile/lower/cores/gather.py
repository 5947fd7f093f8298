"""Parallel loops that gather a tile: rows of a tensor, or parts of them, found by division.

reads   `forms.Parallel`        writes  `Gather`, or nothing where a loop is something else
`tile[i, j] = tensor[f(i, j)]` is a few copies of rows where the index counts along the tensor within
parts of the loop's range: `x % n` counts by ones and `x // n` stays, as long as x is in one n.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import gcd

from tile2c.transpile.ir import forms, walk
from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import (
    Binary,
    Buffer,
    Compare,
    Const,
    Expr,
    Load,
    Logical,
    Select,
    Unary,
    Var,
    const,
)
from tile2c.transpile.ir.forms import Range, Region
from tile2c.transpile.lower.cores.layouts import constant_of
from tile2c.transpile.lower.facts import linear
from tile2c.transpile.lower.rewrite import rewrite
from tile2c.transpile.record import record


@record
class Parts:
    """How a loop variable is divided: `counted`, which is the variable and a start, in runs of `unit`.

    Without a unit there is one run. `size` is the unit as the author wrote it.
    """

    var: Var
    counted: Expr
    unit: int | None
    size: Expr = const(0)


@record(kw_only=True)
class Gather(forms.Copy):
    """tile[i, j] = tensor[index] where all `conditions` hold and the index lies inside, else 0.

    Along `rows` the index before the last, or one in front of it, moves; along `columns` the last.
    As a copy it names both buffers; what of the tensor it reads is not said.
    """

    loop_vars: tuple[Var, ...]
    extents: tuple[Expr, ...]
    index: tuple[Expr, ...]
    conditions: tuple[Expr, ...]
    names: tuple[str, ...]  # of the indices, "" for one without
    rows: Parts
    columns: Parts

    @property
    def tile(self) -> Buffer:
        return self.dst.buffer

    @property
    def tensor(self) -> Buffer:
        return self.src.buffer


def gather_of(stmt: forms.Parallel) -> Gather | None:
    """The loop as a gather, or None where it is none."""
    if len(stmt.loop_vars) != 2 or not stmt.body:
        return None
    *lets, store = stmt.body
    if not all(isinstance(let, forms.Let) and _is_index(let) for let in lets):
        return None
    if not isinstance(store, forms.Store) or store.buffer.scope not in ("shared", "fragment"):
        return None
    if store.index != stmt.loop_vars or store.buffer.shape != stmt.extents:
        return None
    meanings: dict[str, Expr] = {}
    for let in lets:
        assert isinstance(let, forms.Let)
        meanings[let.var.name] = _spelled(let.value, meanings)
    load, conditions = _chosen(store.value)
    if load is None or load.buffer.scope != "global" or load.buffer.strides is not None:
        return None
    if load.dtype != store.buffer.dtype or load.buffer.dtype != load.dtype:
        return None
    index = tuple(_spelled(part, meanings) for part in load.index)
    spelled = tuple(_spelled(part, meanings) for part in conditions)
    if any(True for part in (*index, *spelled) for _ in walk.loads(part)):
        return None
    parts = [_parts(var, (*index, *spelled)) for var in stmt.loop_vars]
    rows, columns = parts
    if rows is None or columns is None or (rows.unit is None and columns.unit is None):
        return None
    return Gather(
        loop_vars=stmt.loop_vars,
        extents=stmt.extents,
        src=_region(load.buffer, tuple(const(1) for _ in load.buffer.shape)),
        dst=_region(store.buffer, store.buffer.shape),
        span=stmt.span,
        quote=stmt.quote,
        comments=stmt.comments,
        remark=stmt.remark,
        index=index,
        conditions=spelled,
        names=tuple(part.name if isinstance(part, Var) else "" for part in load.index),
        rows=rows,
        columns=columns,
    )


def _region(buffer: Buffer, extents: tuple[Expr, ...]) -> Region:
    ranges = tuple(Range(start=const(0), extent=extent) for extent in extents)
    return Region(buffer=buffer, ranges=ranges)


def _is_index(let: forms.Let) -> bool:
    return let.var.dtype.is_integer and not any(True for _ in walk.loads(let.value))


def _spelled(expr: Expr, meanings: dict[str, Expr]) -> Expr:
    return rewrite(expr, lambda part: meanings.get(part.name) if isinstance(part, Var) else None)


def _chosen(value: Expr) -> tuple[Load | None, tuple[Expr, ...]]:
    """The element that is copied, and the conditions without which it is 0."""
    conditions: list[Expr] = []
    while isinstance(value, Select) and isinstance(value.b, Const) and value.b.value == 0:
        conditions += _both(value.condition)
        value = value.a
    return (value if isinstance(value, Load) else None), tuple(conditions)


def _both(condition: Expr) -> Iterator[Expr]:
    if isinstance(condition, Logical) and condition.op == "and":
        yield from _both(condition.a)
        yield from _both(condition.b)
    else:
        yield condition


# ---- how a variable is divided


def _parts(var: Var, exprs: Iterable[Expr]) -> Parts | None:
    """The runs of `var` in these expressions, None where they divide it in several ways."""
    counted: Expr | None = None
    unit = 0
    sizes: list[Expr] = []
    for expr in exprs:
        for part in divisions(expr, var):
            if counted is not None and linear(part.a) != linear(counted):
                return None
            counted = part.a
            sizes.append(part.b)
            unit = gcd(unit, constant_of(part.b) or 0)
    if counted is None:
        return Parts(var, var, None)
    if dict(linear(counted).terms).get(var) != 1:
        return None
    # A unit that is none of the divisors would cut what one of them keeps together: still right.
    size = next((x for x in sizes if constant_of(x) == unit), const(unit))
    return Parts(var, counted, unit, size)


def divisions(expr: Expr, var: Var) -> Iterator[Binary]:
    """The innermost divisions and remainders by numbers of what counts along with `var`."""
    if isinstance(expr, Binary) and expr.op in ("//", "%") and _positive(expr.b):
        inner = list(divisions(expr.a, var))
        if inner:
            yield from inner
            return
        if any(part == var for part in walk.variables(expr.a)):
            yield expr
            return
    for child in walk.children(expr):
        yield from divisions(child, var)


def _positive(expr: Expr) -> bool:
    return (constant_of(expr) or 0) > 0


def in_run(expr: Expr, parts: Parts, run: Expr, place: Expr) -> Expr:
    """The expression within one run: `run` is its number, `place` counts from its start on."""
    if parts.unit is None:
        return rewrite(expr, lambda part: place if part == parts.var else None)
    unit = parts.unit
    form = linear(parts.counted)

    def change(part: Expr) -> Expr | None:
        if part == parts.var:  # the run starts at run * unit of what is counted
            start = rewrite(parts.counted, lambda x: const(0) if x == parts.var else None)
            whole = _binary("-", _binary("*", run, parts.size), start)
            return _binary("+", whole, place)
        if not isinstance(part, Binary) or part.op not in ("//", "%") or not _positive(part.b):
            return None
        if linear(part.a) != form:
            return None
        times = (constant_of(part.b) or 0) // unit
        if part.op == "//":
            return run if times == 1 else _binary("//", run, const(times))
        if times == 1:
            return place
        return _binary("+", _binary("*", _binary("%", run, const(times)), parts.size), place)

    return rewrite(expr, change)


def compared(condition: Expr) -> tuple[Expr, Expr, bool] | None:
    """(a, b, strict) of a condition that says a < b or a <= b."""
    if not isinstance(condition, Compare) or condition.op in ("==", "!="):
        return None
    if condition.op in ("<", "<="):
        return condition.a, condition.b, condition.op == "<"
    return condition.b, condition.a, condition.op == ">"


def slope(expr: Expr, var: Var) -> int | None:
    """How fast an expression grows with `var`, None where it does so unevenly."""
    form = linear(expr)
    for atom, _ in form.terms:
        if atom != var and any(part == var for part in walk.variables(atom)):
            return None
    return dict(form.terms).get(var, 0)


def at_zero(expr: Expr, var: Var) -> Expr:
    """The expression for `var` = 0, without what that leaves of sums and products."""
    return _tidy(rewrite(expr, lambda part: const(0) if part == var else None))


def _tidy(expr: Expr) -> Expr:
    if not isinstance(expr, Binary):
        return expr
    a, b = _tidy(expr.a), _tidy(expr.b)
    zero_a, zero_b = (isinstance(part, Const) and part.value == 0 for part in (a, b))
    if expr.op == "+" and zero_a:
        return b
    if expr.op in ("+", "-") and zero_b:
        return a
    if expr.op == "-" and zero_a:
        return Unary(dtype=expr.dtype, op="-", a=b)
    if expr.op == "*" and (zero_a or zero_b):
        return const(0)
    return replace(expr, a=a, b=b)


def _binary(op: str, a: Expr, b: Expr) -> Expr:
    zero = isinstance(b, Const) and b.value == 0
    if zero and op in ("+", "-"):
        return a
    return Binary(dtype=INT32, op=op, a=a, b=b)  # type: ignore[arg-type]
