"""Statements of a kernel's body: assignments, calls, branches, jumps (language.md 3, 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst
from tile2c.transpile.ir.build import (
    asynchronous,
    conversions,
    debugging,
    foreign,
    loops,
    reducers,
    reductions,
    tiles,
)
from tile2c.transpile.ir.build.allocations import ALLOCATIONS, allocate
from tile2c.transpile.ir.build.arguments import Arguments, language_name, tuple_items
from tile2c.transpile.ir.build.context import Builder, Poison, Stop, Value
from tile2c.transpile.ir.build.elements import element
from tile2c.transpile.ir.build.expressions import expression
from tile2c.transpile.ir.build.hints import HINTS, assume, layout, swizzle
from tile2c.transpile.ir.build.im2col import build_im2col
from tile2c.transpile.ir.build.notes import Notes, keep_footer, notes, own_line_comments, with_notes
from tile2c.transpile.ir.build.reducers import allocate_reducer
from tile2c.transpile.ir.build.threads import thread_index
from tile2c.transpile.ir.build.views import VIEWS, bind_view
from tile2c.transpile.ir.expr import Buffer, Expr, Load, Var
from tile2c.transpile.ir.forms import Assert, AuthorSync, If, Jump, Let, Stmt, Store
from tile2c.transpile.ir.walk import loads, variables

if TYPE_CHECKING:
    from typing import Literal

SYNCS = frozenset({"sync_threads", "tvm_storage_sync"})


def block(b: Builder, body: cst.BaseSuite) -> tuple[Stmt, ...]:
    """A suite of statements. A statement with a problem is left out; the others are still built."""
    found: list[Stmt] = []
    for node in body.body:
        if isinstance(node, cst.BaseStatement):
            found.extend(statement(b, node))
        else:
            found.extend(statement(b, cst.SimpleStatementLine([node])))
    keep_footer(b, body)
    return tuple(found)


def statement(b: Builder, node: cst.BaseStatement) -> list[Stmt]:
    """One statement of the normal form; none or several of the IR.

    What its expressions do on the way (an atomic whose old value is used) comes first.
    """
    outer, b.pending = b.pending, []
    with b.within(node):
        try:
            if isinstance(node, cst.SimpleStatementLine):
                return _line(b, node)
            found = _compound(b, node)
            return [*b.pending, found]
        except Stop:
            return []
        finally:
            b.pending = outer


def _compound(b: Builder, node: cst.BaseStatement) -> Stmt:
    about = notes(b, node)
    match node:
        case cst.For():
            return with_notes(loops.for_loop(b, node), about)
        case cst.While():
            return with_notes(loops.while_loop(b, node), about)
        case cst.If():
            return with_notes(_branch(b, node), about)
        case cst.With():
            return with_notes(_of_warpgroups(b, node), about)
    b.fail("T2C243", "this statement cannot stand inside a kernel", node)


def _line(b: Builder, node: cst.SimpleStatementLine) -> list[Stmt]:
    found: list[Stmt] = []
    for part in node.body:
        about = notes(b, node, part)
        before = (len(b.buffers), len(b.barriers), b.swizzle)
        built = _small(b, part, about)
        built, b.pending = [*b.pending, *built], []
        if not built and before == (len(b.buffers), len(b.barriers), b.swizzle):
            b.comments.extend(about.comments)  # nothing else carries them
        found.extend(built)
    return found


def _small(b: Builder, node: cst.BaseSmallStatement, about: Notes) -> list[Stmt]:
    with b.within(node):
        match node:
            case cst.Assign():
                return _assignment(b, node, about)
            case cst.AnnAssign(target=target, value=value) if value is not None:
                assign = cst.Assign([cst.AssignTarget(target)], value)
                return _assignment(b, assign, about)
            case cst.Expr(value=cst.Call() as call):
                return [with_notes(stmt, about) for stmt in _call(b, call, about)]
            case cst.Expr(value=cst.SimpleString()) | cst.Pass():
                return []
            case cst.Break():
                return [with_notes(_jump(b, "break", node), about)]
            case cst.Continue():
                return [with_notes(_jump(b, "continue", node), about)]
            case cst.Assert():
                test = conversions.condition(b, expression(b, node.test), node.test)
                message = ""
                if isinstance(node.msg, cst.SimpleString):
                    message = str(node.msg.evaluated_value)
                return [with_notes(Assert(condition=test, message=message), about)]
        b.fail("T2C243", "this statement cannot stand inside a kernel", node)


# ---- assignments


def _assignment(b: Builder, node: cst.Assign, about: Notes) -> list[Stmt]:
    target = node.targets[0].target
    if len(node.targets) != 1:
        b.fail("T2C243", "one target at a time in the normal form", node)
    if isinstance(target, cst.Tuple):
        return _thread_names(b, target, node)
    if isinstance(target, cst.Subscript):
        place = element(b, target)
        return [_store(b, place.buffer, place.index, node.value, target, about)]
    if not isinstance(target, cst.Name):
        b.fail("T2C243", "a name or an element of a buffer is needed on the left", target)
    try:
        return _named(b, target, node.value, about)
    except Stop:
        if not isinstance(b.scopes.find(target.value), Buffer):
            b.scopes.bind(target.value, Poison())
        raise


def _named(b: Builder, target: cst.Name, value: cst.BaseExpression, about: Notes) -> list[Stmt]:
    name = target.value
    if isinstance(value, cst.Call):
        function = language_name(value.func)
        if function in ALLOCATIONS:
            return allocate(b, name, value, ALLOCATIONS[function], about)
        if function == "alloc_reducer":
            return allocate_reducer(b, name, value, about)
        if function in asynchronous.ALLOCATIONS:
            return asynchronous.allocate_barriers(b, name, value, about)
        if function in VIEWS:
            return bind_view(b, name, value, function, about)
        if function == "get_thread_binding":
            args = Arguments(b, value, "T.get_thread_binding")
            dim = args.whole("dim", 0, 0)
            args.finish()
            b.scopes.bind(name, Value(thread_index(b, dim, name, value)))
            return []
    bound = b.scopes.find(name)
    if isinstance(bound, Buffer) and bound.scope == "variable":
        return [_store(b, bound, (), value, target, about)]
    if isinstance(bound, Buffer):
        b.fail(
            "T2C245",
            f"`{name}` is a buffer: it cannot be bound to something else",
            target,
            help=f"store into elements, as in {name}[i] = x, or T.copy(x, {name})",
        )
    if isinstance(bound, Value) and isinstance(bound.expr, Var) and bound.expr.kind != "temporary":
        b.fail(
            "T2C245",
            f"`{name}` is a {_what(bound.expr)}: it cannot be changed",
            target,
            help=f"take another name, or a variable: x = T.alloc_var(T.{bound.dtype}, {name})",
        )
    return _temporary(b, target, expression(b, value), about)


def _temporary(b: Builder, target: cst.Name, value: Value, about: Notes) -> list[Stmt]:
    name = target.value
    if value.host is not None:
        b.scopes.bind(name, value)
        return []
    unique = b.names.unique(name)
    var = Var(
        dtype=value.dtype,
        name=unique,
        kind="temporary",
        author=name if name != unique else None,
        span=b.span(target),
    )
    b.scopes.bind(name, Value(var))
    if depends_on_thread(b, value.expr):
        b.by_thread.add(unique)
    if any(loads(value.expr)):
        b.numbers_read.add(unique)
    return [with_notes(Let(var=var, value=value.expr), about)]


def _store(
    b: Builder,
    buffer: Buffer,
    index: tuple[Expr, ...],
    value: cst.BaseExpression,
    target: cst.BaseExpression,
    about: Notes,
) -> Stmt:
    found = expression(b, value)
    if buffer.dtype.is_integer and found.dtype.is_float:
        shown = b.kernel.module.code_for_node(target)
        b.warning(
            "T2C244",
            f"{shown} holds {buffer.dtype}: this {found.dtype} loses its fraction",
            value,
            help=f"T.cast(x, T.{buffer.dtype}) says that it is meant",
        )
    stored = conversions.convert(b, found, buffer.dtype, value)
    if buffer.scope in ("variable", "local") and (b.divergent or depends_on_thread(b, stored)):
        b.by_thread.add(buffer.name)
    return with_notes(Store(buffer=buffer, index=index, value=stored), about)


def _thread_names(b: Builder, target: cst.Tuple, node: cst.Assign) -> list[Stmt]:
    names = tuple_items(target)
    function = language_name(node.value.func) if isinstance(node.value, cst.Call) else None
    if function != "get_thread_bindings" or not all(isinstance(name, cst.Name) for name in names):
        b.fail("T2C243", "one target at a time in the normal form", node)
    for dim, name in enumerate(names):
        assert isinstance(name, cst.Name)
        b.scopes.bind(name.value, Value(thread_index(b, dim, name.value, node)))
    return []


def _what(var: Var) -> str:
    words = {"size": "size", "scalar": "parameter", "block": "block index",
             "thread": "thread index", "loop": "loop variable"}  # fmt: skip
    return words.get(var.kind, var.kind)


# ---- calls


def _call(b: Builder, node: cst.Call, about: Notes) -> list[Stmt]:
    name = language_name(node.func)
    if name is None:
        b.fail("T2C231", "only functions of the tile language can be called here", node.func)
    tile = _tile_statement(b, node, name)
    if tile is not None:
        return [tile]
    if name in HINTS:
        return []
    if name in reducers.STATEMENTS:
        return reducers.build_reducer_statement(b, node, name)
    if name in reductions.SEVERAL:
        return [reductions.build_several(b, node, name)]
    if name in reductions.ATOMICS:
        return [reductions.build_atomic(b, node, name)]
    if name == "assume":
        assume(b, node)
        return []
    if name == "use_swizzle":
        swizzle(b, node, about.comments)
        return []
    if name == "annotate_layout":
        layout(b, node)
        return []
    if name in SYNCS:
        return [_sync(b, node, name)]
    if name == "loop_break":
        return [_jump(b, "break", node)]
    if name == "thread_return":
        b.jumps.add("return")
        return [Jump(kind="return")]
    if name == "device_assert":
        return [debugging.build_assert(b, node)]
    if name in foreign.STATEMENTS:
        return foreign.build_statement(b, node, name)
    if name == "print":
        return debugging.build_print(b, node)
    ordered = asynchronous.asynchronous(b, node, name)
    if ordered is not None:
        return ordered
    if name == "gemm_sp":
        b.fail(
            "T2C559",
            "T.gemm_sp multiplies by a matrix with 2 of 4 elements left out, which no target here does",
            node.func,
            help="expand the matrix to a shared tile and use T.gemm",
        )
    b.fail("T2C231", f"T.{name} is not supported as a statement", node.func)


GEMMS = ("gemm", "gemm_v1", "gemm_v2", "wgmma_gemm")


def _tile_statement(b: Builder, node: cst.Call, name: str) -> Stmt | None:
    known = name in ("copy", "fill", "clear", "transpose", "im2col", *GEMMS)
    scan = name in ("cumsum", "cummax")
    if not (known or scan or name in reductions.REDUCTIONS):
        return None
    if scan:
        found = reductions.build_scan(b, node, name)
    elif name in reductions.REDUCTIONS:
        found = reductions.build_reduce(b, node, name)
    elif name == "copy":
        found = tiles.build_copy(b, node)
    elif name in ("fill", "clear"):
        found = tiles.build_fill(b, node, name)
    elif name == "transpose":
        found = tiles.build_transpose(b, node)
    elif name == "im2col":
        found = build_im2col(b, node)
    else:
        found = tiles.build_gemm(b, node, name)
    if b.in_parallel and not isinstance(found, Store):
        b.fail(
            "T2C314",
            f"T.{name} is done by the whole block: it cannot stand inside T.Parallel",
            node,
            help="move it out of the loop, or write the loop over elements",
        )
    return found


def _sync(b: Builder, node: cst.Call, name: str) -> Stmt:
    args = Arguments(b, node, f"T.{name}")
    if name == "tvm_storage_sync":
        args.text("scope", 0, "shared")
    elif node.args and not b.in_parallel:
        return asynchronous.named_sync(b, node, name)
    args.finish()
    if (b.divergent and not b.roles) or b.in_parallel:
        where = "T.Parallel" if b.in_parallel else "a condition that differs between threads"
        b.fail("T2C314", f"T.{name} stands under {where}: some threads would never arrive", node)
    return AuthorSync()


def _jump(b: Builder, kind: Literal["break", "continue"], node: cst.CSTNode) -> Stmt:
    if not b.loops or b.loops[-1] == "parallel":
        inside = "T.Parallel, whose iterations have no order" if b.loops else "no loop"
        b.fail(
            "T2C315",
            f"`{kind}` stands in {inside}",
            node,
            help="an `if` around the rest of the body" if b.loops else None,
        )
    b.jumps.add(kind)
    return Jump(kind=kind)


# ---- branches


def _branch(b: Builder, node: cst.If) -> If:
    test = conversions.condition(b, expression(b, node.test), node.test)
    divergent = depends_on_thread(b, test)
    b.divergent += divergent
    try:
        with b.scopes.region("the `if`"):
            then = block(b, node.body)
        orelse: tuple[Stmt, ...] = ()
        if isinstance(node.orelse, cst.If):
            with b.scopes.region("the `elif`"):
                orelse = tuple(statement(b, node.orelse))
        elif node.orelse is not None:
            b.comments.extend(own_line_comments(node.orelse.leading_lines))
            with b.scopes.region("the `else`"):
                orelse = block(b, node.orelse.body)
    finally:
        b.divergent -= divergent
    return If(condition=test, then=then, orelse=orelse)


def _of_warpgroups(b: Builder, node: cst.With) -> If:
    """`with T.ws(i):` as what it is, a condition on the thread."""
    call = node.items[0].item
    if not isinstance(call, cst.Call) or language_name(call.func) != "ws":
        b.fail("T2C243", "this `with` cannot stand inside a kernel", node)
    test = asynchronous.of_warpgroups(b, call)
    b.divergent += 1
    b.roles += 1
    try:
        with b.scopes.region("the `with`"):
            then = block(b, node.body)
    finally:
        b.divergent -= 1
        b.roles -= 1
    return If(condition=test, then=then)


def depends_on_thread(b: Builder, expr: Expr) -> bool:
    """Whether threads of one block may see different values."""
    for var in variables(expr):
        if var.kind == "thread" or var.name in b.by_thread:
            return True
    return any(_private(b, load) for load in loads(expr))


def _private(b: Builder, load: Load) -> bool:
    return load.buffer.name in b.by_thread
