"""Blocks with more rounds start first, so that none of them begins when the others are done.

Causal attention is the case: the later a block's rows, the more keys they see. Blocks start in the order
of their index, so the index is counted down (FlashAttention-3's scheduler does the same).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Binary, Expr, Var, const
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import CStmt, Local
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper.roles import Roles

REASON = "The rounds of a block grow with {}: those with the most start first."


def long_blocks_first(ctx: Context, roles: Roles, lines: Sequence[CStmt]) -> list[CStmt]:
    """The lines that name block indices, that of a growing number of rounds counted from the end."""
    growing = growing_indices(ctx, roles)
    if ctx.launch.order is not None or len(growing) != 1:
        return list(lines)
    ((_, axis),) = growing
    plain = b.local(f"blockIdx.{axis}")
    last = b.sub(b.local(f"int(gridDim.{axis})"), const(1))
    found: list[CStmt] = []
    for line in lines:
        if isinstance(line, Local) and any(x.value == plain for x in line.names):
            others = tuple(x for x in line.names if x.value != plain)
            theirs = next(x for x in line.names if x.value == plain)
            down = replace(theirs, value=b.sub(last, b.local(f"int(blockIdx.{axis})")))
            if others:
                found.append(replace(line, names=others))
            found.append(Local(dtype=INT32, names=(down,), comments=(REASON.format(theirs.name),)))
        else:
            found.append(line)
    return found


def growing_indices(ctx: Context, roles: Roles) -> list[tuple[str, str]]:
    """Block indices that the number of rounds grows with, and their axes."""
    meanings = {let.var.name: let.value for let in roles.bound}
    return [
        (name, axis)
        for name, axis in zip((var.name for var in ctx.launch.blocks), "xyz", strict=False)
        if grows(roles.loop.stop, name, meanings) and not mentions(roles.loop.start, name, meanings)
    ]


def grows(expr: Expr, name: str, meanings: Mapping[str, Expr]) -> bool:
    """Whether the value mentions the variable and never falls as it rises."""
    return mentions(expr, name, meanings) and _rises(expr, name, meanings)


def _rises(expr: Expr, name: str, meanings: Mapping[str, Expr]) -> bool:
    if not mentions(expr, name, meanings):
        return True
    if isinstance(expr, Var):
        return expr.name == name or _rises(meanings[expr.name], name, meanings)
    if not isinstance(expr, Binary):
        return False
    if expr.op in ("+", "min", "max"):
        return _rises(expr.a, name, meanings) and _rises(expr.b, name, meanings)
    if expr.op == "-":
        return _rises(expr.a, name, meanings) and not mentions(expr.b, name, meanings)
    if expr.op in ("*", "ceildiv", "//", "truncdiv"):
        by = b.known(expr.b)
        if by is None and expr.op == "*":
            by = b.known(expr.a)
            return by is not None and by > 0 and _rises(expr.b, name, meanings)
        return by is not None and by > 0 and _rises(expr.a, name, meanings)
    return False


def mentions(expr: Expr, name: str, meanings: Mapping[str, Expr]) -> bool:
    """Whether the value depends on the variable, if only through the meaning of others."""
    return any(
        isinstance(part, Var)
        and (
            part.name == name
            or (part.name in meanings and mentions(meanings[part.name], name, meanings))
        )
        for part in b.walk(expr)
    )
