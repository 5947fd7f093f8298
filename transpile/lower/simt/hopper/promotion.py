"""Products of 8-bit floats to float32 accuracy: their sums leave the matrix unit early.

The unit keeps few bits of a sum of such products (about 13 of its largest term), and what it drops grows with
the running sum. So each batch starts a fresh sum, over 128 of K at most, and ordinary additions put it to
the sums that the program sees. A warpgroup's tile is taken in parts where the registers of both would not
fit side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile2c.transpile.ir.dtypes import BOOL
from tile2c.transpile.ir.expr import Const, Expr, Logical, Select, const
from tile2c.transpile.ir.forms import Gemm
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import (
    Assign,
    CStmt,
    Declarator,
    Do,
    Element,
    Local,
    Section,
    counting,
)
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper.alternate import pass_turn, wait_turn
from tile2c.transpile.lower.simt.hopper.calls import call, do
from tile2c.transpile.lower.simt.hopper.multiply import (
    a_descriptor,
    b_descriptor,
    instruction,
    swap_words,
)
from tile2c.transpile.lower.simt.hopper.roles import Roles
from tile2c.transpile.lower.simt.hopper.warpgroups import WarpgroupPlan, oriented
from tile2c.transpile.lower.simt.values import Place, convert

REMARK = "sums of 8-bit floats keep few bits in the matrix unit: they leave it after {} of K"


def promoted(ctx: Context, gemm: Gemm, roles: Roles, finish: Sequence[CStmt]) -> list[CStmt]:
    """The product, complete, with its additions; `finish` stands where its tiles have been read."""
    plan = roles.products[id(gemm)]
    names = [ctx.namer.ours(x, f"{x}_of_product") for x in ("m", "part", "first", "k")]
    sums = gemm.c.buffer.name
    fresh = ctx.namer.ours(f"{sums}_part", f"{sums}_fresh")
    count = plan.part // 8
    loops = [
        (names[0], plan.tiles_m, 1),
        (names[1], plan.n // plan.part, 1),
        (names[2], plan.k, plan.depth),
    ]
    several = [loop for loop in loops if loop[1] > loop[2]]
    lone = not several
    held = {name: b.local(name) for name, *_ in several}
    at = tuple(held.get(name, const(0)) for name in names[:3])
    body: list[CStmt] = [
        *_batch(ctx, gemm, roles, fresh, at, names[3]),
        *(finish if lone else ()),
        _add(ctx, gemm, plan, fresh, at),
    ]
    for name, stop, step in reversed(several):
        body = [counting(name, stop, tuple(body), step=step, unroll=True)]
    for name in (*names, fresh):
        ctx.namer.release(name)
    declared = Local(
        dtype=gemm.c.buffer.dtype,
        names=(Declarator(name=fresh, dims=(const(1), const(count), const(4))),),
        const=False,
        remark=REMARK.format(plan.depth),
    )
    section = Section(
        comments=(*gemm.comments, gemm.quote, *swap_words(plan)),
        body=(declared, *body),
        span=gemm.span,
        blank=False,
    )
    return [section, *(() if lone else finish)]


def _batch(
    ctx: Context, gemm: Gemm, roles: Roles, fresh: str, at: tuple[Expr, ...], var: str
) -> list[CStmt]:
    """Fresh sums of one part: 64 rows, some columns, `depth` of K; complete. `var` counts through K."""
    plan, k = roles.products[id(gemm)], b.local(var)
    gemm = oriented(gemm, plan)
    m, part, first = at
    step = plan.step
    depth = b.add(first, k)
    row = b.mul(m, const(64))
    column = b.mul(part, const(plan.part))
    for helper in ("mma_begin", "mma_commit", "mma_wait", "pin"):
        ctx.need(helper)
    name = instruction(ctx, gemm, replace(plan, n=plan.part))
    product = Do(
        call=call(
            name,
            Element(dtype=gemm.c.buffer.dtype, array=fresh, subscripts=(const(0),)),
            a_descriptor(ctx, gemm, roles, plan, row, depth),
            b_descriptor(ctx, gemm, roles, plan, column, depth),
            b.compare(">", k, const(0)),
        )
    )
    stop = gemm.a.shape[1] if plan.k == plan.depth else const(plan.depth)
    pin = do("pin", b.local(fresh))
    return [
        pin,
        *wait_turn(roles),
        do("mma_begin"),
        counting(var, stop, (product,), step=step, unroll=True),
        do("mma_commit"),
        *pass_turn(roles),
        do("mma_wait", template=(const(0),), remark="the fresh sums are complete, the tiles read"),
        pin,
    ]


def _add(ctx: Context, gemm: Gemm, plan: WarpgroupPlan, fresh: str, at: tuple[Expr, ...]) -> CStmt:
    """sums += fresh sums; or = where the product starts from zero."""
    m, part, first = at
    kind, count = gemm.c.buffer.dtype, plan.part // 8
    names = [ctx.namer.ours(x, f"{x}_of_sums") for x in ("n", "v")]
    n, v = (b.local(name) for name in names)
    for name in names:
        ctx.namer.release(name)
    column = b.add(b.mul(part, const(count)), n)
    target = Element(dtype=kind, array=gemm.c.buffer.name, subscripts=(m, column, v))
    value: Expr = Element(dtype=kind, array=fresh, subscripts=(const(0), n, v))
    kept = _kept(ctx, gemm, first)
    add: CStmt = Assign(target=target, value=value, op="+=")
    if kept is not None:
        both = b.add(target, value)
        add = Assign(target=target, value=Select(dtype=kind, condition=kept, a=both, b=value))
    inner = counting(names[1], 4, (add,))
    return counting(names[0], count, (inner,), unroll=True)


def _kept(ctx: Context, gemm: Gemm, first: Expr) -> Expr | None:
    """When earlier sums count; None for always."""
    later = b.compare(">", first, const(0))
    if isinstance(gemm.clear, Const):
        return later if bool(gemm.clear.value) else None
    cleared = convert(ctx, gemm.clear, Place(values={}))
    kept = b.negate(cleared)
    return kept if b.literal(first, 0) else Logical(dtype=BOOL, op="or", a=kept, b=later)
