"""Scalar expressions as the scalar unit computes them: C operators, elements read into locals.

reads   expressions of the tile IR      writes  expressions that print as C, and `ReadElement` steps
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir import forms, walk
from tile2c.transpile.ir.dtypes import BOOL, DTYPES, FLOAT32, INT32, DType
from tile2c.transpile.ir.expr import (
    Binary,
    BinaryOp,
    Call,
    Cast,
    Compare,
    CompareOp,
    Const,
    Expr,
    Load,
    Logical,
    Select,
    Unary,
    Var,
    const,
)
from tile2c.transpile.ir.forms import Stmt
from tile2c.transpile.lower.cores.layouts import Layout, plus, times
from tile2c.transpile.lower.cores.names import Names
from tile2c.transpile.lower.cores.plan import Local, ReadElement, Step, TileRef
from tile2c.transpile.lower.facts import Facts
from tile2c.transpile.lower.plan import CCall, Element, Wide
from tile2c.transpile.targets.cores import CoresWords

Emit = Callable[[Step], None]


class Scalars:
    """Lowers scalar expressions; reads of tiles go through `emit` first."""

    def __init__(
        self,
        layouts: dict[str, Layout],
        names: Names,
        handles: dict[str, str],
        words: CoresWords,
    ) -> None:
        self.layouts = layouts
        self.names = names
        self.handles = handles  # tensor parameter -> what the body calls it
        self.words = words
        self.anew = (
            False  # the expression at hand is computed several times: nothing of it has a name
        )
        self.written: set[str] = set()  # tensors that may have been stored to

    @contextmanager
    def stores_of(self, stmt: Stmt) -> Iterator[None]:
        """While a statement is lowered: what a loop stores may be there from its second round on, what
        others store only behind them."""
        stored = {
            buffer.name
            for part in walk.statements((stmt,))
            for buffer in walk.writes(part)
            if buffer.scope == "global"
        }
        if isinstance(stmt, forms.For | forms.Pipelined | forms.While):
            self.written |= stored
        yield
        self.written |= stored

    def lower(self, expr: Expr, facts: Facts, emit: Emit) -> Expr:
        """The expression as C. Raises InputError for what the scalar unit cannot compute."""

        def go(part: Expr) -> Expr:
            return self.lower(part, facts, emit)

        if isinstance(expr, Const | Var):
            return expr
        if isinstance(expr, Load):
            return self._load(expr, facts, emit)
        if isinstance(expr, Binary):
            a, b = go(expr.a), go(expr.b)
            if expr.op in ("min", "max"):  # each side stands there twice
                a, b = (self._read_once(side, emit) for side in (a, b))
            return self._binary(expr, a, b, facts)
        if isinstance(expr, Unary):
            return _unary(expr, go(expr.a))
        if isinstance(expr, Compare | Logical):
            if isinstance(expr, Compare) and _is_half(expr.a.dtype):
                return replace(expr, a=_float(go(expr.a)), b=_float(go(expr.b)))
            return replace(expr, a=go(expr.a), b=go(expr.b))
        if isinstance(expr, Select):
            return replace(expr, condition=go(expr.condition), a=go(expr.a), b=go(expr.b))
        if isinstance(expr, Cast):
            inner = go(expr.a)
            if isinstance(inner, Const) and expr.dtype == FLOAT32 and _is_half(inner.dtype):
                return Const(dtype=FLOAT32, value=_rounded(inner))
            return replace(expr, a=inner)
        if isinstance(expr, Call) and expr.function == "abs":
            inner = go(expr.args[0])
            known = _float(inner) if _is_half(inner.dtype) else inner
            zero = Const(dtype=known.dtype, value=0)
            negative = Compare(dtype=BOOL, op="<", a=known, b=zero)
            minus = _unary(Unary(dtype=inner.dtype, op="-", a=inner), inner)
            if inner.dtype.is_integer and inner.dtype.bits < 32:
                minus = Cast(dtype=inner.dtype, a=minus)
            return Select(dtype=inner.dtype, condition=negative, a=minus, b=inner)
        what = expr.function if isinstance(expr, Call) else type(expr).__name__.lower()
        raise failure(
            "T2C534",
            f"the scalar unit of a core has no {what}, and this value is a single number",
            expr.span,
            help="compute it in a fragment of one element, with T.Parallel(1)",
        )

    def extent(self, extent: Expr) -> Expr:
        """An extent of a tensor as C: arithmetic of sizes and constants."""
        return self.lower(extent, Facts(), _no_steps)

    def _read_once(self, value: Expr, emit: Emit) -> Expr:
        """The value, under a name where S reads a tensor for it."""
        if self.anew or not _reads(value):
            return value
        name = self.names.local("limit")
        emit(Local(name=name, dtype=value.dtype, value=value))
        return Var(dtype=value.dtype, name=name, kind="temporary")

    def _load(self, expr: Load, facts: Facts, emit: Emit) -> Expr:
        buffer = expr.buffer
        if not buffer.shape or buffer.scope == "variable":
            return Var(dtype=buffer.dtype, name=buffer.name, kind="temporary")
        index = tuple(self.lower(part, facts, emit) for part in expr.index)
        if buffer.scope == "global":
            return self._global(expr, index, facts, emit)
        layout = self.layouts[buffer.name]
        name = self.names.local(f"{buffer.name}_value")
        offset = layout.offset(index)
        src = TileRef(tile=buffer.name, offset=offset)
        emit(ReadElement(name=name, dtype=buffer.dtype, src=src))
        return Var(dtype=buffer.dtype, name=name, kind="temporary")

    def _global(self, expr: Load, index: tuple[Expr, ...], facts: Facts, emit: Emit) -> Expr:
        """An element of a tensor, 0 outside of it. Raises InputError for one that the kernel writes:
        no unit that stores tells the scalar unit, nor its cache, what has changed."""
        buffer = expr.buffer
        if buffer.name in self.written:
            raise failure(
                "T2C580",
                f"{buffer.name} may have been written by now, and this is one number out of it, which "
                "the scalar unit reads without waiting for stores",
                expr.span,
                help="read it before, or from a tile that has the same values",
            )
        handle = self.handles[buffer.name]
        offset = self.global_offset(buffer.shape, buffer.strides, index)
        value: Expr = Element(dtype=buffer.dtype, array=handle, subscripts=(offset,))
        if self.words.element:
            call = self.words.element.format(handle=handle)
            value = CCall(dtype=buffer.dtype, function=call, args=(offset,))
        guard = outside_guard(expr.index, buffer.shape, facts)
        if guard is None:
            return value
        condition = self.lower(guard, facts, emit)
        return Select(
            dtype=buffer.dtype,
            condition=condition,
            a=value,
            b=Const(dtype=buffer.dtype, value=0),
        )

    def global_offset(
        self, shape: tuple[Expr, ...], strides: tuple[Expr, ...] | None, index: tuple[Expr, ...]
    ) -> Expr:
        """The flat offset in a tensor, in 64 bits where sizes are free; `index` is lowered."""
        total: Expr | None = None
        for dim, part in enumerate(index):
            if strides is not None:
                term = times(_wide(part), strides[dim])
            elif total is None:
                term = part
            else:
                total = times(_wide(total), self.extent(shape[dim]))
                term = part
            total = term if total is None else plus(total, term)
        return total if total is not None else const(0)

    def _binary(self, expr: Binary, a: Expr, b: Expr, facts: Facts) -> Expr:
        if expr.op in ("min", "max"):
            op: CompareOp = "<" if expr.op == "min" else ">"
            left, right = (_float(a), _float(b)) if _is_half(a.dtype) else (a, b)
            condition = Compare(dtype=BOOL, op=op, a=left, b=right)
            return Select(dtype=expr.dtype, condition=condition, a=a, b=b)
        if _is_half(expr.dtype):  # the scalar unit computes in float
            inner = Binary(dtype=FLOAT32, op=expr.op, a=_float(a), b=_float(b))
            return Cast(dtype=expr.dtype, a=inner)
        if expr.op == "ceildiv":
            one = const(1, dtype=expr.dtype)
            top = Binary(
                dtype=expr.dtype,
                op="-",
                a=Binary(dtype=expr.dtype, op="+", a=a, b=b),
                b=one,
            )
            if isinstance(b, Const) and b.name is None:
                last = const(int(b.value) - 1, dtype=expr.dtype)
                top = Binary(dtype=expr.dtype, op="+", a=a, b=last)
            return Binary(dtype=expr.dtype, op="truncdiv", a=top, b=b)
        if expr.op in ("//", "%"):
            return self._floor(expr, a, b, facts)
        return replace(expr, a=a, b=b)

    def _floor(self, expr: Binary, a: Expr, b: Expr, facts: Facts) -> Expr:
        """Floor division; C's division is the same where both sides cannot be negative."""
        whole: BinaryOp = "truncdiv" if expr.op == "//" else "truncmod"
        plain = Binary(dtype=expr.dtype, op=whole, a=a, b=b)
        if facts.non_negative(expr.a) and facts.non_negative(expr.b):
            return plain
        rest = Binary(dtype=expr.dtype, op="truncmod", a=a, b=b)
        zero = const(0, dtype=expr.dtype)
        unlike = Compare(
            dtype=BOOL,
            op="<",
            a=Binary(dtype=expr.dtype, op="^", a=rest, b=b),
            b=zero,
        )
        nonzero = Compare(dtype=BOOL, op="!=", a=rest, b=zero)
        off = Logical(dtype=BOOL, op="and", a=nonzero, b=unlike)
        one = const(1, dtype=expr.dtype)
        if expr.op == "//":
            fixed = Select(dtype=expr.dtype, condition=off, a=one, b=zero)
            return Binary(dtype=expr.dtype, op="-", a=plain, b=fixed)
        fixed = Select(dtype=expr.dtype, condition=off, a=b, b=zero)
        return Binary(dtype=expr.dtype, op="+", a=plain, b=fixed)


def outside_guard(index: tuple[Expr, ...], shape: tuple[Expr, ...], facts: Facts) -> Expr | None:
    """The condition under which an element lies inside its tensor, None where it always does."""
    parts: list[Expr] = []
    for part, extent in zip(index, shape, strict=True):
        if not facts.less(part, extent):
            parts.append(Compare(dtype=BOOL, op="<", a=part, b=extent))
        if not facts.non_negative(part):
            parts.append(Compare(dtype=BOOL, op=">=", a=part, b=const(0)))
    if not parts:
        return None
    whole = parts[0]
    for part in parts[1:]:
        whole = Logical(dtype=BOOL, op="and", a=whole, b=part)
    return whole


def _reads(value: object) -> bool:
    """Whether an expression as C reads an element of a tensor."""
    if isinstance(value, tuple):
        return any(_reads(part) for part in value)
    if isinstance(value, CCall | Element):
        return True
    return isinstance(value, Expr) and any(_reads(getattr(value, x.name)) for x in fields(value))


def _rounded(number: Const) -> float:
    """The value that a constant of a 16-bit type has."""
    import numpy as np
    from ml_dtypes import bfloat16

    half = np.float16 if number.dtype.name == "float16" else bfloat16
    return float(np.asarray(float(number.value), half))


def _is_half(dtype: DType) -> bool:
    return dtype in (DTYPES["float16"], DTYPES["bfloat16"])


def _unary(expr: Unary, a: Expr) -> Expr:
    """op a; what the scalar unit computes in float is rounded once more."""
    if not _is_half(expr.dtype):
        return replace(expr, a=a)
    return Cast(dtype=expr.dtype, a=Unary(dtype=FLOAT32, op=expr.op, a=_float(a)))


def _float(expr: Expr) -> Expr:
    if isinstance(expr, Const):
        return replace(expr, dtype=FLOAT32)
    return Cast(dtype=FLOAT32, a=expr)


def _wide(expr: Expr) -> Expr:
    if isinstance(expr, Const | Wide) or expr.dtype.bits == 64:
        return expr
    if isinstance(expr, Binary) and isinstance(expr.a, Wide):
        return expr
    if isinstance(expr, Binary) and expr.op == "+" and _holds_wide(expr):
        return expr
    return Wide(dtype=INT32, a=expr)


def _holds_wide(expr: Expr) -> bool:
    if isinstance(expr, Wide):
        return True
    return isinstance(expr, Binary) and (_holds_wide(expr.a) or _holds_wide(expr.b))


def _no_steps(step: Step) -> None:
    raise AssertionError("a guard reads no tile")
