"""What the threads of a warp tell each other, and `any`/`all` over elements (language.md 11, 14).

Such a value is taken by a statement of its own, in front of the one that uses it: every thread of the
warp has to take part, whatever the expression around it decides.
"""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
from tile2c.transpile.ir.build import conversions
from tile2c.transpile.ir.build.arguments import Arguments
from tile2c.transpile.ir.build.context import Builder, Value
from tile2c.transpile.ir.build.threads import thread_index
from tile2c.transpile.ir.dtypes import BOOL, DTYPES, INT32, DType
from tile2c.transpile.ir.expr import (
    Binary,
    Buffer,
    Call,
    Compare,
    Const,
    Expr,
    Load,
    Logical,
    Var,
    const,
)
from tile2c.transpile.ir.forms import Declare, For, Let, Region, Stmt, Store

SHUFFLES = {"shfl_sync": "shuffle", "shfl_xor": "shuffle_xor", "shfl_up": "shuffle_up",
            "shfl_down": "shuffle_down"}  # fmt: skip
REDUCTIONS = {f"warp_reduce_{op}": f"warp_{op}" for op in ("sum", "max", "min", "bitand", "bitor")}
VOTES = {"any_sync": "warp_any", "all_sync": "warp_all"}
BLOCK_VOTES = {"syncthreads_and": "block_and", "syncthreads_or": "block_or",
               "syncthreads_count": "block_count"}  # fmt: skip


def warp_value(b: Builder, name: str, args: Arguments, node: cst.Call) -> Value | None:
    """The value of one of these functions; None for any other."""
    make = _HANDLERS.get(name)
    return None if make is None else make(b, name, args, node)


def _taken(
    b: Builder, function: str, dtype: DType, args: tuple[Expr, ...], node: cst.Call
) -> Value:
    """The call as a statement in front; its value by name."""
    if b.in_parallel:
        b.fail(
            "T2C314",
            "threads of a warp talk to each other here, inside T.Parallel: which of them run an "
            "iteration is not said",
            node,
            help="use the thread index and a serial loop, or T.reduce_sum and its like",
        )
    call = Call(dtype=dtype, function=function, args=args, span=b.span(node))
    var = Var(dtype=dtype, name=b.names.made_up(_word(function)), kind="temporary")
    b.by_thread.add(var.name)
    b.pending.append(Let(var=var, value=call, span=b.span(node)))
    return Value(var)


def _word(function: str) -> str:
    return {"shuffle": "received", "shuffle_xor": "partner", "shuffle_up": "lower",
            "shuffle_down": "upper"}.get(function, function)  # fmt: skip


def _shuffle(b: Builder, name: str, args: Arguments, node: cst.Call) -> Value:
    value = args.value("value", 0)
    place = args.value("lane" if name == "shfl_sync" else "delta", 1)
    width = args.whole("width", 2, 0)
    args.find("mask", 3)
    args.finish()
    if width and (width < 0 or width & (width - 1) or width > 64):
        b.fail("T2C242", f"the width {width} of T.{name} is no power of two up to a warp", node)
    expr = conversions.settle(b, value, node)
    lane = conversions.convert(b, place, INT32, node)
    return _taken(b, SHUFFLES[name], expr.dtype, (expr, lane, const(width)), node)


def _reduction(b: Builder, name: str, args: Arguments, node: cst.Call) -> Value:
    (value,) = args.values("value")
    expr = conversions.settle(b, value, node)
    return _taken(b, REDUCTIONS[name], expr.dtype, (expr,), node)


def _vote(b: Builder, name: str, args: Arguments, node: cst.Call) -> Value:
    """`T.any_sync(mask, p)`; the mask is taken to be the whole warp."""
    nodes = list(args.positional)
    args.taken = len(nodes)
    args.ignore("mask")
    predicate = nodes[-1] if nodes else args.node_of("predicate", None)
    args.keywords.pop("predicate", None)
    args.finish()
    from tile2c.transpile.ir.build.expressions import expression

    test = conversions.condition(b, expression(b, predicate), predicate)
    if name in BLOCK_VOTES:
        if b.divergent:
            b.fail("T2C314", f"T.{name} waits for all threads, but only some get here", node)
        dtype = INT32
        return _taken(b, BLOCK_VOTES[name], dtype, (test,), node)
    if name in VOTES:
        return _taken(b, VOTES[name], BOOL, (test,), node)
    return _taken(b, "warp_ballot", DTYPES["uint64"], (test,), node)


def _active(b: Builder, name: str, args: Arguments, node: cst.Call) -> Value:
    args.finish()
    return _taken(b, "warp_ballot", DTYPES["uint64"], (Const(dtype=BOOL, value=True),), node)


def linear_thread(b: Builder, node: cst.Call) -> Expr:
    """The number of the thread in its block."""
    x, y, _ = b.threads
    index: Expr = thread_index(b, 0, None, node)
    for dim, before in ((1, x), (2, x * y)):
        if b.threads[dim] > 1:
            part = Binary(dtype=INT32, op="*", a=thread_index(b, dim, None, node), b=const(before))
            index = Binary(dtype=INT32, op="+", a=index, b=part)
    return index


def _index(b: Builder, name: str, args: Arguments, node: cst.Call) -> Value:
    args.find("warp_size", 0)
    args.find("warps_per_group", 1)
    args.finish()
    thread = linear_thread(b, node)
    if name == "get_warp_group_idx":
        return Value(
            Call(dtype=INT32, function="warpgroup_index", args=(thread,), span=b.span(node))
        )
    function = "lane_index" if name == "get_lane_idx" else "warp_index"
    return Value(Call(dtype=INT32, function=function, args=(thread,), span=b.span(node)))


def _rank(b: Builder, name: str, args: Arguments, node: cst.Call) -> Value:
    """The block's number in its cluster, x first."""
    args.finish()
    found: Expr = const(0)
    before = 1
    for block, count in zip(b.blocks, b.cluster, strict=False):
        if count > 1:
            here: Expr = Binary(dtype=INT32, op="%", a=block, b=const(count))
            if before > 1:
                here = Binary(dtype=INT32, op="*", a=here, b=const(before))
            found = here if before == 1 else Binary(dtype=INT32, op="+", a=found, b=here)
        before *= count
    return Value(found)


def _elect(b: Builder, name: str, args: Arguments, node: cst.Call) -> Value:
    """True for one thread of each n; of the whole block for 0."""
    count = args.whole("thread_extent", 0, 0)
    args.finish()
    thread = linear_thread(b, node)
    if count:
        thread = Binary(dtype=INT32, op="%", a=thread, b=const(count))
    return Value(Compare(dtype=BOOL, op="==", a=thread, b=const(0), span=b.span(node)))


def _over_elements(b: Builder, name: str, args: Arguments, node: cst.Call) -> Value:
    """`T.any_of(S[i, :])`: a loop of this thread over the elements."""
    from tile2c.transpile.ir.build.regions import is_region, region

    if len(args.positional) != 1:
        b.fail("T2C242", f"T.{name} takes one region", node, help="`and` and `or` join conditions")
    target = args.node_of("buffer", 0)
    args.finish()
    if not is_region(b, target):
        b.fail("T2C246", f"T.{name} looks at elements of a buffer", target)
    part = region(b, target)
    if part.buffer.scope == "fragment":
        b.fail("T2C309", f"T.{name} of the fragment {part.buffer.name}, which threads share", target,
               help="copy it to shared memory first")  # fmt: skip
    found = Buffer(
        name=b.names.made_up("found" if name == "any_of" else "all_hold"), scope="variable",
        shape=(), dtype=BOOL,
    )  # fmt: skip
    b.by_thread.add(found.name)
    start = Const(dtype=BOOL, value=name == "all_of")
    b.pending.append(Declare(buffer=found, init=start, span=b.span(node)))
    b.pending.append(_loop(b, part, found, "or" if name == "any_of" else "and"))
    return Value(Load(dtype=BOOL, buffer=found, index=(), span=b.span(node)))


def _loop(b: Builder, part: Region, found: Buffer, op: str) -> Stmt:
    index: list[Expr] = []
    loops: list[tuple[Var, Expr]] = []
    for piece in part.ranges:
        if piece.point:
            index.append(piece.start)
            continue
        var = Var(dtype=INT32, name=b.names.made_up("e"), kind="loop")
        loops.append((var, piece.extent))
        index.append(Binary(dtype=INT32, op="+", a=piece.start, b=var))
    dtype = part.buffer.dtype
    element: Expr = Load(dtype=dtype, buffer=part.buffer, index=tuple(index))
    if dtype.kind != "bool":
        zero = Const(dtype=dtype, value=0.0 if dtype.is_float else 0)
        element = Compare(dtype=BOOL, op="!=", a=element, b=zero)
    old = Load(dtype=BOOL, buffer=found, index=())
    value = Logical(dtype=BOOL, op="or" if op == "or" else "and", a=old, b=element)
    stmt: Stmt = Store(buffer=found, index=(), value=value)
    for var, extent in reversed(loops):
        stmt = For(kind="serial", var=var, start=const(0), stop=extent, body=(stmt,))
    return stmt


_HANDLERS: dict[str, Callable[[Builder, str, Arguments, cst.Call], Value]] = {
    **dict.fromkeys(SHUFFLES, _shuffle),
    **dict.fromkeys(REDUCTIONS, _reduction),
    **dict.fromkeys((*VOTES, *BLOCK_VOTES, "ballot", "ballot_sync"), _vote),
    "activemask": _active,
    **dict.fromkeys(
        ("get_lane_idx", "get_warp_idx", "get_warp_idx_sync", "get_warp_group_idx"), _index
    ),
    "shuffle_elect": _elect,
    "block_rank_in_cluster": _rank,
    "any_of": _over_elements,
    "all_of": _over_elements,
}
