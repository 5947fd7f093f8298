"""T.gemm on wgmma: descriptors of both tiles, one instruction for each step of K."""

from __future__ import annotations

from textwrap import wrap

from tile2c.transpile.ir.dtypes import BOOL
from tile2c.transpile.ir.expr import Const, Expr, Logical, const, true
from tile2c.transpile.ir.forms import Gemm
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import Address, CCall, CStmt, Do, Element, Section, counting
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper.calls import call
from tile2c.transpile.lower.simt.hopper.roles import Roles, TileLoad
from tile2c.transpile.lower.simt.hopper.warpgroups import THREADS, WarpgroupPlan, oriented
from tile2c.transpile.lower.simt.values import Place, convert

_WORDS = {
    "float16": "f16", "bfloat16": "bf16", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2",
    "int8": "s8", "uint8": "u8",
}  # fmt: skip


def multiply(ctx: Context, gemm: Gemm, roles: Roles, overwrites: Expr | None) -> Section:
    """The product's instructions, started but not waited for.

    `overwrites`: a C condition under which the sums start here (the first step then ignores them).
    """
    plan = roles.products[id(gemm)]
    gemm = oriented(gemm, plan)
    k, m = ctx.namer.ours("k", "kk"), ctx.namer.ours("m", "mm")
    several = plan.tiles_m > 1
    row: Expr = b.mul(b.local(m), const(64)) if several else const(0)
    if gemm.a.buffer.scope == "fragment":
        a = held(ctx, gemm, b.local(m) if several else const(0), b.local(k))
    else:
        a = a_descriptor(ctx, gemm, roles, plan, row, b.local(k))
    bb = b_descriptor(ctx, gemm, roles, plan, const(0), b.local(k))
    sums = Element(
        dtype=gemm.c.buffer.dtype,
        array=gemm.c.buffer.name,
        subscripts=(b.local(m) if several else const(0),),
    )
    accumulate = accumulates(ctx, gemm, overwrites, b.local(k))
    product: CStmt = Do(call=call(instruction(ctx, gemm, plan), sums, a, bb, accumulate))
    if several:
        product = counting(m, plan.tiles_m, (product,))
    for name in (k, m):
        ctx.namer.release(name)
    extent = gemm.a.shape[0] if gemm.transpose_a else gemm.a.shape[1]
    steps = counting(k, extent, (product,), step=plan.step, unroll=True)
    comments = (*gemm.comments, gemm.quote, *swap_words(plan))
    return Section(comments=comments, body=(steps,), span=gemm.span, blank=False)


def swap_words(plan: WarpgroupPlan) -> tuple[str, ...]:
    """Why the operands change places, for the text."""
    if not plan.swapped:
        return ()
    why = (
        "wgmma takes 64 rows, and this tile has fewer"
        if plan.n * plan.groups_n < 64
        else ("wider instructions read less")
    )
    return (f"as C^T = B^T A^T: {why}",)


def accumulates(ctx: Context, gemm: Gemm, overwrites: Expr | None, k: Expr) -> Expr:
    """Whether the step adds to the sums: all but the first one after they were cleared."""
    later = b.compare(">", k, const(0))
    cleared = gemm.clear
    if isinstance(cleared, Const) and bool(cleared.value):
        return later
    conditions = [] if overwrites is None else [overwrites]
    if not isinstance(cleared, Const):
        conditions.append(convert(ctx, cleared, Place(values={})))
    if not conditions:
        return true()
    kept = b.both([b.negate(condition) for condition in conditions])
    return Logical(dtype=BOOL, op="or", a=kept, b=later)


def group_part(ctx: Context, plan: WarpgroupPlan, side: str) -> Expr:
    """Where the warpgroup's rows (m) or columns (n) start in the tile."""
    if side == "m":
        if plan.groups_m == 1:
            return const(0)
        return ctx.thread_digit(THREADS * plan.groups_n, plan.groups_m, 64 * plan.tiles_m)
    return const(0) if plan.groups_n == 1 else ctx.thread_digit(THREADS, plan.groups_n, plan.n)


def name_groups(ctx: Context, plan: WarpgroupPlan, group: Expr) -> None:
    """`group_m` and `group_n`, from the warpgroup's number that is the same in every lane."""
    if plan.groups_m > 1:
        rows = 64 * plan.tiles_m
        ctx.terms[(THREADS * plan.groups_n, plan.groups_m, rows)] = "group_m"
        ctx.wanted["group_m"] = b.mul(b.div(group, const(plan.groups_n)), const(rows))
    if plan.groups_n > 1:
        ctx.terms[(THREADS, plan.groups_n, plan.n)] = "group_n"
        part = group if plan.groups_m == 1 else b.mod(group, const(plan.groups_n))
        ctx.wanted["group_n"] = b.mul(part, const(plan.n))


# ---- descriptors


def a_descriptor(
    ctx: Context, gemm: Gemm, roles: Roles, plan: WarpgroupPlan, row: Expr, k: Expr
) -> CCall:
    """The first operand from `row` of the warpgroup's and from `k` on."""
    load = roles.load_of(gemm.a.buffer)
    first = b.add(group_part(ctx, plan, "m"), row)
    return _descriptor(ctx, load, roles.stage_of(load), first, k, along_k=not gemm.transpose_a)


def held(ctx: Context, gemm: Gemm, tile: Expr, k: Expr) -> Expr:
    """The address of a thread's eight elements of a step: as the sums' layout has them."""
    buffer = gemm.a.buffer
    ctx.aligned_fragments.add(buffer.name)
    subscripts = (tile, b.div(k, const(8)), const(0))
    element = Element(dtype=buffer.dtype, array=buffer.name, subscripts=subscripts)
    return Address(dtype=buffer.dtype, element=element)


def b_descriptor(
    ctx: Context, gemm: Gemm, roles: Roles, plan: WarpgroupPlan, column: Expr, k: Expr
) -> CCall:
    """The second operand from `column` of the warpgroup's and from `k` on."""
    load = roles.load_of(gemm.b.buffer)
    first = b.add(group_part(ctx, plan, "n"), column)
    return _descriptor(ctx, load, roles.stage_of(load), first, k, along_k=gemm.transpose_b)


def descriptor(ctx: Context, name: str, at: Address, *template: Expr) -> CCall:
    """What wgmma is told of a tile; `name`: of the helper that makes it, k_major or mn_major."""
    function = f"{name}_in_cluster" if ctx.in_cluster else name
    ctx.need("shared_addr")
    ctx.need(name, name=function, ranked=ctx.in_cluster, sized=bool(ctx.cluster_size))
    size = (b.local(ctx.cluster_size),) if ctx.cluster_size else ()
    return call(function, at, template=(*template, *size))


def _descriptor(
    ctx: Context,
    load: TileLoad,
    stage: tuple[Expr, ...],
    first: Expr,
    k: Expr,
    *,
    along_k: bool,
) -> CCall:
    """K-major where the tile's rows run along K, else MN-major."""
    slabs, tile = load.slabs, load.tile
    size = const(slabs.row_bytes)
    if along_k:
        element = slabs.element(tile, stage, first, k)
        return descriptor(ctx, "k_major", Address(dtype=tile.dtype, element=element), size)
    slab = first if b.literal(first, 0) else b.div(first, const(slabs.width))
    element = slabs.start(tile, stage, slab, k)
    address = Address(dtype=tile.dtype, element=element)
    return descriptor(ctx, "mn_major", address, size, slabs.rows)


# ---- the instruction


def instruction(ctx: Context, gemm: Gemm, plan: WarpgroupPlan) -> str:
    """Asks for the wrapper of this shape and these operands; gives its name."""
    kind, output = gemm.a.buffer.dtype.name, gemm.c.buffer.dtype.name
    count = plan.n // 2
    held = gemm.a.buffer.scope == "fragment"
    wide = kind in ("float16", "bfloat16")
    turned = [int(gemm.transpose_a), int(not gemm.transpose_b)][1 if held else 0 :] if wide else []
    signs = [] if output == "int32" else [1, 1]
    types = [_WORDS[x.buffer.dtype.name] for x in (gemm.a, gemm.b)]
    fields: dict[str, str | int | bool] = {
        "n": plan.n,
        "k": plan.step,
        "tiles": plan.n // 8,
        "sum": ctx.target.dialect.types[output],
        "register": "r" if output == "int32" else "f",
        "types": ".".join(["s32" if output == "int32" else "f32", *types]),
        "immediates": "".join(f", {x}" for x in (*signs, *turned)),
        "registers": _quoted([f"%{i}" for i in range(count)]),
        "operands": _rows([f"ROW({i})" for i in range(plan.n // 8)]),
        "held": held,
        "element": ctx.target.dialect.types[kind],
        "operand_a": ", ".join(f"%{count + i}" for i in range(4)) if held else f"%{count}",
        "operand_b": f"%{count + (4 if held else 1)}",
        "accumulate": f"%{count + (5 if held else 2)}",
    }
    name = f"mma_m64n{plan.n}k{plan.step}{'_held' if held else ''}"
    others = [
        dict(helper.fields)
        for helper in ctx.helpers.values()
        if helper.template == "mma_wgmma" and dict(helper.fields)["name"] == name
    ]
    if any(other != {"name": name, **fields} for other in others):
        majors = "".join("n" if x else "t" for x in (gemm.transpose_a, not gemm.transpose_b))
        name = "_".join([name, *dict.fromkeys(types), *([majors] if wide else [])])
    ctx.need("mma_wgmma", name=name, **fields)
    return name


def _quoted(registers: list[str]) -> str:
    """Register numbers as lines of C string literals."""
    lines = wrap(", ".join(registers), 84)
    return "\n".join(f'"{line} "' if line is not lines[-1] else f'"{line}"' for line in lines)


def _rows(rows: list[str]) -> str:
    """Operands, as many a line as fit behind ten columns."""
    return "\n".join(wrap(", ".join(rows), 90))
