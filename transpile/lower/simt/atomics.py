"""Atomics on one element: the device's own function, or a loop of compare-and-swap."""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.dtypes import INT32, DType
from tile2c.transpile.ir.expr import Binary, Expr, Select
from tile2c.transpile.ir.forms import Atomic
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import Address, Branch, CCall, CStmt, Declarator, Do, Local
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.values import (
    Place,
    convert,
    global_element,
    guards,
    shared_element,
    zero,
)

_WORDS = {16: "unsigned short", 32: "unsigned", 64: "unsigned long long"}
_BINARY = {"add": "+", "max": "max", "min": "min", "or": "|"}
_MEANINGS = {"add": "*at + x", "max": "max(*at, x)", "min": "min(*at, x)", "or": "*at | x",
             "exchange": "x"}  # fmt: skip


def lower_atomic(ctx: Context, stmt: Atomic, place: Place) -> tuple[CStmt, ...]:
    """The call, under the conditions that keep a global element inside, with fences as ordered."""
    buffer, index = stmt.buffer, stmt.index
    checks: list[Expr] = []
    if buffer.scope == "global":
        checks = [convert(ctx, c, place) for c in guards(ctx, buffer, index, place)]
        element = global_element(ctx, buffer, index, place)
    else:
        element = shared_element(ctx, buffer, index, place)
    conditions = [*place.once, *checks]
    call = _call(
        ctx, stmt, Address(dtype=buffer.dtype, element=element), convert(ctx, stmt.value, place)
    )
    before, after = _fences(stmt.order)
    if stmt.result is not None:
        found: Expr = call
        if conditions:
            missing = zero(buffer.dtype)
            found = Select(dtype=buffer.dtype, condition=b.both(conditions), a=call, b=missing)
        name = Declarator(name=stmt.result.name, value=found)
        local = Local(dtype=buffer.dtype, names=(name,))
        return (*before, replace(local, comments=stmt.comments, remark=stmt.remark), *after)
    effect: CStmt = Do(call=call)
    if conditions:
        reason = "the last tile may reach past the edge" if checks else "one of the replicas adds"
        effect = Branch(condition=b.both(conditions), then=(effect,), remark=reason)
    remark = stmt.remark or effect.remark
    return (*before, replace(effect, comments=stmt.comments, remark=remark), *after)


def _call(ctx: Context, stmt: Atomic, address: Expr, value: Expr) -> CCall:
    dtype = stmt.buffer.dtype
    native = ctx.target.atomics.get((stmt.op, dtype.name))
    if native is None:
        return CCall(dtype=dtype, function=_swap_helper(ctx, stmt, dtype), args=(address, value))
    function, carrier = native
    if not carrier:
        return CCall(dtype=dtype, function=function, args=(address, value))
    there = CCall(dtype=dtype, function=f"reinterpret_cast<{carrier}*>", args=(address,))
    bits = CCall(dtype=dtype, function=f"static_cast<{carrier}>", args=(value,))
    call = CCall(dtype=dtype, function=function, args=(there, bits))
    if stmt.result is None:
        return call
    own = ctx.target.dialect.types[dtype.name]
    return CCall(dtype=dtype, function=f"static_cast<{own}>", args=(call,))


def _swap_helper(ctx: Context, stmt: Atomic, dtype: DType) -> str:
    """The name of the loop of compare-and-swap for this operation and type."""
    from tile2c.transpile.render.expressions import CPrinter

    word = _WORDS.get(dtype.bits)
    if word is None:
        raise failure(
            "T2C507",
            f"{ctx.target.name} has no atomic {stmt.op} on {dtype}",
            stmt.span,
            help="use int32 or float32",
        )
    combined: Expr = b.local("x", dtype)
    if stmt.op != "exchange":
        old = b.local("old", dtype)
        combined = Binary(dtype=dtype, op=_BINARY[stmt.op], a=old, b=combined)  # type: ignore[arg-type]
    own = ctx.target.dialect.types[dtype.name]
    text = CPrinter(ctx.target.dialect)(convert(ctx, combined, Place(values={})))
    if dtype.bits < 32 and dtype.is_integer:
        text = f"{own}({text})"
    swap = ctx.target.swap_small if dtype.bits == 16 else ctx.target.swap
    if swap.startswith("compare_swap"):
        ctx.need("compare_swap")
    name = f"atomic_{stmt.op}"
    ctx.need(
        "atomic_swap",
        name=name,
        type=own,
        word=word,
        meaning=_MEANINGS[stmt.op],
        combined=text,
        swap=swap.format(word="word", seen="seen", next="next"),
    )
    return name


def _fences(order: str) -> tuple[tuple[CStmt, ...], tuple[CStmt, ...]]:
    """Fences before and after, as the memory order asks."""
    fence = Do(call=CCall(dtype=INT32, function="__threadfence", args=()))
    before = order in ("release", "acq_rel", "seq_cst")
    after = order in ("consume", "acquire", "acq_rel", "seq_cst")
    return ((fence,) if before else ()), ((fence,) if after else ())
