"""TVM's reduction of a value over the threads of a block: `T.tvm_thread_allreduce`.

Over few lanes that lie beside each other it is a butterfly of shuffles, else a sum through shared
memory; every thread that takes part has the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tile2c.transpile.stage import expressions as ex
from tile2c.transpile.stage.buffers import Buffer
from tile2c.transpile.stage.calls import Call
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.values import Closure, ThreadReducer, Value

if TYPE_CHECKING:
    from tile2c.transpile.stage.language import Language

LANES = 32  # of a warp on every chip, or half of one


def _reducer(call: Call) -> Value:
    """`T.comm_reducer(lambda x, y: x + y, [identity])`."""
    combine, identity = call.need(0, "combiner"), call.need(1, "identity")
    first = identity.value[0] if isinstance(identity.value, list | tuple) else identity.value
    if not isinstance(combine.value, Closure):
        raise call.ev.fail("T2C242", "T.comm_reducer takes a function of two values", call.node)
    return ThreadReducer(combine.value, call.ev.expression(first, identity.node))


def _all_reduce(call: Call) -> Value:
    """`T.tvm_thread_allreduce(size, value, condition, out, *threads)`."""
    ev = call.ev
    reducer, out = ev.thread_reducer, call.need(3, "out")
    axes = [_axis(call, argument.value) for argument in call.args[4:]]
    always = call.need(2, "condition").value is True
    address = isinstance(out.value, Expr) and out.value.access is not None
    if reducer is None or not axes or not always or not address:
        raise ev.fail(
            "T2C231",
            "this reduction over threads is not supported: it takes a combiner by T.attr, the "
            "condition True, an element for the result and thread indices",
            call.node,
            help="T.warp_reduce_sum(x), or T.reduce_sum over a fragment",
        )
    value = call.expr(call.need(1, "value"))
    place = out.value.access
    few = axes == [0] and ev.threads[0] <= LANES and LANES % ev.threads[0] == 0
    reduce = _over_lanes if few else _over_shared
    result = reduce(call, reducer, value, place.buffer.dtype, sorted(axes))
    ev.store(place, result, call.node)
    return None


def _axis(call: Call, value: Value) -> int:
    """The dimension of a thread index."""
    if isinstance(value, Expr):
        if value.kind == "call" and value.op == "get_thread_binding":
            return int(value.args[0].value or 0)
        if value.kind == "name" and value.op in call.ev.thread_names:
            return call.ev.thread_names[value.op]
    raise call.ev.fail("T2C231", "a reduction over threads names their indices", call.node)


def _combined(call: Call, reducer: ThreadReducer, one: Expr, other: Expr) -> Expr:
    return call.ev.expression(call.ev.invoke(reducer.combine, [one, other], {}, call.node), None)


def _variable(ev: Language, dtype: str, init: Expr) -> Expr:
    name = ex.name(ev.claim("reduced", "buffer"), dtype=dtype)
    ev.residual.assign(name, ex.call("alloc_var", (ex.language(dtype), init), device=True), ev.here)
    return name


def _over_lanes(
    call: Call, reducer: ThreadReducer, value: Expr, dtype: str, axes: list[int]
) -> Expr:
    ev = call.ev
    found = _variable(ev, dtype, value)
    distance = ev.threads[0] // 2
    while distance:
        other = ex.call("shfl_xor", (found, ex.literal(distance)), device=True, dtype=dtype)
        ev.residual.assign(found, _combined(call, reducer, found, other), ev.here)
        distance //= 2
    return found


def _over_shared(
    call: Call, reducer: ThreadReducer, value: Expr, dtype: str, axes: list[int]
) -> Expr:
    ev = call.ev
    shape = tuple(ex.literal(count) for count in reversed(ev.threads))
    tile = Buffer(ev.claim("reduced_shared", "buffer"), "shared", shape, dtype, None)
    args = (ex.compound("tuple", "", shape, device=False), ex.language(dtype))
    ev.residual.assign(tile.expr(), ex.call("alloc_shared", args, device=True), ev.here)
    own = [ex.call("get_thread_binding", (ex.literal(d),), device=True) for d in (2, 1, 0)]
    ev.residual.assign(_element(tile, own), value, ev.here)
    sync: Callable[[], None] = lambda: ev.residual.expression(  # noqa: E731
        ex.call("sync_threads", (), device=True), ev.here
    )
    sync()
    found = _variable(ev, dtype, reducer.identity)
    names = [ev.claim("k", "loop") for _ in axes]
    index = list(own)
    for axis, name in zip(axes, names, strict=True):
        index[2 - axis] = ex.name(name, dtype="int32")
    with ev.residual.block() as block:
        ev.residual.assign(found, _combined(call, reducer, found, _element(tile, index)), ev.here)
    suite = ev.residual.suite(block, None, ev.here)
    for axis, name in list(zip(axes, names, strict=True))[:-1]:
        with ev.residual.block() as outer:
            bounds = (ex.literal(0), ex.literal(ev.threads[axis]))
            ev.residual.loop([name], ex.call("serial", bounds), suite, (), ev.here)
        suite = ev.residual.suite(outer, None, ev.here)
    bounds = (ex.literal(0), ex.literal(ev.threads[axes[-1]]))
    ev.residual.loop([names[-1]], ex.call("serial", bounds), suite, (), ev.here)
    sync()
    return found


def _element(tile: Buffer, index: list[Expr]) -> Expr:
    return ex.compound("index", "", (tile.expr(), *index), dtype=tile.dtype, device=True)


HANDLERS: dict[str, Callable[[Call], Value]] = {
    "comm_reducer": _reducer,
    "tvm_thread_allreduce": _all_reduce,
}
