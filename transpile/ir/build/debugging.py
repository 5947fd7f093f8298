"""`T.device_assert` and `T.print` (language.md 18)."""

from __future__ import annotations

import libcst as cst
from tile2c.transpile.ir.build import conversions
from tile2c.transpile.ir.build.arguments import Arguments
from tile2c.transpile.ir.build.context import Builder
from tile2c.transpile.ir.build.expressions import expression
from tile2c.transpile.ir.build.regions import is_region, region
from tile2c.transpile.ir.build.threads import thread_index
from tile2c.transpile.ir.constants import constant_int
from tile2c.transpile.ir.dtypes import BOOL, INT32
from tile2c.transpile.ir.expr import Binary, Compare, Expr, Load, Logical, Var, const
from tile2c.transpile.ir.forms import Assert, For, If, Parallel, Print, Region, Stmt

LOOP_NAMES = ("i", "j", "k", "m", "n", "p", "q", "r")  # more dimensions than a tensor has


def build_assert(b: Builder, node: cst.Call) -> Stmt:
    """`T.device_assert(condition, msg="")`."""
    args = Arguments(b, node, "T.device_assert")
    value = args.value("condition", 0)
    message = args.text("msg", 1, "")
    args.ignore("no_stack_info")
    args.finish()
    return Assert(condition=conversions.condition(b, value, node), message=message)


def build_print(b: Builder, node: cst.Call) -> list[Stmt]:
    """`T.print(obj, msg="")`: a number by every thread; an array by its elements.

    A shared array is printed by one thread, a fragment by the threads that hold it, each element
    once; a private or global one by every thread.
    """
    args = Arguments(b, node, "T.print")
    what = args.node_of("obj", 0)
    message = args.text("msg", 1, "")
    args.ignore("warp_group_id", "warp_id")
    args.finish()
    if not is_region(b, what):
        value = expression(b, what)
        shown = b.kernel.module.code_for_node(what)
        return [Print(label=message or shown, value=conversions.settle(b, value, what))]
    whole = region(b, what)
    if b.in_parallel:
        b.fail(
            "T2C314",
            f"T.print of the array {whole.buffer.name} stands inside T.Parallel",
            node,
            help=f"print one element, as in T.print({whole.buffer.name}[...])",
        )
    return [_elements(b, whole, f"{message}: {whole.buffer.name}" if message else "", node)]


def _elements(b: Builder, whole: Region, label: str, node: cst.Call) -> Stmt:
    """The loops over an array's elements, run by the threads that the kind of memory asks for."""
    buffer = whole.buffer
    loop_vars = tuple(
        Var(dtype=INT32, name=b.names.made_up(name), kind="loop", author=name)
        for name, _ in zip(LOOP_NAMES, whole.ranges, strict=False)
    )
    index = tuple(
        part.start
        if constant_int(part.extent) == 1
        else var
        if constant_int(part.start) == 0
        else Binary(dtype=INT32, op="+", a=part.start, b=var)
        for var, part in zip(loop_vars, whole.ranges, strict=True)
    )
    value = Load(dtype=buffer.dtype, buffer=buffer, index=index)
    text = label or buffer.name
    body: tuple[Stmt, ...] = (Print(label=text, value=value, index=index, span=b.span(node)),)
    loops = [
        (var, part.extent)
        for var, part in zip(loop_vars, whole.ranges, strict=True)
        if constant_int(part.extent) != 1
    ]
    if buffer.scope == "fragment" and loops:
        names, extents = zip(*loops, strict=True)
        return Parallel(loop_vars=names, extents=extents, body=body)
    for var, extent in reversed(loops):
        body = (For(kind="serial", var=var, start=const(0), stop=extent, body=body),)
    if buffer.scope == "shared":
        return If(condition=_first_thread(b, node), then=body)
    (only,) = body
    return only


def _first_thread(b: Builder, node: cst.Call) -> Expr:
    """`tx == 0`, and the other dimensions where the block has them."""
    found: Expr | None = None
    for dim, extent in enumerate(b.threads):
        if dim and extent == 1:
            continue
        here = Compare(dtype=BOOL, op="==", a=thread_index(b, dim, None, node), b=const(0))
        found = here if found is None else Logical(dtype=BOOL, op="and", a=found, b=here)
    assert found is not None
    return found
