"""Allocations: on-chip arrays, variables, barriers, and views of existing buffers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tile2c.transpile.stage import expressions as ex
from tile2c.transpile.stage.buffers import Buffer, Scope
from tile2c.transpile.stage.calls import Call
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.language_values import dims
from tile2c.transpile.stage.state import is_variable
from tile2c.transpile.stage.values import NotReady, Value

_SCOPES: dict[str, Scope] = {
    "alloc_shared": "shared",
    "alloc_fragment": "fragment",
    "alloc_local": "local",
    "alloc_global": "global",
}
_SCOPE_NAMES: dict[str, str] = {
    "shared": "alloc_shared",
    "shared.dyn": "alloc_shared",
    "local.fragment": "alloc_fragment",
    "local": "alloc_local",
    "global": "alloc_global",
}


def _declare(
    call: Call,
    function: str,
    scope: Scope,
    shape: tuple[Expr, ...],
    dtype: str,
    args: tuple[Expr, ...],
    keywords: tuple[tuple[str, Expr], ...] = (),
) -> Buffer:
    """Writes `name = T.function(args)` and gives the buffer."""
    ev = call.ev
    hint = ev.hint or "buffer"
    name = ev.claim(hint, "buffer")
    span = ev.span(call.node)
    buffer = Buffer(name, scope, shape, dtype, span)
    value = ex.call(function, args, span, keywords=keywords, device=True)
    ev.residual.assign(buffer.expr(span), value, ev.here)
    return buffer


def _require_kernel(call: Call) -> None:
    if not call.ev.tracing:
        raise call.ev.fail(
            "T2C404",
            f"T.{call.path} stands outside a kernel",
            call.node,
            help="with T.Kernel(...):",
        )


def _array(call: Call) -> Value:
    """`T.alloc_shared(shape, dtype)` and its kin; extents on chip are known at build time."""
    _require_kernel(call)
    function = call.path
    scope_name = call.keywords.get("scope")
    if function in ("alloc_buffer", "allocate", "sblock_alloc_buffer"):
        spelled = scope_name.value if scope_name else call.value(2, "scope", "shared")
        function = _SCOPE_NAMES.get(spelled, "")
        if not function:
            raise call.ev.fail("T2C242", f"{spelled!r} is no scope of a buffer", call.node)
    shape = dims(call, call.need(0, "shape"))
    dtype = call.ev.dtype(call.value(1, "dtype", "float32"), call.node)
    scope = _SCOPES[function]
    if scope != "global":
        for size in shape:
            _fixed_extent(call, size)
    args = (ex.compound("tuple", "", shape, device=False), ex.language(dtype))
    static = scope_name is not None and scope_name.value == "shared" and function == "alloc_shared"
    keywords = (("scope", ex.literal("shared")),) if static else ()
    return _declare(call, function, scope, shape, dtype, args, keywords)


def _fixed_extent(call: Call, size: Expr) -> None:
    from tile2c.transpile.stage.linear import number

    if number(size) is not None:
        return
    if size.sizes and not size.device:
        name = min(size.sizes)
        raise NotReady(name, f"the extent {ex.text(size)} of an on-chip array needs it", size.span)
    raise call.ev.fail(
        "T2C401",
        f"the extent {ex.text(size)} of an on-chip array is not known at build time",
        call.node,
    )


def _variable(call: Call) -> Value:
    """`T.alloc_var(dtype, init)`, also `(dtype, "local.var")` and `(dtype, init, scope)`."""
    _require_kernel(call)
    dtype = call.ev.dtype(call.need(0, "dtype").value, call.node)
    init = call.take(1, "init")
    if init is not None and (init.value is None or init.value == "local.var"):
        init = None
    args: tuple[Expr, ...] = (ex.language(dtype),)
    if init is not None:
        args = (*args, call.expr(init))
    return _declare(call, "alloc_var", "var", (), dtype, args)


def _barrier(call: Call) -> Value:
    """`T.alloc_barrier(count)` or `([c0, c1])`: one phase counter for each count."""
    _require_kernel(call)
    counts = call.need(0, "arrive_count").value
    single = not isinstance(counts, list | tuple)
    shape = (ex.literal(1 if single else len(counts)),)
    args = call.exprs()
    return _declare(call, call.path, "barrier", shape, "uint64", args, call.keyword_exprs())


def _reducer(call: Call) -> Value:
    _require_kernel(call)
    shape = dims(call, call.need(0, "shape"))
    dtype = call.ev.dtype(call.value(1, "dtype", "float32"), call.node)
    op, replication = call.value(2, "op", "sum"), call.value(3, "replication", None)
    keywords = [("op", ex.literal(str(op)))]
    if replication is not None:
        keywords.append(("replication", ex.literal(str(replication))))
    args = (ex.compound("tuple", "", shape, device=False), ex.language(dtype))
    return _declare(call, "alloc_reducer", "reducer", shape, dtype, args, tuple(keywords))


def _empty(call: Call) -> Value:
    """`T.empty(shape, dtype)` in an eager function: an output, the last of its parameters."""
    args = [argument for argument in call.args]
    if args and isinstance(args[0].value, int | Expr) and len(args) > 1:
        if isinstance(args[1].value, int | Expr):  # T.empty(M, N, dtype=...)
            count = next(
                (n for n, a in enumerate(args) if not isinstance(a.value, int | Expr)), len(args)
            )
            shape = tuple(size for a in args[:count] for size in dims(call, a))
            return _output(call, shape, call.value(count, "dtype", "float32"))
    return _output(call, dims(call, call.need(0, "shape")), call.value(1, "dtype", "float32"))


def _output(call: Call, shape: tuple[Expr, ...], dtype: Value) -> Buffer:
    ev = call.ev
    name = ev.claim(ev.hint or "output", "buffer")
    buffer = Buffer(name, "global", shape, ev.dtype(dtype, call.node), ev.span(call.node))
    ev.outputs.append(buffer)
    return buffer


def _view(call: Call) -> Value:
    """`T.reshape(buf, shape)`, `T.view(buf, shape, dtype)`: other names of the same storage."""
    base = call.need(0, "src").value
    if not isinstance(base, Buffer) or is_variable(base):
        raise call.ev.fail("T2C246", f"T.{call.path} takes a whole buffer", call.node)
    given = call.take(1, "shape")
    shape = dims(call, given) if given is not None and given.value is not None else base.shape
    dtype = call.value(2, "dtype", None) if call.path == "view" else None
    name = base.dtype if dtype is None else call.ev.dtype(dtype, call.node)
    args = (base.expr(), ex.compound("tuple", "", shape, device=False))
    keywords = () if name == base.dtype else (("dtype", ex.language(name)),)
    buffer = _declare(call, call.path, base.scope, shape, name, args, keywords)
    return buffer


def _tensor(call: Call) -> Value:
    """`T.make_tensor(pointer, shape, dtype, strides)`."""
    shape = dims(call, call.need(1, "shape"))
    dtype = call.ev.dtype(call.value(2, "dtype", "float32"), call.node)
    pointer = call.expr(call.need(0, "pointer"))
    args = (pointer, ex.compound("tuple", "", shape, device=False), ex.language(dtype))
    strides = call.take(3, "strides")
    keywords: tuple[tuple[str, Expr], ...] = ()
    if strides is not None and strides.value is not None:
        given = dims(call, strides)
        keywords = (("strides", ex.compound("tuple", "", given, device=False)),)
        buffer = _declare(call, "make_tensor", "global", shape, dtype, args, keywords)
        return replace(buffer, strides=given)
    return _declare(call, "make_tensor", "global", shape, dtype, args, keywords)


HANDLERS: dict[str, Callable[[Call], Value]] = {
    **dict.fromkeys((*_SCOPES, "alloc_buffer", "allocate", "sblock_alloc_buffer"), _array),
    "alloc_var": _variable,
    "alloc_barrier": _barrier,
    "alloc_cluster_barrier": _barrier,
    "alloc_reducer": _reducer,
    "empty": _empty,
    "reshape": _view,
    "view": _view,
    "make_tensor": _tensor,
}
