"""Reductions, scans and atomics (language.md 11, 12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst
from tile2c.transpile.ir.build import conversions
from tile2c.transpile.ir.build.arguments import Arguments
from tile2c.transpile.ir.build.context import Builder, Value, allocated_here
from tile2c.transpile.ir.build.elements import element
from tile2c.transpile.ir.build.regions import essential, is_region, region, shape_text
from tile2c.transpile.ir.build.tiles import check_same_shape
from tile2c.transpile.ir.constants import constant_int, proven_equal
from tile2c.transpile.ir.dtypes import INT32
from tile2c.transpile.ir.expr import Binary, Const, Load, Var, const
from tile2c.transpile.ir.forms import (
    Atomic,
    AtomicOp,
    AtomicTile,
    For,
    Reduce,
    ReduceOp,
    Scan,
    Stmt,
)

if TYPE_CHECKING:
    from tile2c.transpile.ir.expr import Buffer, Expr
    from tile2c.transpile.ir.forms import Region

REDUCTIONS: dict[str, ReduceOp] = {
    "reduce_sum": "sum",
    "reduce_max": "max",
    "reduce_min": "min",
    "reduce_abssum": "abssum",
    "reduce_absmax": "absmax",
    "reduce_bitand": "bitand",
    "reduce_bitor": "bitor",
    "reduce_bitxor": "bitxor",
}
ATOMICS: dict[str, AtomicOp] = {
    "atomic_add": "add",
    "atomic_max": "max",
    "atomic_min": "min",
    "atomic_or": "or",
    "atomic_store": "exchange",
}
SEVERAL = ("atomic_addx2", "atomic_addx4")
ALWAYS_FRESH = ("abssum", "absmax")
ORDERS = ("relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst")


def build_reduce(b: Builder, node: cst.Call, name: str) -> Stmt:
    """`T.reduce_sum(src, dst, dim=, clear=)` and its like."""
    op = REDUCTIONS[name]
    args = Arguments(b, node, f"T.{name}")
    nodes = (args.node_of("src", 0), args.node_of("dst", 1))
    dim = args.whole("dim", 2, -1)
    clear = args.flag("clear", 3, True) or op in ALWAYS_FRESH
    nan_propagate = args.flag("nan_propagate", None, False)
    args.ignore("batch", "annotations")
    args.finish()
    src, dst = region(b, nodes[0]), region(b, nodes[1])
    dim = _dimension(b, f"T.{name}", src, dim, node)
    _check_on_chip(b, f"T.{name}", (src, dst), nodes)
    _check_result(b, f"T.{name}", src, dst, dim, nodes[1])
    for part, operand in ((src, nodes[0]), (dst, nodes[1])):
        dtype = part.buffer.dtype
        if op.startswith("bit") and dtype.is_float:
            b.fail("T2C308", f"T.{name} is for integers and bools, not for {dtype}", operand)
        if not op.startswith("bit") and not (dtype.is_float or dtype.is_integer):
            b.fail("T2C308", f"T.{name} is for numbers, not for {dtype}", operand)
    return Reduce(op=op, src=src, dst=dst, dim=dim, clear=clear, nan_propagate=nan_propagate)


def _dimension(b: Builder, what: str, src: Region, dim: int, node: cst.CSTNode) -> int:
    rank = len(src.shape)
    if not -rank <= dim < rank:
        b.fail(
            "T2C307",
            f"{what} over dimension {dim}, but {src.buffer.name} is {shape_text(src.shape)} here",
            node,
            notes=allocated_here(src.buffer),
        )
    return dim % rank


def _check_on_chip(
    b: Builder, what: str, parts: tuple[Region, ...], nodes: tuple[cst.BaseExpression, ...]
) -> None:
    for part, node in zip(parts, nodes, strict=True):
        if part.buffer.scope == "variable":
            b.fail(
                "T2C306",
                f"{part.buffer.name} is a variable: {what} works on tiles",
                node,
                help=f"{part.buffer.name} = T.alloc_local((1,), T.{part.buffer.dtype})",
            )
        if part.buffer.scope == "global":
            b.fail(
                "T2C306",
                f"{part.buffer.name} is in global memory: {what} works on tiles on the chip",
                node,
                notes=allocated_here(part.buffer),
                help="copy it to a fragment first",
            )


def _check_result(
    b: Builder, what: str, src: Region, dst: Region, dim: int, node: cst.CSTNode
) -> None:
    before, after = src.shape[:dim], src.shape[dim + 1 :]
    rest = (*before, *after)
    got = dst.shape
    kept = len(got) == len(src.shape) and constant_int(got[dim]) == 1
    if kept and all(map(proven_equal, (*got[:dim], *got[dim + 1 :]), rest)):
        return
    if len(got) == len(rest) and all(map(proven_equal, got, rest)):
        return
    wanted, have = essential(rest), essential(got)
    if any(part.point for part in (*src.ranges, *dst.ranges)) and len(wanted) == len(have):
        if all(map(proven_equal, wanted, have)):
            return
    expected = shape_text(rest) if rest else "[1]"
    b.fail(
        "T2C307",
        f"{dst.buffer.name} is {shape_text(got)} here but {what} of {src.buffer.name} "
        f"{shape_text(src.shape)} over dimension {dim} gives {expected}",
        node,
        notes=(*allocated_here(src.buffer), *allocated_here(dst.buffer)),
    )


def build_scan(b: Builder, node: cst.Call, name: str) -> Stmt:
    """`T.cumsum(src, dst, dim=, reverse=)`, `T.cummax`."""
    args = Arguments(b, node, f"T.{name}")
    source = args.node_of("src", 0)
    target = args.find("dst", 1) or source
    dim = args.whole("dim", 2, 0)
    reverse = args.flag("reverse", 3, False)
    args.finish()
    src, dst = region(b, source), region(b, target)
    dim = _dimension(b, f"T.{name}", src, dim, node)
    _check_on_chip(b, f"T.{name}", (src, dst), (source, target))
    check_same_shape(b, f"T.{name}", src, dst, node)
    if len(src.shape) != len(dst.shape):
        b.fail(
            "T2C301",
            f"{src.buffer.name} is {shape_text(src.shape)} here but {dst.buffer.name} is "
            f"{shape_text(dst.shape)}: T.{name} needs equal shapes",
            node,
        )
    return Scan(op="sum" if name == "cumsum" else "max", src=src, dst=dst, dim=dim, reverse=reverse)


def build_atomic(b: Builder, node: cst.Call, name: str) -> Stmt:
    """`T.atomic_add(dst, value)`: one element by each thread, or a tile once."""
    op = ATOMICS[name]
    args = Arguments(b, node, f"T.{name}")
    target, operand = args.node_of("dst", 0), args.node_of("value", 1)
    order = args.text("memory_order", 2, "relaxed")
    args.flag("return_prev", 3, False)  # nobody takes it here
    args.ignore("use_tma")
    args.finish()
    if order not in ORDERS:
        b.fail("T2C242", f"`{order}` is not a memory order: {', '.join(ORDERS)}", node)
    if is_region(b, target) or is_region(b, operand):
        return _atomic_tile(b, op, name, target, operand, node)
    if not isinstance(target, cst.Subscript):
        b.fail("T2C318", f"T.{name} needs an element of a buffer, as in B[i]", target)
    place = element(b, target)
    _check_atomic(b, name, op, place.buffer, target)
    value = args_value(b, operand, place.buffer, node)
    return Atomic(op=op, buffer=place.buffer, index=place.index, value=value, order=order)


def atomic_value(b: Builder, node: cst.Call, name: str) -> Value:
    """`T.atomic_add(B[i], x, return_prev=True)` inside an expression, `T.atomic_load(B[i])`.

    The atomic becomes a statement in front; its old value is the expression's.
    """
    args = Arguments(b, node, f"T.{name}")
    load = name == "atomic_load"
    if not load and name not in ATOMICS:
        b.fail("T2C318", f"T.{name} has no value", node)
    target = args.node_of("src" if load else "dst", 0)
    operand = None if load else args.node_of("value", 1)
    order = args.text("memory_order", 1 if load else 2, "seq_cst" if load else "relaxed")
    previous = load or args.flag("return_prev", 3, False)
    args.ignore("use_tma")
    args.finish()
    if not previous:
        b.fail("T2C318", f"T.{name} has no value", node, help="return_prev=True gives the old one")
    if is_region(b, target) or not isinstance(target, cst.Subscript):
        b.fail("T2C318", f"T.{name} gives the old value of one element, as of B[i]", target)
    if b.in_parallel and "while" in b.loops:
        b.fail("T2C318", f"T.{name} in a loop that waits", node)
    place = element(b, target)
    op: AtomicOp = "add" if load else ATOMICS[name]
    _check_atomic(b, name, op, place.buffer, target)
    dtype = place.buffer.dtype
    value: Expr = Const(dtype=dtype, value=0.0 if dtype.is_float else 0)
    if operand is not None:
        value = args_value(b, operand, place.buffer, node)
    result = Var(dtype=dtype, name=b.names.made_up("old"), kind="temporary", span=b.span(node))
    b.by_thread.add(result.name)
    b.pending.append(
        Atomic(
            op=op, buffer=place.buffer, index=place.index, value=value, order=order,
            result=result, span=b.span(node),
        )
    )  # fmt: skip
    return Value(result)


def build_several(b: Builder, node: cst.Call, name: str) -> Stmt:
    """`T.atomic_addx2(dst, src)`: as many neighbours, each one atomic."""
    count = int(name[-1])
    args = Arguments(b, node, f"T.{name}")
    nodes = args.node_of("dst", 0), args.node_of("value", 1)
    order = args.text("memory_order", 2, "relaxed")
    args.ignore("use_tma", "return_prev")
    args.finish()
    places = [_first_of(b, part, name, count) for part in nodes]
    (dst, at), (src, where) = places
    _check_atomic(b, name, "add", dst, nodes[0])
    lane = Var(dtype=INT32, name=b.names.made_up("e"), kind="loop")
    index, source = _along(at, lane), _along(where, lane)
    value: Value = Value(Load(dtype=src.dtype, buffer=src, index=source, span=b.span(nodes[1])))
    update = Atomic(
        op="add", buffer=dst, index=index, value=conversions.convert(b, value, dst.dtype, nodes[1]),
        order=order, span=b.span(node),
    )  # fmt: skip
    return For(kind="unroll", var=lane, start=const(0), stop=const(count), body=(update,))


def _first_of(
    b: Builder, node: cst.BaseExpression, name: str, count: int
) -> tuple[Buffer, tuple[Expr, ...]]:
    """Buffer and first element of `count` neighbours."""
    if is_region(b, node):
        part = region(b, node)
        if constant_int(part.ranges[-1].extent) != count or any(
            constant_int(other.extent) != 1 for other in part.ranges[:-1]
        ):
            b.fail(
                "T2C318", f"T.{name} takes {count} neighbours, not {shape_text(part.shape)}", node
            )
        return part.buffer, part.starts
    if not isinstance(node, cst.Subscript):
        b.fail("T2C318", f"T.{name} needs {count} elements of a buffer from one on", node)
    place = element(b, node)
    return place.buffer, place.index


def _along(index: tuple[Expr, ...], lane: Var) -> tuple[Expr, ...]:
    return (*index[:-1], Binary(dtype=index[-1].dtype, op="+", a=index[-1], b=lane))


def args_value(b: Builder, node: cst.BaseExpression, buffer: Buffer, at: cst.CSTNode) -> Expr:
    """A number in the type of the buffer that takes it."""
    from tile2c.transpile.ir.build.expressions import expression

    return conversions.convert(b, expression(b, node), buffer.dtype, at)


def _atomic_tile(
    b: Builder,
    op: AtomicOp,
    name: str,
    target: cst.BaseExpression,
    operand: cst.BaseExpression,
    node: cst.Call,
) -> Stmt:
    if not is_region(b, operand) and not isinstance(operand, cst.Subscript):
        b.fail(
            "T2C318",
            f"T.{name} of a number on a whole tile: every thread would do it for every element",
            node,
            help="name one element, as in B[0]",
        )
    src, dst = region(b, operand), region(b, target)
    _check_atomic(b, name, op, dst.buffer, target)
    check_same_shape(b, f"T.{name}", src, dst, node)
    return AtomicTile(op=op, src=src, dst=dst)


def _check_atomic(b: Builder, name: str, op: AtomicOp, buffer: Buffer, node: cst.CSTNode) -> None:
    if buffer.scope not in ("global", "shared"):
        b.fail(
            "T2C318",
            f"{buffer.name} is private to the threads: T.{name} is for global and shared memory",
            node,
            notes=allocated_here(buffer),
        )
    if buffer.dtype.bits < 16 or (op == "or" and not buffer.dtype.is_integer):
        b.fail("T2C318", f"there is no T.{name} on {buffer.dtype}", node)
