"""Entry points of one launch: parameters, the aligned and the general one, how they are launched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile2c.transpile.ir.dtypes import BOOL, INT32
from tile2c.transpile.ir.expr import Const, Expr, const
from tile2c.transpile.lower import build as b
from tile2c.transpile.lower.plan import Body, CCall, CStmt, Do, Entry, EntryParam, LaunchPlan
from tile2c.transpile.lower.simt.context import Context
from tile2c.transpile.lower.simt.kernel_head import used_in_names
from tile2c.transpile.lower.simt.uses import global_uses, names_in
from tile2c.transpile.lower.simt.values import Place, convert

if TYPE_CHECKING:
    from tile2c.transpile.render.expressions import CPrinter


def entry_params(ctx: Context, body: tuple[CStmt, ...], only_used: bool) -> tuple[EntryParam, ...]:
    """Tensors, scalars, scratch tensors and sizes that a kernel takes, in this order."""
    _, writes = global_uses(ctx.launch.body)
    from tile2c.transpile.render.expressions import CPrinter

    printer = CPrinter(ctx.target.dialect)
    found = []
    for param in ctx.function.params:
        if param.tensor is not None:
            shape = ", ".join(printer(b.in_words(extent)) for extent in param.tensor.shape)
            found.append(
                EntryParam(
                    name=param.name,
                    kind="tensor",
                    dtype=param.tensor.dtype,
                    written=param.name in writes,
                    remark=f"[{shape}]",
                )
            )
        elif param.scalar is not None:
            found.append(EntryParam(name=param.name, kind="scalar", dtype=param.scalar.dtype))
    names = names_in(body)
    if only_used:
        found = [param for param in found if param.name in names]
    for buffer in ctx.launch.buffers:
        if buffer.scope == "global" and buffer.name in names:
            found.append(
                EntryParam(
                    name=buffer.name,
                    kind="workspace",
                    dtype=buffer.dtype,
                    remark=f"[{', '.join(printer(b.in_words(e)) for e in buffer.shape)}], scratch",
                )
            )
    for size in ctx.function.sizes:
        if size.name in names or used_in_names(ctx, size.name):
            found.append(EntryParam(name=size.name, kind="size", dtype=size.dtype))
    return tuple(found)


def entries(
    ctx: Context,
    body: tuple[CStmt, ...],
    params: tuple[EntryParam, ...],
    dynamic: int,
    conditions: tuple[str, ...],
) -> tuple[tuple[Body, ...], tuple[Entry, ...], tuple[LaunchPlan, ...]]:
    """The function's body, the entry points that share it, and when which is launched.

    `dynamic`: bytes of dynamic shared memory; `conditions`: when wide accesses are aligned.
    """
    name, threads = ctx.function.name, ctx.launch.threads
    blocks = grid(ctx)

    def launch(entry: str, when: str | None) -> LaunchPlan:
        return LaunchPlan(
            group=0, when=when, entry=entry, grid=blocks, block=threads, shared_bytes=dynamic
        )

    if not ctx.variant:
        entry = Entry(name=name, params=params, threads=threads, body=body)
        return (), (entry,), (launch(name, None),)
    shared = ctx.namer.ours(f"{name}_block", f"{name}_body")
    from tile2c.transpile.render.header import conditions_in_words

    tensors = {param.name for param in params if param.kind == "tensor"}
    words = conditions_in_words(conditions, tensors)
    found = []
    for suffix, aligned in (("", True), ("_any", False)):
        call = CCall(
            dtype=INT32,
            function=shared,
            template=(Const(dtype=BOOL, value=aligned),),
            args=tuple(b.local(param.name, param.dtype) for param in params),
        )
        comment = (
            f"Wide accesses stay aligned: {words}."
            if aligned
            else "Any sizes and addresses: element by element where rows may start anywhere."
        )
        found.append(
            Entry(
                name=f"{name}{suffix}",
                params=params,
                threads=threads,
                body=(Do(call=call),),
                comments=(comment,),
            )
        )
    told = "What a block does; `aligned`: rows start where wide accesses may."
    whole = Body(
        name=shared, template=("bool aligned",), params=params, body=body, comments=(told,)
    )
    launches = (launch(name, " and ".join(conditions)), launch(f"{name}_any", None))
    return (whole,), tuple(found), launches


def aligned_pitches(ctx: Context) -> tuple[str, ...]:
    """The conditions on sizes under which rows start where wide accesses may."""
    from tile2c.transpile.render.expressions import CPrinter

    printer = CPrinter(ctx.target.dialect)
    return tuple(multiple_of(printer, *pitch) for pitch in ctx.aligned_pitches.items())


def multiple_of(printer: CPrinter, stride: Expr, unit: int, sign: str = "==") -> str:
    """The condition that a stride is a multiple of a number of elements; `sign` `!=`: that it is none."""
    return f"{printer(b.mod(b.for_host(stride), const(unit)))} {sign} 0"


def grid(ctx: Context) -> tuple[Expr, Expr, Expr]:
    """The number of blocks in x, y and z, as the host writes it."""
    place = Place(values={})
    extents = [convert(ctx, b.for_host(extent), place) for extent in ctx.launch.grid]
    extents += [const(1)] * (3 - len(extents))
    return extents[0], extents[1], extents[2]


def launch_note(ctx: Context, dynamic: int, extents: tuple[Expr, Expr, Expr] | None = None) -> str:
    """Grid, block and dynamic shared memory on one line of the file's head."""
    from tile2c.transpile.render.expressions import CPrinter

    printer = CPrinter(ctx.target.dialect)
    shown = grid(ctx)[: len(ctx.launch.grid)] if extents is None else extents[:1]
    blocks = ", ".join(printer(b.for_host(extent)) for extent in shown)
    x, y, z = ctx.launch.threads
    block = str(x) if (y, z) == (1, 1) else f"({x}, {y}, {z})"
    shared = f"{dynamic} bytes of dynamic shared memory" if dynamic else "no dynamic shared memory"
    return f"grid ({blocks}), block {block}, {shared}"
