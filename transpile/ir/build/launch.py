"""`with T.Kernel(...)`: grid, threads, and what each block does (language.md 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst
from tile2c.transpile.ir.build import arithmetic
from tile2c.transpile.ir.build.arguments import Arguments, tuple_items
from tile2c.transpile.ir.build.context import Builder, Stop, Value
from tile2c.transpile.ir.build.expressions import expressions
from tile2c.transpile.ir.build.foreign import add_source
from tile2c.transpile.ir.build.notes import launch_with_notes, notes
from tile2c.transpile.ir.build.statements import block
from tile2c.transpile.ir.build.threads import THREAD_NAMES
from tile2c.transpile.ir.build.tile_views import without_views
from tile2c.transpile.ir.build.views import check_views
from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Expr, Var, const
from tile2c.transpile.ir.forms import Launch

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_THREADS = 1024
MOST_CLUSTER = 8  # blocks, on every chip that has clusters
MOST_BLOCKS = (2**31 - 1, 65535, 65535)  # in x, y and z, on chips of every vendor
BLOCK_NAMES = ("bx", "by", "bz")


def build_launch(b: Builder, node: cst.With, call: cst.Call, when: Expr | None) -> Launch:
    """One launch; what belongs to a launch alone starts afresh."""
    b.buffers, b.thread_vars, b.swizzle, b.views, b.promises = [], {}, None, [], []
    b.comments, b.tile_views, b.barriers, b.cluster = [], {}, [], (1, 1, 1)
    b.parallel_vars, b.by_thread, b.divergent, b.loops = set(), set(), 0, []
    b.numbers_read, b.jumps = set(), set()
    with b.within(node):
        about = notes(b, node)
        with b.scopes.region("its T.Kernel"):
            _header(b, node, call)
            b.launch_level = len(b.scopes.levels)
            try:
                body = without_views(b, block(b, node.body))
            finally:
                b.launch_level = None
        launch = Launch(
            grid=b.grid,
            threads=b.threads,
            blocks=b.blocks,
            thread_vars=_thread_vars(b),
            buffers=tuple(b.buffers),
            body=body,
            order=b.swizzle,
            when=when,
            views=tuple(b.views),
            barriers=tuple(b.barriers),
            cluster=b.cluster,
            promises=tuple(b.promises),
        )
        check_views(b, launch)
        return launch_with_notes(launch, about)


def _header(b: Builder, node: cst.With, call: cst.Call) -> None:
    args = Arguments(b, call, "T.Kernel")
    threads_node = args.keywords.pop("threads", None)
    cluster_node = args.keywords.pop("cluster_dims", None)
    if (prelude := args.text("prelude", None, "")) != "":
        add_source(b, prelude)
    nodes = [args.node_of("grid", place) for place in range(len(args.positional))]
    args.finish()
    if len(nodes) > 3:
        b.fail("T2C403", f"{len(nodes)} grid dimensions; there are at most 3", nodes[3])
    values = expressions(b, nodes)
    for value, part, most in zip(values, nodes, MOST_BLOCKS, strict=False):
        if value.host is not None and value.host > most:
            message = f"a grid dimension is {value.host}: here it is at most {most}"
            b.error("T2C403", message, part)
        if value.host is not None and value.host <= 0:
            b.error("T2C403", f"a grid dimension is {value.host}: it has to be positive", part)
    b.grid = tuple(
        arithmetic.whole(b, value, part, "a grid dimension")
        for value, part in zip(values, nodes, strict=True)
    ) or (const(1),)
    b.threads = _threads(b, threads_node)
    if cluster_node is not None:
        b.cluster = _cluster(b, cluster_node)
    b.blocks = tuple(_blocks(b, node))


def _blocks(b: Builder, node: cst.With) -> list[Var]:
    asname = node.items[0].asname
    names = [] if asname is None else tuple_items(asname.name)
    found: list[Var] = []
    for dim, extent in enumerate(b.grid):
        name = names[dim] if dim < len(names) else None
        if isinstance(name, cst.Name) and name.value != "_":
            unique = b.names.unique(name.value)
            author = name.value if unique != name.value else None
        else:
            unique, author = b.names.made_up(BLOCK_NAMES[dim]), None
        span = b.span(name)
        var = Var(dtype=extent.dtype, name=unique, kind="block", author=author, span=span)
        found.append(var)
        if isinstance(name, cst.Name):
            b.scopes.bind(name.value, Value(var))
    if len(names) > len(b.grid):
        b.fail(
            "T2C403",
            f"{len(names)} block indices for {len(b.grid)} grid dimensions",
            names[len(b.grid)],
        )
    return found


def _threads(b: Builder, node: cst.BaseExpression | None) -> tuple[int, int, int]:
    if node is None:
        return 128, 1, 1
    parts = tuple_items(node)
    values = expressions(b, parts)
    found: list[int] = []
    for value, part in zip(values, parts, strict=True):
        if not isinstance(value.host, int) or value.host <= 0:
            got = "is not known when the kernel is built" if value.host is None else value.host
            b.fail("T2C402", f"threads={got}: it has to be a positive integer", part)
        found.append(value.host)
    if len(found) > 3:
        b.fail("T2C402", f"{len(found)} thread dimensions; there are at most 3", node)
    total = 1
    for count in found:
        total *= count
    if total > MOST_THREADS:
        b.fail("T2C402", f"{total} threads in a block; there are at most {MOST_THREADS}", node)
    x, y, z = (*found, 1, 1)[:3]
    return x, y, z


def _cluster(b: Builder, node: cst.BaseExpression) -> tuple[int, int, int]:
    """Blocks along x, y and z that run together."""
    counts: list[int] = []
    for value in expressions(b, tuple_items(node)):
        if not isinstance(value.host, int) or value.host < 1:
            b.fail("T2C335", "a cluster has a known, positive number of blocks", node)
        counts.append(int(value.host))
    x, y, z = (*counts, 1, 1)[:3]
    if len(counts) > 3 or x * y * z > MOST_CLUSTER:
        b.fail(
            "T2C335",
            f"a cluster of {' x '.join(map(str, counts))} blocks: there are at most {MOST_CLUSTER} in up to "
            "3 dimensions",
            node,
        )
    return x, y, z


def _thread_vars(b: Builder) -> tuple[Var, ...]:
    """Variables for x, y, z up to the last one used; unused ones get a made-up name."""
    last = max(b.thread_vars, default=-1)
    found: list[Var] = []
    for dim in range(last + 1):
        var = b.thread_vars.get(dim)
        if var is None:
            name = b.names.made_up(THREAD_NAMES[dim])
            var = Var(dtype=INT32, name=name, kind="thread")
        found.append(var)
    return tuple(found)


def kernel_call(node: cst.BaseStatement) -> cst.Call | None:
    """The `T.Kernel(...)` of a `with`, if this is one."""
    from tile2c.transpile.ir.build.arguments import language_name

    if not isinstance(node, cst.With) or len(node.items) != 1:
        return None
    call = node.items[0].item
    if isinstance(call, cst.Call) and language_name(call.func) == "Kernel":
        return call
    return None


def launches(
    b: Builder, body: Sequence[cst.BaseStatement], when: Expr | None = None
) -> list[Launch]:
    """Every launch of a function, in order; host statements between them are bound by name."""
    from tile2c.transpile.ir.build.host import host_statement

    found: list[Launch] = []
    for node in body:
        call = kernel_call(node)
        try:
            if call is not None:
                assert isinstance(node, cst.With)
                found.append(build_launch(b, node, call, when))
            else:
                found.extend(host_statement(b, node, when))
        except Stop:
            continue
    return found
