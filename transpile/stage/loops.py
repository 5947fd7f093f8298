"""Loops of the kernel: their canonical spelling, and tracing their bodies."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from tile2c.transpile.stage import expressions as ex
from tile2c.transpile.stage.calls import Call
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.linear import number
from tile2c.transpile.stage.trace_values import Loop
from tile2c.transpile.stage.values import Value

if TYPE_CHECKING:
    from tile2c.transpile.stage.language import Language


def _bounds(call: Call) -> tuple[Expr, ...]:
    """`(lo, hi)` or `(lo, hi, step)`, the step only where it is not 1."""
    args = [call.expr(argument) for argument in call.args]
    for position, name in enumerate(("start", "stop", "step")):
        if len(args) == position and name in call.keywords:
            args.append(call.expr(call.keywords[name]))
    if not args:
        raise call.ev.fail("T2C242", f"T.{call.path} is called without an extent", call.node)
    if len(args) == 1:
        args = [ex.literal(0), *args]
    if len(args) == 3 and number(args[2]) == 0:
        raise call.ev.fail("T2C315", "the step of this loop is zero", call.node)
    if len(args) == 3 and number(args[2]) == 1:
        args.pop()
    return tuple(args[:3])


def _serial(call: Call) -> Value:
    return Loop("serial", _bounds(call))


def _unroll(call: Call) -> Value:
    return Loop("unroll", _bounds(call))


def _vectorized(call: Call) -> Value:
    return Loop("vectorized", (call.expr(call.need(0, "extent")),))


def _parallel(call: Call) -> Value:
    if not call.args:
        raise call.ev.fail("T2C242", "T.Parallel is called without an extent", call.node)
    return Loop("Parallel", call.exprs())


def _grid(call: Call) -> Value:
    return Loop("grid", call.exprs())


def _pipelined(call: Call) -> Value:
    """`T.Pipelined(lo, hi, num_stages=n)`; order and stage stay where the author gave them."""
    bounds = _bounds(Call(call.ev, call.path, call.node, call.args[:2], call.keywords))
    stages = call.keywords.get("num_stages") or (call.args[2] if len(call.args) > 2 else None)
    keywords: list[tuple[str, Expr]] = []
    if stages is not None and stages.value is not None:
        call.ev.whole_number(stages.value, stages.node or call.node, "num_stages")
        keywords.append(("num_stages", call.expr(stages)))
    for name in ("order", "stage", "sync", "group"):
        if (given := call.keywords.get(name)) is not None and given.value:
            keywords.append((name, call.expr(given)))
    return Loop("Pipelined", bounds, tuple(keywords))


def _persistent(call: Call) -> Value:
    domain = call.expr(call.need(0, "domain"))
    args = (domain, call.expr(call.need(1, "wave_size")), call.expr(call.need(2, "index")))
    group = call.take(3, "group_size")
    keywords = (("group_size", call.expr(group)),) if group is not None else ()
    return Loop("Persistent", args, keywords)


def trace_loop(ev: Language, node: ast.For, loop: Loop) -> None:
    """Writes the loop; `T.grid` becomes serial loops inside each other."""
    if node.orelse:
        raise ev.fail("T2C115", "`else` of a loop is not part of the tile language", node.orelse[0])
    lead = ev.residual.take_comments()
    origin = ev.origin(node, node.iter)
    header = ev.header_comment(node, node.body)
    with ev.region("for", origin.span):
        names = _bind_variables(ev, node.target, loop)
        with ev.residual.block() as block:
            ev.trace_block(node.body, ev.head_end(node, node.iter, node.body))
            footer = ev.residual.footers[-1]
    suite = ev.residual.suite(block, header, origin, footer)
    span = ev.span(node.iter)
    if loop.kind == "grid":
        for name, extent in reversed(list(zip(names[1:], loop.args[1:], strict=True))):
            with ev.residual.block() as block:
                inner = ex.call("serial", (ex.literal(0), extent), span)
                ev.residual.loop([name], inner, suite, (), origin)
            suite = ev.residual.suite(block, None, origin)
        iterator = ex.call("serial", (ex.literal(0), loop.args[0]), span)
        ev.residual.loop(names[:1], iterator, suite, lead, origin)
        return
    iterator = ex.call(loop.kind, loop.args, span, keywords=loop.keywords)
    ev.residual.loop(names, iterator, suite, lead, origin)


def _bind_variables(ev: Language, target: ast.expr, loop: Loop) -> list[str]:
    """Claims a name for each loop variable and binds the author's names to them."""
    count = loop.variables
    targets = list(target.elts) if isinstance(target, ast.Tuple | ast.List) else [target]
    if len(targets) == 1 and count > 1 and isinstance(target, ast.Name):
        names = [ev.claim(f"{target.id}_{'ijklmnop'[dim]}", "loop") for dim in range(count)]
        ev.define(ev.frame.scope, target.id, tuple(ex.name(n, dtype="int32") for n in names))
        return names
    if len(targets) != count:
        raise ev.fail(
            "T2C321",
            f"this loop has {count} variable{'s' * (count != 1)} but {len(targets)} "
            f"name{'s' * (len(targets) != 1)}",
            target,
        )
    names = []
    for element in targets:
        if not isinstance(element, ast.Name):
            raise ev.fail("T2C245", "a loop variable is a name", element)
        name = ev.claim(element.id, "loop")
        ev.bind_device(element.id, ex.name(name, ev.span(element), "int32"))
        names.append(name)
    return names


HANDLERS: dict[str, Callable[[Call], Value]] = {
    "serial": _serial,
    "unroll": _unroll,
    "vectorized": _vectorized,
    "Parallel": _parallel,
    "Pipelined": _pipelined,
    "grid": _grid,
    "Persistent": _persistent,
}
