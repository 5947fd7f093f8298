"""Loops of the kernel: their canonical spelling, and tracing their bodies."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from tile2c.transpile.stage import expressions as ex
from tile2c.transpile.stage.calls import Call
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.linear import number
from tile2c.transpile.stage.origins import Origin
from tile2c.transpile.stage.residual import Lead
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


_ORDERS = ("order", "stage", "sync", "group")  # of a pipeline, by the author


def _pipelined(call: Call) -> Value:
    """`T.Pipelined(lo, hi, num_stages=n)`; order and stage stay where the author gave them."""
    call.known_keywords("start", "stop", "step", "num_stages", *_ORDERS, "annotations")
    bounds = _bounds(Call(call.ev, call.path, call.node, call.args[:2], call.keywords))
    stages = call.keywords.get("num_stages") or (call.args[2] if len(call.args) > 2 else None)
    keywords: list[tuple[str, Expr]] = []
    if stages is not None and stages.value is not None:
        call.ev.whole_number(stages.value, stages.node or call.node, "num_stages")
        keywords.append(("num_stages", call.expr(stages)))
    for name in _ORDERS:
        if (given := call.keywords.get(name)) is not None and given.value:
            keywords.append((name, call.expr(given)))
    return Loop("Pipelined", bounds, tuple(keywords))


def _persistent(call: Call) -> Value:
    given = call.need(0, "domain")
    extents = given.value if isinstance(given.value, tuple | list) else [given.value]
    domain = ex.compound("tuple", "", tuple(call.ev.expression(e, None) for e in extents))
    args = (domain, call.expr(call.need(1, "wave_size")), call.expr(call.need(2, "index")))
    group = call.take(3, "group_size")
    size = ex.literal(8) if group is None else call.expr(group)
    return Loop("Persistent", (*args, size))


def trace_loop(ev: Language, node: ast.For, loop: Loop) -> None:
    """Writes the loop; `T.grid` becomes serial loops inside each other."""
    if node.orelse:
        raise ev.fail("T2C115", "`else` of a loop is not part of the tile language", node.orelse[0])
    lead = ev.residual.take_comments()
    origin = ev.origin(node, node.iter)
    header = ev.header_comment(node, node.body)
    if loop.kind == "Persistent":
        _trace_persistent(ev, node, loop, lead, header)
        return
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


def _trace_persistent(
    ev: Language, node: ast.For, loop: Loop, lead: Lead, header: str | None
) -> None:
    """`T.Persistent(domain, wave, index, group)`: a serial loop over the tiles of one block.

    Tile number t = round * wave + index. Tiles are numbered in groups of columns of the last
    dimension, so that blocks that run together share what they load.
    """
    origin, span = ev.origin(node, node.iter), ev.span(node.iter)
    domain, wave, index, group = loop.args[0].args, loop.args[1], loop.args[2], loop.args[3]
    total = _product(domain)
    with ev.region("for", origin.span):
        turn = ex.name(ev.claim("turn", "loop"), dtype="int32")
        tile = ex.name(ev.claim("tile", "temporary"), dtype="int32")
        names = _bind_variables(ev, node.target, loop)
        with ev.residual.block() as block:
            _place(ev, tile, domain, group, names, origin)
            ev.trace_block(node.body, ev.head_end(node, node.iter, node.body))
            footer = ev.residual.footers[-1]
    inside = ev.residual.suite(block, None, origin, footer)
    with ev.residual.block() as outer:
        number_ = ex.binary("+", ex.binary("*", turn, wave), index)
        ev.residual.assign(tile, number_, origin)
        ev.residual.branch(ex.binary("<", tile, total), inside, None, (), origin)
    suite = ev.residual.suite(outer, header, origin)
    rounds = ex.call("serial", (ex.literal(0), ex.call("ceildiv", (total, wave))), span)
    ev.residual.loop([turn.op], rounds, suite, lead, origin)


def _place(
    ev: Language,
    tile: Expr,
    domain: tuple[Expr, ...],
    group: Expr,
    names: list[str],
    origin: Origin,
) -> None:
    """Binds the loop's variables to where a tile is."""
    rest, last = _product(domain[:-1]), domain[-1]

    def temporary(name: str, value: Expr) -> Expr:
        target = ex.name(ev.claim(name, "temporary"), dtype="int32")
        ev.residual.assign(target, value, origin)
        return target

    if len(domain) == 1:
        ev.residual.assign(ex.name(names[0], dtype="int32"), tile, origin)
        return
    size = ex.binary("*", group, rest)
    first = temporary("first", ex.binary("*", ex.binary("//", tile, size), group))
    width = temporary("width", ex.call("min", (ex.binary("-", last, first), group)))
    inner = temporary("inner", ex.binary("%", tile, size))
    column = ex.binary("+", first, ex.binary("%", inner, width))
    ev.residual.assign(ex.name(names[-1], dtype="int32"), column, origin)
    row = ex.binary("//", inner, width)
    for position in range(len(domain) - 2, -1, -1):
        below = _product(domain[position + 1 : -1])
        value = row if number(below) == 1 else ex.binary("//", row, below)
        if position:
            value = ex.binary("%", value, domain[position])
        ev.residual.assign(ex.name(names[position], dtype="int32"), value, origin)


def _product(extents: tuple[Expr, ...]) -> Expr:
    total: Expr = ex.literal(1)
    for extent in extents:
        both = number(total), number(extent)
        if both[0] == 1:
            total = extent
        elif both[0] is not None and both[1] is not None:
            total = ex.literal(both[0] * both[1])
        else:
            total = ex.binary("*", total, extent)
    return total


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
