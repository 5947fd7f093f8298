"""Which narrow type the values of each output were rounded to on their way.

Two right kernels add in different orders, so that their sums differ in the last bits; where such a
sum is rounded to a narrow type, now and then they end up at neighbouring values of that type.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tile2c.transpile.record import record

if TYPE_CHECKING:
    from tile2c.transpile.ir.dtypes import DType
    from tile2c.transpile.ir.expr import Expr
    from tile2c.transpile.ir.forms import Function, Stmt


@record
class Roundings:
    """Names of types; None where nothing was rounded to less than float64.

    `last`: the coarsest that values are in when nothing computes with them any more; `before`: the
    coarsest of values that others were computed from.
    """

    last: str | None = None
    before: str | None = None


@record
class _Seen:
    last: frozenset[str] = frozenset()
    before: frozenset[str] = frozenset()

    def __or__(self, other: _Seen) -> _Seen:
        return _Seen(self.last | other.last, self.before | other.before)

    def computed_with(self) -> _Seen:
        return _Seen(before=self.last | self.before)


def roundings(function: Function) -> dict[str, Roundings]:
    """For each tensor by the author's name: what rounded the values that the kernel puts there."""
    from tile2c.transpile.ir.walk import statements

    body = [stmt for launch in function.launches for stmt in statements(launch.body)]
    seen: dict[str, _Seen] = {}
    while True:
        before = dict(seen)
        for stmt in body:
            for name, found in _written(stmt, seen):
                seen[name] = seen.get(name, _Seen()) | found
        if seen == before:
            break
    return {
        param.name: Roundings(_coarsest(own.last), _coarsest(own.before))
        for param in function.params
        if param.tensor is not None and (own := seen.get(param.tensor.name)) is not None
    }


def with_products_in(dtype: str, came: Roundings | None) -> Roundings:
    """The same where a text rounds the operands of products to a type, as its head says."""
    from tile2c.transpile.cli.run_compare import unit

    if came is None or came.before is None:
        return Roundings(None if came is None else came.last, dtype)
    return Roundings(came.last, max(came.before, dtype, key=unit))


def _written(stmt: Stmt, seen: dict[str, _Seen]) -> Iterator[tuple[str, _Seen]]:
    """What a statement writes, with the roundings of it. Values without a rounding have none."""
    from tile2c.transpile.ir import forms
    from tile2c.transpile.ir.walk import reads, writes

    match stmt:
        case forms.Copy() | forms.BulkCopy():
            yield (
                stmt.dst.buffer.name,
                _moved(
                    seen.get(stmt.src.buffer.name, _Seen()),
                    stmt.src.buffer.dtype,
                    stmt.dst.buffer.dtype,
                ),
            )
        case forms.ElementCopy():
            yield stmt.dst.name, seen.get(stmt.src.name, _Seen())
        case forms.Let():
            yield stmt.var.name, _value(stmt.value, seen)
        case forms.Declare() if stmt.init is not None:
            yield stmt.buffer.name, _into(stmt.init, stmt.buffer.dtype, seen)
        case forms.Store():
            yield stmt.buffer.name, _into(stmt.value, stmt.buffer.dtype, seen)
        case forms.Atomic():
            dtype = stmt.buffer.dtype
            yield stmt.buffer.name, _sum(_into(stmt.value, dtype, seen), dtype, stmt.op)
        case forms.Fill():
            return
        case forms.Gemm() | forms.Reduce() | forms.Scan() | forms.AtomicTile() | forms.Foreign():
            for buffer in writes(stmt):
                found = _Seen()
                for other in reads(stmt):
                    if other.name != buffer.name:
                        found |= seen.get(other.name, _Seen())
                if isinstance(stmt, forms.Gemm) and stmt.a.buffer.dtype.bits <= 8:
                    found |= _small_products(stmt.a.buffer.dtype)
                op = getattr(stmt, "op", "sum")
                yield buffer.name, _sum(found, buffer.dtype, op)
        case _:
            return


def _small_products(dtype: DType) -> _Seen:
    from tile2c.transpile.cli.run_compare import SMALL_PRODUCTS

    return _Seen(before=frozenset({SMALL_PRODUCTS} if dtype.is_float else ()))


def _sum(found: _Seen, dtype: DType, op: str) -> _Seen:
    """Adding up: each partial sum is rounded to the type that it is kept in; the largest is not."""
    if op in ("max", "min", "absmax", "exchange"):
        return found
    found = found.computed_with()
    if not _narrow(dtype):
        return found
    return _Seen(frozenset({dtype.name}), found.before | {dtype.name})


def _into(value: Expr, dtype: DType, seen: dict[str, _Seen]) -> _Seen:
    return _moved(_value(value, seen), value.dtype, dtype)


def _moved(found: _Seen, source: DType, target: DType) -> _Seen:
    if source == target or not _narrow(target):
        return found
    if _narrow(source) and source.bits < target.bits:
        return found  # every value of an 8-bit float is one of a 16-bit float
    return _Seen(found.last | {target.name}, found.before)


def _value(expr: Expr, seen: dict[str, _Seen]) -> _Seen:
    """The roundings of an expression: those of what it reads, and of its own narrow operations."""
    from tile2c.transpile.ir.expr import Cast, Load, Select, Var
    from tile2c.transpile.ir.walk import children

    match expr:
        case Load():
            return seen.get(expr.buffer.name, _Seen())
        case Var():
            return seen.get(expr.name, _Seen())
        case Cast():
            return _moved(_value(expr.a, seen), expr.a.dtype, expr.dtype)
        case Select():
            return _value(expr.a, seen) | _value(expr.b, seen)
    found = _Seen()
    for child in children(expr):
        found |= _value(child, seen)
    found = found.computed_with()
    if _narrow(expr.dtype) and children(expr):
        return _Seen(frozenset({expr.dtype.name}), found.before)
    return found


def _narrow(dtype: DType) -> bool:
    return dtype.is_float and dtype.bits < 64


def _coarsest(names: frozenset[str]) -> str | None:
    from tile2c.transpile.cli.run_compare import unit

    return max(sorted(names), key=unit, default=None)
