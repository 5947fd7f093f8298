"""Assertions and prints of the author's, as the device does them."""

from __future__ import annotations

from dataclasses import replace

from tile2c.transpile.ir.dtypes import FLOAT32, INT32, DType
from tile2c.transpile.ir.expr import Cast, Expr
from tile2c.transpile.ir.forms import Assert, Print
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import Branch, CCall, CStmt, Do, Text
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.values import Place, convert


def lower_assert(ctx: Context, stmt: Assert, place: Place) -> CStmt:
    """`if (!condition) __trap();  // message`: it stays in every build of the text."""
    stop = Do(call=CCall(dtype=INT32, function=ctx.target.trap, args=()))
    return Branch(
        condition=b.negate(convert(ctx, stmt.condition, place)),
        then=(stop,),
        comments=stmt.comments,
        remark=stmt.remark or stmt.message or "the author's assertion",
    )


def lower_print(ctx: Context, stmt: Print, place: Place) -> CStmt:
    """One printf: who, the label, the index, the number."""
    blocks = [f"blockIdx.{dim}" for dim, _ in zip("xyz", ctx.launch.blocks, strict=False)]
    form = f"block {' '.join('%d' for _ in blocks)} " if blocks else ""
    args: list[Expr] = [_plain(b.local(name)) for name in blocks]
    form += "thread %d: "
    args.append(_plain(ctx.thread()))
    form += stmt.label.replace("%", "%%")
    if stmt.index:
        form += f"[{', '.join('%d' for _ in stmt.index)}]"
        args += [convert(ctx, part, place) for part in stmt.index]
    if ctx.target.declares_printf:
        ctx.need("printf")
    shown, value = _shown(convert(ctx, stmt.value, place), stmt.value.dtype)
    text = Text(dtype=INT32, text=f"{form} = {shown}\n")
    call: CStmt = Do(
        call=CCall(dtype=INT32, function="printf", args=(text, *args, value)),
        comments=stmt.comments,
        remark=stmt.remark,
    )
    if not place.once:
        return call
    return Branch(
        condition=b.both(list(place.once)),
        then=(replace(call, comments=(), remark=""),),
        comments=stmt.comments,
        remark=stmt.remark or "several threads hold the same: one prints",
    )


def _plain(index: Expr) -> Expr:
    """The index as a number: some dialects' indices are objects, which printf does not take."""
    return CCall(dtype=INT32, function="int", args=(index,))


def _shown(value: Expr, dtype: DType) -> tuple[str, Expr]:
    """The conversion of printf for a type, and the value as it is passed."""
    if dtype.is_float:
        wide = dtype.bits >= 32
        return "%g", value if wide else Cast(dtype=FLOAT32, a=value)
    unsigned = dtype.kind == "uint"
    if dtype.bits == 64:
        return "%llu" if unsigned else "%lld", value
    return "%u" if unsigned and dtype.bits == 32 else "%d", value
