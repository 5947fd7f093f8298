"""`with T.Kernel(...)` and the other contexts of device code."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

import libcst as cst
from tile2c.transpile.stage import expressions as ex
from tile2c.transpile.stage.calls import Call
from tile2c.transpile.stage.definitions import Flow
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.linear import number
from tile2c.transpile.stage.origins import Origin
from tile2c.transpile.stage.residual import Lead, Statement
from tile2c.transpile.stage.trace_values import Context
from tile2c.transpile.stage.values import LanguageName, Value

if TYPE_CHECKING:
    from tile2c.transpile.stage.language import Language

DEFAULT_THREADS = 128
MOST_THREADS = 1024


def _kernel(call: Call) -> Value:
    """`T.Kernel(*grid, threads=128)`; no grid means one block."""
    call.known_keywords("threads", "prelude", "cluster_dims", "is_cpu")
    if len(call.args) > 3:
        raise call.ev.fail(
            "T2C403",
            f"a grid has at most 3 dimensions, not {len(call.args)}",
            call.args[3].node or call.node,
        )
    grid = call.exprs() or (ex.literal(1),)
    keywords = [("threads", _threads(call))]
    for name in ("cluster_dims", "prelude"):
        if (given := call.keywords.get(name)) is not None and given.value is not None:
            keywords.append((name, call.expr(given)))
    return Context("Kernel", call.node, grid, tuple(keywords))


def _threads(call: Call) -> Expr:
    given = call.keywords.get("threads")
    if given is None or given.value is None:
        return ex.literal(DEFAULT_THREADS)
    value = call.ev.known(given.value, given.node, "the number of threads")
    node = given.node or call.node
    parts = list(value) if isinstance(value, tuple | list) else [value]
    counts = [call.ev.whole_number(part, node, "the number of threads") for part in parts]
    total = 1
    for count in counts:
        total *= count
    if len(counts) > 3 or any(count <= 0 for count in counts) or total > MOST_THREADS:
        raise call.ev.fail(
            "T2C402",
            f"a block has 1 to {MOST_THREADS} threads in up to 3 dimensions, not "
            f"{' x '.join(map(str, counts))}",
            node,
        )
    if len(counts) == 1 and isinstance(value, tuple | list):
        return ex.literal(counts[0])
    return call.ev.expression(tuple(value) if isinstance(value, list) else value, given.node)


def _specialised(call: Call) -> Value:
    return Context("ws", call.node, args=call.exprs())


def _no_op(call: Call) -> Value:
    return Context("block", call.node)


def _attribute(call: Call) -> Value:
    """`T.attr(None, key, value)` is a hint; a reduction over threads is not."""
    if call.value(1, "attr_key") == "reduce_scope":
        return Context("reduce_scope", call.node, value=call.value(0, "node"))
    return Context("block", call.node)


def _builder(call: Call) -> Value:
    """`T.If(c)`, `T.Then()`, `T.Else()`, `T.While(c)`: statements in the clothes of contexts."""
    return Context(call.path, call.node, args=call.exprs())


def _thread_binding(call: Call) -> Value:
    """`T.thread_binding(0, n, "threadIdx.x")`: the thread's index."""
    tag = call.keywords.get("thread") or call.need(2, "thread")
    known = {f"threadIdx.{axis}": dim for dim, axis in enumerate("xyz")}
    if tag.value not in known:
        raise call.ev.fail(
            "T2C404",
            f"{tag.value!r} launches blocks without T.Kernel",
            call.node,
            help="with T.Kernel(grid, threads=n) as bx:",
        )
    args = (ex.literal(known[tag.value]),)
    return ex.call("get_thread_binding", args, call.ev.span(call.node), dtype="int32", device=True)


def trace_context(ev: Language, node: ast.With, context: Context) -> Flow:
    """A `with` statement of device code."""
    item = node.items[0]
    match context.kind:
        case "Kernel":
            end = item.optional_vars or item.context_expr
            lead = ev.residual.take_comments()
            _launch(
                ev, context, item.optional_vars, node.body, lead,
                ev.origin(node, end), ev.head_end(node, end, node.body),
                ev.header_comment(node, node.body),
            )  # fmt: skip
            return None
        case "reduce_scope":
            outer, ev.thread_reducer = ev.thread_reducer, context.value
            try:
                return ev.splice(node.body, node.body[0].lineno - 1)
            finally:
                ev.thread_reducer = outer
        case "block":
            return ev.splice(node.body, node.body[0].lineno - 1)
        case "ws":
            lead = ev.residual.take_comments()
            origin = ev.origin(node, item.context_expr)
            with ev.region("with", origin.span), ev.residual.block() as block:
                ev.trace_block(node.body, ev.head_end(node, item.context_expr, node.body))
            suite = ev.residual.suite(block, ev.header_comment(node, node.body), origin)
            ev.residual.context(ex.call("ws", context.args), (), suite, lead, origin)
            return None
        case "If":
            return _builder_if(ev, node, context)
        case "While":
            lead, origin = ev.residual.take_comments(), ev.origin(node, item.context_expr)
            with ev.region("while", origin.span), ev.residual.block() as block:
                ev.trace_block(node.body, ev.head_end(node, item.context_expr, node.body))
            suite = ev.residual.suite(block, None, origin)
            ev.residual.while_loop(context.args[0], suite, lead, origin)
            return None
    raise ev.fail("T2C231", f"`with T.{context.kind}` is not supported here", item.context_expr)


def _builder_if(ev: Language, node: ast.With, context: Context) -> Flow:
    """`with T.If(c):` around `with T.Then():` and `with T.Else():`."""
    lead, origin = ev.residual.take_comments(), ev.origin(node, node.items[0].context_expr)
    suites: dict[str, cst.IndentedBlock] = {}
    for inner in node.body:
        value = ev.evaluate(inner.items[0].context_expr) if isinstance(inner, ast.With) else None
        if not isinstance(inner, ast.With) or not isinstance(value, Context):
            raise ev.fail("T2C115", "T.If holds T.Then and T.Else only", inner)
        with ev.region("if", origin.span), ev.residual.block() as block:
            ev.trace_block(inner.body, inner.body[0].lineno - 1)
        suites[value.kind] = ev.residual.suite(block, None, origin)
    orelse = cst.Else(suites["Else"]) if "Else" in suites else None
    ev.residual.branch(context.args[0], suites["Then"], orelse, lead, origin)
    return None


def with_kernel(ev: Language, body: list[ast.stmt]) -> list[ast.stmt]:
    """Turns `bx, by = T.Kernel(...)` and what follows it into a `with` statement."""
    for position, node in enumerate(body):
        if isinstance(node, ast.For) and not ev.in_kernel:
            if (launched := _bound_launch(ev, node)) is not None:
                return [*body[:position], launched, *body[position + 1 :]]
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        function = node.value.func
        if isinstance(function, ast.Attribute | ast.Name) and position + 1 < len(body):
            value = ev.evaluate(function)
            if isinstance(value, LanguageName) and value.path in ("Kernel", "ClusterKernel"):
                item = ast.withitem(node.value, node.targets[0])
                inner = ast.With([item], body[position + 1 :])
                ast.copy_location(inner, node)
                inner.end_lineno = body[-1].end_lineno
                return [*body[:position], inner]
    return body


def _bound_launch(ev: Language, node: ast.For) -> ast.With | None:
    """`for bx in T.thread_binding(0, n, "blockIdx.x"): for tx in T.thread_binding(...):` as a launch.

    None where the loop is not one over blocks.
    """
    blocks: dict[int, tuple[ast.expr, ast.expr]] = {}
    threads: dict[int, tuple[ast.expr, ast.expr]] = {}
    body: list[ast.stmt] = [node]
    language: ast.expr | None = None
    while len(body) == 1 and isinstance(loop := body[0], ast.For):
        bound = _binding(ev, loop.iter)
        if bound is None:
            break
        kind, dim, extent = bound
        (blocks if kind == "blockIdx" else threads)[dim] = (loop.target, extent)
        assert isinstance(loop.iter, ast.Call)
        language = getattr(loop.iter.func, "value", None)
        body = loop.body
    if not blocks or language is None:
        return None

    def call(name: str, args: list[ast.expr], keywords: list[ast.keyword]) -> ast.expr:
        assert language is not None
        return ast.Call(ast.Attribute(language, name, ast.Load()), args, keywords)

    def extents(found: dict[int, tuple[ast.expr, ast.expr]]) -> list[ast.expr]:
        return [found[dim][1] if dim in found else ast.Constant(1) for dim in range(max(found) + 1)]

    number = ast.Tuple(extents(threads), ast.Load()) if threads else ast.Constant(1)
    kernel = call("Kernel", extents(blocks), [ast.keyword("threads", number)])
    targets = [
        blocks[dim][0] if dim in blocks else ast.Name("_", ast.Store())
        for dim in range(max(blocks) + 1)
    ]
    names: list[ast.stmt] = [
        ast.Assign([target], call("get_thread_binding", [ast.Constant(dim)], []))
        for dim, (target, _) in sorted(threads.items())
    ]
    item = ast.withitem(kernel, ast.Tuple(targets, ast.Store()))
    launched = ast.With([item], [*names, *body])
    for part in (item.context_expr, item.optional_vars, launched, *names):
        for inner in ast.walk(part) if part is not None and part is not launched else ():
            if not hasattr(inner, "lineno"):
                ast.copy_location(inner, node.iter)
    ast.copy_location(launched, node)
    launched.end_lineno = node.end_lineno
    return launched


def _binding(ev: Language, node: ast.expr) -> tuple[str, int, ast.expr] | None:
    """Of `T.thread_binding(0, n, "blockIdx.x")`: the kind, the dimension and the extent."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    function = ev.evaluate(node.func)
    if not isinstance(function, LanguageName) or function.path != "thread_binding":
        return None
    given = [k.value for k in node.keywords if k.arg == "thread"] or node.args[-1:]
    tag = ev.evaluate(given[0]) if given else None
    kind, _, axis = str(tag).partition(".")
    numbers = [arg for arg in node.args if arg is not given[0]]
    if kind not in ("blockIdx", "threadIdx") or axis not in ("x", "y", "z") or not numbers:
        return None
    return kind, "xyz".index(axis), numbers[-1]


def _launch(
    ev: Language,
    context: Context,
    target: ast.expr | None,
    body: list[ast.stmt],
    lead: Lead,
    origin: Origin,
    after: int,
    header: str | None,
) -> None:
    if ev.in_kernel:
        raise ev.fail("T2C404", "T.Kernel stands inside another T.Kernel", context.node)
    ev.in_kernel = True
    ev.launches += 1
    ev.threads = _counts(dict(context.keywords)["threads"])
    try:
        with ev.region("with", origin.span):
            names = _bind_blocks(ev, context, target, body)
            with ev.residual.block() as block:
                ev.trace_block(body, after)
                footer = ev.residual.footers[-1]
    finally:
        ev.in_kernel = False
        for buffer in ev.stored:
            buffer.stored = None
        ev.stored.clear()
    _swizzle_first(block)
    suite = ev.residual.suite(block, header, origin, footer)
    item = ex.call("Kernel", context.grid, ev.span(context.node), keywords=context.keywords)
    ev.residual.context(item, names, suite, lead, origin)


def _counts(threads: Expr) -> tuple[int, int, int]:
    """Threads along x, y and z."""
    parts = threads.args if threads.kind in ("tuple", "list") else (threads,)
    x, y, z = (*(int(number(part) or 1) for part in parts), 1, 1)[:3]
    return x, y, z


def _bind_blocks(
    ev: Language, context: Context, target: ast.expr | None, body: list[ast.stmt]
) -> list[str]:
    """A name for every block index; made up where the author gave none."""
    count = len(context.grid)
    elements = list(target.elts) if isinstance(target, ast.Tuple | ast.List) else []
    if isinstance(target, ast.Name):
        elements = [target] if count == 1 else []
    if elements and len(elements) != count:
        raise ev.fail(
            "T2C405",
            f"the grid has {count} dimension{'s' * (count != 1)} but {len(elements)} block "
            f"ind{'ex is' if len(elements) == 1 else 'ices are'} named",
            target,
        )
    used = {node.id for part in body for node in ast.walk(part) if isinstance(node, ast.Name)}
    names: list[str] = []
    for dim in range(count):
        element = elements[dim] if elements else None
        if isinstance(element, ast.Name) and element.id != "_":
            name = ev.claim(element.id, "loop")
            ev.bind_device(element.id, ex.name(name, ev.span(element), "int32"))
        else:
            name = ev.claim(_made_up(ev, "xyz"[dim], used), "loop")
        names.append(name)
    if isinstance(target, ast.Name) and count > 1:
        ev.define(ev.frame.scope, target.id, tuple(ex.name(name, dtype="int32") for name in names))
    return names


def _made_up(ev: Language, axis: str, used: set[str]) -> str:
    for candidate in (f"b{axis}", f"block_{axis}", f"block_index_{axis}"):
        free = candidate not in ev.taken or ev.owners.get(candidate, (None, ""))[1] == "loop"
        if candidate not in used and free:
            return candidate
    return f"grid_index_{axis}"


def _swizzle_first(block: list[Statement]) -> None:
    """`T.use_swizzle` is said before everything else, wherever the author put it."""
    for position, statement in enumerate(block):
        if isinstance(statement, cst.SimpleStatementLine) and isinstance(
            statement.body[0], cst.Expr
        ):
            call = statement.body[0].value
            if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute):
                if call.func.attr.value == "use_swizzle":
                    block.insert(0, block.pop(position))


HANDLERS: dict[str, Callable[[Call], Value]] = {
    "Kernel": _kernel,
    "ClusterKernel": _kernel,
    "ws": _specialised,
    "block": _no_op,
    "sblock": _no_op,
    "attr": _attribute,
    **dict.fromkeys(("If", "Then", "Else", "While"), _builder),
    "thread_binding": _thread_binding,
}
