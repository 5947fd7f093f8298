"""`acc[j] += x[i, j]` in T.Parallel(i, j): iterations over i gather in one element.

Each iteration keeps its own part, in a fragment of the loop's shape; a reduction brings them together.
The author has been warned (T2C316).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile2c.transpile.diagnostics.diagnostic import failure
from tile2c.transpile.ir.expr import Binary, Buffer, Expr, Load, Var
from tile2c.transpile.ir.forms import (
    For,
    If,
    Parallel,
    Pipelined,
    Reduce,
    ReduceOp,
    Stmt,
    Store,
    While,
)
from tile2c.transpile.ir.walk import statements
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.simt.access import all_loads
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hand_over import fresh, whole, whole_loop
from tile2c.transpile.lower.simt.reduce import identity

_OPS: dict[str, ReduceOp] = {
    "+": "sum", "max": "max", "min": "min", "&": "bitand", "|": "bitor", "^": "bitxor",
}  # fmt: skip


def sum_over_iterations(ctx: Context, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Splits such loops into a loop over parts and reductions of them.

    reads   tile IR with copies as loops      writes  the same
    """
    found: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Parallel):
            found += _loop(ctx, stmt)
        elif isinstance(stmt, For | Pipelined | While):
            found.append(_changed(stmt, sum_over_iterations(ctx, stmt.body)))
        elif isinstance(stmt, If):
            then = sum_over_iterations(ctx, stmt.then)
            orelse = sum_over_iterations(ctx, stmt.orelse)
            same = then == stmt.then and orelse == stmt.orelse
            found.append(stmt if same else replace(stmt, then=then, orelse=orelse))
        else:
            found.append(stmt)
    return tuple(found)


def _changed(stmt: For | Pipelined | While, body: tuple[Stmt, ...]) -> Stmt:
    same = all(x is y for x, y in zip(stmt.body, body, strict=False))
    return stmt if same and len(body) == len(stmt.body) else replace(stmt, body=body)


def _loop(ctx: Context, loop: Parallel) -> list[Stmt]:
    """The loop itself, unless iterations gather in elements of a fragment."""
    gathering = [
        stmt
        for stmt in statements(loop.body)
        if isinstance(stmt, Store) and stmt.buffer.scope == "fragment" and _missing(loop, stmt)
    ]
    before: list[Stmt] = []
    after: list[Stmt] = []
    for name in dict.fromkeys(stmt.buffer.name for stmt in gathering):
        stores = [stmt for stmt in gathering if stmt.buffer.name == name]
        op = _operation(loop, stores)
        if op is None:
            continue
        first, loop, last = _split(ctx, loop, stores[0], op)
        before += first
        after += last
    return [*before, loop, *after]


def _missing(loop: Parallel, store: Store) -> list[int]:
    """Dimensions of the loop, of more than one iteration, that the stored element does not depend on."""
    return [
        dim
        for dim, (var, extent) in enumerate(zip(loop.loop_vars, loop.extents, strict=True))
        if b.known(extent) != 1 and not any(b.mentions(part, var.name) for part in store.index)
    ]


def _operation(loop: Parallel, stores: Sequence[Store]) -> str | None:
    """How the iterations come together; None where they just overwrite each other."""
    target = stores[0].buffer
    updates = [_update(store) for store in stores]
    if all(update is None for update in updates):
        return None
    reads = [load for load in all_loads(loop.body) if load.buffer == target]
    ops = {update[0] if update is not None else "" for update in updates}
    places = {store.index for store in stores} | {load.index for load in reads}
    plain = all(isinstance(part, Var) or b.literal(part, 0) for part in stores[0].index)
    if len(ops) != 1 or len(places) != 1 or len(reads) != len(stores) or not plain:
        raise failure(
            "T2C503",
            f"iterations of this loop gather in elements of {target.name} and read them as well",
            stores[0].span or loop.span,
            help="use T.reduce_sum, or a serial loop outside T.Parallel",
        )
    return ops.pop()


def _update(store: Store) -> tuple[str, Expr] | None:
    """(operation, operand) of `x = x op operand`, either way round."""
    value = store.value
    if not isinstance(value, Binary) or value.op not in (*_OPS, "-"):
        return None
    own = Load(dtype=store.buffer.dtype, buffer=store.buffer, index=store.index)
    if value.a == own:
        return ("+" if value.op == "-" else value.op), value.b
    return (value.op, value.a) if value.b == own and value.op != "-" else None


def _split(
    ctx: Context, loop: Parallel, store: Store, op: str
) -> tuple[list[Stmt], Parallel, list[Stmt]]:
    """Parts set to the operation's identity, the loop over them, and the reductions."""
    target = store.buffer
    word = _OPS[op]
    start = identity(word, target.dtype)
    shape = Buffer(name="", scope="fragment", shape=loop.extents, dtype=target.dtype)
    parts = fresh(ctx, shape, "fragment", f"{target.name}_parts", f"{target.name}_each")
    index = tuple(loop.loop_vars)
    own = Load(dtype=target.dtype, buffer=target, index=store.index)
    mine = Load(dtype=target.dtype, buffer=parts, index=index)

    def moved(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Store) and stmt.buffer == target and isinstance(stmt.value, Binary):
            old = stmt.value
            value = replace(old, a=mine) if old.a == own else replace(old, b=mine)
            return replace(stmt, buffer=parts, index=index, value=value)
        if isinstance(stmt, For | While):
            return replace(stmt, body=tuple(map(moved, stmt.body)))
        if isinstance(stmt, If):
            return replace(
                stmt, then=tuple(map(moved, stmt.then)), orelse=tuple(map(moved, stmt.orelse))
            )
        return stmt

    fill = whole_loop(ctx, parts, lambda _: start)
    reductions: list[Stmt] = []
    held = parts
    gone = _missing(loop, store)
    for dim in reversed(gone):
        left = tuple(extent for k, extent in enumerate(held.shape) if k != dim)
        last = dim == gone[0]
        if last and len(left) == len(target.shape):
            result = target
        elif last and not left:
            result = target
        else:
            shape = Buffer(name="", scope="fragment", shape=left, dtype=target.dtype)
            result = fresh(ctx, shape, "fragment", f"{target.name}_sums", f"{target.name}_some")
        reductions.append(
            Reduce(
                op=word, src=whole(held), dst=whole(result), dim=dim,
                clear=result is not target, span=store.span,
                quote=f"sum of {target.name} over all iterations" if last else "",
            )
        )  # fmt: skip
        held = result
    return [fill], replace(loop, body=tuple(map(moved, loop.body))), reductions
