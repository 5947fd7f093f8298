"""Sums that a factor of 1 leaves as they are: no warp multiplies by it.

The running sums of a softmax are scaled by what the largest score has grown by, which in most rounds is
nothing. A multiplication by 1 changes no float, so a warp whose factors are all 1 may leave it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod

from tile2c.transpile.ir.dtypes import BOOL
from tile2c.transpile.ir.expr import Binary, Const, Expr, Load, Logical, Var, const
from tile2c.transpile.ir.forms import Parallel, Stmt, Store
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import Branch, CStmt, Section
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper.calls import call
from tile2c.transpile.lower.simt.layouts import Layout
from tile2c.transpile.lower.simt.steps import Node, Step
from tile2c.transpile.lower.simt.values import Place, convert

_FACTORS = 4  # of a thread; more of them are rarely all 1
_SHARE = 64  # elements for each factor: the question keeps the compiler from mixing fewer with what follows
_REMARK = "times 1 changes nothing"


def where_it_scales(ctx: Context, stmt: Stmt, nodes: Sequence[Node]) -> list[Node]:
    """The statement's steps, under the condition that a lane's factor is not 1 if they only scale."""
    found = _factor(stmt)
    if found is None or len(nodes) != 1:
        return list(nodes)
    (node,) = nodes
    loop, factor = found
    factors = _of_thread(ctx, loop, factor)
    if not factors or not isinstance(node, Step) or node.accesses:
        return list(nodes)
    one = Const(dtype=factor.dtype, value=1.0)
    other = _either([b.compare("!=", value, one) for value in factors])
    asked = call("__any_sync", b.local("0xffffffffu"), other)
    return [replace(node, body=tuple(_under(part, asked) for part in node.body))]


def _under(part: CStmt, condition: Expr) -> CStmt:
    """The statements of a section under the condition; its comments stay above."""
    if not isinstance(part, Section):
        return Branch(condition=condition, then=(part,), remark=_REMARK)
    return replace(part, body=(Branch(condition=condition, then=part.body, remark=_REMARK),))


def _either(conditions: Sequence[Expr]) -> Expr:
    found = conditions[0]
    for other in conditions[1:]:
        found = Logical(dtype=BOOL, op="or", a=found, b=other)
    return found


def _factor(stmt: Stmt) -> tuple[Parallel, Load] | None:
    """The loop and f of `x[i, j] = x[i, j] * f[i]` over all of a fragment of floats."""
    if not isinstance(stmt, Parallel) or len(stmt.body) != 1:
        return None
    (store,) = stmt.body
    if not isinstance(store, Store) or store.buffer.scope != "fragment":
        return None
    value, names = store.value, [part.name for part in store.index if isinstance(part, Var)]
    if names != [var.name for var in stmt.loop_vars] or stmt.extents != store.buffer.shape:
        return None
    if not isinstance(value, Binary) or value.op != "*" or not value.dtype.is_float:
        return None
    own = Load(dtype=store.buffer.dtype, buffer=store.buffer, index=store.index)
    factor = value.b if value.a == own else value.a if value.b == own else None
    if not isinstance(factor, Load) or factor.buffer.scope != "fragment" or factor == own:
        return None
    alike = factor.dtype == store.buffer.dtype and factor.buffer != store.buffer
    return (stmt, factor) if alike else None


def _of_thread(ctx: Context, loop: Parallel, factor: Load) -> list[Expr]:
    """The factors of a thread's elements, as the text names them; none where they are too many."""
    (store,) = loop.body
    assert isinstance(store, Store)
    layout: Layout = ctx.layouts[store.buffer.name]
    dims = {var.name: dim for dim, var in enumerate(loop.loop_vars)}
    if not all(isinstance(part, Var) and part.name in dims for part in factor.index):
        return []
    wanted = {dims[part.name] for part in factor.index if isinstance(part, Var)}
    digits = layout.value_digits()
    mine = [place for place in digits if place[0] in wanted]
    others = prod(digit.extent for dim, digit in digits if dim not in wanted)
    if prod(digit.extent for _, digit in mine) > _FACTORS or others < _SHARE:
        return []
    found: list[Expr] = []
    for numbers in product(*(range(digit.extent) for _, digit in mine)):
        at = {place: const(number) for place, number in zip(mine, numbers, strict=True)}
        place = Place(values={}, dims=dims, layout=layout, digits=at)
        found.append(convert(ctx, factor, place))
    return list(dict.fromkeys(found))
