"""The top of a kernel's body: its arrays, block indices, names of the thread's place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Expr, Var, const
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import CCall, CStmt, Declarator, Local
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.uses import names_in
from tile2c.transpile.record import record


@record
class Walk:
    """A block that takes several tiles: the number of the one at hand, and how many the grid has a side."""

    tile: Var
    extents: tuple[Expr, ...]


def prologue(ctx: Context, steps: Sequence[CStmt]) -> tuple[CStmt, ...]:
    """The thread's names that the text uses; attempts that were given up may have left others."""
    wanted, used = ctx.wanted, names_in(steps)
    for name in reversed(list(wanted)):
        others = tuple(value for other, value in wanted.items() if other != name)
        if name not in used | names_in(others) and not used_in_names(ctx, name):
            del wanted[name]
    return ctx.prologue()


def fragments(ctx: Context, names: set[str], zeroed: Mapping[str, str]) -> list[CStmt]:
    """Arrays for the fragments among `names`; those of `zeroed` start at zero, as its line says."""
    found: list[CStmt] = []
    for buffer in ctx.launch.buffers:
        if buffer.scope != "fragment" or buffer.name not in names:
            continue
        layout = ctx.layouts[buffer.name]
        extents = [] if layout.scalar else [axis.extent for axis in layout.axes]
        ctype = None
        if layout.element == "vector":
            ctype = ctx.vector_type(buffer.dtype, extents[-1])
            extents = extents[:-1]
        vector = buffer.name in ctx.aligned_fragments
        quote = zeroed.get(buffer.name)
        from tile2c.transpile.render.expressions import CPrinter

        printer = CPrinter(ctx.target.dialect)
        shape = ", ".join(printer(b.in_words(extent)) for extent in buffer.shape)
        where = "over the block" if layout.threads == ctx.threads else "over its role's threads"
        where = "each thread's part" if buffer.name in ctx.own_parts else where
        remark = f"[{shape}] {where}" + (f"; {quote}" if quote else "")
        dims = tuple(const(extent) for extent in extents)
        name = Declarator(name=buffer.name, dims=dims, zero=quote is not None)
        found.append(
            Local(
                dtype=buffer.dtype,
                ctype=ctype,
                names=(name,),
                const=False,
                align=extents[-1] * buffer.dtype.bytes if vector else None,
                remark=remark,
            )
        )
    return found


def local_arrays(ctx: Context, names: set[str]) -> list[CStmt]:
    """Arrays of each thread's own among `names`."""
    return [
        Local(
            dtype=x.dtype,
            names=(Declarator(name=x.name, dims=tuple(map(b.in_words, x.shape))),),
            const=False,
        )
        for x in ctx.launch.buffers
        if x.scope == "local" and x.name in names
    ]


def block_indices(ctx: Context, steps: Sequence[CStmt], walk: Walk | None = None) -> list[CStmt]:
    """The author's names of the block's indices that the text uses."""
    launch = ctx.launch
    names = names_in(steps)
    used = [var for var in launch.blocks if var.name in names or used_in_names(ctx, var.name)]
    if launch.order is not None and len(launch.blocks) > 1 and used:
        beyond = [var for var in used if launch.blocks.index(var) > 1]
        return [*_panel_order(ctx, walk), *_plain_indices(ctx, beyond, walk)]
    return _plain_indices(ctx, used, walk)


def _plain_indices(ctx: Context, used: Sequence[Var], walk: Walk | None) -> list[CStmt]:
    """`const int bx = blockIdx.x, ...`, or as digits of the tile's number."""
    blocks = ctx.launch.blocks
    names = tuple(Declarator(name=var.name, value=_index(blocks.index(var), walk)) for var in used)
    return [Local(dtype=INT32, names=names)] if names else []


def _index(place: int, walk: Walk | None) -> Expr:
    if walk is None:
        return b.local(f"blockIdx.{'xyz'[place]}")
    rest: Expr = walk.tile
    for extent in walk.extents[:place]:
        rest = b.div(rest, extent)
    last = all(b.literal(extent, 1) for extent in walk.extents[place + 1 :])
    return rest if last else b.mod(rest, walk.extents[place])


def used_in_names(ctx: Context, name: str) -> bool:
    """Whether a name of the thread's, such as its warp, is worked out from this one."""
    return any(b.mentions(value, name) for value in ctx.wanted.values())


def _panel_order(ctx: Context, walk: Walk | None) -> list[CStmt]:
    """T.use_swizzle: blocks walk panels of tile rows, so that neighbours in time share operands."""
    order = ctx.launch.order
    assert order is not None
    x, y = ctx.launch.blocks[0], ctx.launch.blocks[1]
    row = order.order == "row"
    across, along = ("y", "x") if row else ("x", "y")
    tile, panel, rows = (ctx.namer.ours(n, f"{n}_of_grid") for n in ("tile", "panel", "panel_rows"))
    grid_along: Expr = b.local(f"gridDim.{along}")
    grid_across: Expr = b.local(f"gridDim.{across}")
    linear: Expr = b.add(b.mul(b.local("blockIdx.y"), b.local("gridDim.x")), b.local("blockIdx.x"))
    number = [Declarator(name=tile, value=linear)]
    if walk is not None:
        wide, high, deep = walk.extents
        grid_along, grid_across = (wide, high) if row else (high, wide)
        number = [Declarator(name=tile, value=b.mod(walk.tile, b.mul(wide, high)))]
        if b.literal(deep, 1):
            ctx.namer.release(tile)
            number, tile = [], walk.tile.name
    across_panel = b.local(ctx.namer.ours("panel_size", "blocks_in_panel"))
    size = b.mul(across_panel, grid_along)
    first = b.mul(b.local(panel), across_panel)
    left = b.sub(grid_across, first)
    rest = b.mod(b.local(tile), size)
    slow, fast = (y, x) if row else (x, y)
    left = left if walk is not None else cast_int(left)
    height = CCall(dtype=INT32, function="min", args=(across_panel, left))
    within = ctx.namer.ours("within", "in_panel")
    if walk is not None:  # both roles say it
        for name in (across_panel.name, panel, rows, within, *(x.name for x in number)):
            ctx.namer.release(name)
    return [
        Local(
            dtype=INT32,
            names=(Declarator(name=across_panel.name, value=const(order.panel)),),
            comments=(
                *order.comments,
                f"T.use_swizzle({order.panel}): blocks that run together share tiles of both operands",
            ),
            remark=f"{'rows' if row else 'columns'} of {'blocks' if walk is None else 'tiles'}",
        ),
        Local(
            dtype=INT32,
            names=(
                *number,
                Declarator(name=panel, value=b.div(b.local(tile), size)),
            ),
        ),
        Local(
            dtype=INT32,
            names=(
                Declarator(name=rows, value=height),
                Declarator(name=within, value=rest),
            ),
        ),
        Local(
            dtype=INT32,
            names=(
                Declarator(name=fast.name, value=b.div(b.local(within), b.local(rows))),
                Declarator(
                    name=slow.name, value=b.add(first, b.mod(b.local(within), b.local(rows)))
                ),
            ),
        ),
    ]


def cast_int(value: Expr) -> Expr:
    """int(value): grid dimensions are unsigned in C."""
    return CCall(dtype=INT32, function="int", args=(value,))
