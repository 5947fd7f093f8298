"""What an author says who schedules by hand: barriers, bulk copies, waits (language.md 15)."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
from tile2c.transpile.ir.build import arithmetic, conversions
from tile2c.transpile.ir.build.arguments import Arguments, language_name, tuple_items
from tile2c.transpile.ir.build.context import Builder, allocated_here
from tile2c.transpile.ir.build.elements import Element, element, named_buffer
from tile2c.transpile.ir.build.expressions import expressions
from tile2c.transpile.ir.build.notes import Notes, with_notes
from tile2c.transpile.ir.build.regions import region
from tile2c.transpile.ir.dtypes import BOOL, DTYPES, INT32
from tile2c.transpile.ir.expr import Buffer, Call, Compare, Expr, Logical, const
from tile2c.transpile.ir.forms import (
    AuthorSync,
    BarrierArrive,
    Barriers,
    BarrierWait,
    BulkCopy,
    ElementCopy,
    Hold,
    Order,
    OrderKind,
    SetRegisters,
    Stmt,
)

ALLOCATIONS = ("alloc_barrier", "alloc_cluster_barrier")
_MOST_ARRIVALS = 2**20 - 1
_MOST_NAMED = 15  # number of the last named barrier
_REGISTERS = (24, 256)  # of a thread, for setmaxnreg


def allocate_barriers(b: Builder, name: str, node: cst.Call, about: Notes) -> list[Stmt]:
    """`T.alloc_barrier(count)`, or `([c0, c1, ...])`: no statement, but named from here on."""
    args = Arguments(b, node, "T.alloc_barrier")
    given = args.node_of("arrive_count", 0)
    args.finish()
    single = not isinstance(given, cst.List | cst.Tuple)
    items = tuple_items(given)
    counts: list[int] = []
    for value, item in zip(expressions(b, items), items, strict=True):
        if not isinstance(value.host, int) or not 1 <= value.host <= _MOST_ARRIVALS:
            b.fail(
                "T2C330",
                f"the arrivals that {name} waits for have to be a number from 1 to {_MOST_ARRIVALS} "
                "known when the kernel is built",
                item,
            )
        counts.append(int(value.host))
    buffer = Buffer(
        name=b.names.unique(name), scope="barrier", shape=(const(len(counts)),),
        dtype=DTYPES["uint64"], span=about.span,
    )  # fmt: skip
    buffer = with_notes(buffer, about)
    b.barriers.append(Barriers(buffer=buffer, counts=tuple(counts), single=single))
    b.scopes.bind(name, buffer)
    return []


def of_warpgroups(b: Builder, node: cst.Call) -> Expr:
    """The condition of `with T.ws(i, ...)`: the thread is in one of these warpgroups of 128 threads."""
    from tile2c.transpile.ir.build.warp import linear_thread

    args = Arguments(b, node, "T.ws")
    numbers = [args.whole("warp_group_idx", place) for place in range(len(args.positional))]
    args.finish()
    x, y, z = b.threads
    for number in numbers:
        if not 0 <= number < x * y * z // 128:
            b.fail(
                "T2C331",
                f"T.ws({number}) is for threads {128 * number} to {128 * number + 127}, but the block has "
                f"{x * y * z}",
                node,
                help=f"T.Kernel(..., threads={128 * (max(numbers) + 1)})",
            )
    group = Call(
        dtype=INT32, function="warpgroup_index", args=(linear_thread(b, node),), span=b.span(node)
    )
    found: Expr | None = None
    for number in numbers:
        own = Compare(dtype=BOOL, op="==", a=group, b=const(number), span=b.span(node))
        found = own if found is None else Logical(dtype=BOOL, op="or", a=found, b=own)
    if found is None:
        b.fail("T2C242", "T.ws needs the number of a warpgroup", node)
    return found


def asynchronous(b: Builder, node: cst.Call, name: str) -> list[Stmt] | None:
    """One of these statements; None for any other."""
    make = _HANDLERS.get(name)
    if make is None:
        return None
    if b.in_parallel:
        b.fail(
            "T2C314",
            f"T.{name} stands inside T.Parallel, which does not say what threads run an iteration",
            node,
        )
    return make(b, node, name)


def named_sync(b: Builder, node: cst.Call, name: str) -> Stmt:
    """`T.sync_threads(barrier_id, arrive_count)`: so many threads meet at a barrier of that number."""
    args = Arguments(b, node, f"T.{name}")
    number, count = args.whole("barrier_id", 0), args.whole("arrive_count", 1, 0)
    args.finish()
    x, y, z = b.threads
    count = count or x * y * z
    if not 1 <= number <= _MOST_NAMED:
        b.fail(
            "T2C332",
            f"named barrier {number}: their numbers are 1 to {_MOST_NAMED}, and 0 is that of the block",
            node,
        )
    if count % 32 or not 0 < count <= x * y * z:
        b.fail(
            "T2C332",
            f"{count} threads meet at named barrier {number}: they are whole warps of 32, and the block "
            f"has {x * y * z} threads",
            node,
        )
    return AuthorSync(barrier=number, count=count, waits=name != "named_barrier_arrive")


# ---- barriers


def _barrier(b: Builder, args: Arguments, name: str = "mbarrier") -> tuple[Buffer, Expr]:
    """The barrier that an argument names: alone, or by its index in an array."""
    node = args.node_of(name, 0) if name == "mbarrier" else args.node_of(name, None)
    return _named_barrier(b, node)


def _named_barrier(b: Builder, node: cst.BaseExpression) -> tuple[Buffer, Expr]:
    index: Expr
    if isinstance(node, cst.Subscript):
        found = element(b, node)
        buffer, (index,) = found.buffer, found.index
    else:
        buffer, index = named_buffer(b, node), const(0)
        several = next((x for x in b.barriers if x.buffer == buffer and len(x.counts) > 1), None)
        if several is not None:
            b.fail(
                "T2C246",
                f"{buffer.name} is an array of {len(several.counts)} barriers: one of them is needed here",
                node,
                notes=allocated_here(buffer),
                help=f"{buffer.name}[i]",
            )
    if buffer.scope != "barrier":
        b.fail(
            "T2C246",
            f"{buffer.name} is no barrier",
            node,
            notes=allocated_here(buffer),
            help=f"{buffer.name} = T.alloc_barrier(arrive_count)",
        )
    return buffer, index


def _arrive(b: Builder, node: cst.Call, name: str) -> list[Stmt]:
    args = Arguments(b, node, f"T.{name}")
    barrier, index = _barrier(b, args)
    args.finish()
    return [BarrierArrive(barrier=barrier, index=index)]


def _expect(b: Builder, node: cst.Call, name: str) -> list[Stmt]:
    args = Arguments(b, node, f"T.{name}")
    barrier, index = _barrier(b, args)
    value = args.value("tx", 1)
    args.finish()
    size = arithmetic.whole(b, value, node, "a number of bytes")
    arrives = name == "mbarrier_arrive_expect_tx"
    return [BarrierArrive(barrier=barrier, index=index, arrives=arrives, bytes=size)]


def _wait(b: Builder, node: cst.Call, name: str) -> list[Stmt]:
    args = Arguments(b, node, f"T.{name}")
    barrier, index = _barrier(b, args)
    value = args.value("parity", 1)
    args.finish()
    if value.dtype == BOOL:
        parity = conversions.convert(b, value, INT32, node)
    else:
        parity = arithmetic.whole(b, value, node, "a parity")
    return [BarrierWait(barrier=barrier, index=index, parity=parity)]


# ---- copies and what is started


def _bulk_copy(b: Builder, node: cst.Call, name: str) -> list[Stmt]:
    """`T.tma_copy(src, dst, barrier=bar)` to shared memory; `T.tma_copy(src, dst)` to a tensor."""
    from tile2c.transpile.ir.build.tiles import COPY_HINTS, check_same_shape

    args = Arguments(b, node, "T.tma_copy")
    source, target = args.node_of("src", 0), args.node_of("dst", 1)
    told = args.find("barrier", None)
    args.ignore(*COPY_HINTS)
    args.finish()
    src, dst = region(b, source), region(b, target)
    check_same_shape(b, "T.tma_copy", src, dst, node)
    scopes = (src.buffer.scope, dst.buffer.scope)
    if scopes not in (("global", "shared"), ("shared", "global")):
        b.fail(
            "T2C333",
            f"T.tma_copy moves tiles between tensors and shared memory, but {src.buffer.name} is "
            f"{src.buffer.scope} and {dst.buffer.name} is {dst.buffer.scope}",
            node,
            help="T.copy moves between any two",
        )
    if src.buffer.dtype != dst.buffer.dtype:
        b.fail(
            "T2C333",
            f"{src.buffer.name} holds {src.buffer.dtype} but {dst.buffer.name} holds "
            f"{dst.buffer.dtype}: T.tma_copy converts nothing",
            node,
            notes=(*allocated_here(src.buffer), *allocated_here(dst.buffer)),
        )
    loads = scopes[1] == "shared"
    if loads != (told is not None):
        b.fail(
            "T2C333",
            f"nothing tells when {dst.buffer.name} is loaded"
            if loads
            else f"a store to {dst.buffer.name} reports to no barrier",
            node,
            help="T.tma_copy(src, dst, barrier=bar)"
            if loads
            else "T.tma_copy(src, dst), then T.tma_store_arrive() and T.tma_store_wait()",
        )
    barrier, index = (None, None) if told is None else _named_barrier(b, told)
    return [BulkCopy(src=src, dst=dst, barrier=barrier, index=index)]


def _element_copy(b: Builder, node: cst.Call, name: str) -> list[Stmt]:
    """`T.ptx_cp_async(T.access_ptr(tile[i, j], "w", n), T.access_ptr(A[i, j], "r", n), n)`."""
    args = Arguments(b, node, f"T.{name}")
    target = _pointed(b, args.node_of("dst_access_ptr", 0))
    source = _pointed(b, args.node_of("src_access_ptr", 1))
    count = args.whole("num_elems", 2)
    args.finish()
    if (source.buffer.scope, target.buffer.scope) != ("global", "shared"):
        b.fail(
            "T2C333",
            f"T.{name} copies from tensors to shared memory, but {source.buffer.name} is "
            f"{source.buffer.scope} and {target.buffer.name} is {target.buffer.scope}",
            node,
        )
    kind = source.buffer.dtype
    if kind != target.buffer.dtype or kind.bits * count not in (32, 64, 128):
        b.fail(
            "T2C333",
            f"{count} elements of {kind} to {target.buffer.name}, which holds {target.buffer.dtype}: "
            f"T.{name} copies 4, 8 or 16 bytes of one type",
            node,
        )
    return [
        ElementCopy(
            src=source.buffer, source=source.index, dst=target.buffer, target=target.index,
            count=count,
        )
    ]  # fmt: skip


def _pointed(b: Builder, node: cst.BaseExpression) -> Element:
    """The element that `T.access_ptr(x[i], ...)` or `T.address_of(x[i])` points to."""
    inner = node
    if isinstance(node, cst.Call) and language_name(node.func) in ("access_ptr", "address_of"):
        inner = Arguments(b, node, "T.access_ptr").node_of("base", 0)
    if not isinstance(inner, cst.Subscript):
        b.fail("T2C246", "an element is needed here", node, help='T.access_ptr(tile[i, j], "w", n)')
    return element(b, inner)


def _copies_arrive(b: Builder, node: cst.Call, name: str) -> list[Stmt]:
    args = Arguments(b, node, f"T.{name}")
    barrier, index = _barrier(b, args)
    args.finish()
    return [BarrierArrive(barrier=barrier, index=index, copies=True)]


def _order(kind: OrderKind) -> Callable[[Builder, cst.Call, str], list[Stmt]]:
    def build(b: Builder, node: cst.Call, name: str) -> list[Stmt]:
        args = Arguments(b, node, f"T.{name}")
        pending = args.whole("count", 0, 0) if kind.endswith("_wait") else 0
        args.finish()
        if not 0 <= pending <= 7:
            b.fail("T2C242", f"T.{name} leaves 0 to 7 groups open, not {pending}", node)
        return [Order(kind=kind, pending=pending)]

    return build


def _hold(b: Builder, node: cst.Call, name: str) -> list[Stmt]:
    args = Arguments(b, node, f"T.{name}")
    buffer = named_buffer(b, args.node_of("buffer", 0))
    if buffer.scope != "fragment":
        b.fail(
            "T2C242",
            f"T.{name} takes a fragment, and {buffer.name} is {buffer.scope}",
            node,
            notes=allocated_here(buffer),
        )
    return [Hold(buffer=buffer)]


def _registers(b: Builder, node: cst.Call, name: str) -> list[Stmt]:
    """`T.set_max_nreg(n, is_inc)`, `T.inc_max_nreg(n)`, `T.dec_max_nreg(n)`."""
    args = Arguments(b, node, f"T.{name}")
    count = args.whole("reg_count", 0)
    more = args.flag("is_inc", 1, True) if name == "set_max_nreg" else name == "inc_max_nreg"
    args.finish()
    low, high = _REGISTERS
    if not low <= count <= high or count % 8:
        b.fail(
            "T2C334",
            f"{count} registers a thread: a warpgroup has {low} to {high}, a multiple of 8",
            node,
        )
    return [SetRegisters(count=count, more=more)]


def _cluster(*kinds: OrderKind) -> Callable[[Builder, cst.Call, str], list[Stmt]]:
    def build(b: Builder, node: cst.Call, name: str) -> list[Stmt]:
        Arguments(b, node, f"T.{name}").finish()
        return [Order(kind=kind) for kind in kinds]

    return build


_HANDLERS: dict[str, Callable[[Builder, cst.Call, str], list[Stmt]]] = {
    "mbarrier_arrive": _arrive,
    "mbarrier_expect_tx": _expect,
    "mbarrier_arrive_expect_tx": _expect,
    "mbarrier_wait_parity": _wait,
    "tma_copy": _bulk_copy,
    "ptx_cp_async": _element_copy,
    "cp_async_barrier_noinc": _copies_arrive,
    "tma_store_arrive": _order("stores_commit"),
    "tma_store_wait": _order("stores_wait"),
    "fence_proxy_async": _order("async_fence"),
    "warpgroup_arrive": _order("products_begin"),
    "warpgroup_commit_batch": _order("products_commit"),
    "warpgroup_wait": _order("products_wait"),
    "wait_wgmma": _order("products_wait"),
    "warpgroup_fence_operand": _hold,
    **dict.fromkeys(("set_max_nreg", "inc_max_nreg", "dec_max_nreg"), _registers),
    "cluster_sync": _cluster("cluster_arrive", "cluster_wait"),
    "cluster_arrive": _cluster("cluster_arrive"),
    "cluster_wait": _cluster("cluster_wait"),
    "named_barrier_arrive": lambda b, node, name: [named_sync(b, node, name)],
}
