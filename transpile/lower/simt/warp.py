"""Functions between the threads of a warp or block, as the dialect spells them."""

from __future__ import annotations

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Binary, BinaryOp, Call, Expr, const
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import CCall
from tile2c.transpile.lower.simt.context import Context

SHUFFLES = {"shuffle": "", "shuffle_xor": "_xor", "shuffle_up": "_up", "shuffle_down": "_down"}
_PAIRS: dict[str, BinaryOp] = {"warp_sum": "+", "warp_max": "max", "warp_min": "min", "warp_bitand": "&",
          "warp_bitor": "|"}  # fmt: skip
_VOTES = {"warp_any": "any", "warp_all": "all", "warp_ballot": "ballot"}
_BLOCK = {"block_and": "__syncthreads_and", "block_or": "__syncthreads_or",
          "block_count": "__syncthreads_count"}  # fmt: skip
BETWEEN_LANES = frozenset((*SHUFFLES, *_PAIRS, *_VOTES))  # values that may differ between warps


def lower_warp(ctx: Context, expr: Call) -> Expr | None:
    """The C call; None if the function is none of these. Arguments are C already."""
    name = expr.function
    if name in ("lane_index", "warp_index"):
        lanes = const(ctx.target.lanes)
        return b.mod(expr.args[0], lanes) if name == "lane_index" else b.div(expr.args[0], lanes)
    if name == "warpgroup_index":
        return _warpgroup(ctx, expr)
    if name in _BLOCK:
        return CCall(dtype=expr.dtype, function=_BLOCK[name], args=expr.args)
    masked = ctx.target.shuffle_mask is not None
    mask: tuple[Expr, ...] = (b.local(_mask(ctx)),) if masked else ()
    if name in SHUFFLES:
        return _shuffle(ctx, expr, mask)
    if name in _VOTES:
        function = f"__{_VOTES[name]}" + ("_sync" if masked else "")
        return CCall(dtype=expr.dtype, function=function, args=(*mask, *expr.args))
    if name in _PAIRS:
        return CCall(dtype=expr.dtype, function=_reduction(ctx, expr), args=expr.args)
    return None


def _warpgroup(ctx: Context, expr: Call) -> Expr:
    """The number of 128 threads; where they work together, the compiler has to know it to be uniform."""
    if not ctx.target.warpgroup_matrix or ctx.launch.threads[1:] != (1, 1):
        return b.div(expr.args[0], const(128))
    return warpgroup_number(ctx)


def warpgroup_number(ctx: Context) -> Expr:
    """`warpgroup`, of a row of threads."""
    index = b.div(b.local("threadIdx.x"), const(128))
    number = CCall(dtype=INT32, function="int", args=(index,))
    shuffled = (b.local(str(ctx.target.shuffle_mask)), number, const(0))
    ctx.wanted.setdefault("warpgroup", CCall(dtype=INT32, function="__shfl_sync", args=shuffled))
    ctx.wanted_remarks["warpgroup"] = "shuffled: uniform for the compiler"
    return b.local("warpgroup")


def _mask(ctx: Context) -> str:
    """The lanes that are there: those that get to this place."""
    if ctx.threads % ctx.target.lanes == 0 and not ctx.divergent:
        return str(ctx.target.shuffle_mask)
    return "__activemask()"


def _shuffle(ctx: Context, expr: Call, mask: tuple[Expr, ...]) -> Expr:
    value, lane, width = expr.args
    base = ctx.target.shuffle.replace("_xor", SHUFFLES[expr.function])
    # 32 lanes are what the language's shuffles span, on waves of 64 as well
    span = width if not b.literal(width, 0) else const(32)
    more = () if b.known(span) == ctx.target.lanes else (span,)
    carrier = ctx.target.shuffle_as.get(expr.dtype.name)
    if carrier is None:
        return CCall(dtype=expr.dtype, function=base, args=(*mask, value, lane, *more))
    wide = CCall(dtype=expr.dtype, function=carrier, args=(value,))
    moved = CCall(dtype=expr.dtype, function=base, args=(*mask, wide, lane, *more))
    return CCall(
        dtype=expr.dtype, function=ctx.target.dialect.types[expr.dtype.name], args=(moved,)
    )


def _reduction(ctx: Context, expr: Call) -> str:
    """`warp_sum`: the helper that reductions of fragments use."""
    from tile2c.transpile.render.expressions import CPrinter

    target, dtype = ctx.target, expr.dtype
    word = expr.function.removeprefix("warp_")
    name = f"{target.group}_{word}"
    x, other = b.local("x", dtype), b.local("other", dtype)
    pair = Binary(dtype=dtype, op=_PAIRS[expr.function], a=x, b=other)
    combined = CPrinter(target.dialect)(pair)
    ctype = target.dialect.types[dtype.name]
    if ctx.reducers.get(name, (ctype, combined)) != (ctype, combined):
        name = f"{name}_{dtype.name}"
    ctx.reducers[name] = (ctype, combined)
    mask = f"{_mask(ctx)}, " if target.shuffle_mask is not None else ""
    carrier = target.shuffle_as.get(dtype.name)
    moved = f"{target.shuffle}({mask}{f'{carrier}(x)' if carrier else 'x'}, offset)"
    ctx.need(
        "lanes_reduce",
        name=name,
        type=ctype,
        word={"sum": "Sum", "max": "Largest", "min": "Smallest"}.get(word, word),
        lanes=target.lanes,
        group=target.group,
        first=target.lanes // 2,
        last=1,
        whole=True,
        count=target.lanes,
        combined=combined,
        moved=f"{ctype}({moved})" if carrier else moved,
    )
    return name
