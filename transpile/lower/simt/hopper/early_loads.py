"""Elements that sums are finished with, as a bias: loaded in front of the rounds, used behind them.

Behind the last product nobody covers the way to memory: the tensor cores of the SM would wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod

from tile2c.transpile.ir.expr import Binary, Buffer, Expr, Load, Var
from tile2c.transpile.ir.forms import Let, Parallel, Stmt, Store
from tile2c.transpile.ir.walk import expressions, loads, statements, variables, writes
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.rewrite import rewrite_statement
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.hopper.roles import Roles
from tile2c.transpile.lower.simt.layouts import Layout
from tile2c.transpile.record import record

_DIVISIONS = ("//", "%", "truncdiv", "truncmod", "ceildiv")
EPILOGUE = 64  # registers that finishing sums, and storing them, may take beside them


@record(kw_only=True)
class EarlyLoads:
    """Statements of a block, and the loops among them that only load for what stands behind the rounds."""

    body: tuple[Stmt, ...]
    loops: tuple[Parallel, ...] = ()


def with_early_loads(
    ctx: Context,
    body: Sequence[Stmt],
    roles: Roles,
    sums: Mapping[str, Layout],
    spare: int,
) -> EarlyLoads:
    """Splits loops behind the rounds that finish sums with rows or columns of a tensor.

    reads   tile IR with copies as loops; the layouts of sums; `spare`: a thread's registers beside them
    writes  the same, with fragments of what is loaded early; what the launch writes is read where it stands
    """
    if roles.groups < 2 or len(roles.batches) > 1:
        return EarlyLoads(body=tuple(body))
    rounds, room = roles.loop, spare - EPILOGUE
    at = next(k for k, stmt in enumerate(body) if stmt is rounds)
    early: dict[Load, Parallel] = {}
    rest: list[Stmt] = []
    for stmt in body[at + 1 :]:
        moved: dict[Load, Load] = {}
        if isinstance(stmt, Parallel) and (layout := _layout(stmt, sums)) is not None:
            for load in _candidates(ctx, stmt):
                dim = next(k for k, var in enumerate(stmt.loop_vars) if _uses(load, var))
                room -= _registers(layout, dim, load)
                if room < 0:
                    break
                early[load], moved[load] = _split(ctx, stmt, dim, load)
        rest.append(rewrite_statement(stmt, _replacing(moved)) if moved else stmt)
    loops = tuple(early.values())
    return EarlyLoads(body=(*body[:at], *loops, rounds, *rest), loops=loops)


def _layout(loop: Parallel, sums: Mapping[str, Layout]) -> Layout | None:
    """How threads hold the sums that the loop changes, element by element."""
    for stmt in loop.body:
        if not isinstance(stmt, Store | Let):
            return None
    stores = [x for x in loop.body if isinstance(x, Store) and x.buffer.name in sums]
    own = [x for x in stores if x.index == loop.loop_vars and x.buffer.shape == loop.extents]
    return sums[own[0].buffer.name] if own else None


def _candidates(ctx: Context, loop: Parallel) -> list[Load]:
    """Loads of one row or column of what nobody writes, at places that are known before the rounds."""
    written = {x.name for stmt in statements(ctx.launch.body) for x in writes(stmt)}
    blocks = {var.name for var in ctx.launch.blocks}
    found: dict[Load, None] = {}
    for load in (x for stmt in loop.body for part in expressions(stmt) for x in loads(part)):
        names = [var for part in load.index for var in variables(part)]
        outer = [var for var in names if var not in loop.loop_vars]
        known = all(var.kind == "size" or var.name in blocks for var in outer)
        along = {var.name for var in names} & {var.name for var in loop.loop_vars}
        nested = any(True for part in load.index for _ in loads(part))
        alone = load.buffer.scope == "global" and load.buffer.name not in written
        safe = not any(_may_fail(part) for index in load.index for part in b.walk(index))
        if alone and known and safe and not nested and len(along) == 1 and not ctx.launch.views:
            found[load] = None
    return list(found)


def _may_fail(expr: Expr) -> bool:
    """Whether it divides by what may be zero where the condition around it does not hold."""
    return isinstance(expr, Binary) and expr.op in _DIVISIONS and not b.known(expr.b)


def _uses(load: Load, var: Var) -> bool:
    return any(b.mentions(part, var.name) for part in load.index)


def _registers(layout: Layout, dim: int, load: Load) -> int:
    """Of a thread, for its elements along a dimension of the sums."""
    count = prod(digit.extent for digit in layout.dims[dim] if digit.holder == "value")
    return -(-count * load.dtype.bytes // 4)


def _split(ctx: Context, loop: Parallel, dim: int, load: Load) -> tuple[Parallel, Load]:
    """The loop that loads, and what stands for the load behind the rounds."""
    var, extent, tensor = loop.loop_vars[dim], loop.extents[dim], load.buffer
    name = ctx.namer.ours(f"{tensor.name}_held", f"{tensor.name}_kept")
    held = Buffer(name=name, scope="fragment", shape=(extent,), dtype=tensor.dtype)
    ctx.launch = replace(ctx.launch, buffers=(*ctx.launch.buffers, held))
    words = f"{tensor.name} is loaded early: behind the last product, all would wait for it"
    first = Parallel(
        loop_vars=(var,),
        extents=(extent,),
        body=(Store(buffer=held, index=(var,), value=load),),
        comments=(words,),
    )
    return first, Load(dtype=load.dtype, buffer=held, index=(var,))


def _replacing(moved: Mapping[Load, Load]) -> Callable[[Expr], Expr | None]:
    return lambda part: moved.get(part) if isinstance(part, Load) else None
