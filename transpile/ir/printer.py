"""The tile IR as text (`--emit ir`): one statement a line, types where they are not obvious."""

from __future__ import annotations

import math
from typing import assert_never, cast

from tile2c.transpile.ir import forms
from tile2c.transpile.ir.expr import (
    AnyExpr,
    Binary,
    Buffer,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Logical,
    Reinterpret,
    Select,
    Unary,
    Var,
)
from tile2c.transpile.ir.forms import AnyStmt, Function, Launch, Region, Stmt

WIDTH = 100
INDENT = "    "
PRECEDENCE = {
    "or": 1, "and": 2, "not": 3, "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4,
    "|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "//": 10, "%": 10,
}  # fmt: skip
UNARY = 11
ATOM = 12


def print_function(function: Function) -> str:
    """The whole function; the same function gives the same text."""
    lines = [f"# {line}".rstrip() for line in function.comments]
    if function.summary and function.summary not in function.comments:
        lines += [f"# {line}" for line in function.summary.splitlines() if line]
    lines.append(f"function {function.name}")
    for size in function.sizes:
        lines.append(f"{INDENT}size {size.name}: {size.dtype}")
    for value in function.constants:
        lines.append(f"{INDENT}constant {value.name}: {value.dtype} = {_number(value.value)}")
    for param in function.params:
        if param.tensor is not None:
            lines.append(f"{INDENT}tensor {_declaration(param.tensor)}")
        elif param.scalar is not None:
            lines.append(f"{INDENT}scalar {param.name}: {param.scalar.dtype}")
    for assumption in function.assumptions:
        lines.append(f"{INDENT}assume {expression_text(assumption)}")
    lines += [f"{INDENT}source {text!r}" for text in function.sources]
    for launch in function.launches:
        lines += ["", *_launch(launch)]
    return "\n".join(lines) + "\n"


def _launch(launch: Launch) -> list[str]:
    lines = _comments(launch.comments, INDENT)
    grid = ", ".join(
        f"{var.name} < {expression_text(extent)}"
        for var, extent in zip(launch.blocks, launch.grid, strict=True)
    )
    threads = " x ".join(str(count) for count in launch.threads)
    lines += _wrapped(f"{INDENT}launch ({grid}) threads {threads}")
    inner = INDENT * 2
    if launch.when is not None:
        lines += _wrapped(f"{inner}when {expression_text(launch.when)}")
    if launch.cluster != (1, 1, 1):
        lines.append(f"{inner}cluster {' x '.join(map(str, launch.cluster))}")
    if launch.order is not None:
        lines += _comments(launch.order.comments, inner)
        lines.append(f"{inner}order {launch.order.order} panels of {launch.order.panel}")
    for dim, var in zip("xyz", launch.thread_vars, strict=False):
        lines.append(f"{inner}thread.{dim} is {var.name}")
    for promise in launch.promises:
        lines += _wrapped(f"{inner}assume {expression_text(promise)}")
    lines += [f"{inner}view {_declaration(view)}" for view in launch.views]
    for buffer in launch.buffers:
        lines += _comments(buffer.comments, inner)
        remark = f"  # {buffer.remark}" if buffer.remark else ""
        lines += _wrapped(f"{inner}{buffer.scope} {_declaration(buffer)}{remark}")
    for barriers in launch.barriers:
        lines += _comments(barriers.buffer.comments, inner)
        counts = ", ".join(map(str, barriers.counts))
        lines += _wrapped(f"{inner}barrier {barriers.buffer.name} arrivals [{counts}]")
    lines += body_lines(launch.body, inner)
    return lines


def _declaration(buffer: Buffer) -> str:
    shape = ", ".join(expression_text(extent) for extent in buffer.shape)
    text = f"{buffer.name}[{shape}]: {buffer.dtype}"
    if buffer.strides is not None:
        text += f" strides [{', '.join(expression_text(stride) for stride in buffer.strides)}]"
    return text


# ---- statements


def body_lines(body: tuple[Stmt, ...], indent: str = "") -> list[str]:
    """Lines of a list of statements."""
    lines: list[str] = []
    for stmt in body:
        lines += _comments(stmt.comments, indent)
        remark = f"  # {stmt.remark}" if stmt.remark else ""
        lines += _wrapped(f"{indent}{statement_text(stmt)}{remark}")
        lines += _inner(stmt, indent)
    return lines


def _inner(stmt: Stmt, indent: str) -> list[str]:
    node = cast(AnyStmt, stmt)
    match node:
        case forms.Parallel() | forms.For() | forms.Pipelined() | forms.While():
            return body_lines(node.body, indent + INDENT)
        case forms.If():
            lines = body_lines(node.then, indent + INDENT)
            if node.orelse:
                lines += [f"{indent}else", *body_lines(node.orelse, indent + INDENT)]
            return lines
        case _:
            return []


def statement_text(stmt: Stmt) -> str:
    """The first line of a statement, without what is inside it."""
    node = cast(AnyStmt, stmt)
    text = expression_text
    match node:
        case forms.Copy():
            return f"copy {region_text(node.dst)} <- {region_text(node.src)}"
        case forms.Fill():
            return f"fill {region_text(node.dst)} <- {text(node.value)}"
        case forms.Gemm():
            return _gemm(node)
        case forms.Reduce():
            how = "" if node.clear else " with its old value"
            how += " keeping NaN" if node.nan_propagate else ""
            parts = f"{region_text(node.dst)} <- {region_text(node.src)}"
            return f"reduce.{node.op} {parts} over {node.dim}{how}"
        case forms.Scan():
            how = " from the end" if node.reverse else ""
            parts = f"{region_text(node.dst)} <- {region_text(node.src)}"
            return f"scan.{node.op} {parts} along {node.dim}{how}"
        case forms.Parallel():
            loops = ", ".join(
                f"{var.name} < {text(extent)}"
                for var, extent in zip(node.loop_vars, node.extents, strict=True)
            )
            return f"parallel {loops}"
        case forms.Atomic():
            place = f"{node.buffer.name}[{', '.join(map(text, node.index))}]"
            old = f"{node.result.name} = " if node.result is not None else ""
            return f"{old}atomic.{node.op} {place} <- {text(node.value)} {node.order}"
        case forms.AtomicTile():
            return f"atomic.{node.op} {region_text(node.dst)} <- {region_text(node.src)}"
        case forms.Let():
            return f"let {node.var.name}: {node.var.dtype} = {text(node.value)}"
        case forms.Declare():
            init = "undefined" if node.init is None else text(node.init)
            return f"var {node.buffer.name}: {node.buffer.dtype} = {init}"
        case forms.Store():
            index = f"[{', '.join(map(text, node.index))}]" if node.index else ""
            return f"{node.buffer.name}{index} = {text(node.value)}"
        case forms.For():
            return f"{node.kind} {_range(node.var, node.start, node.stop)}{_step(node.step)}"
        case forms.Pipelined():
            loop = _range(node.var, node.start, node.stop)
            return f"pipelined {loop} stages {text(node.num_stages)}"
        case forms.While():
            return f"while {text(node.condition)}"
        case forms.If():
            return f"if {text(node.condition)}"
        case forms.Jump():
            return node.kind
        case forms.AuthorSync():
            return _sync(node)
        case forms.BulkCopy():
            told = "" if node.barrier is None else f" tells {_barrier(node.barrier, node.index)}"
            return f"bulk copy {region_text(node.dst)} <- {region_text(node.src)}{told}"
        case forms.ElementCopy():
            sides = [
                f"{buffer.name}[{', '.join(map(text, index))}]"
                for buffer, index in ((node.dst, node.target), (node.src, node.source))
            ]
            return f"start copy {sides[0]} <- {sides[1]} of {node.count} elements"
        case forms.BarrierArrive():
            how = "arrive" if node.arrives else "expect"
            how = f"{how} behind copies" if node.copies else how
            size = "" if node.bytes is None else f" with {text(node.bytes)} bytes"
            return f"{how} {_barrier(node.barrier, node.index)}{size}"
        case forms.BarrierWait():
            return f"wait {_barrier(node.barrier, node.index)} parity {text(node.parity)}"
        case forms.Order():
            left = f" {node.pending}" if node.kind.endswith("_wait") else ""
            return f"order {node.kind}{left}"
        case forms.Hold():
            return f"hold {node.buffer.name}"
        case forms.SetRegisters():
            return f"registers {node.count} {'or more' if node.more else 'at most'}"
        case forms.Assert():
            return f"assert {text(node.condition)}, {node.message!r}"
        case forms.Print():
            return f"print {', '.join([repr(node.label), *map(text, (*node.index, node.value))])}"
        case forms.Foreign():
            return f"call {node.name}({', '.join(map(_argument, node.args))})"
        case _:
            assert_never(node)


def _argument(arg: Expr | forms.Pointer) -> str:
    if not isinstance(arg, forms.Pointer):
        return expression_text(arg)
    index = ", ".join(map(expression_text, arg.index))
    return f"{arg.access} &{arg.buffer.name}[{index}]"


def _gemm(node: forms.Gemm) -> str:
    a = region_text(node.a) + (".T" if node.transpose_a else "")
    b = region_text(node.b) + (".T" if node.transpose_b else "")
    parts = f"gemm {region_text(node.c)} += {a} @ {b}"
    if node.asynchronous:
        parts = f"start {parts}"
    if node.policy != "square":
        parts += f" policy {node.policy}"
    if not (isinstance(node.clear, Const) and not node.clear.value):
        parts += f" clear {expression_text(node.clear)}"
    return parts


def _sync(node: forms.AuthorSync) -> str:
    if node.barrier is None:
        return "sync"
    return f"{'sync' if node.waits else 'arrive at'} {node.barrier} of {node.count} threads"


def _barrier(barrier: Buffer, index: Expr | None) -> str:
    return f"{barrier.name}[{expression_text(index)}]" if index is not None else barrier.name


def _range(var: Var, start: Expr, stop: Expr) -> str:
    return f"{var.name} in {expression_text(start)} .. {expression_text(stop)}"


def _step(step: int) -> str:
    return "" if step == 1 else f" step {step}"


def region_text(region: Region) -> str:
    """`A[by * block_M +: block_M, :, i]`: start and extent, a whole dimension, a plain index."""
    parts: list[str] = []
    for part, whole in zip(region.ranges, region.buffer.shape, strict=True):
        start = expression_text(part.start)
        if part.point:
            parts.append(start)
        elif start == "0" and part.extent == whole:
            parts.append(":")
        else:
            parts.append(f"{start} +: {expression_text(part.extent)}")
    return f"{region.buffer.name}[{', '.join(parts)}]"


# ---- expressions


def expression_text(expr: Expr) -> str:
    """An expression with brackets only where they are needed."""
    return _expression(expr)[0]


def _expression(expr: Expr) -> tuple[str, int]:
    node = cast(AnyExpr, expr)
    text = expression_text
    match node:
        case Const():
            return _constant(node)
        case Var():
            return node.name, ATOM
        case Load():
            index = f"[{', '.join(map(text, node.index))}]" if node.index else ""
            return f"{node.buffer.name}{index}", ATOM
        case Binary(op="truncdiv" | "truncmod" | "ceildiv" | "min" | "max" | "pow"):
            return f"{node.op}({text(node.a)}, {text(node.b)})", ATOM
        case Binary() | Compare() | Logical():
            level = PRECEDENCE[node.op]
            left, right = _bracketed(node.a, level), _bracketed(node.b, level + 1)
            return f"{left} {node.op} {right}", level
        case Unary(op="not"):
            return f"not {_bracketed(node.a, PRECEDENCE['not'])}", PRECEDENCE["not"]
        case Unary():
            return f"{node.op}{_bracketed(node.a, UNARY)}", UNARY
        case Select():
            name = "select" if node.lazy else "select_both"
            return f"{name}({text(node.condition)}, {text(node.a)}, {text(node.b)})", ATOM
        case Cast():
            return f"{node.dtype}({text(node.a)})", ATOM
        case Reinterpret():
            return f"bits<{node.dtype}>({text(node.a)})", ATOM
        case Call():
            return f"{node.function}({', '.join(map(text, node.args))})", ATOM
        case _:
            assert_never(node)


def _bracketed(expr: Expr, least: int) -> str:
    text, level = _expression(expr)
    return text if level >= least else f"({text})"


def _constant(node: Const) -> tuple[str, int]:
    if node.name is not None:
        return node.name, ATOM
    text = _number(node.value)
    natural = "bool" if isinstance(node.value, bool) else "int32"
    natural = "float32" if isinstance(node.value, float) else natural
    if node.dtype.name != natural:
        return f"{node.dtype}({text})", ATOM
    return text, UNARY if text.startswith("-") else ATOM


def _number(value: float | int | bool) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return repr(value)


# ---- lines


def _comments(comments: tuple[str, ...], indent: str) -> list[str]:
    return [f"{indent}# {line}".rstrip() for line in comments]


def _wrapped(line: str) -> list[str]:
    """A line cut at blanks where it passes the width; what follows is indented further."""
    if len(line) <= WIDTH:
        return [line]
    indent = line[: len(line) - len(line.lstrip())] + INDENT * 2
    lines: list[str] = []
    rest = line
    while len(rest) > WIDTH:
        cut = rest.rfind(" ", len(indent) + 1, WIDTH + 1)
        if cut <= len(indent):
            break
        lines.append(rest[:cut].rstrip())
        rest = indent + rest[cut + 1 :]
    return [*lines, rest]
