"""Statements without effect on results: dropped, or kept as facts about the launch."""

from __future__ import annotations

import libcst as cst
from tile2c.transpile.ir.build import conversions
from tile2c.transpile.ir.build.arguments import Arguments
from tile2c.transpile.ir.build.context import Builder, Value
from tile2c.transpile.ir.expr import Buffer, Compare, Const, Expr, Var
from tile2c.transpile.ir.forms import BlockOrder
from tile2c.transpile.ir.walk import loads, variables

HINTS = frozenset(
    "annotate_l2_hit_ratio annotate_restrict_buffers annotate_min_blocks_per_sm "
    "annotate_compile_flags annotate_pass_configs annotate_ws_schedule func_attr attr "
    "no_set_max_nreg disable_warp_group_reg_alloc pdl_trigger pdl_sync".split()
)


def assume(b: Builder, node: cst.Call) -> None:
    """`T.assume(condition)`: kept where it speaks of sizes and parameters alone, or of these and of
    names bound in the same list of statements, if whoever calls or starts a block comes by it.

    Elsewhere (under a condition, in a loop, behind a way out) it may hold there alone, and is kept
    only as the least value of a number that is read there.
    """
    args = Arguments(b, node, "T.assume")
    value = args.value("condition", 0)
    args.finish()
    expr = conversions.condition(b, value, node)
    if any(loads(expr)):
        return
    kinds = {var.kind for var in variables(expr)}
    if kinds <= {"size", "scalar"}:
        if _always(b):
            b.assumptions.append(expr)
    elif kinds <= {"size", "scalar", "block", "temporary"}:
        here = [bound.expr for bound in b.scopes.levels[-1].values() if isinstance(bound, Value)]
        if not all(var in here for var in variables(expr) if var.kind == "temporary"):
            return
        if _in_every_block(b) or (not b.jumps and _least_of_number(b, expr)):
            b.promises.append(expr)


def _always(b: Builder) -> bool:
    """Whether every call comes by: the launch itself may stand under a condition."""
    depth = len(b.scopes.levels)
    if b.launch_level is None:
        return depth == b.kernel_level
    return b.launch_level == b.kernel_level + 1 and _in_every_block(b)


def _in_every_block(b: Builder) -> bool:
    return len(b.scopes.levels) == b.launch_level and "return" not in b.jumps


def _least_of_number(b: Builder, expr: Expr) -> bool:
    """`at >= 0`, where `at` is what a tensor holds: nothing about other names follows from that."""
    return (
        isinstance(expr, Compare)
        and expr.op in (">=", ">")
        and isinstance(expr.a, Var)
        and expr.a.name in b.numbers_read
        and isinstance(expr.b, Const)
    )


def layout(b: Builder, node: cst.Call) -> None:
    """`T.annotate_layout({buffer: layout})`: a hint on the chip, but a permuted global tensor."""
    for arg in node.args:
        if not isinstance(arg.value, cst.Dict):
            continue
        for item in arg.value.elements:
            key = item.key if isinstance(item, cst.DictElement) else None
            found = b.scopes.find(key.value) if isinstance(key, cst.Name) else None
            if isinstance(found, Buffer) and found.scope == "global":
                b.fail(
                    "T2C231",
                    f"{found.name} is a global tensor: a layout that permutes it is not supported",
                    key,
                )


def swizzle(b: Builder, node: cst.Call, comments: tuple[str, ...]) -> None:
    """`T.use_swizzle(panel_size, order=, enable=)`."""
    args = Arguments(b, node, "T.use_swizzle")
    panel = args.whole("panel_size", 0)
    order = args.text("order", 1, "row")
    enabled = args.flag("enable", 2, True)
    args.finish()
    if order not in ("row", "column"):
        b.fail("T2C242", f"`{order}` is not an order of blocks: row or column", node)
    if panel <= 0:
        b.fail("T2C242", f"a panel of {panel} blocks: it has to be positive", node)
    if enabled:
        b.swizzle = BlockOrder(
            panel=panel, order="row" if order == "row" else "column", comments=comments
        )
