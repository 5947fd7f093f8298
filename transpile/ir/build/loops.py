"""Loops (language.md 8)."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
from tile2c.transpile.ir.build import arithmetic, conversions
from tile2c.transpile.ir.build.arguments import Arguments, language_name, tuple_items
from tile2c.transpile.ir.build.context import Builder, Value
from tile2c.transpile.ir.build.expressions import expression, expressions
from tile2c.transpile.ir.build.literals import fits
from tile2c.transpile.ir.dtypes import INT32, INT64, DType
from tile2c.transpile.ir.expr import Buffer, Expr, Var, const
from tile2c.transpile.ir.forms import For, Parallel, Pipelined, Stmt, While

SERIAL = {"serial": "serial", "Serial": "serial", "unroll": "unroll", "Unroll": "unroll",
          "vectorized": "vectorized", "Vectorized": "vectorized"}  # fmt: skip
PARALLEL = ("Parallel", "parallel")


def for_loop(b: Builder, node: cst.For) -> Stmt:
    """A `for` over one of the language's ranges."""
    if node.orelse is not None:
        b.fail("T2C243", "a loop of a kernel has no `else`", node.orelse)
    call = node.iter
    name = language_name(call.func) if isinstance(call, cst.Call) else None
    if not isinstance(call, cst.Call) or name is None:
        b.fail("T2C243", "a loop of a kernel runs over T.serial, T.Parallel and their like", call)
    targets = [target for target in tuple_items(node.target) if isinstance(target, cst.Name)]
    if len(targets) != len(tuple_items(node.target)):
        b.fail("T2C243", "loop variables are plain names", node.target)
    if name in PARALLEL:
        return _parallel(b, node, call, targets)
    if len(targets) != 1:
        b.fail("T2C315", f"T.{name} has one loop variable", node.target)
    if name == "Pipelined":
        return _pipelined(b, node, call, targets[0])
    if name in SERIAL:
        return _serial(b, node, call, targets[0], name)
    b.fail("T2C231", f"T.{name} is not a loop of the normal form", call)


def while_loop(b: Builder, node: cst.While) -> While:
    from tile2c.transpile.ir.build.statements import depends_on_thread

    if node.orelse is not None:
        b.fail("T2C243", "a loop of a kernel has no `else`", node.orelse)
    value = expression(b, node.test)
    if value.host is not None and value.host:
        b.fail("T2C315", "this loop never ends: its condition does not change", node.test)
    test = conversions.condition(b, value, node.test)
    if b.pending:
        b.fail("T2C231", "an atomic in the condition of a `while`", node.test,
               help="while True: with `if ...: break` inside, or a variable set in the loop")  # fmt: skip
    body = _body(b, node.body, "the `while`", "serial", (), depends_on_thread(b, test))
    return While(condition=test, body=body)


def _serial(b: Builder, node: cst.For, call: cst.Call, target: cst.Name, name: str) -> Stmt:
    from tile2c.transpile.ir.build.statements import depends_on_thread

    args = Arguments(b, call, f"T.{name}")
    args.ignore("annotations", "explicit", "unroll_factor")
    step = args.whole("step", 2, 1)
    start, stop, dtype = _bounds(b, args)
    if step == 0:
        b.fail("T2C315", "the step of this loop is 0", call)
    if not fits(step, INT32):
        b.fail("T2C237", f"the step {step} does not fit int32", call)
    var = _loop_var(b, target, dtype)
    divergent = depends_on_thread(b, start) or depends_on_thread(b, stop)
    if divergent:
        b.by_thread.add(var.name)
    body = _body(b, node.body, f"the loop over `{target.value}`", "serial", (var,), divergent)
    kind = SERIAL[name]
    if kind == "unroll":
        return For(kind="unroll", var=var, start=start, stop=stop, step=step, body=body)
    if kind == "vectorized":
        return For(kind="vectorized", var=var, start=start, stop=stop, step=step, body=body)
    return For(kind="serial", var=var, start=start, stop=stop, step=step, body=body)


def _pipelined(b: Builder, node: cst.For, call: cst.Call, target: cst.Name) -> Stmt:
    args = Arguments(b, call, "T.Pipelined")
    args.ignore("order", "stage", "sync", "group", "annotations")
    stages = args.constant("num_stages", 2, 0)
    start, stop, dtype = _bounds(b, args)
    if stages.value < 0:
        b.fail("T2C315", f"num_stages is {stages.value}: it cannot be negative", call)
    if b.in_parallel:
        b.fail("T2C314", "T.Pipelined is done by the whole block, not inside T.Parallel", call)
    var = _loop_var(b, target, dtype)
    body = _body(b, node.body, f"the loop over `{target.value}`", "serial", (var,), False)
    return Pipelined(var=var, start=start, stop=stop, num_stages=stages, body=body)


def _bounds(b: Builder, args: Arguments) -> tuple[Expr, Expr, DType]:
    """Start, stop and their common type; one argument alone is the stop."""
    first = args.node_of("start", 0) if args.positional else args.node_of("stop", None)
    second = args.find("stop", 1)
    args.finish()
    nodes = (first,) if second is None else (first, second)
    values = expressions(b, nodes)
    for value, node in zip(values, nodes, strict=True):
        arithmetic.whole(b, value, node, "the bound of a loop")
    wide = any(value.dtype.bits > 32 for value in values)
    dtype = INT64 if wide else INT32
    found = [
        conversions.convert(b, value, dtype, n) for value, n in zip(values, nodes, strict=True)
    ]
    if len(found) == 1:
        return const(0, dtype=dtype), found[0], dtype
    return found[0], found[1], dtype


def _loop_var(b: Builder, target: cst.Name, dtype: DType) -> Var:
    unique = b.names.unique(target.value)
    author = target.value if unique != target.value else None
    return Var(dtype=dtype, name=unique, kind="loop", author=author, span=b.span(target))


def _body(
    b: Builder,
    body: cst.BaseSuite,
    what: str,
    kind: str,
    loop_vars: tuple[Var, ...],
    divergent: bool,
) -> tuple[Stmt, ...]:
    from tile2c.transpile.ir.build.statements import block

    b.loops.append(kind)
    b.divergent += divergent
    try:
        with b.scopes.region(what):
            for var in loop_vars:
                b.scopes.bind(var.author or var.name, Value(var))
            return block(b, body)
    finally:
        b.loops.pop()
        b.divergent -= divergent


# ---- T.Parallel


def _parallel(b: Builder, node: cst.For, call: cst.Call, targets: list[cst.Name]) -> Stmt:
    if b.in_parallel:
        b.fail(
            "T2C314",
            "T.Parallel inside T.Parallel, with other statements around it",
            call,
            help="name all loop variables in one: for i, j in T.Parallel(m, n)",
        )
    names, extents, body = _collect(b, node, call, targets)
    what = "the loop over " + ", ".join(f"`{name.value}`" for name in names)
    pairs = zip(names, extents, strict=True)
    loop_vars = tuple(_loop_var(b, name, extent.dtype) for name, extent in pairs)
    if _private_only(b, body):
        return _undistributed(b, body, what, loop_vars, extents)
    b.parallel_vars.update(var.name for var in loop_vars)
    found = _body(b, body, what, "parallel", loop_vars, False)
    return Parallel(loop_vars=loop_vars, extents=extents, body=found)


def _collect(
    b: Builder, node: cst.For, call: cst.Call, targets: list[cst.Name]
) -> tuple[list[cst.Name], tuple[Expr, ...], cst.BaseSuite]:
    """Names and extents; loops nested without anything between them are one."""
    args = Arguments(b, call, "T.Parallel")
    args.ignore("coalesced_width", "loop_layout", "prefer_async", "annotations")
    nodes = [args.node_of("extent", place) for place in range(max(1, len(args.positional)))]
    args.finish()
    values = expressions(b, nodes)
    if len(values) != len(targets):
        b.fail(
            "T2C315",
            f"T.Parallel has {len(values)} extents but {len(targets)} loop variables",
            node.target,
        )
    extents = [
        arithmetic.whole(b, value, part, "an extent")
        for value, part in zip(values, nodes, strict=True)
    ]
    inner = _only_parallel(node.body)
    if inner is None:
        return targets, tuple(extents), node.body
    inner_targets = [name for name in tuple_items(inner.target) if isinstance(name, cst.Name)]
    assert isinstance(inner.iter, cst.Call)
    names, more, body = _collect(b, inner, inner.iter, inner_targets)
    return [*targets, *names], (*extents, *more), body


def _only_parallel(body: cst.BaseSuite) -> cst.For | None:
    if len(body.body) != 1 or not isinstance(body.body[0], cst.For):
        return None
    loop = body.body[0]
    name = language_name(loop.iter.func) if isinstance(loop.iter, cst.Call) else None
    return loop if name in PARALLEL else None


def _private_only(b: Builder, body: cst.BaseSuite) -> bool:
    """Whether all stores go to private arrays and no fragment takes part: then every thread
    runs all iterations."""
    stored: list[Buffer] = []
    for node in _nodes(body):
        if isinstance(node, cst.Assign) and isinstance(node.targets[0].target, cst.Subscript):
            base = node.targets[0].target.value
            found = b.scopes.find(base.value) if isinstance(base, cst.Name) else None
            if isinstance(found, Buffer):
                stored.append(found)
        if isinstance(node, cst.Name):
            found = b.scopes.find(node.value)
            if isinstance(found, Buffer) and found.scope == "fragment":
                return False
        if isinstance(node, cst.Expr) and isinstance(node.value, cst.Call):
            return False  # an atomic reaches memory
    return bool(stored) and all(buffer.scope == "local" for buffer in stored)


def _nodes(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield node
    for child in node.children:
        yield from _nodes(child)


def _undistributed(
    b: Builder,
    body: cst.BaseSuite,
    what: str,
    loop_vars: tuple[Var, ...],
    extents: tuple[Expr, ...],
) -> Stmt:
    found: tuple[Stmt, ...] = _body(b, body, what, "serial", loop_vars, False)
    for var, extent in zip(reversed(loop_vars), reversed(extents), strict=True):
        start = const(0, dtype=extent.dtype)
        found = (For(kind="serial", var=var, start=start, stop=extent, body=found),)
    return found[0]
