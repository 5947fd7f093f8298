"""Tile statements in their canonical spelling: every operand a region with all its extents."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from tile2c.transpile.stage import copies
from tile2c.transpile.stage import expressions as ex
from tile2c.transpile.stage.buffers import Access, Buffer, Region
from tile2c.transpile.stage.calls import Call
from tile2c.transpile.stage.expressions import Expr
from tile2c.transpile.stage.invoke import Argument
from tile2c.transpile.stage.operands import access_of, is_address, region_expr
from tile2c.transpile.stage.state import is_variable
from tile2c.transpile.stage.stored_layouts import annotate, element_loop, is_stored
from tile2c.transpile.stage.values import Closure, DType, LayoutMap, Poison, Value
from tile2c.transpile.stage.vocabulary import HINTS, REDUCTIONS, STATEMENTS

# Waits of copies that run beside the program: here a copy is done when its statement is.
_DONE = frozenset(("ptx_commit_group", "ptx_wait_group"))
_COPY_HINTS = (
    "coalesced_width",
    "disable_tma",
    "eviction_policy",
    "prefer_instruction",
    "annotations",
    "loop_layout",
)


def _emit(
    call: Call, function: str, args: tuple[Expr, ...], keywords: tuple[tuple[str, Expr], ...] = ()
) -> None:
    ev = call.ev
    if not ev.tracing:
        raise ev.fail(
            "T2C404",
            f"T.{call.path} stands outside a kernel",
            call.node,
            help="with T.Kernel(...):",
        )
    statement = ex.call(function, args, ev.span(call.node), keywords=keywords, device=True)
    ev.residual.expression(statement, ev.here)


def _copy(call: Call) -> Value:
    src, dst = call.need(0, "src"), call.need(1, "dst")
    call.known_keywords("src", "dst", *_COPY_HINTS, "barrier")
    variables = [a for a in (src, dst) if is_variable(a.value)]
    if variables and dst in variables:
        value = call.expr(src)
        call.ev.residual.assign(dst.value.expr(), value, call.ev.here)
        return None
    sides = copies.resolve(call, src, dst)
    if sides is None:
        call.ev.store(dst.value.access, call.expr(src), call.node)
        return None
    keywords = call.keyword_exprs("src", "dst", *_COPY_HINTS)
    if is_stored(*sides):
        ev = call.ev
        element_loop(call, sides, lambda at: ev.store(at[1], ev.read(at[0], call.node), call.node))
        return None
    path = "copy" if call.path == "async_copy" else call.path
    _emit(call, path, tuple(region_expr(side) for side in sides), keywords)
    return None


def _regions(call: Call) -> Value:
    """Statements whose buffers are given whole or as regions and stay in order."""
    _emit(call, call.path, tuple(_operand(call, a) for a in call.args), call.keyword_exprs())
    return None


def _operand(call: Call, argument: Argument) -> Expr:
    value = argument.value
    if isinstance(value, Buffer) and not is_variable(value):
        return region_expr(access_of(call, argument, "operand"))
    if isinstance(value, Region):
        return region_expr(value.access)
    return call.expr(argument)


def _fill(call: Call) -> Value:
    """`T.fill(x, value)`, `T.clear(x)`: a tile, an element or a variable."""
    dst = call.need(0, "dst")
    given = call.take(1, "value")
    value = ex.literal(0) if call.path == "clear" else call.expr(given or call.need(1, "value"))
    if isinstance(dst.value, Buffer) and is_variable(dst.value):
        call.ev.residual.assign(dst.value.expr(), value, call.ev.here)
    elif is_address(dst):
        call.ev.store(dst.value.access, value, call.node)
    else:
        target = access_of(call, dst, "destination")
        if is_stored(target):
            element_loop(call, (target,), lambda at: call.ev.store(at[0], value, call.node))
        else:
            _emit(call, "fill", (region_expr(target), value))
    return None


def _gemm(call: Call) -> Value:
    """`T.gemm(a, b, c, ...)`, keywords in a fixed order and only where they say something."""
    names = ("A", "B", "C", "transpose_A", "transpose_B", "policy", "clear_accum", "k_pack")
    others = ("wg_wait", "mbar", "annotations", "num_stages", "E")
    if call.path == "gemm":
        call.known_keywords(*names, *others)
    operands = [call.need(position, name) for position, name in enumerate(names[:3])]
    for operand in operands:
        if is_address(operand):
            raise call.ev.fail(
                "T2C303",
                f"T.{call.path} needs the extents of {operand.value.access.buffer.name}",
                operand.node or call.node,
                help="give a whole buffer, or a region with slices such as A[0:64, :]",
            )
    args = tuple(region_expr(access_of(call, operand, "operand")) for operand in operands)
    keywords: list[tuple[str, Expr]] = []
    for position, name in ((3, "transpose_A"), (4, "transpose_B")):
        if call.flag(position, name):
            keywords.append((name, ex.literal(True)))
    policy = call.take(5, "policy")
    if policy is not None and policy.value is not None:
        spelled = call.expr(policy)
        if not spelled.op.endswith("Square"):
            keywords.append(("policy", spelled))
    clear = call.take(6, "clear_accum")
    if clear is not None and clear.value is not False:
        keywords.append(("clear_accum", call.expr(clear)))
    pending = _open_products(call)
    path = "wgmma_gemm" if call.path == "gemm" and pending != 0 else call.path
    _emit(call, path, args, tuple(keywords))
    if pending > 0:
        _emit(call, "wait_wgmma", (ex.literal(pending),))
    return None


def _open_products(call: Call) -> int:
    """`wg_wait=`: batches of products that stay open behind this one; -1: nobody waits."""
    given = call.keywords.get("wg_wait")
    if given is None or given.value is None:
        return 0
    return call.ev.whole_number(given.value, given.node or call.node, f"T.{call.path}")


def _reduce(call: Call) -> Value:
    """`T.reduce_sum(src, dst, dim=-1, clear=True)`; `T.reduce(src, dst, "sum", dim, clear)`."""
    path, rest = call.path, call.args[2:]
    if path == "reduce":
        path = f"reduce_{call.value(2, 'reduce_type')}"
        rest = call.args[3:]
        if path not in REDUCTIONS:
            raise call.ev.fail("T2C242", f"there is no T.{path}", call.node)
    src, dst = call.need(0, "src"), call.need(1, "dst")
    inner = Call(call.ev, path, call.node, [src, dst, *rest], call.keywords)
    sides = [access_of(call, src, "source"), access_of(call, dst, "destination")]
    dim = _dimension(inner, inner.take(2, "dim"), sides[0], -1)
    keywords = [("dim", ex.literal(dim))]
    clear = path in ("reduce_absmax", "reduce_abssum") or inner.flag(3, "clear", True)
    if path not in ("reduce_absmax", "reduce_abssum") or inner.take(3, "clear") is not None:
        clear = inner.flag(3, "clear", True)
    keywords.append(("clear", ex.literal(clear)))
    if inner.flag(99, "nan_propagate"):
        keywords.append(("nan_propagate", ex.literal(True)))
    _emit(inner, path, tuple(region_expr(side) for side in sides), tuple(keywords))
    return None


def _dimension(call: Call, argument: Argument | None, src: Access, default: int) -> int:
    """A dimension counted from the front."""
    rank = len(src.pieces)
    dim = default
    if argument is not None:
        dim = call.ev.whole_number(argument.value, argument.node or call.node, f"T.{call.path}")
    if not -rank <= dim < rank:
        raise call.ev.fail(
            "T2C320",
            f"{src.buffer.name} has {rank} dimension{'s' * (rank != 1)}, so there is no dim {dim}",
            (argument.node if argument else None) or call.node,
        )
    return dim % rank


def _scan(call: Call) -> Value:
    """`T.cumsum(src, dst=None, dim=0, reverse=False)`: in place where there is no dst."""
    src, dst = call.need(0, "src"), call.take(1, "dst")
    if dst is None or dst.value is None:
        dst = src
    sides = [access_of(call, src, "source"), access_of(call, dst, "destination")]
    dim = _dimension(call, call.take(2, "dim"), sides[0], 0)
    keywords = (("dim", ex.literal(dim)), ("reverse", ex.literal(call.flag(3, "reverse"))))
    _emit(call, call.path, tuple(region_expr(side) for side in sides), keywords)
    return None


def _atomic(call: Call) -> Value:
    """One element by each thread, or each element of a tile once."""
    dst, value = call.need(0, "dst"), call.need(1, "value")
    tile = not is_address(dst) and not is_variable(dst.value)
    source_tile = isinstance(value.value, Region) or (
        isinstance(value.value, Buffer) and not is_variable(value.value)
    )
    keywords = call.keyword_exprs("dst", "value", "use_tma", "return_prev")
    if (tile or source_tile) and _atomic_of_elements(call, dst, value, source_tile, keywords):
        return None
    if (tile or source_tile) and call.path not in ("atomic_addx2", "atomic_addx4"):
        if source_tile:
            sides = copies.resolve(call, value, dst)
            assert sides is not None
            source, target = (region_expr(side) for side in sides)
        else:
            target = region_expr(access_of(call, dst, "destination"))
            source = call.expr(value)
        _emit(call, call.path, (target, source), keywords)
        return None
    target, source = _operand(call, dst), _operand(call, value)
    if call.flag(3, "return_prev"):
        returned = (("return_prev", ex.literal(True)),)
        return ex.call(
            call.path, (target, source), call.ev.span(call.node), keywords=(*keywords, *returned),
            device=True,
        )  # fmt: skip
    _emit(call, call.path, (target, source), keywords)
    return None


def _atomic_of_elements(
    call: Call,
    dst: Argument,
    value: Argument,
    source_tile: bool,
    keywords: tuple[tuple[str, Expr], ...],
) -> bool:
    """A tile atomic on a tensor in a layout of its own: an atomic for each element."""
    ev = call.ev
    sides: tuple[Access, ...] = (access_of(call, dst, "destination"),)
    if source_tile:
        resolved = copies.resolve(call, value, dst)
        assert resolved is not None
        sides = (resolved[1], resolved[0])
    if not is_stored(*sides):
        return False

    def write(at: Sequence[Access]) -> None:
        added = ev.read(at[1], call.node) if source_tile else call.expr(value)
        _emit(call, call.path, (ev.read(at[0], call.node), added), keywords)

    element_loop(call, sides, write)
    return True


def _plain(call: Call) -> Value:
    """Statements that stay as they are: barriers, waits, prints."""
    args = []
    for argument in call.args:
        value = argument.value
        if isinstance(value, Buffer) and not is_variable(value):
            args.append(value.expr(call.ev.span(argument.node)))
        elif isinstance(value, Region):
            args.append(region_expr(value.access))
        elif value is not None:
            args.append(call.expr(argument))
    _emit(call, call.path, tuple(args), call.keyword_exprs())
    return None


def _evaluate(call: Call) -> Value:
    """`T.evaluate(x)`: the expression as a statement."""
    inner = call.need(0, "value")
    if isinstance(inner.value, Expr) and inner.value.kind == "call":
        call.ev.residual.expression(inner.value, call.ev.here)
    return None


def _hint(call: Call) -> Value:
    return None


def _role_registers(call: Call) -> Value:
    """`T.annotate_producer_reg_dealloc(n=24)` and `T.annotate_consumer_reg_alloc(n=240)`."""
    more = call.path == "annotate_consumer_reg_alloc"
    given = call.take(0, "reg_count")
    count = call.expr(given) if given is not None else ex.literal(240 if more else 24)
    _emit(call, "inc_max_nreg" if more else "dec_max_nreg", (count,))
    return None


def _swizzle(call: Call) -> Value:
    """`T.use_swizzle(panel_size, order="row", enable=True)`: before everything else of a kernel."""
    if not call.flag(2, "enable", True):
        return None
    panel = call.expr(call.need(0, "panel_size"))
    keywords = (("order", ex.literal(str(call.value(1, "order", "row")))),)
    _emit(call, "use_swizzle", (panel,), keywords)
    return None


def _layouts(call: Call) -> Value:
    """Layouts of on-chip buffers are hints; one on a global tensor changes its storage."""
    layouts = call.value(0, "layout_map")
    if isinstance(layouts, dict):
        for buffer, layout in layouts.items():
            if not isinstance(buffer, Buffer) or buffer.scope != "global":
                continue
            if not isinstance(layout, LayoutMap):
                raise call.ev.fail(
                    "T2C325",
                    f"the layout of the global tensor {buffer.name} is not evaluated",
                    call.node,
                    help="T.Layout(shape, lambda i, j: (...))",
                )
            annotate(call, buffer, layout)
    return None


def _safe_value(call: Call) -> Value:
    """`T.annotate_safe_value({A: v})`: what a load outside A yields."""
    given = call.need(0, "safe_value_map")
    if not isinstance(given.value, dict):
        raise call.ev.fail("T2C242", "T.annotate_safe_value takes a dict", call.node)
    parts: list[Expr] = []
    for buffer, value in given.value.items():
        if not isinstance(buffer, Buffer):
            raise call.ev.fail("T2C242", "its keys are buffers", given.node or call.node)
        parts += [buffer.expr(), call.ev.expression(value, None)]
    _emit(call, "annotate_safe_value", (ex.compound("dict", "", tuple(parts), device=True),))
    return None


def _load(call: Call) -> Value:
    """`T.load(buf, i)` is not in the language; it is taken as `buf[i]`."""
    access = _old_access(call)
    return Poison() if access is None else call.ev.read(access, call.node)


def _store(call: Call) -> Value:
    access, value = _old_access(call), call.need(2, "value")
    if access is not None:
        call.ev.store(access, call.expr(value), call.node)
    return None


def _old_access(call: Call) -> Access | None:
    """The element that is meant; None after an error. What stands beside it is still looked at."""
    from tile2c.transpile.stage.buffers import Piece

    given, index = call.need(0, "buffer"), call.need(1, "index")
    buffer = given.value
    if isinstance(buffer, Poison) and isinstance(given.node, ast.Name):
        _not_in_language(call, given.node.id, index)
        return None
    if not isinstance(buffer, Buffer):
        raise call.ev.fail("T2C246", f"T.{call.path} takes a buffer", call.node)
    if len(buffer.shape) == 1:
        _not_in_language(call, buffer.name, index)
    else:
        problem = call.ev.fail(
            "T2C232",
            f"{buffer.name} has {len(buffer.shape)} dimensions but T.{call.path}, which is not part "
            "of the tile language, gives 1 index",
            call.node,
            help=_instead(call, f"{buffer.name}[{', '.join('ijklmnop'[: len(buffer.shape)])}]"),
        )
        call.ev.diagnostics.add(problem.diagnostic)
        return None
    span = call.ev.span(call.node)
    return Access(buffer, (Piece(call.expr(index), None, span),), span)


def _not_in_language(call: Call, name: str, index: Argument) -> None:
    quoted = f"{name}[{ex.text(call.expr(index))}]"
    call.ev.diagnostics.warning(
        "T2C208",
        f"T.{call.path} is not part of the tile language; it is taken as {quoted}",
        call.ev.span(call.node),
        help=_instead(call, quoted),
    )


def _instead(call: Call, element: str) -> str:
    """What the old spelling of an access is in the language."""
    if call.path == "load":
        return element
    value = call.need(2, "value").node
    text = ast.unparse(value) if value is not None else ""
    return f"{element} = {text if 0 < len(text) <= 90 else '...'}"


def _layout_object(call: Call) -> Value:
    """A layout on the chip is a hint; that of a global tensor is followed."""
    forward = call.value(1, "forward_fn")
    if call.path == "Layout" and isinstance(forward, Closure):
        return LayoutMap(forward)
    return DType("handle")


HANDLERS: dict[str, Callable[[Call], Value]] = {
    **dict.fromkeys(STATEMENTS, _plain),
    **dict.fromkeys(HINTS | _DONE, _hint),
    **dict.fromkeys(REDUCTIONS, _reduce),
    **dict.fromkeys(("copy", "async_copy", "tma_copy"), _copy),
    **dict.fromkeys(("transpose", "im2col", "copy_cluster"), _regions),
    **dict.fromkeys(("fill", "clear"), _fill),
    **dict.fromkeys(("gemm", "wgmma_gemm", "gemm_sp"), _gemm),
    **dict.fromkeys(("cumsum", "cummax"), _scan),
    **dict.fromkeys(
        ("atomic_add", "atomic_max", "atomic_min", "atomic_or", "atomic_addx2", "atomic_addx4"),
        _atomic,
    ),
    **dict.fromkeys(("Layout", "Fragment"), _layout_object),
    **dict.fromkeys(
        ("annotate_producer_reg_dealloc", "annotate_consumer_reg_alloc"), _role_registers
    ),
    "evaluate": _evaluate,
    "use_swizzle": _swizzle,
    "annotate_layout": _layouts,
    "annotate_safe_value": _safe_value,
    "load": _load,
    "store": _store,
}
