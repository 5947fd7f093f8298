"""Tile statements that move or multiply: copy, fill, gemm, transpose (language.md 9, 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst
from tile2c.transpile.diagnostics import Note
from tile2c.transpile.ir.build import conversions
from tile2c.transpile.ir.build.arguments import Arguments, language_name
from tile2c.transpile.ir.build.context import Builder, Value, allocated_here
from tile2c.transpile.ir.build.elements import element
from tile2c.transpile.ir.build.expressions import expression
from tile2c.transpile.ir.build.regions import (
    essential,
    is_region,
    region,
    shape_text,
    without_leading_ones,
)
from tile2c.transpile.ir.constants import proven_equal
from tile2c.transpile.ir.dtypes import BOOL, INT32, DType
from tile2c.transpile.ir.expr import Binary, Buffer, Const, Expr, Load, Var
from tile2c.transpile.ir.forms import Copy, Fill, Gemm, Parallel, Region, Stmt, Store

if TYPE_CHECKING:
    from typing import Literal

    Policy = Literal["square", "full_row", "full_col"]

COPY_HINTS = ("coalesced_width", "disable_tma", "eviction_policy", "prefer_instruction",
              "annotations", "loop_layout")  # fmt: skip
POLICIES: dict[str, Policy] = {
    "GemmWarpPolicy.Square": "square",
    "GemmWarpPolicy.FullRow": "full_row",
    "GemmWarpPolicy.FullCol": "full_col",
}
FLOATS_8 = {"float8_e4m3fn", "float8_e5m2"}  # the types that one gemm may mix

ACCUMULATORS: dict[str, tuple[str, ...]] = {
    "float16": ("float32", "float16"),
    "bfloat16": ("float32", "bfloat16"),
    "float32": ("float32",),
    "tfloat32": ("float32",),
    "float64": ("float64",),
    "int8": ("int32",),
    "uint8": ("int32",),
    "int4": ("int32",),
    "uint4": ("int32",),
    "float8_e4m3fn": ("float32",),
    "float8_e5m2": ("float32",),
    "float8_e4m3fnuz": ("float32",),
    "float8_e5m2fnuz": ("float32",),
}


def build_copy(b: Builder, node: cst.Call) -> Stmt:
    """`T.copy(src, dst)`; two single elements make an assignment."""
    args = Arguments(b, node, "T.copy")
    source, target = args.node_of("src", 0), args.node_of("dst", 1)
    args.ignore(*COPY_HINTS)
    args.finish()
    if not is_region(b, source) and not is_region(b, target):
        return _assign(b, source, target)
    src, dst = region(b, source), region(b, target)
    check_same_shape(b, "T.copy", src, dst, node)
    _check_types(b, "T.copy", src, dst, node)
    return Copy(src=src, dst=dst)


def _assign(b: Builder, source: cst.BaseExpression, target: cst.BaseExpression) -> Stmt:
    value = expression(b, source)
    if isinstance(target, cst.Subscript):
        place = element(b, target)
        buffer, index = place.buffer, place.index
    else:
        found = b.scopes.find(target.value) if isinstance(target, cst.Name) else None
        if not isinstance(found, Buffer):
            b.fail("T2C246", "a buffer is needed here", target)
        buffer, index = found, ()
    stored = conversions.convert(b, value, buffer.dtype, target)
    return Store(buffer=buffer, index=index, value=stored)


def check_same_shape(b: Builder, what: str, src: Region, dst: Region, node: cst.CSTNode) -> None:
    """Extents of 1 aside, both regions have the same extents."""
    left, right = essential(src.shape), essential(dst.shape)
    if len(left) == len(right) and all(map(proven_equal, left, right)):
        return
    b.fail(
        "T2C301",
        f"{src.buffer.name} is {shape_text(src.shape)} here but {dst.buffer.name} is "
        f"{shape_text(dst.shape)}: {what} needs equal shapes",
        node,
        notes=(*allocated_here(src.buffer), *allocated_here(dst.buffer)),
        help="name the part with slices, as in A[i:i + 64, 0:32]",
    )


def _check_types(b: Builder, what: str, src: Region, dst: Region, node: cst.CSTNode) -> None:
    types = (src.buffer.dtype, dst.buffer.dtype)
    if types[0] != types[1] and any(dtype.kind == "handle" for dtype in types):
        b.fail("T2C240", f"{what} from {types[0]} to {types[1]}", node)


def build_fill(b: Builder, node: cst.Call, name: str) -> Stmt:
    """`T.fill(dst, value)`, `T.clear(dst)`; one element or a variable makes an assignment."""
    args = Arguments(b, node, f"T.{name}")
    target = args.node_of("dst", 0)
    number = args.value("value", 1) if name == "fill" else None
    args.finish()
    if is_region(b, target):
        dst = region(b, target)
        value = _filled(b, number, dst.buffer.dtype, node)
        return Fill(dst=dst, value=value)
    found = b.scopes.find(target.value) if isinstance(target, cst.Name) else None
    if isinstance(found, Buffer):
        return Store(buffer=found, index=(), value=_filled(b, number, found.dtype, node))
    if not isinstance(target, cst.Subscript):
        b.fail("T2C246", f"T.{name} needs a buffer", target)
    place = element(b, target)
    value = _filled(b, number, place.buffer.dtype, node)
    return Store(buffer=place.buffer, index=place.index, value=value)


def _filled(b: Builder, value: Value | None, dtype: DType, node: cst.CSTNode) -> Expr:
    if value is None:
        return Const(dtype=dtype, value=0.0 if dtype.is_float else 0, span=b.span(node))
    return conversions.convert(b, value, dtype, node)


def build_gemm(b: Builder, node: cst.Call, name: str) -> Stmt:
    """`T.gemm(A, B, C, ...)`."""
    args = Arguments(b, node, f"T.{name}")
    nodes = [args.node_of(operand, place) for place, operand in enumerate("ABC")]
    transpose_a = args.flag("transpose_A", 3, False)
    transpose_b = args.flag("transpose_B", 4, False)
    policy = _policy(b, args)
    clear_node = args.find("clear_accum", 6)
    args.ignore("k_pack", "wg_wait", "mbar", "annotations")
    args.finish()
    left, right, target = (region(b, operand) for operand in nodes)
    _check_scopes(b, left, right, target, nodes)
    _check_gemm_types(b, left, right, target, nodes)
    _check_gemm_shapes(b, (left, right, target), (transpose_a, transpose_b), nodes)
    clear: Expr = Const(dtype=BOOL, value=False, span=b.span(node))
    if clear_node is not None:
        clear = conversions.condition(b, expression(b, clear_node), clear_node)
    return Gemm(
        a=left, b=right, c=target, transpose_a=transpose_a, transpose_b=transpose_b,
        policy=policy, clear=clear, asynchronous=name == "wgmma_gemm",
    )  # fmt: skip


def _policy(b: Builder, args: Arguments) -> Policy:
    node = args.find("policy", 5)
    if node is None:
        return "square"
    found = POLICIES.get(language_name(node) or "")
    if found is None:
        b.fail("T2C242", "a gemm's policy is T.GemmWarpPolicy.Square, FullRow or FullCol", node)
    return found


def _check_scopes(
    b: Builder, left: Region, right: Region, target: Region, nodes: list[cst.BaseExpression]
) -> None:
    for operand, node in ((left, nodes[0]), (right, nodes[1])):
        if operand.buffer.scope not in ("shared", "fragment"):
            b.fail(
                "T2C306",
                f"{operand.buffer.name} is in {_memory(operand.buffer)}: operands of a gemm are in "
                "shared memory or fragments",
                node,
                notes=allocated_here(operand.buffer),
                help=f"copy a tile of {operand.buffer.name} to shared memory first",
            )
    if target.buffer.scope != "fragment":
        b.fail(
            "T2C306",
            f"{target.buffer.name} is in {_memory(target.buffer)}: a gemm sums up in a fragment",
            nodes[2],
            notes=allocated_here(target.buffer),
            help=f"{target.buffer.name} = T.alloc_fragment(shape, dtype)",
        )


def _memory(buffer: Buffer) -> str:
    words = {"global": "global memory", "shared": "shared memory", "local": "private memory"}
    return words.get(buffer.scope, f"a {buffer.scope}")


def _check_gemm_types(
    b: Builder, left: Region, right: Region, target: Region, nodes: list[cst.BaseExpression]
) -> None:
    a, c, sums = left.buffer.dtype, right.buffer.dtype, target.buffer.dtype
    if a != c and not {a.name, c.name} <= FLOATS_8:
        b.fail(
            "T2C305",
            f"{left.buffer.name} holds {a} but {right.buffer.name} holds {c}: gemm needs one type",
            nodes[1],
            notes=(*allocated_here(left.buffer), *allocated_here(right.buffer)),
            help="copy one of them into a buffer of the other type first",
        )
    allowed = ACCUMULATORS.get(a.name, ())
    if sums.name not in allowed:
        choices = " or ".join(allowed) or "nothing"
        b.fail(
            "T2C305",
            f"products of {a} sum up in {choices}, but {target.buffer.name} holds {sums}",
            nodes[2],
            notes=allocated_here(target.buffer),
        )


def _check_gemm_shapes(
    b: Builder,
    operands: tuple[Region, Region, Region],
    transposed: tuple[bool, bool],
    nodes: list[cst.BaseExpression],
) -> None:
    shapes = [without_leading_ones(operand.shape, 2) for operand in operands]
    for operand, shape, node in zip(operands, shapes, nodes, strict=True):
        if len(shape) != 2:
            b.fail(
                "T2C304",
                f"{operand.buffer.name} is {shape_text(operand.shape)} here: a gemm needs matrices",
                node,
                notes=allocated_here(operand.buffer),
            )
    (m, k), (k_b, n), (m_c, n_c) = shapes
    if transposed[0]:
        m, k = k, m
    if transposed[1]:
        k_b, n = n, k_b
    names = [operand.buffer.name for operand in operands]
    texts = [shape_text(shape) for shape in shapes]
    for one, other, letter, x, y in (
        (k, k_b, "K", 0, 1), (m, m_c, "M", 2, 0), (n, n_c, "N", 2, 1),
    ):  # fmt: skip
        if proven_equal(one, other):
            continue
        b.fail(
            "T2C304",
            f"{names[x]} is {texts[x]} but gemm needs the same {letter} as {names[y]}, "
            f"which is {texts[y]}{_as_read(y, transposed)}",
            nodes[x],
            notes=(*allocated_here(operands[x].buffer), *allocated_here(operands[y].buffer)),
            help=_gemm_help(letter, names, x, y),
        )


def _as_read(operand: int, transposed: tuple[bool, bool]) -> str:
    return " and is transposed" if operand < 2 and transposed[operand] else ""


def _gemm_help(letter: str, names: list[str], x: int, y: int) -> str:
    if letter == "K":
        return f"make both K equal, or pass transpose_B=True if {names[1]} holds [N, K]"
    return f"give {names[x]} and {names[y]} the same {letter}"


def build_transpose(b: Builder, node: cst.Call) -> Stmt:
    """`T.transpose(src, dst)`: a parallel loop with dst[j, i] = src[i, j]."""
    args = Arguments(b, node, "T.transpose")
    nodes = (args.node_of("src", 0), args.node_of("dst", 1))
    args.finish()
    src, dst = region(b, nodes[0]), region(b, nodes[1])
    rows = [axis for axis, part in enumerate(src.ranges) if not part.point]
    columns = [axis for axis, part in enumerate(dst.ranges) if not part.point]
    turned = dst.shape[::-1]
    if len(rows) != 2 or len(columns) != 2 or not all(map(proven_equal, src.shape, turned)):
        b.fail(
            "T2C301",
            f"{src.buffer.name} is {shape_text(src.shape)} here but {dst.buffer.name} is "
            f"{shape_text(dst.shape)}: T.transpose needs one to be the other turned",
            node,
            notes=tuple(Note(n.text, n.span) for n in allocated_here(dst.buffer)),
        )
    i, j = (Var(dtype=INT32, name=b.names.made_up(word), kind="loop") for word in "ij")
    place = _shifted(src, dict(zip(rows, (i, j), strict=True)))
    value: Expr = Load(dtype=src.buffer.dtype, buffer=src.buffer, index=place)
    value = conversions.convert(b, Value(value), dst.buffer.dtype, node)
    index = _shifted(dst, dict(zip(columns, (j, i), strict=True)))
    store = Store(buffer=dst.buffer, index=index, value=value, span=b.span(node))
    return Parallel(loop_vars=(i, j), extents=src.shape, body=(store,))


def _shifted(part: Region, steps: dict[int, Var]) -> tuple[Expr, ...]:
    """Index of an element of a region: its start plus the step along each dimension."""
    found: list[Expr] = []
    for axis, bounds in enumerate(part.ranges):
        step = steps.get(axis)
        if step is None:
            found.append(bounds.start)
        elif isinstance(bounds.start, Const) and bounds.start.value == 0:
            found.append(step)
        else:
            found.append(Binary(dtype=bounds.start.dtype, op="+", a=bounds.start, b=step))
    return tuple(found)
